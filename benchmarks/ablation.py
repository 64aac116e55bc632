"""python -m benchmarks.ablation: the effect of each change to the published algorithm, alone and when it is left out.

Regret / violation / strong violation after T episodes in shares of sqrt(L|S||A|T), means over problems, losses and
seeds (a negative regret counts as 0). The four changes are options of `ucpd`; α and V are the theorem's times 0.01 and
0.1 wherever one of them is on. Finished runs are kept and not played again, as by `benchmarks.suite`.
"""

import argparse
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.runs import MEASURES, Row
from benchmarks.suite import LOSSES, played

PROBLEMS = ("autonomous-driving", "media-streaming", "random", "river-swim")
CHANGES: dict[str, Row] = {
    "anytime KL sets, renewed at 10 % growth": {"confidence": "kl", "renewal": 0.1},
    "tied dynamics": {"ties": True},
    "multipliers charged for what was played": {"charge": "played"},
    "proportional term": {"proportional": 10.0},
}


def configurations() -> dict[str, tuple[str, Row, bool]]:
    """Return what is played: label, learner, options, and whether α and V are smaller than the theorem's."""
    everything = {name: value for change in CHANGES.values() for name, value in change.items()}
    rows: dict[str, tuple[str, Row, bool]] = {"`ucpd` as published": ("ucpd", {}, False)}
    rows["with smaller α and V"] = ("ucpd", {}, True)
    for words, change in CHANGES.items():
        rows[f"and {words}"] = ("ucpd", change, True)
    rows["and all four"] = ("ucpd", everything, True)
    for words, change in CHANGES.items():
        rest = {name: value for name, value in everything.items() if name not in change}
        rows[f"all but {words}"] = ("ucpd", rest, True)
    rows["`ucpd-practical`"] = ("ucpd-practical", {}, False)
    rows["without ties"] = ("ucpd-practical", {"ties": False}, False)
    rows["with the L1 ball around the KL ball"] = ("ucpd-practical", {"confidence": "kl-l1"}, False)
    rows["without prudence"] = ("ucpd-practical", {"prudence": 0.0}, False)
    rows["with a step after every episode"] = ("ucpd-practical", {"block": 1}, False)
    rows["charged as an optimist sees uses"] = ("ucpd-practical", {"realism": 0.0}, False)
    rows["charged by the counts alone"] = ("ucpd-practical", {"realism": 1.0}, False)
    return rows


def task(
    learner: str, options: Row, smaller: bool, name: str, losses: str, episodes: int, seed: int
) -> tuple[Any, ...]:
    L = tr.make(name).space.n_layers
    steps = {"alpha": 0.01 * L * episodes, "V": 0.1 * L * float(np.sqrt(episodes))} if smaller else {}
    return learner, name, losses, episodes, seed, options | steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--results", type=Path, default=Path("runs/ablation.jsonl"))
    given = parser.parse_args()
    wanted = {
        words: [
            task(*of, name, losses, given.episodes, seed)
            for name in PROBLEMS
            for losses in LOSSES
            for seed in range(given.seeds)
        ]
        for words, of in configurations().items()
    }
    rows = iter(played([run for runs in wanted.values() for run in runs], given.results, given.jobs))
    lines = []
    for words, runs in wanted.items():
        cells = np.array([[row[measure] for measure in MEASURES] for row in islice(rows, len(runs))])
        cells[:, 0] = np.maximum(cells[:, 0], 0)
        lines.append((words, *(f"{mean:.3f}" for mean in cells.mean(axis=0)), f"{cells[:, 1].max():.3f}"))
    text = page.table(("", "regret", "violation", "strong violation", "largest violation"), lines)
    print(text)
    about = f"{', '.join(PROBLEMS)} x {', '.join(LOSSES)}, T = {given.episodes:,}, {given.seeds} seeds."
    page.write("ablation", f"{about}\n\n{text}", page.COMPARISON)


if __name__ == "__main__":
    main()

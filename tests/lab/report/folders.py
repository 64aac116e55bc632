"""Made-up folders of studies in the layout of docs/how-to/studies.md, with known content."""

import csv
import json
from pathlib import Path

import numpy as np

from tightrope.lab.run import spaced

LEARNERS = ("ucpd-practical", "ucpd", "uniform")
LIMIT = 14.4


def write_study(
    folder: Path,
    *,
    learners: tuple[str, ...] = LEARNERS,
    n_seeds: int = 4,
    episodes: int = 10_000,
    problem: str = "edge-cloud",
    budget: str = "delay",
    table: bool = True,
    prefix: str = "run",
) -> dict[str, list[object]]:
    """Write table, histories and reports; returns the table. Regret is 3 √t, more or less, and goes below 0 for one."""
    records = spaced(episodes).astype(np.float64)
    whole: dict[str, list[object]] = {}
    for k, learner in enumerate(learners):
        for seed in range(n_seeds):
            rng = np.random.default_rng([k, seed])
            run = f"{prefix}-{k}-{seed}"
            regret = 3 * (k + 1) * records ** (0.5 + 0.1 * k) * rng.uniform(0.8, 1.2) * (-1 if k == 2 else 1)
            over = np.maximum(records ** (0.6 + 0.1 * k) * rng.uniform(0.8, 1.2) - 5 * (k + 1), 0)
            use = records * LIMIT * (0.9 + 0.1 * k) + 100 * np.sqrt(records) * rng.uniform(0.5, 1)
            columns: dict[str, list[object]] = {
                "run": [run] * len(records),
                "problem": [problem] * len(records),
                "losses": ["switching"] * len(records),
                "noise": ["none"] * len(records),
                "learner": [learner] * len(records),
                "learner.radius_scale": ["0.1" if k == 0 else ""] * len(records),
                "episodes": [episodes] * len(records),
                "seed": [seed] * len(records),
                "episode": records.tolist(),
                "regret": regret.tolist(),
                "violation": over.tolist(),
                "strong_violation": (over + records).tolist(),
                "multiplier_norm": np.log(records + 1).tolist(),
                "epoch": np.floor(np.log2(records) + 1).tolist(),
                f"use_{budget}": use.tolist(),
                f"violation_{budget}": np.maximum(use - LIMIT * records, 0).tolist(),
                "regret_scaled": (regret / 7).tolist(),
            }
            (folder / "runs" / run).mkdir(parents=True)
            write_csv(folder / "runs" / run / "history.csv", columns)
            limit = {"column": f"use_{budget}", "name": budget, "unit": "hops", "limit": LIMIT}
            facts = {"title": problem, "loss_unit": "euros", "units": "regret in euros", "budgets": [limit]}
            settings = {"learner": learner, "radius_scale": 0.1 * (k + 1), "confidence": "L1"}
            (folder / "runs" / run / "run.json").write_text(
                json.dumps({"status": "finished", "problem": facts, "settings": settings})
            )
            for name, column in columns.items():
                whole.setdefault(name, []).extend(column)
    if table:
        write_csv(folder / "table.csv", whole)
    return whole


def write_csv(path: Path, columns: dict[str, list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values(), strict=True))

"""python -m benchmarks.exponents: how regret and violation of ucpd-practical grow with the number of episodes.

It needs no horizon, so one run of 100,000 episodes contains all shorter ones. Exponents are slopes of log(mean over
seeds) against log(episodes) from 1,000 on, by least squares over the records where the mean is positive; a mean that is
0 or negative at the end has no exponent.
"""

import argparse
from io import BytesIO
from typing import NamedTuple

import joblib
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import tightrope as tr
from benchmarks import page
from tightrope.lab.figures import INK, MUTED, PALETTE
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes

RUNS = (("media-streaming", "chaser"), ("river-swim", "chaser"), ("edge-cloud", "switching"))
MEASURES = ("regret", "violation", "strong_violation")
FIRST = 1_000
PICTURE = page.DOCS / "images" / "exponents.png"


class Curves(NamedTuple):
    """Means over seeds, from episode FIRST on."""

    episode: FloatArray
    mean: dict[str, FloatArray]

    def exponent(self, measure: str) -> float:
        """Return the exponent; NaN with fewer than three positive means, or if the last one is not positive."""
        mean = self.mean[measure]
        positive = mean > 0
        if positive.sum() < 3 or not positive[-1]:
            return float("nan")
        return float(np.polyfit(np.log(self.episode[positive]), np.log(mean[positive]), 1)[0])


def one(name: str, losses: str, episodes: int, seed: int) -> tuple[FloatArray, ...]:
    history = tr.run(tr.make(name, losses=losses), "ucpd-practical", episodes=episodes, seed=seed, records=25)
    late = history["episode"] >= FIRST
    return (history["episode"][late], *(history[measure][late] for measure in MEASURES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    asked = [(name, losses, given.episodes, seed) for name, losses in RUNS for seed in range(given.seeds)]
    histories = iter(joblib.Parallel(n_jobs=given.jobs)(joblib.delayed(one)(*run) for run in asked))
    curves: dict[tuple[str, str], Curves] = {}
    for run in RUNS:
        parts = np.mean([next(histories) for _ in range(given.seeds)], axis=0)
        curves[run] = Curves(parts[0], dict(zip(MEASURES, parts[1:], strict=True)))

    lines = []
    for (name, losses), of in curves.items():
        cells = [f"{of.mean[m][-1]:,.1f} ({of.exponent(m):.2f})".replace("(nan)", "(–)") for m in MEASURES]
        lines.append((f"{name}, {losses}", *cells))
    text = page.table(("", "regret (exponent)", "violation (exponent)", "strong violation (exponent)"), lines)
    print(text)
    about = f"After {given.episodes:,} episodes, means of {given.seeds} seeds; – where it is not above 0 at the end."
    page.write("exponents", f"{about}\n\n{text}", page.COMPARISON)
    draw(curves)


def draw(curves: dict[tuple[str, str], Curves]) -> None:
    """Draw a panel for each run, with logarithmic axes; the dashed line is sqrt(episodes)."""
    with mpl.rc_context(page.DRAWN):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        for axes, ((name, losses), of) in zip(figure.subplots(1, len(curves)), curves.items(), strict=True):
            for measure, colour in zip(MEASURES, (PALETTE[0], PALETTE[1], PALETTE[2]), strict=True):
                if (of.mean[measure] <= 0).all():
                    continue
                mean = np.where(of.mean[measure] > 0, of.mean[measure], np.nan)
                axes.plot(of.episode, mean, "o-", ms=3, color=colour, label=measure.replace("_", " "))
            top = np.nanmax([np.where(mean > 0, mean, np.nan) for mean in of.mean.values()])
            axes.plot(of.episode, top * np.sqrt(of.episode / of.episode[-1]), color=MUTED, ls=page.DASHED, label="√T")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("episodes")
            below = [m.replace("_", " ") for m in MEASURES if (of.mean[m] <= 0).all()]
            axes.set_title(f"{name}, {losses}", loc="left", color=INK, fontsize=10)
            axes.set_ylim(top=4 * top)
            title = f"never above 0: {', '.join(below)}" if below else None
            axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2, title=title, title_fontsize=8)
        data = BytesIO()
        figure.savefig(data, format="png", dpi=160, metadata={"Software": None})
    write_bytes(PICTURE, data.getvalue())


if __name__ == "__main__":
    main()

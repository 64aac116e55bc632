"""Bounds of the theorem beside measured values: `python -m benchmarks.bounds` writes docs/explanation/theory.md.

`ucpd` as published and `ucpd-inside`, one seed, the losses and the noise that each problem has by default.
"""

import sys
from collections.abc import Callable, Mapping

import tightrope as tr
from benchmarks import page
from tightrope.problems.base import Problem
from tightrope.theory import Bound, bounds, bounds_inside, measure

BoundsOf = Callable[..., dict[str, Bound]]

PROBLEMS = ("media-streaming", "river-swim", "random")
EPISODES = 100_000
TERMS = {
    "epoch": "epochs, ℓ(T)",
    "model_error": "Σ ‖θ^t − θ̄^t‖₁",
    "multiplier_peak": "max ‖Q(t)‖₂",
    "movement": "Σ ‖θ^{t+1} − θ^t‖₁",
    "regret": "regret",
    "violation": "violation",
}
TERMS_INSIDE = {
    "model_error": "Σ ‖θ^t − θ̄^t‖₁",
    "regret": "regret",
    "strong_violation": "strong violation",
    "violation": "violation",
}


def says_something(problem: Problem, name: str, bounds_of: BoundsOf) -> str:
    """Return the power of ten of T from which on the bound is below the trivial one."""
    for power in range(2, 16):
        bound = bounds_of(problem, episodes=10**power)[name]
        if bound.value < bound.trivial:
            return f"10^{power}"
    return "later"


def rows(
    name: str, episodes: int, learner: str, bounds_of: BoundsOf, terms: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """Return a row for each term of a problem."""
    problem = tr.make(name)
    found = bounds_of(problem, episodes=episodes)
    history = measure(problem, learner, episodes=episodes, regret="last", records=2)
    return [
        (name, label, *(f"{x:,.0f}" for x in (found[term].value, found[term].trivial, history[term][-1])),
         ratio(found[term], float(history[term][-1])), says_something(problem, term, bounds_of))
        for term, label in terms.items()
    ]  # fmt: skip


def ratio(bound: Bound, measured: float) -> str:
    """Return the bound divided by the measured value."""
    return f"{bound.value / measured:,.0f}" if measured > 0 else "–"


def main(episodes: int = EPISODES) -> None:
    """Measure, and write the tables."""
    heading = ("problem", "term", "bound", "holds anyway", "measured", "bound / measured", "says something from T =")
    for mark, learner, bounds_of, terms in (
        ("bounds", "ucpd", bounds, TERMS),
        ("bounds inside", "ucpd-inside", bounds_inside, TERMS_INSIDE),
    ):
        lines = [line for name in PROBLEMS for line in rows(name, episodes, learner, bounds_of, terms)]
        page.write(mark, page.table(heading, lines), page.DOCS / "explanation" / "theory.md")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

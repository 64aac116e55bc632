"""python -m benchmarks.nasty 10000: the projection on nasty instances, by factors and by conjugate gradients.

Every instance (`tests.instances.nasty_instance`) is solved four times: cold, then with the opposite cost, warm from the
first answer; with H factorised, then by conjugate gradients. A failure is an error, or an answer that misses its
certificate: flow residual and set violation at most 1e-9, and a duality gap of at most 1e-9 relative to the size of the
objective and of the potentials, which convert a residual into an error of the objective. `--span 400`: ordinary
instances with weights up to e^400 apart (`tests.instances.wide_instance`).
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tests.instances import Nasty, flow_residual, nasty_instance, objective, wide_instance
from tightrope.errors import TightropeError
from tightrope.projection import projector
from tightrope.projection.projector import Projector

TOLERANCE = 1e-9
METHODS = {"factors": np.inf, "conjugate gradients": 0.0}


class Outcome(NamedTuple):
    """The outcome of one solve."""

    seed: int
    method: str
    start: str  #: cold, or reversed: warm from the opposite cost
    residual: float
    violation: float
    gap: float  #: relative to 1 + |objective|
    worth: float  #: 1 + |objective| + the largest potential, relative to 1 + |objective|
    steps: int
    error: str

    @property
    def failed(self) -> bool:
        worst = max(self.residual, self.violation, abs(self.gap) / self.worth)
        return bool(self.error) or not worst <= TOLERANCE


@contextmanager
def solved_by(method: str) -> Iterator[None]:
    """Make projectors inside the block use this method, whatever their size."""
    usual = projector.DIRECT_OPERATIONS
    projector.DIRECT_OPERATIONS = METHODS[method]  # type: ignore[assignment]
    try:
        yield
    finally:
        projector.DIRECT_OPERATIONS = usual


def instance_of(seed: int, span: float) -> Nasty:
    """Return the nasty instance of a seed; or, given a span, the wide one."""
    return wide_instance(seed, span) if span else nasty_instance(seed)


def outcomes(seed: int, span: float = 0.0) -> Iterator[Outcome]:
    """Return the outcomes of the four solves of one instance."""
    instance = instance_of(seed, span)
    for method in METHODS:
        with solved_by(method):
            projector = Projector(instance.space, TOLERANCE)
        for start, sign in (("cold", 1.0), ("reversed", -1.0)):
            yield solve(projector, seed, method, start, instance._replace(cost=sign * instance.cost))


def solve(projector: Projector, seed: int, method: str, start: str, instance: Nasty) -> Outcome:
    """Solve an instance; the outcome is computed from the answer, but the dual value is the solver's."""
    space, reference, cost, confidence, _ = instance
    theta = np.full(space.n_tuples, np.nan)
    try:
        projector.solve(reference, cost, confidence, theta)
    except TightropeError as error:
        return Outcome(seed, method, start, np.nan, np.nan, np.nan, 1.0, projector.iterations, str(error))
    primal = objective(instance, theta)
    dual = float(np.sum(reference)) - space.n_layers - projector.dual_value
    return Outcome(
        seed,
        method,
        start,
        residual=flow_residual(space, theta),
        violation=confidence.violation(space, theta),
        gap=(primal - dual) / (1 + abs(primal)),
        worth=1 + float(np.abs(projector.potentials).max()) / (1 + abs(primal)),
        steps=projector.iterations,
        error="",
    )


def summary(of: list[Outcome]) -> str:
    """Return one line for the solves of one method from one kind of start."""
    good = [outcome for outcome in of if not outcome.error]
    residual, violation, gap = (
        max((abs(value) for value in values), default=0.0)
        for values in zip(*((o.residual, o.violation, o.gap) for o in good), strict=True)
    )
    half, most, nearly, largest = np.quantile([outcome.steps for outcome in of], [0.5, 0.9, 0.99, 1.0])
    return (
        f"{len(of)} solves, {sum(outcome.failed for outcome in of)} failures; largest residual {residual:.1e}, "
        f"violation {violation:.1e}, relative gap {gap:.1e}; "
        f"steps: median {half:.0f}, 90 % {most:.0f}, 99 % {nearly:.0f}, most {largest:.0f}"
    )


def main() -> None:
    """Solve, and print the failures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nasty", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("instances", type=int, nargs="?", default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first instance")
    parser.add_argument("--span", type=float, default=0.0, help="span of the logarithms of the weights, up to 690")
    parser.add_argument("--show", type=int, default=40, help="number of failures to list")
    options = parser.parse_args()
    solved: list[Outcome] = []
    for seed in range(options.first, options.first + options.instances):
        solved += outcomes(seed, options.span)
        if (seed + 1) % 500 == 0 and sys.stderr.isatty():
            print(f"\r{seed + 1 - options.first} instances", end="", file=sys.stderr, flush=True)
    for method in METHODS:
        for start in ("cold", "reversed"):
            chosen = [outcome for outcome in solved if (outcome.method, outcome.start) == (method, start)]
            print(f"{method}, {start}: {summary(chosen)}")
    failures = [outcome for outcome in solved if outcome.failed]
    for failure in failures[: options.show]:
        measured = f"residual {failure.residual:.1e}, violation {failure.violation:.1e}, gap {failure.gap:.1e}"
        print(f"seed {failure.seed}, {failure.method}, {failure.start}: {failure.error or measured}")
        print(f"    {instance_of(failure.seed, options.span).traits}")
    if failures:
        traits = Counter(trait for f in failures for trait in instance_of(f.seed, options.span).traits.split(", "))
        print("traits of failures:", ", ".join(f"{trait} {count}" for trait, count in traits.most_common(8)))
    print(f"{len(solved)} solves, {len(failures)} failures in {len({f.seed for f in failures})} instances")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

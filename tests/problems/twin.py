"""A problem told a second time, as a function over the states of its story, and solved by other means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from tests.conftest import FloatArray
from tightrope import InfeasibleError, Problem, solve_cmdp
from tightrope.planning.hindsight import best_policy
from tightrope.problems.losses import Scenarios

#: Anything hashable.
State = Any


class Move(NamedTuple):
    """What may come of an action: where it leads, the loss in each scenario and the use of each budget, in units."""

    probability: float
    state: State
    losses: Sequence[float]
    uses: Sequence[float]


@dataclass(frozen=True)
class Twin:
    """`law(state, action, step)` lists the moves; a state without actions is where nothing happens any more."""

    start: Mapping[State, float]
    n_steps: int
    actions: Callable[[State], Sequence[int]]
    law: Callable[[State, int, int], list[Move]]

    def best(self, scenario: int) -> float:
        """The least loss without budgets, by recursion over what is left."""

        @cache
        def value(state: State, step: int) -> float:
            if step == self.n_steps or not self.actions(state):
                return 0.0
            return min(
                sum(move.probability * (move.losses[scenario] + value(move.state, step + 1)) for move in moves)
                for moves in (self.law(state, action, step) for action in self.actions(state))
            )

        return sum(chance * value(state, 0) for state, chance in self.start.items())

    def within(self, scenario: int, budgets: FloatArray) -> float:
        """The least loss within the budgets: one LP over how often each action is taken, state by state and step."""
        flow: list[tuple[int, int, float]] = []  # (place, variable, share)
        source: list[float] = []
        losses: list[float] = []
        uses: list[FloatArray] = []
        places: dict[tuple[State, int], int] = {}

        def place(state: State, step: int) -> int:
            if (state, step) not in places:
                places[state, step] = len(places)
                source.append(self.start.get(state, 0.0) if step == 0 else 0.0)
            return places[state, step]

        waiting = [(state, 0) for state in self.start]
        for state, step in waiting:  # grows as it is read
            here = place(state, step)
            for action in self.actions(state):
                variable, moves = len(losses), self.law(state, action, step)
                flow.append((here, variable, 1.0))
                losses.append(sum(move.probability * move.losses[scenario] for move in moves))
                uses.append(sum((move.probability * np.array(move.uses) for move in moves), np.zeros(len(budgets))))
                for move in moves:
                    if step + 1 < self.n_steps and self.actions(move.state):
                        if (move.state, step + 1) not in places:
                            waiting.append((move.state, step + 1))
                        flow.append((place(move.state, step + 1), variable, -move.probability))
        row, column, share = zip(*flow, strict=True)
        answer = linprog(  # type: ignore[call-overload]  # the stubs know of dense matrices only
            losses,
            A_ub=np.array(uses).T,
            b_ub=budgets,
            A_eq=coo_array((share, (row, column)), (len(source), len(losses))).tocsr(),
            b_eq=source,
            method="highs-ds",
        )
        if answer.status == 2:
            raise InfeasibleError("the twin says that no policy meets the budgets")
        assert answer.status == 0, answer.message
        return float(answer.fun)


def scenarios(problem: Problem) -> FloatArray:
    """(K, n_tuples) as the learner meets them."""
    assert isinstance(problem.losses, Scenarios)
    return problem.losses.scenarios


def assert_same(problem: Problem, twin: Twin) -> None:
    """In every scenario, without and within the budgets, both have the same best loss, in the problem's own units."""
    for k, loss in enumerate(scenarios(problem)):
        value, _ = best_policy(problem.mdp, loss)
        within = solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets)
        budgets = problem.use_in_units(problem.budgets)
        assert problem.loss_in_units(value, 1) == pytest.approx(twin.best(k), rel=1e-9, abs=1e-9), k
        assert problem.loss_in_units(within.value, 1) == pytest.approx(twin.within(k, budgets), rel=1e-6, abs=1e-6), k

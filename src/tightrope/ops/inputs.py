"""What a client tells, in its names and units, as a learner takes it."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import shown, unknown
from tightrope.arguments.arrays import floats
from tightrope.assumptions import BOUND_TOLERANCE
from tightrope.errors import InvalidInputError
from tightrope.learners.base import Feedback
from tightrope.model import Policy
from tightrope.ops.api import Called, Tell, Values
from tightrope.ops.status import BudgetUnits
from tightrope.ops.tables import Tables
from tightrope.space import FloatArray, LayeredSpace
from tightrope.units import Units

#: What laying a problem out over time adds to the names of its states.
STEP = re.compile(r", step \d+$")


def digits(text: str) -> int | None:
    """The whole number that is written there; None if there is none, or one that nothing has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


class Reader:
    """Knows what states, actions and budgets are called, and what is known of losses and uses without being told."""

    def __init__(self, space: LayeredSpace, feedback: Feedback, budgets: BudgetUnits, tables: Tables) -> None:
        self.space, self.feedback, self.budgets, self.tables = space, feedback, budgets, tables
        self.layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
        self._units = Units(
            loss_scale=tables.loss_scale, loss_offset=tables.loss_offset, constraint_scales=np.array(budgets.scales)
        )
        self._states = defaultdict(list)
        for state, name in enumerate(space.state_names or map(str, range(space.n_states))):
            for called in {name, STEP.sub("", name)}:
                self._states[called].append(state)
        self._actions = {name: k for k, name in enumerate(space.action_names or map(str, range(space.n_actions)))}

    def state(self, called: Called, layer: int | None = None) -> int:
        """The number of a state; with its layer, a name may leave out the step."""
        if isinstance(called, int):
            return self.space.state_number(called)
        found = [state for state in self._called(called) if layer is None or self.layer[state] == layer]
        if len(found) != 1:
            which = "; say which step" if layer is None else f" at step {layer}"
            raise InvalidInputError(f"{len(found) or 'no'} states are called {shown(called)}{which}")
        return found[0]

    def written(self, text: str) -> int:
        """The number of a state in an address, where all is text: digits are a number, unless a state is called so."""
        number, named = digits(text), self._states.get(text, [])
        if number is None or (named and number >= self.space.n_states):
            return self.state(text)
        if named not in ([], [number]):
            other = f"number={named[0]}" if len(named) == 1 else "the name with its step"
            raise InvalidInputError(
                f"{text} is the number of {self.space.state_name(number)!r}, and another state is called so; write "
                f"number={number} or {other}"
            )
        return self.space.state_number(number)

    def _called(self, name: str) -> list[int]:
        if name not in self._states:
            raise unknown("there is no state", name, list(self._states)[:50])
        return self._states[name]

    def action(self, called: Called) -> int:
        """The number of an action."""
        if isinstance(called, int):
            self.space.action_name(called)
            return called
        if called not in self._actions:
            raise unknown("there is no action", called, self._actions)
        return self._actions[called]

    def policy(self, given: Values, name: str) -> Policy:
        """A policy, in numbers or by name."""
        values = self._by_name(given, name) if isinstance(given, dict) else floats(given, name, (self.space.n_pairs,))
        return Policy(self.space, values)

    def read(self, told: Tell) -> dict[str, Any]:
        """The arguments of `DurableLearner.tell`, but for the id."""
        L = self.space.n_layers
        if not (len(told.states) in (L, L + 1) and len(told.actions) == L):
            raise InvalidInputError(
                f"there are {len(told.states)} states and {len(told.actions)} actions; an episode has {L} of each"
            )
        states = [self.state(called, k) for k, called in enumerate(told.states)]
        states += [self.space.n_states - 1] * (L + 1 - len(states))
        actions = [self.action(called) for called in told.actions]
        path = self.space.path(states, actions)
        return {
            "states": states,
            "actions": actions,
            "loss": self._loss(told, path),
            "constraints": self._constraints(told.constraints or {}, path),
        }

    def _loss(self, told: Tell, path: NDArray[np.int64]) -> FloatArray:
        n_recorded = len(self.tables.scenarios)
        if told.loss is not None:
            if told.scenario is not None:
                raise InvalidInputError("both loss and scenario are given; leave out one")
            return self._units.scaled_loss(self._values(told.loss, "loss", path))
        if told.scenario is None and n_recorded != 1:
            raise InvalidInputError("loss is missing: what each move cost, or would have cost")
        number = told.scenario or 1
        if number > n_recorded:
            raise InvalidInputError(f"scenario is {number}; {n_recorded} losses are recorded in the problem's table")
        return self._seen(self.tables.scenarios[number - 1], path)

    def _constraints(self, told: dict[str, Values], path: NDArray[np.int64]) -> FloatArray:
        for name in told:
            if name not in self.budgets.names:
                raise unknown("constraints: there is no budget", name, self.budgets.names)
        rows = []
        for i, (name, scale) in enumerate(zip(self.budgets.names, self._units.constraint_scales, strict=True)):
            if name in told:
                rows.append(self._values(told[name], f"constraints.{name}", path) / scale)
            elif len(self.tables.uses):
                rows.append(self._seen(self.tables.uses[i], path))
            else:
                raise InvalidInputError(f"constraints has no {shown(name)}: what each move used of it")
        peaks = np.array([row[np.argmax(np.abs(row))] for row in rows])
        self.refuse_beyond(peaks, 1, told, " in a move")
        return np.array(rows).reshape(len(rows), -1 if rows else len(path))

    def refuse_beyond(self, uses: FloatArray, steps: int, told: Iterable[str], where: str = "") -> None:
        """Uses (I,) as the learner meets them, in all at most 1 a step. Says the largest told, in its own units."""
        names, shares = self.budgets.names, np.abs(uses)
        said = [names.index(name) for name in told]
        if shares.sum() <= steps * (1 + BOUND_TOLERANCE) or not said:
            return
        i = max(said, key=lambda i: float(shares[i]))
        most = np.copysign(max(steps - (shares.sum() - shares[i]), 0.0), uses[i])
        use, limit = (
            f"{value * self.budgets.scales[i]:g} {self.budgets.units[i]}".strip() for value in (uses[i], most)
        )
        beside = ", beside the other budgets" if len(names) > 1 else ""
        raise InvalidInputError(
            f"{names[i]} is {use}{where}; it can be {'at most' if uses[i] > 0 else 'no less than'} {limit}{beside}"
        )

    def _seen(self, values: FloatArray, path: NDArray[np.int64]) -> FloatArray:
        """(n_tuples,) in; out what the learner wants to know of it."""
        return values if self.feedback == "full" else values[path]

    def _values(self, values: Values, name: str, path: NDArray[np.int64]) -> FloatArray:
        if isinstance(values, dict):
            return self._seen(self.space.expand_to_tuples(self._by_name(values, name)), path)
        n, every = (self.space.n_tuples, "move") if self.feedback == "full" else (len(path), "step")
        if len(values) != n:
            raise InvalidInputError(
                f"{name} has {len(values)} numbers; this learner wants one for every {every}, {n}, or one for every "
                "state and action, by name"
            )
        return floats(values, name, (n,))

    def _by_name(self, values: dict[str, dict[str, float]], name: str) -> FloatArray:
        """(n_pairs,) in the order of the space."""
        space, found = self.space, np.full(self.space.n_pairs, np.nan)
        for state_name, of_state in values.items():
            numbers = {self.action(action): value for action, value in of_state.items()}
            for state in self._called(state_name):
                first, end = space.csr.state_ptr[state : state + 2].tolist()
                pairs = {action: i for i, action in enumerate(space.csr.action[first:end].tolist(), first)}
                for action, value in numbers.items():
                    if action not in pairs:
                        raise InvalidInputError(
                            f"{name}: {space.action_name(action)!r} cannot be done in {space.state_name(state)!r}"
                        )
                    found[pairs[action]] = value
        if np.isnan(found).any():
            state, action = space.pairs[np.argmax(np.isnan(found))].tolist()
            raise InvalidInputError(
                f"{name} says nothing of {space.action_name(action)!r} in {space.state_name(state)!r}"
            )
        return found

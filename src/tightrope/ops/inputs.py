"""Translation of requests: from the names and units of a problem to the arrays of its learner.

The tables of the problem are stored in the directory of its learner; a client sends only what they do not contain.
"""

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import shown, unknown
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError, StorageError
from tightrope.learners.base import Feedback
from tightrope.model import Policy
from tightrope.ops.api import Name, Tell, Values
from tightrope.ops.database import Database
from tightrope.ops.learner import DurableLearner
from tightrope.ops.status import BudgetUnits
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses import Scenarios
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties
from tightrope.units import BOUND_TOLERANCE, Units

TABLES = "tables.npz"

#: The end of the name of a state in a problem that was unrolled over time.
STEP = re.compile(r", step \d+$")


@dataclass(frozen=True, eq=False)
class ProblemTables:
    """Losses and uses in the units of the learner, and the units of the loss."""

    scenarios: FloatArray  #: (K, n_tuples) recorded losses; K = 0 if there are none
    uses: FloatArray  #: (I, n_tuples) the constraints, if they are the same in every episode; otherwise (0, n_tuples)
    outcome: NDArray[np.int64]  #: (1, n_tuples) `Ties.outcome`; (0, n_tuples) without ties
    loss_scale: float = 1.0
    loss_offset: float = 0.0
    loss_unit: str = ""

    @classmethod
    def none(cls, n_tuples: int) -> Self:
        """Return empty tables: clients send everything, in the units of the learner."""
        return cls(np.empty((0, n_tuples)), np.empty((0, n_tuples)), np.empty((0, n_tuples), dtype=np.int64))

    @classmethod
    def of(cls, problem: Any) -> Self:
        """Return the tables of a problem."""
        n, losses, constraints = problem.space.n_tuples, problem.losses, problem.constraints
        return cls(
            losses.scenarios if isinstance(losses, Scenarios) else np.empty((0, n)),
            constraints.mean if isinstance(constraints, Deterministic) else np.empty((0, n)),
            np.empty((0, n), dtype=np.int64) if problem.ties is None else problem.ties.outcome[None],
            problem.loss_scale,
            problem.loss_offset,
            problem.loss_unit,
        )

    def own_loss(self, loss: float, steps: int) -> float:
        """Return the sum of the losses of so many steps in the units of the problem."""
        return self.loss_scale * loss + self.loss_offset * steps

    def ties(self, space: LayeredSpace) -> Ties | None:
        """Return the ties of the problem, on its space."""
        return Ties(space, *self.outcome) if len(self.outcome) else None

    def write(self, database: Database) -> None:
        """Write the tables beside the journal, unless they are there; refuse to replace different ones."""
        if database.read_file(TABLES) is not None:
            kept = self.read(database, self.scenarios.shape[1])
            if any(not np.array_equal(getattr(kept, field.name), getattr(self, field.name)) for field in fields(self)):
                raise InvalidInputError(
                    f"the learner in {database} was made for other tables than those of this problem; leave "
                    "the problem out to continue with the ones in the directory, or choose another directory"
                )
            return
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {field.name: np.array(getattr(self, field.name)) for field in fields(self)}
        np.savez_compressed(buffer, **arrays)
        database.write_file(TABLES, buffer.getvalue())

    @classmethod
    def read(cls, database: Database, n_tuples: int, problem: str = "") -> Self:
        """Return the tables beside the journal; empty ones if the learner was made without a problem."""
        data = database.read_file(TABLES)
        if data is None:
            if problem:
                raise StorageError(
                    f"{database}: {TABLES} is missing, so the units of {problem} are not known; restore it from a "
                    "backup, or pass the problem that the learner was made for"
                )
            return cls.none(n_tuples)
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as found:
                arrays = {field.name: found[field.name] for field in fields(cls)}
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(
                f"{database}: {TABLES} cannot be read: {error}; restore it from a backup, or remove it and pass the "
                "problem that the learner was made for"
            ) from error
        tables = cls(**{name: array if array.ndim else array.item() for name, array in arrays.items()})
        if any(array.shape[1:] != (n_tuples,) for array in (tables.scenarios, tables.uses, tables.outcome)):
            raise StorageError(f"{database}: {TABLES} belongs to another problem; restore it from a backup")
        return tables


def digits(text: str) -> int | None:
    """Return the whole number that a text consists of; None for other texts, and for more than 9 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


class Translator:
    """Translates names and units of a problem into numbers of its learner.

    Parameters
    ----------
    space : with the names of states and actions.
    feedback : of the learner.
    budgets : names and units.
    tables : losses and uses that clients need not send.
    """

    def __init__(self, space: LayeredSpace, feedback: Feedback, budgets: BudgetUnits, tables: ProblemTables) -> None:
        self.space, self.feedback, self.budgets, self.tables = space, feedback, budgets, tables
        self._layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
        self._units = Units(
            loss_scale=tables.loss_scale, loss_offset=tables.loss_offset, constraint_scales=np.array(budgets.scales)
        )
        self._states = defaultdict(list)
        for state, name in enumerate(space.state_names or map(str, range(space.n_states))):
            for called in {name, STEP.sub("", name)}:
                self._states[called].append(state)
        self._actions = {name: k for k, name in enumerate(space.action_names or map(str, range(space.n_actions)))}

    @classmethod
    def of(cls, learner: DurableLearner) -> Self:
        """Return the translator for the learner in a directory."""
        facts = learner.facts
        tables = ProblemTables.read(learner.database, learner.space.n_tuples, facts["problem"])
        space = learner.space.named(facts["states"], facts["actions"])
        return cls(space, learner.feedback, BudgetUnits.read(facts["units"]), tables)

    def state(self, name: Name, layer: int | None = None) -> int:
        """Return the number of a state; if its layer is given, the name may leave out the step."""
        if isinstance(name, int):
            return self.space.state_number(name)
        found = [state for state in self._named(name) if layer is None or self._layer[state] == layer]
        if len(found) != 1:
            where = "; add the step" if layer is None else f" at step {layer}"
            raise InvalidInputError(f"{len(found) or 'no'} states are called {shown(name)}{where}")
        return found[0]

    def state_in_url(self, text: str) -> int:
        """Return the number of a state in a URL, where digits are a number unless another state has that name."""
        number, named = digits(text), self._states.get(text, [])
        if number is None or (named and number >= self.space.n_states):
            return self.state(text)
        if named not in ([], [number]):
            other = f"number={named[0]}" if len(named) == 1 else "the name with its step"
            raise InvalidInputError(
                f"{text} is the number of {self.space.state_name(number)!r} and the name of another state; write "
                f"number={number} or {other}"
            )
        return self.space.state_number(number)

    def _named(self, name: str) -> list[int]:
        if name not in self._states:
            raise unknown("there is no state", name, list(self._states)[:50])
        return self._states[name]

    def action(self, name: Name) -> int:
        """Return the number of an action."""
        if isinstance(name, int):
            self.space.action_name(name)  # refuses a number that no action has
            return name
        if name not in self._actions:
            raise unknown("there is no action", name, self._actions)
        return self._actions[name]

    def policy(self, given: Values, name: str) -> Policy:
        """Return a policy that was given as numbers or by name."""
        values = self._by_name(given, name) if isinstance(given, dict) else floats(given, name, (self.space.n_pairs,))
        return Policy(self.space, values)

    def outcome(self, body: Tell) -> dict[str, Any]:
        """Return the outcome of an episode as arguments of `DurableLearner.tell`, without the id."""
        L = self.space.n_layers
        if not (len(body.states) in (L, L + 1) and len(body.actions) == L):
            raise InvalidInputError(
                f"there are {len(body.states)} states and {len(body.actions)} actions; an episode has {L} of each"
            )
        states = [self.state(name, k) for k, name in enumerate(body.states)]
        states += [self.space.n_states - 1] * (L + 1 - len(states))
        actions = [self.action(name) for name in body.actions]
        path = self.space.path(states, actions)
        loss, uses = self._loss(body, path), self._constraints(body.constraints or {}, path)
        return {"states": states, "actions": actions, "loss": loss, "constraints": uses}

    def _loss(self, body: Tell, path: NDArray[np.int64]) -> FloatArray:
        n_recorded = len(self.tables.scenarios)
        if body.loss is not None:
            if body.scenario is not None:
                raise InvalidInputError("both loss and scenario are given; leave out one")
            return self._units.scaled_loss(self._values(body.loss, "loss", path))
        if body.scenario is None and n_recorded != 1:
            raise InvalidInputError("loss is missing; send what each move cost, or would have cost")
        number = body.scenario or 1
        if number > n_recorded:
            raise InvalidInputError(f"scenario is {number}; {n_recorded} losses are recorded in the problem's table")
        return self._observed(self.tables.scenarios[number - 1], path)

    def _constraints(self, given: dict[str, Values], path: NDArray[np.int64]) -> FloatArray:
        for name in given:
            if name not in self.budgets.names:
                raise unknown("constraints: there is no budget", name, self.budgets.names)
        rows = []
        for i, (name, scale) in enumerate(zip(self.budgets.names, self._units.constraint_scales, strict=True)):
            if name in given:
                rows.append(self._values(given[name], f"constraints.{name}", path) / scale)
            elif len(self.tables.uses):
                rows.append(self._observed(self.tables.uses[i], path))
            else:
                raise InvalidInputError(f"constraints has no {shown(name)}; send what each move used of it")
        peaks = np.array([row[np.argmax(np.abs(row))] for row in rows])
        self.refuse_beyond(peaks, 1, given, " in a move")
        return np.array(rows).reshape(len(rows), -1 if rows else len(path))

    def refuse_beyond(self, uses: FloatArray, steps: int, given: Iterable[str], where: str = "") -> None:
        """Raise InvalidInputError if uses (I,), in the units of the learner, sum to more than 1 for each step.

        The error names the largest of the budgets that were given, in its own units.
        """
        names, shares = self.budgets.names, np.abs(uses)
        named = [names.index(name) for name in given]
        if shares.sum() <= steps * (1 + BOUND_TOLERANCE) or not named:
            return
        i = max(named, key=lambda i: float(shares[i]))
        most = np.copysign(max(steps - (shares.sum() - shares[i]), 0.0), uses[i])
        use, limit = (
            f"{value * self.budgets.scales[i]:g} {self.budgets.units[i]}".strip() for value in (uses[i], most)
        )
        others = ", given the other budgets" if len(names) > 1 else ""
        raise InvalidInputError(
            f"{names[i]} is {use}{where}; it can be {'at most' if uses[i] > 0 else 'no less than'} {limit}{others}"
        )

    def _observed(self, values: FloatArray, path: NDArray[np.int64]) -> FloatArray:
        """Return what the learner sees of values (n_tuples,): all of them, or those along the path."""
        return values if self.feedback == "full" else values[path]

    def _values(self, values: Values, name: str, path: NDArray[np.int64]) -> FloatArray:
        if isinstance(values, dict):
            return self._observed(self.space.expand_to_tuples(self._by_name(values, name)), path)
        n, each = (self.space.n_tuples, "move") if self.feedback == "full" else (len(path), "step")
        if len(values) != n:
            raise InvalidInputError(
                f"{name} has {len(values)} numbers; this learner needs one for every {each}, {n}, or one for every "
                "state and action, by name"
            )
        return floats(values, name, (n,))

    def _by_name(self, values: dict[str, dict[str, float]], name: str) -> FloatArray:
        """Return values by name as an array (n_pairs,)."""
        space, found = self.space, np.full(self.space.n_pairs, np.nan)
        for state_name, of_state in values.items():
            numbers = {self.action(action): value for action, value in of_state.items()}
            for state in self._named(state_name):
                first, end = space.csr.state_ptr[state : state + 2].tolist()
                pairs = {action: i for i, action in enumerate(space.csr.action[first:end].tolist(), first)}
                for action, value in numbers.items():
                    if action not in pairs:
                        raise InvalidInputError(
                            f"{name}: {space.action_name(action)!r} is no action of {space.state_name(state)!r}"
                        )
                    found[pairs[action]] = value
        if np.isnan(found).any():
            state, action = space.pairs[np.argmax(np.isnan(found))].tolist()
            raise InvalidInputError(
                f"{name} has no value for {space.action_name(action)!r} in {space.state_name(state)!r}"
            )
        return found

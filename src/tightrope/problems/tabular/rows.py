"""A user's tabular MDP as it is given: rows (state, action, next_state), their probabilities, and where to start."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import real, shown, whole
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, flat
from tightrope.space import FloatArray

#: The largest number of a state, an action or a step: products of two of them have room in 64 bits.
LARGEST_NUMBER = 2**31 - 1

Indices = NDArray[np.int64]

#: The state where episodes start, or {state: probability}.
Start = int | Mapping[int, float]


def checked_start(start: Start) -> tuple[Indices, FloatArray | None]:
    """The states of the first layer, ascending, and with which chances they are drawn (None: there is just one)."""
    if not isinstance(start, Mapping):
        return np.array([whole(start, "start", 0, LARGEST_NUMBER)]), None
    given = {whole(s, "a state of start", 0, LARGEST_NUMBER): real(p) for s, p in start.items()}
    chances = {s: -1.0 if p is None else p for s, p in given.items() if p != 0}
    total = sum(chances.values())
    if not (chances and min(chances.values()) > 0 and abs(total - 1) <= SUM_TOLERANCE):
        raise InvalidInputError(f"the probabilities of start are {shown(start)}; they must be positive and sum to 1")
    states = sorted(chances)
    return np.array(states), np.array([chances[s] for s in states])


def checked_rows(
    rows: ArrayLike, probabilities: ArrayLike, steps: ArrayLike | None
) -> tuple[Indices, FloatArray, Indices]:
    """Rows, probabilities and steps as arrays; none may be given twice, those of a pair sum to one at every step."""
    table = wholes(rows, "rows", ("n_rows", 3))
    if len(table) == 0:
        raise InvalidInputError("rows is empty; expected (n_rows, 3): state, action, next_state")
    at = np.zeros(len(table), dtype=np.int64) if steps is None else wholes(steps, "steps", (len(table),))
    for what, numbers in (("rows", table), ("steps", at)):
        outside = (numbers < 0) | (numbers > LARGEST_NUMBER)
        if outside.any():
            j = int(np.argmax(outside.reshape(len(table), -1).any(axis=1)))
            raise InvalidInputError(
                f"row {j} of {what} is {numbers[j]}; states, actions and steps count from 0 to {LARGEST_NUMBER}"
            )
    P = flat(probabilities, len(table), "probabilities").copy()
    if (P < 0).any():
        raise InvalidInputError(f"row {np.argmax(P < 0)} has probability {P.min()}; it cannot be negative")
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], at))
    _check_distributions(table[order], P[order], at[order])
    return table, P, at


def _check_distributions(table: Indices, P: FloatArray, at: Indices) -> None:
    """Sorted rows: none may be given twice, and those of a pair must sum to one at every step."""
    new_pair = np.ones(len(table), dtype=bool)
    new_pair[1:] = (np.diff(table[:, :2], axis=0) != 0).any(axis=1) | (np.diff(at) != 0)
    twice = np.flatnonzero(~new_pair[1:] & (np.diff(table[:, 2]) == 0))
    if len(twice):
        s, a, s_next = table[twice[0]]
        raise InvalidInputError(f"row ({s}, {a}, {s_next}) is given twice; add up its probabilities")
    totals = np.add.reduceat(P, np.flatnonzero(new_pair))
    wrong = np.abs(totals - 1) > SUM_TOLERANCE
    if wrong.any():
        i = int(np.argmax(wrong))
        s, a, _ = table[new_pair][i]
        raise InvalidInputError(f"probabilities from state {s} under action {a} sum to {totals[i]:.12g}, not 1")

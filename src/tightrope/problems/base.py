"""A problem: a model that the learner does not know, what may be charged on it, and the budgets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, flat
from tightrope.problems.constraints import BOUND_TOLERANCE, Constraints, checked_mean
from tightrope.problems.losses import Losses
from tightrope.space import FloatArray, LayeredSpace


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """An episodic CMDP with losses chosen by an adversary: minimise Σ_t <f^t, θ> subject to <g_i, θ> ≤ c_i.

    Checked when made: shapes, names, and Assumption 2 as far as it shows before a play (the first loss, the
    mean of the constraints, the budgets). To change a part: `dataclasses.replace(problem, losses=…)`.
    """

    name: str
    mdp: LayeredMDP
    losses: Losses
    constraints: Constraints
    budgets: FloatArray  # (I,) c, for a whole episode
    constraint_names: tuple[str, ...]
    state_names: Sequence[str] = ()  # one for every state of the space; empty: their numbers
    action_names: Sequence[str] = ()  # one for every action; empty: their numbers

    def __post_init__(self) -> None:
        space, n_constraints = self.space, len(self.constraint_names)
        if not self.name:
            raise InvalidInputError("a problem needs a name")
        if len(set(self.constraint_names)) < n_constraints:
            raise InvalidInputError(f"constraint_names is {self.constraint_names}; no two may be equal")
        for what, names, size in (
            ("state_names", self.state_names, space.n_states),
            ("action_names", self.action_names, space.n_actions),
        ):
            if len(names) not in (0, size):
                raise InvalidInputError(f"{what} has {len(names)} names; expected {size}, or none")

        mean = checked_mean(self.constraints.mean, largest_factor=1.0)
        if mean.shape != (n_constraints, space.n_tuples):
            raise InvalidInputError(
                f"the mean of the constraints has shape {mean.shape}; "
                f"expected ({n_constraints}, {space.n_tuples}): "
                "a row for each of constraint_names, a column for each tuple"
            )
        budgets = flat(np.array(self.budgets, dtype=np.float64), n_constraints, "budgets")
        total = np.abs(budgets).sum()
        if total > space.n_layers + BOUND_TOLERANCE:
            raise InvalidInputError(
                f"the budgets sum to {total:.6g} in absolute value; at most {space.n_layers} is allowed, the "
                "steps of an episode (no policy can use more)"
            )
        object.__setattr__(self, "budgets", budgets)

        probe = self.losses.begin(np.random.default_rng(0))
        first = flat(probe.loss(1), space.n_tuples, "the loss of episode 1")
        j = int(np.argmax(np.abs(first)))
        if abs(first[j]) > 1 + BOUND_TOLERANCE:
            raise InvalidInputError(f"the loss of episode 1 is {first[j]} at tuple {j}; it must be in [-1, 1]")

    @property
    def space(self) -> LayeredSpace:
        """What the learner may know of the model."""
        return self.mdp.space

    def state_name(self, state: int) -> str:
        """What the problem calls this state."""
        return self.state_names[state] if len(self.state_names) else str(state)

    def action_name(self, action: int) -> str:
        """What the problem calls this action."""
        return self.action_names[action] if len(self.action_names) else str(action)

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, {self.space!r}, losses={self.losses.name!r}, budgets={self.budgets})"

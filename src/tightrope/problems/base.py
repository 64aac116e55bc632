"""A problem: a model that the learner does not know, its losses and constraints, and the budgets.

A problem in euros or litres is scaled to Assumption 2 when it is made; `Problem.units` converts back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import implements, instance, number, text, texts, unknown, whole
from tightrope.arguments.arrays import finite, floats
from tightrope.errors import InfeasibleError, InvalidInputError
from tightrope.model import SUM_TOLERANCE, LayeredMDP, flat
from tightrope.planning.hindsight import best_policy, slater_slack, tolerance
from tightrope.problems.constraints import (
    ChangingConstraints,
    Constraints,
    Draws,
    NoiseChoice,
    Regulator,
    checked_mean,
    largest_factor,
    make_constraints,
)
from tightrope.problems.losses import Adversary, LossChoice, Losses, make_losses
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties
from tightrope.units import BOUND_TOLERANCE, Units

Numbers = TypeVar("Numbers", float, FloatArray)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """An episodic CMDP with losses chosen by an adversary: minimise Σ_t <f^t, θ> subject to <g_i, θ> ≤ c_i.

    Losses, constraints and budgets are in the units of the learner, within Assumption 2; `from_units` makes a problem
    from any other units. The constructor checks shapes, names, the first loss, the mean of the constraints and the
    budgets; `tightrope.checks.check_problem` plays episodes and checks the rest. To change a field, use
    `dataclasses.replace(problem, losses=…)`.

    Parameters
    ----------
    name : the name of the problem.
    mdp : the model; learners see only its space.
    losses : a loss sequence (`tightrope.problems.losses`).
    constraints : their mean, and how they are drawn (`tightrope.problems.constraints`).
    budgets : (I,) the most that an episode may use on average.
    constraint_names : the name of each constraint.
    state_names, action_names : one for each state or action; empty: the names in `mdp.space`.
    loss_scale, loss_offset : the loss in the problem's own units is loss_scale * loss + loss_offset, for each step.
    loss_unit : the name of the unit of losses, such as "euros".
    constraint_scales : (I,) a use of 1 in the problem's own units; empty: all 1.
    constraint_units : the name of the unit of each constraint; empty: none.
    ties : the pairs that are known to have the same transition distribution.
    warnings : limitations of the problem, which `check`, `run` and the report show.

    Raises
    ------
    InvalidInputError : if a field does not fit the others or is outside Assumption 2.

    Examples
    --------
    >>> import tightrope as tr
    >>> problem = tr.make("media-streaming")
    >>> problem.space, problem.constraint_names, problem.budgets
    (LayeredSpace(56 states in 11 layers, 2 actions, 272 tuples), ('fast steps',), array([5.]))
    """

    name: str
    mdp: LayeredMDP
    losses: Losses
    constraints: Constraints
    budgets: FloatArray  # (I,) c, for a whole episode
    constraint_names: tuple[str, ...]
    state_names: Sequence[str] = ()  # one for each state; empty: the names in `mdp.space`
    action_names: Sequence[str] = ()  # one for each action; empty: the names in `mdp.space`
    loss_scale: float = 1.0  # a loss of 1 in the problem's own units
    loss_offset: float = 0.0  # the loss of a step with loss 0 in the problem's own units
    loss_unit: str = ""  # name of the unit of losses, for headings: "euros"
    constraint_scales: FloatArray = ()  # type: ignore[assignment]  # (I,) a use of 1 in own units; empty: all 1
    constraint_units: Sequence[str] = ()  # name of the unit of each constraint; empty: no names
    ties: Ties | None = None  # pairs that are known to have the same transition distribution
    warnings: Sequence[str] = ()  # limitations of the problem, shown by `check`, `run` and the report

    def __post_init__(self) -> None:
        mdp = instance(self.mdp, "mdp", LayeredMDP).named(self.state_names, self.action_names)
        space = mdp.space
        object.__setattr__(self, "mdp", mdp)
        for what in ("state_names", "action_names"):
            object.__setattr__(self, what, getattr(space, what))
        if not text(self.name, "name"):
            raise InvalidInputError("name is empty; a problem needs one")
        for what in ("constraint_names", "constraint_units", "warnings"):
            object.__setattr__(self, what, texts(getattr(self, what), what))
        text(self.loss_unit, "loss_unit")
        implements(self.losses, "losses", Losses)
        implements(self.constraints, "constraints", Constraints)
        n_constraints = len(self.constraint_names)
        if len(set(self.constraint_names)) < n_constraints:
            raise InvalidInputError(f"constraint_names is {self.constraint_names}; no two may be equal")
        if len(self.constraint_units) not in (0, n_constraints):
            raise InvalidInputError(
                f"constraint_units has {len(self.constraint_units)} names; expected {n_constraints}, or none"
            )
        self._check_scales()
        self._check_ties()

        mean = checked_mean(self.constraints.mean, largest_factor=1.0)
        if mean.shape != (n_constraints, space.n_tuples):
            raise InvalidInputError(
                f"the mean of the constraints has shape {mean.shape}; "
                f"expected ({n_constraints}, {space.n_tuples}): "
                "a row for each of constraint_names, a column for each tuple"
            )
        budgets = flat(self.budgets, n_constraints, "budgets").copy()
        total = np.abs(budgets).sum()
        if total > space.n_layers + BOUND_TOLERANCE:
            raise InvalidInputError(
                f"the budgets sum to {total:.6g} in absolute value; at most {space.n_layers} is allowed, the "
                "steps of an episode (no policy can use more)"
            )
        object.__setattr__(self, "budgets", budgets)

        probe = implements(self.losses.begin(np.random.default_rng(0)), "what losses begin with", Adversary)
        first = flat(probe.loss(1), space.n_tuples, "the loss of episode 1")
        j = int(np.argmax(np.abs(first)))
        if abs(first[j]) > 1 + BOUND_TOLERANCE:
            raise InvalidInputError(
                f"the loss of episode 1 is {first[j]} at tuple {j} ({self.tuple_name(j)}); it must be in [-1, 1]"
            )

    def _check_scales(self) -> None:
        n_constraints, given = len(self.constraint_names), floats(self.constraint_scales, "constraint_scales", ("I",))
        scales = flat(given, n_constraints, "constraint_scales") if given.size else np.ones(n_constraints)
        units = Units(loss_scale=self.loss_scale, loss_offset=self.loss_offset, constraint_scales=scales)
        object.__setattr__(self, "constraint_scales", units.constraint_scales)

    def _check_ties(self) -> None:
        if self.ties is None:
            return
        if instance(self.ties, "ties", Ties).space != self.space:
            raise InvalidInputError(f"the ties are for {self.ties.space!r}; the problem has {self.space!r}")
        P = self.mdp.transitions
        model = np.unique(self.ties.outcome, return_index=True)[1][self.ties.outcome]
        differs = np.abs(P - P[model]) > SUM_TOLERANCE
        if differs.any():
            j = int(np.argmax(differs))
            raise InvalidInputError(
                f"{self.tuple_name(j)} and {self.tuple_name(int(model[j]))} are tied, but their probabilities are "
                f"{P[j]:.9g} and {P[model[j]]:.9g}"
            )

    @classmethod
    def from_units(
        cls,
        *,
        name: str,
        mdp: LayeredMDP,
        scenarios: ArrayLike,
        losses: LossChoice,
        uses: ArrayLike,
        noise: NoiseChoice = "none",
        budgets: ArrayLike,
        constraint_names: Sequence[str],
        loss_bounds: tuple[float, float] | None = None,
        use_bounds: ArrayLike | None = None,
        loss_unit: str = "",
        constraint_units: Sequence[str] = (),
        state_names: Sequence[str] = (),
        action_names: Sequence[str] = (),
        ties: Ties | None = None,
        warnings: Sequence[str] = (),
    ) -> Self:
        """Return a problem from losses, constraints and budgets in any units; they are scaled only if necessary.

        Parameters that are not listed are the fields of the same name.

        Parameters
        ----------
        scenarios : (K, n_tuples) the loss scenarios that the sequence `losses` mixes (`make_losses`).
        uses : (I, n_tuples) the mean of the constraints, around which `noise` draws (`make_constraints`).
        budgets : (I,) the limit of each constraint per episode.
        loss_bounds : the least and the largest possible loss, which become -1 and 1. None: losses are not shifted,
            and are divided by the largest |loss| of the scenarios if that is more than 1.
        use_bounds : (I,) the largest possible |use| of each constraint on any tuple. None: that of `uses`. If the
            bounds, noise included, sum to more than 1, each constraint gets an equal share of what Assumption 2 allows.

        Raises
        ------
        InvalidInputError : if shapes differ, or a loss or use exceeds its bounds.
        """
        n = instance(mdp, "mdp", LayeredMDP).space.n_tuples
        g = finite(floats(uses, "uses", ("n_constraints", n)), "uses")
        f = finite(floats(scenarios, "scenarios", ("n_scenarios", n)), "scenarios")
        units = Units.of_bounds(
            loss_bounds=float(np.abs(f).max(initial=0.0)) if loss_bounds is None else loss_bounds,
            use_bounds=_bounds_of(g, use_bounds),
            factor=largest_factor(noise),
        )
        return cls(
            name=name,
            mdp=mdp,
            losses=make_losses(losses, units.scaled_loss(f), mdp),
            constraints=make_constraints(noise, units.scaled_uses(g), mdp),
            budgets=units.scaled_budgets(budgets),
            constraint_names=constraint_names,  # type: ignore[arg-type]
            state_names=state_names,
            action_names=action_names,
            loss_scale=units.loss_scale,
            loss_offset=units.loss_offset,
            loss_unit=loss_unit,
            constraint_scales=units.constraint_scales,
            constraint_units=constraint_units,
            ties=ties,
            warnings=warnings,
        )

    def with_budgets(self, budgets: Mapping[str, float]) -> Self:
        """Return a copy of the problem with other limits for some budgets.

        Parameters
        ----------
        budgets : from the name of a constraint to its limit per episode, in its own unit.

        Raises
        ------
        InvalidInputError : if a name is unknown, or a limit is not a number.
        """
        changed = self.budgets.copy()
        for name, budget in instance(budgets, "budgets", Mapping).items():  # type: ignore[type-abstract]
            if name not in self.constraint_names:
                raise unknown(f"{self.name} has no budget", name, self.constraint_names)
            i = self.constraint_names.index(name)
            changed[i] = number(budget, f"the budget of {name!r}", -np.inf, np.inf) / self.constraint_scales[i]
        return replace(self, budgets=changed)

    def check_budgets(self) -> None:
        """Raise InfeasibleError, in own units, if no policy can meet all budgets under the mean constraints."""
        for k in range(len(self.budgets)):
            self.check_budget(k)
        if slater_slack(self.mdp, self.constraints.mean, self.budgets) < -tolerance(self.space):
            raise InfeasibleError("each budget can be met, but not all of them together; raise one")

    def check_budget(self, k: int) -> None:
        """Raise InfeasibleError, in own units, if no policy can meet budget number `k` under its mean constraint."""
        least, _ = best_policy(self.mdp, self.constraints.mean[k])
        if least > self.budgets[k] + tolerance(self.space):
            budget, use = (float(self.constraint_scales[k] * value) for value in (self.budgets[k], least))
            unit = self.constraint_units[k] if self.constraint_units else ""
            raise InfeasibleError(
                f"a budget of {f'{budget:g} {unit}'.rstrip()} for {self.constraint_names[k]!r} cannot be met: every "
                f"policy uses at least {use:.6g} an episode"
            )

    @classmethod
    def from_log(cls, log: Any, *, budgets: Mapping[str, float], **how: Any) -> "Problem":
        """Estimate a problem from a log of recorded episodes; see `tightrope.problems.logs.problem_from_log`.

        >>> log = {"episode": [1, 1, 2, 2], "state": ["low", "high", "low", "low"], "action": ["up", "up", "up", "up"],
        ...        "next_state": ["high", "high", "low", "high"], "loss": [3, 1, 3, 3], "hours": [1, 0, 1, 1]}
        >>> problem = Problem.from_log(log, budgets={"hours": 1.5})
        >>> problem.mdp.transitions[:2].round(3).tolist()
        [0.333, 0.667]
        """
        from tightrope.problems.logs import problem_from_log

        return problem_from_log(log, budgets=budgets, **how)

    @property
    def space(self) -> LayeredSpace:
        """The layered space: all that the learner knows of the model."""
        return self.mdp.space

    @property
    def noise(self) -> str:
        """The name of the noise: that of the constraints, or of their class."""
        return str(getattr(self.constraints, "name", type(self.constraints).__name__))

    @property
    def changing(self) -> bool:
        """Whether the constraints change in time; the theorem assumes independent draws from one distribution."""
        return isinstance(self.constraints, ChangingConstraints)

    def begin_constraints(self, rng: np.random.Generator) -> Regulator:
        """Return the constraints of one run, drawn with `rng` only."""
        if isinstance(self.constraints, ChangingConstraints):
            return self.constraints.begin(rng)
        return Draws(self.constraints, rng)

    @property
    def units(self) -> Units:
        """The conversion between the problem's own units and the learner's (in a loop of your own: `tr.InUnits`)."""
        return Units(loss_scale=self.loss_scale, loss_offset=self.loss_offset, constraint_scales=self.constraint_scales)

    def loss_in_units(self, loss: Numbers, episodes: Numbers) -> Numbers:
        """Convert a loss that is summed over so many whole episodes to the problem's own units."""
        return self.loss_scale * loss + self.loss_offset * self.space.n_layers * episodes

    def regret_in_units(self, regret: Numbers) -> Numbers:
        """Convert a difference of two losses to the problem's own units."""
        return self.loss_scale * regret

    def use_in_units(self, use: FloatArray) -> FloatArray:
        """Convert uses, violations or budgets (…, I) to the units of the constraints."""
        return self.constraint_scales * use

    def state_name(self, state: int) -> str:
        """Return the name of a state."""
        return self.space.state_name(state)

    def action_name(self, action: int) -> str:
        """Return the name of an action."""
        return self.space.action_name(action)

    def tuple_name(self, index: int) -> str:
        """Return the names of the state, the action and the successor of a tuple."""
        s, a, s_next = self.space.tuples[whole(index, "index", 0, self.space.n_tuples - 1)].tolist()
        return f"{self.state_name(s)} → {self.action_name(a)} → {self.state_name(s_next)}"

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, {self.space!r}, losses={self.losses.name!r}, budgets={self.budgets})"


def _bounds_of(g: FloatArray, bounds: ArrayLike | None) -> FloatArray:
    """Return (I,) the largest |use| of each constraint: that of g, or `bounds`, which must not be smaller."""
    largest: FloatArray = np.abs(g).max(axis=1, initial=0.0)
    if bounds is None:
        return largest
    top = flat(bounds, len(g), "use_bounds")
    over = largest > top * (1 + BOUND_TOLERANCE)
    if over.any():
        i = int(np.argmax(over))
        raise InvalidInputError(f"constraint {i} uses up to {largest[i]:g}; use_bounds allows {top[i]:g}")
    return top

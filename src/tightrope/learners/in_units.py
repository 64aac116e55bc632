"""A learner in a loop of your own, with losses, uses and prices in your own units."""

from typing import Any

import numpy as np

from tightrope.arguments import having, instance
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.learners.base import BanditEpisode, Episode, Feedback, Learner
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace
from tightrope.units import Units


class InUnits:
    """A learner whose episodes, budgets and prices are in the user's units, such as euros and litres.

    The wrapped learner, `learner`, uses the units of Assumption 2. Save the wrapped one, and wrap it again after
    loading.

    Parameters
    ----------
    learner : a learner whose budgets are `units.scaled_budgets(…)`.
    units : the `Units` of the user.

    Examples
    --------
    >>> import tightrope as tr
    >>> space = tr.LayeredSpace.dense([1, 3, 2, 1], 2)
    >>> units = tr.Units.of_bounds(loss_bounds=(0, 40), use_bounds=[3, 120])  # of a step: euros; litres, minutes
    >>> learner = tr.InUnits(tr.UCPDPractical(space, budgets=units.scaled_budgets([5, 200])), units)
    >>> learner.budgets.tolist()
    [5.0, 200.0]
    """

    def __init__(self, learner: Learner, units: Units) -> None:
        self.learner: Learner = having(learner, "learner", "space", "budgets", "observe")
        self.units = instance(units, "units", Units)
        if isinstance(learner, InUnits):
            raise InvalidInputError("the learner is an InUnits already; give the one inside, learner.learner")
        if len(units.constraint_scales) != len(learner.budgets):
            raise InvalidInputError(
                f"the units are for {len(units.constraint_scales)} constraints; the learner has {len(learner.budgets)}"
            )
        self.space: LayeredSpace = learner.space
        self.budgets: FloatArray = units.constraint_scales * learner.budgets  #: (I,) in the units of each constraint

    @property
    def feedback(self) -> Feedback:
        return self.learner.feedback

    @property
    def policy(self) -> Policy:
        return self.learner.policy

    @property
    def epoch(self) -> int:
        return self.learner.epoch

    @property
    def multipliers(self) -> FloatArray:
        """(I,) the current price of a unit of each budget, in units of the loss."""
        return self.units.prices(self.learner.multipliers, getattr(self.learner, "loss_weight", 1.0))

    @property
    def settings(self) -> dict[str, float | str]:
        """The settings of the learner, and the scales."""
        scales = ", ".join(f"{scale:g}" for scale in self.units.constraint_scales.tolist())
        return self.learner.settings | {
            "loss_scale": self.units.loss_scale,
            "loss_offset": self.units.loss_offset,
            "constraint_scales": scales,
        }

    def act(self, state: int | str, rng: np.random.Generator) -> int:
        """Draw an action for a state, by number or name."""
        return self.policy.sample(state, rng)

    def observe(self, episode: Any) -> None:
        """Learn from the episode just played, with losses and constraints in these units."""
        self.learner.observe(self._scaled(episode))

    def _scaled(self, episode: Any) -> Any:
        if not isinstance(episode, Episode | BanditEpisode):
            return episode  # the learner refuses it
        charges = episode.loss if isinstance(episode, Episode) else episode.losses
        loss = floats(charges, "loss", ("n",))
        uses = floats(episode.constraints, "constraints", (len(self.learner.budgets), "n"))
        charged = self.units.scaled_loss(loss), self.units.scaled_uses(uses)
        return type(episode)(episode.states, episode.actions, *charged)

    def __repr__(self) -> str:
        return f"InUnits({self.learner!r}, {self.units})"

"""Units of one's own: euros and litres, scaled to what the algorithms ask for, and back.

They ask for |f| ≤ 1 and Σ_i max |g_i| ≤ 1 (Assumption 2). With scales and an offset,

    loss of a step, in its own units        loss_scale · f + loss_offset
    use of a budget, in its own units       constraint_scales[i] · g_i
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import number, real, shown
from tightrope.arguments.arrays import finite, floats
from tightrope.errors import InvalidInputError
from tightrope.space import FloatArray

#: How far rounding may carry a bound of Assumption 2 past its limit. Problems promise it, learners check it.
BOUND_TOLERANCE = 1e-9

#: Bounds above this have no room in floats once they are summed and multiplied.
LARGEST_BOUND = 1e100


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Scales of the losses and of each constraint, and what is 0 among the losses.

    `Units.of_bounds` makes them from the largest values that there can be. `problem.units` are those of a problem.
    """

    loss_scale: float = 1.0  # what a loss of 1 is in its own units
    loss_offset: float = 0.0  # what a step with loss 0 is in its own units
    constraint_scales: FloatArray  # (I,) what a use of 1 is in the units of each constraint

    def __post_init__(self) -> None:
        scales = finite(floats(self.constraint_scales, "constraint_scales", ("I",)), "constraint_scales").copy()
        loss_scale, loss_offset = real(self.loss_scale), real(self.loss_offset)
        if loss_scale is None or not (0 < loss_scale < np.inf and (scales > 0).all()):
            raise InvalidInputError(
                f"loss_scale is {shown(self.loss_scale)} and constraint_scales is {scales.tolist()}; "
                "scales must be positive"
            )
        if loss_offset is None or not np.isfinite(loss_offset):
            raise InvalidInputError(f"loss_offset is {shown(self.loss_offset)}; it must be finite")
        for name, value in (
            ("loss_scale", loss_scale), ("loss_offset", loss_offset), ("constraint_scales", scales)
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @classmethod
    def of_bounds(cls, *, loss_bounds: tuple[float, float] | float, use_bounds: ArrayLike, factor: float = 1.0) -> Self:
        """Units in which all that can be is within Assumption 2; what is already is not scaled.

        Parameters
        ----------
        loss_bounds : the least and the largest loss that a step can have, which become -1 and 1; or one number, the
            largest |loss|: then nothing is moved.
        use_bounds : (I,) the largest |use| of each constraint in a step. Where they sum to more than 1, every
            constraint gets an equal share of what Assumption 2 allows.
        factor : by how much noise may make a use larger.
        """
        factor = number(factor, "factor", 0.0, LARGEST_BOUND)
        top = finite(floats(use_bounds, "use_bounds", ("I",)), "use_bounds")
        for i in np.flatnonzero(top < 0)[:1].tolist():
            raise InvalidInputError(f"use_bounds is {top[i]:g} at index {i}; it cannot be negative")
        for i in np.flatnonzero(top > LARGEST_BOUND)[:1].tolist():
            raise InvalidInputError(f"use_bounds is {top[i]:g} at index {i}; choose a larger unit")
        scales = np.ones(len(top)) if top.sum() * factor <= 1 else np.where(top > 0, len(top) * factor * top, 1.0)
        largest = real(loss_bounds)
        if largest is not None:
            return cls(loss_scale=max(1.0, largest), constraint_scales=scales)
        low, high = floats(loss_bounds, "loss_bounds", (2,)).tolist()
        if not -LARGEST_BOUND <= low < high <= LARGEST_BOUND:
            raise InvalidInputError(f"loss_bounds is {loss_bounds}; expected the least loss and a larger one")
        return cls(loss_scale=(high - low) / 2, loss_offset=(high + low) / 2, constraint_scales=scales)

    def scaled_loss(self, loss: FloatArray) -> FloatArray:
        """Losses of steps as an algorithm takes them; refused where they are beyond what these units are for."""
        scaled = (finite(loss, "loss") - self.loss_offset) / self.loss_scale
        outside = np.abs(scaled) > 1 + BOUND_TOLERANCE
        if outside.any():
            low, high = self.loss_offset - self.loss_scale, self.loss_offset + self.loss_scale
            raise InvalidInputError(f"a loss is {loss[outside].flat[0]:g}; these units are for {low:g} to {high:g}")
        return np.clip(scaled, -1.0, 1.0)  # rounding may carry a bound past 1

    def scaled_uses(self, uses: FloatArray) -> FloatArray:
        """(I, n) uses of budgets in steps as an algorithm takes them; refused where they are beyond these units."""
        scaled: FloatArray = finite(uses, "uses") / self.constraint_scales[:, None]
        shares = np.abs(scaled).max(axis=1, initial=0.0)
        if shares.sum() > 1 + BOUND_TOLERANCE:
            largest = ", ".join(f"{use:g}" for use in (shares * self.constraint_scales).tolist())
            raise InvalidInputError(
                f"the largest uses of the constraints are {largest}, which is {shares.sum():.6g} of what these units "
                "are for; make them with larger use_bounds"
            )
        return scaled

    def prices(self, multipliers: FloatArray, loss_weight: float) -> FloatArray:
        """(I,) what a unit of each budget is worth, in units of the loss, to who weighs f by V and g_i by Q_i.

        In the units of the algorithm that is Q/V; Q are the multipliers, V the weight of the loss.
        """
        prices: FloatArray = multipliers / loss_weight * self.loss_scale / self.constraint_scales
        return prices

    def scaled_budgets(self, budgets: ArrayLike) -> FloatArray:
        """(I,) budgets for an episode as an algorithm takes them."""
        limits = finite(floats(budgets, "budgets", self.constraint_scales.shape), "budgets")
        scaled: FloatArray = limits / self.constraint_scales
        return scaled

"""The user's units, such as euros and litres, and their conversion to the units of the algorithms and back.

The algorithms require |f| ≤ 1 and Σ_i max |g_i| ≤ 1 (Assumption 2). With scales and an offset,

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

#: The tolerance of the bounds of Assumption 2, for rounding.
BOUND_TOLERANCE = 1e-9

#: The largest bound: sums and products of larger ones may overflow.
LARGEST_BOUND = 1e100


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Scales of the losses and of each constraint, and an offset of the losses.

    `Units.of_bounds` makes them from the largest possible values; `problem.units` are those of a problem.

    Parameters
    ----------
    loss_scale : a loss of 1 in the user's units.
    loss_offset : the loss of a step with loss 0, in the user's units.
    constraint_scales : (I,) a use of 1 in the user's units of each constraint.

    Examples
    --------
    >>> units = Units.of_bounds(loss_bounds=(0.0, 20.0), use_bounds=[5.0])
    >>> units.loss_scale, units.loss_offset, units.constraint_scales.tolist()
    (10.0, 10.0, [5.0])
    """

    loss_scale: float = 1.0
    loss_offset: float = 0.0
    constraint_scales: FloatArray  # (I,)

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
        """Return units in which all possible values meet Assumption 2; values that meet it already are not scaled.

        Parameters
        ----------
        loss_bounds : the least and the largest possible loss of a step, which become -1 and 1; or the largest |loss|
            as one number, without an offset.
        use_bounds : (I,) the largest |use| of each constraint in a step. If they sum to more than 1, every constraint
            gets an equal share of what Assumption 2 allows.
        factor : the largest use with noise, as a multiple of the use without.

        Raises
        ------
        InvalidInputError : if a bound is negative, too large, or not a number.
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
        """Convert losses of steps, of any shape, to the units of the algorithms; refuse those beyond the bounds."""
        scaled = (finite(loss, "loss") - self.loss_offset) / self.loss_scale
        outside = np.abs(scaled) > 1 + BOUND_TOLERANCE
        if outside.any():
            low, high = self.loss_offset - self.loss_scale, self.loss_offset + self.loss_scale
            raise InvalidInputError(f"a loss is {loss[outside].flat[0]:g}; these units are for {low:g} to {high:g}")
        return np.clip(scaled, -1.0, 1.0)  # rounding may carry a bound past 1

    def scaled_uses(self, uses: FloatArray) -> FloatArray:
        """Convert uses of steps, (I, n), to the units of the algorithms; refuse those beyond the bounds."""
        scaled: FloatArray = finite(uses, "uses") / self.constraint_scales[:, None]
        shares = np.abs(scaled).max(axis=1, initial=0.0)
        if shares.sum() > 1 + BOUND_TOLERANCE:
            largest = ", ".join(f"{use:g}" for use in (shares * self.constraint_scales).tolist())
            raise InvalidInputError(
                f"the largest uses of the constraints are {largest}, which is {shares.sum():.6g} times the bounds of "
                "these units; make them with larger use_bounds"
            )
        return scaled

    def prices(self, multipliers: FloatArray, loss_weight: float) -> FloatArray:
        """Return the price of a unit of each budget, (I,), in the user's units of the loss.

        In the units of the algorithm it is Q/V, for multipliers Q, (I,), and a weight V of the loss.
        """
        prices: FloatArray = multipliers / loss_weight * self.loss_scale / self.constraint_scales
        return prices

    def scaled_budgets(self, budgets: ArrayLike) -> FloatArray:
        """Convert budgets per episode, (I,), to the units of the algorithms."""
        limits = finite(floats(budgets, "budgets", self.constraint_scales.shape), "budgets")
        scaled: FloatArray = limits / self.constraint_scales
        return scaled

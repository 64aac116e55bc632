"""Confidence sets of transition distributions, and the extreme expected costs over their models."""

from functools import singledispatch
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.arguments import instance
from tightrope.arguments.arrays import floats
from tightrope.core import NONE
from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, LayeredMDP, Policy, flat
from tightrope.space import FloatArray, LayeredSpace


@runtime_checkable
class ConfidenceSet(Protocol):
    """A set of conditionals for every pair: an `L1Ball`, a `Box`, a `KLBall`, or a set of your own (`OwnSet`)."""

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        """Return which pairs (n_pairs,) are unrestricted; the solver treats them together."""

    def check(self, space: LayeredSpace) -> None:
        """Refuse a space that the set does not fit."""

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        """Return the largest distance of a conditional of `theta` from the set, over pairs with a mass above 1e-300."""


@runtime_checkable
class OwnSet(ConfidenceSet, Protocol):
    """A confidence set of your own: it has the methods of every set, and solves the problem of one pair.

    The solver for such sets is in NumPy (`projection/reference.py`), for small problems.
    """

    def pair_question(self, i: int, log_w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the distribution p of pair i in the set that maximises Σ p log(w/p), and its derivatives.

        Parameters
        ----------
        i : index of the pair, never one that is free.
        log_w : (n_successors,) log w, finite; its entries may be hundreds apart.

        Returns
        -------
        p : (n_successors,) the maximiser.
        movement : (n_successors, n_successors) ∂p/∂log w, symmetric. With p = w normalised, diag(p) − p pᵀ. On a
            surface c(p) = 0 of the set, with multiplier μ, D − D A (Aᵀ D A)⁻¹ Aᵀ D for D = (1/p + μ ∇²c(p))⁻¹ and
            A = [1, ∇c(p)]. Inexact derivatives take more steps and do not change the answer.
        """


class L1Ball:
    """The set ‖p(·|s,a) − center(·|s,a)‖₁ <= radius(s,a). A radius of 2 or more, or inf, leaves the pair free.

    Parameters
    ----------
    center : (n_tuples,) a distribution for each pair.
    radius : (n_pairs,) the largest L1 distance from it.

    Examples
    --------
    >>> ball = L1Ball(center=np.array([0.75, 0.25, 1.0, 1.0]), radius=np.array([0.2, 0.0, 0.0]))
    >>> theta = np.array([0.9, 0.1, 0.9, 0.1])  # its first pair has the distribution (0.9, 0.1)
    >>> round(ball.violation(LayeredSpace.dense([1, 2, 1], 1), theta), 3)
    0.1
    """

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = floats(center, "center", ("n_tuples",)), floats(radius, "radius", ("n_pairs",))

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        return self.radius >= 2

    def check(self, space: LayeredSpace) -> None:
        flat(self.center, instance(space, "space", LayeredSpace).n_tuples, "center")
        if self.radius.shape != (space.n_pairs,):
            raise InvalidInputError(f"radius has shape {self.radius.shape}; expected ({space.n_pairs},)")
        if core.are_balls(space.native, self.center, self.radius, SUM_TOLERANCE):
            return
        totals = space.sum_over_successors(self.center)
        smallest = np.minimum.reduceat(self.center, space.csr.pair_ptr[:-1])
        wrong = (np.abs(totals - 1) > SUM_TOLERANCE) | (smallest < 0)
        for bad, words in (
            (~(self.radius >= 0), "radius is {radius}; it must be 0 or more (inf leaves the pair free)"),
            (
                wrong & (self.radius < 2),
                "center is no distribution (sum {total:.12g}, smallest entry {smallest:.3g})",
            ),
        ):
            if bad.any():
                i = int(np.argmax(bad))
                s, a = space.pairs[i]
                what = words.format(radius=self.radius[i], total=totals[i], smallest=smallest[i])
                raise InvalidInputError(f"state {s}, action {a}: {what}")

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        p = LayeredMDP.from_occupancy(space, theta).transitions
        distance = space.sum_over_successors(np.abs(p - self.center))
        visited = _with_mass(space, theta)
        return float(np.max(distance - self.radius, initial=0.0, where=visited & (self.radius < 2)))


class Box:
    """The set lower <= p(s'|s,a) <= upper, intersected with a ball if one is given.

    Parameters
    ----------
    lower, upper : (n_tuples,) the bounds.
    ball : an `L1Ball`, optional; its center is within the bounds.

    Examples
    --------
    >>> box = Box(lower=np.array([0.7, 0.2, 1.0, 1.0]), upper=np.array([0.8, 0.3, 1.0, 1.0]))
    >>> round(box.violation(LayeredSpace.dense([1, 2, 1], 1), np.array([0.9, 0.1, 0.9, 0.1])), 3)
    0.1
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike, ball: L1Ball | None = None) -> None:
        self.lower, self.upper = floats(lower, "lower", ("n_tuples",)), floats(upper, "upper", ("n_tuples",))
        self.ball = None if ball is None else instance(ball, "ball", L1Ball)

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        anything = np.logical_and.reduceat((self.lower <= 0) & (self.upper >= 1), space.csr.pair_ptr[:-1])
        return anything if self.ball is None else anything & self.ball.free(space)

    def check(self, space: LayeredSpace) -> None:
        instance(space, "space", LayeredSpace)
        lower, upper = flat(self.lower, space.n_tuples, "lower"), flat(self.upper, space.n_tuples, "upper")
        wrong = [((lower < 0) | (lower > upper), "lower is {:.12g} and upper {:.12g}; expected 0 <= lower <= upper")]
        if self.ball is not None:
            self.ball.check(space)
            center = np.where(space.expand_to_tuples(self.ball.radius < 2), self.ball.center, lower)
            wrong.append(((center < lower) | (center > upper), "the ball's center is outside {:.12g}..{:.12g}"))
        for bad, words in wrong:
            if bad.any():
                j = int(np.argmax(bad))
                s, a, s_next = space.tuples[j]
                raise InvalidInputError(f"tuple ({s}, {a}, {s_next}): {words.format(lower[j], upper[j])}")
        least, most = space.sum_over_successors(lower), space.sum_over_successors(upper)
        empty = (least > 1 + SUM_TOLERANCE) | (most < 1 - SUM_TOLERANCE)
        if empty.any():
            i = int(np.argmax(empty))
            s, a = space.pairs[i]
            sums = f"{least[i]:.12g} and {most[i]:.12g}"
            raise InvalidInputError(f"state {s}, action {a}: no distribution is within the bounds, which sum to {sums}")

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        p = LayeredMDP.from_occupancy(space, theta).transitions
        visited = space.expand_to_tuples(_with_mass(space, theta))
        outside = np.max(np.maximum(self.lower - p, p - self.upper), initial=0.0, where=visited)
        return float(outside) if self.ball is None else max(float(outside), self.ball.violation(space, theta))


class KLBall:
    """The set KL(center(·|s,a) ‖ p(·|s,a)) <= radius(s,a). A radius of inf, or a single successor, leaves a pair free.

    Parameters
    ----------
    center : (n_tuples,) a distribution for each pair.
    radius : (n_pairs,) the largest KL divergence.

    Examples
    --------
    >>> ball = KLBall(center=np.array([0.75, 0.25, 1.0, 1.0]), radius=np.array([0.1, 0.0, 0.0]))
    >>> ball.violation(LayeredSpace.dense([1, 2, 1], 1), np.array([0.9, 0.1, 0.9, 0.1]))
    0.0
    """

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = floats(center, "center", ("n_tuples",)), floats(radius, "radius", ("n_pairs",))

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        free: NDArray[np.bool_] = np.isinf(self.radius) | (space.successors_per_pair == 1)
        return free

    def check(self, space: LayeredSpace) -> None:
        flat(self.center, instance(space, "space", LayeredSpace).n_tuples, "center")
        if self.radius.shape != (space.n_pairs,):
            raise InvalidInputError(f"radius has shape {self.radius.shape}; expected ({space.n_pairs},)")
        # as for other balls, but other radii leave a pair free
        radius = np.where(self.free(space) & (self.radius >= 0), np.inf, np.minimum(self.radius, 1.0))
        L1Ball(self.center, radius).check(space)

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        p = LayeredMDP.from_occupancy(space, theta).transitions
        seen = self.center > 0
        ratio = np.divide(self.center, np.maximum(p, np.finfo(float).tiny), where=seen, out=np.ones_like(p))
        distance = space.sum_over_successors(self.center * np.log(ratio))
        bound = _with_mass(space, theta) & ~self.free(space)
        return float(np.max(distance - self.radius, initial=0.0, where=bound))


def _with_mass(space: LayeredSpace, theta: FloatArray) -> NDArray[np.bool_]:
    """Return which pairs have conditionals, (n_pairs,): a mass below NONE has too few digits in floating point."""
    with_mass: NDArray[np.bool_] = space.sum_over_successors(theta) > NONE
    return with_mass


class Bounds(NamedTuple):
    """A confidence set in the form of `core.largest_values`."""

    curved: bool
    lower: FloatArray
    upper: FloatArray
    center: FloatArray
    radius: FloatArray


@singledispatch
def bounds_of(confidence: ConfidenceSet, space: LayeredSpace) -> Bounds:
    """Return the bounds of a set; register a function for sets of your own."""
    kind = type(confidence).__name__
    raise InvalidInputError(f"the extremes of {kind} are not known; register its bounds with tightrope.confidence")


@bounds_of.register
def _(confidence: L1Ball, space: LayeredSpace) -> Bounds:
    center = np.where(space.expand_to_tuples(confidence.radius < 2), confidence.center, _even(space))
    center = center / space.expand_to_tuples(space.sum_over_successors(center))
    return Bounds(False, np.zeros_like(center), np.ones_like(center), center, confidence.radius)


@bounds_of.register
def _(confidence: Box, space: LayeredSpace) -> Bounds:
    least, most = space.sum_over_successors(confidence.lower), space.sum_over_successors(confidence.upper)
    share = np.divide(1 - least, most - least, where=most > least, out=np.zeros_like(least))
    center = confidence.lower + space.expand_to_tuples(share) * (confidence.upper - confidence.lower)
    radius = np.full(space.n_pairs, np.inf)
    if confidence.ball is not None:
        bound = confidence.ball.radius < 2
        center = np.where(space.expand_to_tuples(bound), confidence.ball.center, center)
        radius = np.where(bound, confidence.ball.radius, np.inf)
    return Bounds(False, confidence.lower, confidence.upper, center, radius)


@bounds_of.register
def _(confidence: KLBall, space: LayeredSpace) -> Bounds:
    free = confidence.free(space)
    center = np.where(space.expand_to_tuples(free), _even(space), confidence.center)
    center = center / space.expand_to_tuples(space.sum_over_successors(center))
    return Bounds(True, center, center, center, np.where(free, np.inf, confidence.radius))


def known(confidence: ConfidenceSet) -> bool:
    """Return whether `bounds_of` knows this set."""
    return bounds_of.dispatch(type(confidence)) is not bounds_of.dispatch(object)


def _even(space: LayeredSpace) -> FloatArray:
    even: FloatArray = space.expand_to_tuples(1 / space.successors_per_pair)
    return even


class WorstUse(NamedTuple):
    """The cost of a policy under the worst model of a set."""

    most: float  #: max over the models of <cost, θ>, θ the measure of the policy
    #: (n_tuples,) q(s,a) − V(s): the extra cost of action a in s, at worst, if the policy is followed afterwards
    more: FloatArray
    model: FloatArray  #: (n_tuples,) the worst model


def worst_use(space: LayeredSpace, bounds: Bounds, policy: Policy, cost: FloatArray) -> WorstUse:
    """Return the largest cost of `policy` over all models of the set, and the extra cost of deviating from it."""
    V, p = _worst(space, bounds, policy, cost)
    q = space.sum_over_successors(p * (cost + V[space.csr.successor]))
    return WorstUse(float(V[0]), space.expand_to_tuples(q - V[space.pairs[:, 0]]), p)


def most_paid(space: LayeredSpace, bounds: Bounds, policy: Policy, cost: FloatArray) -> tuple[float, FloatArray]:
    """Return the maximum of <cost, θ> over the models of the set, θ the measure of `policy`, and a worst model."""
    V, p = _worst(space, bounds, policy, cost)
    return float(V[0]), p


def _worst(space: LayeredSpace, bounds: Bounds, policy: Policy, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V (n_states,) and the model from `core.largest_values`."""
    V, _, p = core.largest_values(space.native, *bounds, cost, policy.probabilities)
    return V, p


def least_possible(space: LayeredSpace, bounds: Bounds, cost: FloatArray) -> tuple[float, FloatArray]:
    """Return the minimum of <cost, θ> over all policies and all models of the set, and a minimiser θ."""
    V, best, p = core.largest_values(space.native, *bounds, -cost, None)
    theta = space.expand_to_tuples(core.visits(space.native, best, p)) * p
    return -float(V[0]), theta

"""Planning by dynamic programming over models whose probabilities are known up to intervals.

Without budgets, dynamic programming alone finds a best policy, which is deterministic. Within budgets the best policy
is a mixture of deterministic ones. The problem, over all policies and all models in the intervals, is in terms of the
measures x(s,a) = Σ_s' q(s,a,s'):

    minimise <c, x>   subject to   <d_i, x> <= α_i,   i = 1..I.

The simplex method runs over the budgets alone, with columns from dynamic programming (Dantzig–Wolfe;
`core/extended_lp.hpp`): a few passes over the tuples. Weak duality bounds the error of the answer. Intervals of width
zero are a known model. `plan` is the optimistic LP (the extended LP of Efroni, Mannor & Pirotta), with the constraints

    lower(s,a,s') x(s,a) <= q(s,a,s') <= upper(s,a,s') x(s,a),   x(s,a) = Σ_s' q(s,a,s'),   and q conserves flow.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.arithmetic import combine, dot
from tightrope.confidence import L1Ball
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.model import LayeredMDP, Policy, flat
from tightrope.space import FloatArray, IntArray, LayeredSpace

#: The smallest unit: the reciprocal of a smaller one would be infinite.
SMALLEST = 1e-290


class Intervals(NamedTuple):
    """Intervals lower(s,a,s') <= P(s'|s,a) <= upper(s,a,s') that contain the model, and their widths."""

    lower: FloatArray  # (n_tuples,)
    upper: FloatArray  # (n_tuples,)
    radius: (
        FloatArray  # (n_pairs,) the sum of the radii of a pair, as they were before the intervals were cut to [0, 1]
    )

    @classmethod
    def of_counts(
        cls, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64], log_term: float, scale: float = 1.0
    ) -> "Intervals":
        """Return intervals around the frequencies P̂ = M / N by the empirical Bernstein bound, for visits N and M.

        β(s,a,s') = scale (√(4 P̂ (1 − P̂) log_term / N) + 14 log_term / (3 N)), and 1 at most. A pair without visits is
        left free.
        """
        n = space.expand_to_tuples(np.maximum(N, 1))
        P_hat = M / n
        deviation = np.sqrt(np.maximum(4 * P_hat * (1 - P_hat) * log_term / n, 0.0))
        beta = np.minimum(scale * (deviation + 14 * log_term / (3 * n)), 1.0)
        seen = space.expand_to_tuples(N > 0)
        lower = np.where(seen, np.maximum(P_hat - beta, 0.0), 0.0)
        upper = np.where(seen, np.minimum(P_hat + beta, 1.0), 1.0)
        return cls(lower, upper, space.sum_over_successors(beta))

    @classmethod
    def around(cls, mdp: LayeredMDP, radius: ArrayLike = 0.0) -> "Intervals":
        """Return the intervals of a model plus and minus `radius`, a number or an array (n_tuples,)."""
        space, P = mdp.space, mdp.transitions
        beta = flat(np.broadcast_to(np.asarray(radius, np.float64), P.shape), space.n_tuples, "radius")
        if (beta < 0).any():
            raise InvalidInputError(f"radius is {beta.min()}; it cannot be negative")
        return cls(np.maximum(P - beta, 0.0), np.minimum(P + beta, 1.0), space.sum_over_successors(beta))


def deterministic(space: LayeredSpace, pairs: IntArray) -> Policy:
    """Return the policy that takes the given pair (n_states - 1,) at every state."""
    pi = np.zeros(space.n_pairs)
    pi[pairs] = 1.0
    return Policy.unchecked(space, pi)


def least_values(space: LayeredSpace, Q: FloatArray) -> FloatArray:
    """Return (n_states,) min_a Q(s,a) of values (n_pairs,), 0 at the last state."""
    return np.append(np.minimum.reduceat(Q, space.csr.state_ptr[:-2]), 0.0)


def greedy(space: LayeredSpace, Q: FloatArray) -> Policy:
    """Return the policy that takes the first pair with the least Q (n_pairs,) at every state."""
    state, best = space.pairs[:, 0], np.empty(space.n_states - 1, dtype=np.int64)
    least = np.flatnonzero(least_values(space, Q)[state] == Q)[::-1]
    best[state[least]] = least  # later assignments win, and the first pair comes last
    return deterministic(space, best)


def optimistic_policy(space: LayeredSpace, ball: L1Ball, cost: FloatArray) -> Policy:
    """Return a deterministic policy with the least cost (n_tuples,) over all policies and all models in `ball`."""
    _, best = core.extended_values(space.native, ball.center, ball.radius, cost)
    return deterministic(space, best)


#: The zero tolerances of the simplex method, as a share of the allowed error; the second is used if the first fails by
#: rounding or cycling.
ZEROS = (1e-4, 1e-2)

#: The most passes of dynamic programming; ordinary problems take a few for each budget.
MAX_PIVOTS = 1000


def best_response(space: LayeredSpace, intervals: Intervals, cost: FloatArray) -> tuple[float, FloatArray, Policy]:
    """Minimise <cost, x> without budgets; return the value, x (n_pairs,), and the deterministic policy."""
    V, best, p = core.optimistic_actions(space.native, intervals.lower, intervals.upper, cost)
    return float(V[0]), core.visits(space.native, best, p), deterministic(space, best)


def best_mixture(
    space: LayeredSpace, intervals: Intervals, c: FloatArray, D: FloatArray, alpha: FloatArray, allowed: float
) -> "Mixture":
    """Return the best mixture for c (n_pairs,), D (I, n_pairs) and alpha (I,), or, if infeasible, the least excess.

    Costs are in units of the largest. If the error exceeds `allowed`, `good` of the result is False.
    """
    exactly, roughly = (zero * allowed for zero in ZEROS)
    mixture = Mixture(space, intervals, c, D, alpha, allowed, exactly)
    if mixture.good:
        return mixture
    uneven = roughly * np.random.default_rng(0).random(len(alpha))  # breaks ties between policies
    return Mixture(space, intervals, c, D, alpha + uneven, allowed, roughly)


class Mixture:
    """The result of one run of the simplex method, with its error."""

    def __init__(
        self,
        space: LayeredSpace,
        intervals: Intervals,
        c: FloatArray,
        D: FloatArray,
        alpha: FloatArray,
        allowed: float,
        zero: float,
    ) -> None:
        for _ in range(2):
            self.over, self.multipliers, self.x = core.best_mixture(
                space.native, intervals.lower, intervals.upper, c, D, alpha, zero, MAX_PIVOTS
            )
            self.excess = float((dot(D, self.x) - alpha).max(initial=0.0))
            if not self.over or self.excess > allowed:
                break
            alpha = alpha + self.excess + 10 * zero  # infeasible by rounding only: allow it
        if self.over:
            self.multipliers /= self.multipliers.sum()
        # weak duality: the best x for these prices bounds the value, or the excess if infeasible
        prices = combine(self.multipliers, D)
        prices = prices if self.over else c + prices
        least, _, self.elsewhere = best_response(space, intervals, prices)
        self.gap = float((self.excess if self.over else dot(c, self.x)) - (least - dot(self.multipliers, alpha)))
        self.good = self.gap <= allowed * (1 + self.multipliers.sum()) and (self.over or self.excess <= allowed)


#: The largest error of the optimistic LP, or excess over a budget: per step, in units of the largest |c| or |d|.
TOLERANCE = 1e-7

#: A state with less mass counts as unreached.
NEVER = 1e-300


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimisticPlan:
    """The best policy with the best model, or, if none is within the budgets, that of the least excess."""

    value: float  # <c, x>
    visits: FloatArray  # (n_pairs,) x
    policy: Policy  # π(a|s) ∝ x(s,a); at unreached states, the best for c + Σ_i λ_i d_i
    multipliers: FloatArray  # (I,) λ >= 0; zeros if no model has a policy within the budgets
    excess: float  # the largest excess over a budget; 0 if all are met


def plan(
    space: LayeredSpace, intervals: Intervals, loss: ArrayLike, constraints: ArrayLike, budgets: ArrayLike
) -> OptimisticPlan:
    """Solve the optimistic LP.

    Parameters
    ----------
    intervals : of the models.
    loss : (n_pairs,) c.
    constraints, budgets : (I, n_pairs) d, and (I,) α; I may be 0.

    Raises
    ------
    ConvergenceError : if the duality gap is too large.
    """
    c, alpha = flat(loss, space.n_pairs, "loss"), np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    D = np.asarray(constraints, dtype=np.float64)
    if D.shape != (len(alpha), space.n_pairs) or not (np.isfinite(D).all() and np.isfinite(alpha).all()):
        raise InvalidInputError(f"constraints has shape {D.shape}; expected {(len(alpha), space.n_pairs)}, all finite")
    c_unit, d_unit = largest(c), largest(D)
    scaled, allowed = np.ascontiguousarray(D / d_unit), TOLERANCE * space.n_layers
    best = best_mixture(space, intervals, c / c_unit, scaled, alpha / d_unit, allowed)
    if not best.good:
        raise ConvergenceError(
            f"the optimistic LP was not solved well enough: duality gap {best.gap:.3g} and excess "
            f"{best.excess:.3g} in units of the largest cost, {allowed:.3g} allowed"
        )
    x, over = best.x, best.over
    return OptimisticPlan(
        value=dot(c, x),
        visits=x,
        policy=_policy(space, x, best.elsewhere),
        multipliers=np.zeros(len(alpha)) if over else best.multipliers * c_unit / d_unit,
        excess=float((dot(D, x) - alpha).max()) if over else 0.0,
    )


def _policy(space: LayeredSpace, x: FloatArray, elsewhere: Policy) -> Policy:
    """Return π(a|s) ∝ x(s,a), and the policy `elsewhere` at unreached states."""
    mass = np.add.reduceat(x, space.csr.state_ptr[:-2])
    mass = np.repeat(mass, np.diff(space.csr.state_ptr)[:-1])
    reached = mass > NEVER
    return Policy.unchecked(space, np.where(reached, x / np.where(reached, mass, 1.0), elsewhere.probabilities))


def largest(values: FloatArray) -> float:
    """Return the largest absolute value, as a unit; 1 if all values are zero, or nearly."""
    most = float(np.abs(values).max(initial=0.0))
    return most if most > SMALLEST else 1.0


# --------------------------------------------------------------------------------------------- classes of states
#
# Classes of states that the constraints do not distinguish, and planning with a model known between classes.
#
# States of a layer are in one class if every action has the same uses there, and the same probabilities of the classes
# of the next layer. So the uses of a policy that depends on classes only are determined by the model between classes.

#: Uses and probabilities are compared after rounding to so many digits.
DIGITS = 9


def classes_of(mdp: LayeredMDP, uses: FloatArray) -> NDArray[np.int64]:
    """Return the coarsest classes of states, (n_states,), for uses (I, n_pairs), by one backward pass."""
    space, P = mdp.space, mdp.transitions
    classes = np.zeros(space.n_states, dtype=np.int64)
    found = 1
    for k in range(space.n_layers - 1, -1, -1):
        known: dict[tuple[object, ...], int] = {}
        for s in space.states_of(k):
            kind: list[object] = []
            for i in range(*space.csr.state_ptr[s : s + 2].tolist()):
                first, end = space.csr.pair_ptr[i : i + 2].tolist()
                to = np.bincount(classes[space.tuples[first:end, 2]], P[first:end])
                reached = np.flatnonzero(np.round(to, DIGITS))
                used = tuple((np.round(uses[:, i], DIGITS) + 0.0).tolist())
                kind.append((int(space.csr.action[i]), used, tuple(reached), tuple(np.round(to[reached], DIGITS))))
            classes[s] = known.setdefault(tuple(kind), found + len(known))
        found += len(known)
    return classes


def class_transitions(mdp: LayeredMDP, classes: NDArray[np.int64]) -> FloatArray:
    """Return the probability that each pair leads to the class of the tuple's successor, (n_tuples,)."""
    middle = Halves(mdp.space, classes).middle
    likely = np.bincount(middle, mdp.transitions).astype(np.float64)
    return likely[middle]


class Halves:
    """A space with every step split in two: from the pair to the class of the next state, then to the state.

    The probabilities of the first half are known, so confidence intervals apply to the second half only.
    """

    def __init__(self, space: LayeredSpace, classes: NDArray[np.int64]) -> None:
        s_next = space.tuples[:, 2]
        pair, n_classes = space.pair_of_tuple, int(classes.max()) + 1
        #: (n_tuples,) between which pair and class a tuple passes, by number
        kinds, self.middle = np.unique(pair * n_classes + classes[s_next], return_inverse=True)
        self.pair = kinds // n_classes  #: the pair of each of them
        layer = space.layer_of_pair[self.pair]
        per_layer = np.bincount(layer, minlength=space.n_layers)
        before = np.concatenate([[0], np.cumsum(per_layer)])  # of each layer of states
        until = np.cumsum(space.layer_sizes)  # states up to each layer
        state = np.arange(space.n_states) + np.repeat(before, space.layer_sizes)
        middle = np.arange(len(kinds)) + until[layer]
        rows = np.vstack(
            [
                np.column_stack([state[space.pairs[self.pair, 0]], space.pairs[self.pair, 1], middle]),
                np.column_stack([middle[self.middle], np.zeros_like(s_next), state[s_next]]),
            ]
        )
        order = np.lexsort(rows.T[::-1])
        place = np.argsort(order)
        sizes = np.empty(2 * space.n_layers + 1, dtype=np.int64)
        sizes[::2], sizes[1::2] = space.layer_sizes, per_layer
        self.outer = space
        self.space = LayeredSpace.from_tuples(sizes.tolist(), space.n_actions, rows[order])
        self._first, self._second = place[: len(kinds)], place[len(kinds) :]  # where the halves of a step are

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """(n_pairs,) the pair of `space` for each pair of the original space."""
        _, at = np.unique(self.pair, return_index=True)
        pairs: NDArray[np.int64] = self.space.pair_of_tuple[self._first[at]]
        return pairs

    def costs(self, outside: FloatArray) -> FloatArray:
        """Convert costs of original pairs, (…, n_pairs), to `space`, with the costs in the first half."""
        inside = np.zeros((*outside.shape[:-1], self.space.n_pairs))
        inside[..., self.pairs] = outside
        return inside

    def intervals(self, box: Intervals, likely: FloatArray) -> Intervals:
        """Return the intervals of a box that agree with known class probabilities `likely`, (n_tuples,).

        A class without such an interval is left free.
        """
        lower, upper = np.zeros(self.space.n_tuples), np.ones(self.space.n_tuples)
        known, share = np.bincount(self.middle, likely) / np.bincount(self.middle), np.maximum(likely, 1e-300)
        lower[self._first] = upper[self._first] = known
        low, high = np.minimum(box.lower / share, 1.0), np.minimum(box.upper / share, 1.0)
        fits = (np.bincount(self.middle, low) <= 1) & (np.bincount(self.middle, high) >= 1)
        lower[self._second] = np.where(fits[self.middle], low, 0.0)
        upper[self._second] = np.where(fits[self.middle], high, 1.0)
        return Intervals(lower, upper, np.zeros(self.space.n_pairs))

    def policy(self, inside: Policy) -> Policy:
        """Convert a policy of `space` to the original space."""
        return Policy.unchecked(self.outer, inside.probabilities[self.pairs])

    def most(self, intervals: Intervals, policy: Policy, cost: FloatArray) -> float:
        """Return the largest expected cost of an original policy, for costs (n_pairs,), over all models."""
        pi = np.ones(self.space.n_pairs)
        pi[self.pairs] = policy.probabilities
        V = core.dearest_values(self.space.native, intervals.lower, intervals.upper, pi, self.costs(cost))
        return float(V[0])

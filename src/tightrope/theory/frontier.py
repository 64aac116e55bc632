"""What can be had for one budget: the lower hull of use and loss over all policies, which is the dual function too.

Best policies for f + η g, η from 0 upwards, use less and less and lose more and more. Their points (use, loss) are the
corners of the convex chain v(b) = min {<f, θ> : <g, θ> <= b}; the price η at which one corner gives way to the next is
the multiplier of every budget between them, and the dual function of a budget c is

    q(η) = min over corners of loss + η (use − c).

Dynamic programming finds them all: at the price at which two corners are equally good either no policy is better, and
they are neighbours, or the best one is a corner between them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import EXTREME, LARGEST, instance, number
from tightrope.errors import InfeasibleError
from tightrope.model import LayeredMDP, flat, inner
from tightrope.planning.hindsight import TOLERANCE, best_policy
from tightrope.space import FloatArray

#: Two values are the same if they differ by less than this, per step and unit of price: what rounding leaves.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Frontier:
    """The corners that some price up to the largest one asked for makes best."""

    use: FloatArray  # (n,) <g, θ>, falling
    loss: FloatArray  # (n,) <f, θ>, rising

    @property
    def prices(self) -> FloatArray:
        """(n − 1,) from which η on a corner is better than the one before it; rising."""
        return np.maximum(-np.diff(self.loss) / np.diff(self.use), 0.0)  # rounding may leave less

    def dual(self, price: float, budget: float) -> float:
        """q(η) of a budget c."""
        eta, c = number(price, "price", 0, EXTREME), number(budget, "budget", -EXTREME, EXTREME)
        return float((self.loss + eta * (self.use - c)).min())

    def multipliers(self, budget: float) -> tuple[float, float]:
        """The least and the largest η at which the dual function of a budget is largest: two where a corner is met."""
        c, prices = number(budget, "budget", -EXTREME, EXTREME), np.concatenate([[0.0], self.prices, [np.inf]])
        more, not_less = self.use > c + TOLERANCE, self.use >= c - TOLERANCE
        return float(prices[more.sum()]), float(prices[not_less.sum()])

    def vartheta(self, budget: float, sigma: float) -> float:
        """The least ϑ with q* − q(η) >= σ dist(η, V*) wherever the distance is at least ϑ."""
        budget, sigma = number(budget, "budget", -EXTREME, EXTREME), number(sigma, "sigma", 0, EXTREME)
        low, high = self.multipliers(budget)
        if high == np.inf:
            raise InfeasibleError(
                f"no policy leaves something of a budget of {budget:g}, so its multipliers are unbounded"
            )
        best, spare = self.dual(low, budget), budget - self.use

        def reach(price: float, slope: FloatArray) -> float:
            """From which distance d on q* − q >= σ d: as q is a minimum of lines, if one of them says so."""
            above, steep = self.loss - price * spare - best, slope > sigma
            above[above < ROUNDING * (1 + price)] = 0.0
            return float((above[steep] / (slope[steep] - sigma)).min(initial=np.inf))

        # below the multipliers there is only so much room; nothing is asked beyond it
        return max(reach(high, spare), min(reach(low, -spare), float(np.nextafter(low, np.inf))) if low > 0 else 0.0)


def frontier(mdp: LayeredMDP, loss: ArrayLike, use: ArrayLike, most: float) -> Frontier:
    """All corners of loss (n_tuples,) against use (n_tuples,), for prices from 0 to `most`."""
    space = instance(mdp, "mdp", LayeredMDP).space
    f, g = flat(loss, space.n_tuples, "loss"), flat(use, space.n_tuples, "use")
    most = number(most, "most", 0, LARGEST)

    def corner(price: float) -> tuple[float, float]:
        theta = mdp.occupancy(best_policy(mdp, f + price * g)[1])
        return float(inner(g, theta)), float(inner(f, theta))

    rounding = ROUNDING * space.n_layers
    found, ahead = [corner(0.0)], [corner(most)]
    while ahead:
        (use_here, loss_here), (use_next, loss_next) = found[-1], ahead[-1]
        if use_here - use_next <= rounding:  # the same, or dearer
            ahead.pop()
            continue
        price = max(0.0, (loss_next - loss_here) / (use_here - use_next))
        between = corner(price)
        gained = loss_here + price * use_here - (between[1] + price * between[0])
        if gained > rounding * (1 + price) and use_next < between[0] < use_here:
            ahead.append(between)
        else:
            found.append(ahead.pop())
    return Frontier(*np.array(found).T)

"""The compiled core: C++ kernels with one set of names. Written by `python -m tools.stubs`; do not edit."""

from typing import Any

import numpy
from numpy.typing import NDArray


def cpu_level() -> int:
    """
    The level of x86-64 that this CPU supports, 2 to 4; 0 on other machines.
    """

def exp(x: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """e^x of every entry of x, into out."""

def log(x: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """log x of every entry of x, into out."""

def expm1(x: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """e^x - 1 of every entry, into out."""

def log1p(x: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """log(1 + x) of every entry, into out."""

def lgamma(x: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """log Gamma(x), x > 0, into out."""

def dot(a: NDArray[numpy.float64], b: NDArray[numpy.float64]) -> float:
    """The sum of a[j] b[j], in a fixed order."""

def combine(weights: NDArray[numpy.float64], rows: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The sum of weights[i] rows[i] over i."""

def kl_radii(space: Csr, N: NDArray[numpy.int64], M: NDArray[numpy.int64], log_inverse: float, scale: float) -> NDArray[numpy.float64]:
    """
    The anytime KL radius of every pair, times scale, from counts and log(1/delta).

    Infinite without visits, and where there is one successor.
    """

def kl_bounds(space: Csr, N: NDArray[numpy.int64], M: NDArray[numpy.int64], log_inverse: float, scale: float) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Anytime bounds (lower, upper) on every transition probability by itself, from counts and log(1/delta).
    """

def are_balls(space: Csr, center: NDArray[numpy.float64], radius: NDArray[numpy.float64], tolerance: float) -> bool:
    """
    Whether every radius is 0 or more, and every center a distribution where the radius is below 2.
    """

def best_actions(space: Csr, P: NDArray[numpy.float64], cost: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
    """
    V(s) = min_a sum_s' P(s'|s,a) (cost(s,a,s') + V(s')), V = 0 at the last state.

    Returns V (n_states,) and best (n_states - 1,), the first pair of each state that attains the minimum.
    """

def extended_values(space: Csr, center: NDArray[numpy.float64], radius: NDArray[numpy.float64], cost: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
    """
    V(s) = min_a min_p sum_s' p(s') (cost(s,a,s') + V(s')) over the p with L1 distance to the center <= radius.

    A radius of 2 or more leaves the pair free: its center is not read. Returns V (n_states,) and best
    (n_states - 1,), the first pair of each state that attains the minimum.
    """

def largest_values(space: Csr, curved: bool, lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], center: NDArray[numpy.float64], radius: NDArray[numpy.float64], cost: NDArray[numpy.float64], pi: NDArray[numpy.float64] | None) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.float64]]:
    """
    V(s) = sum_a pi(a|s) max_p sum_s' p(s') (cost(s,a,s') + V(s')); without pi the largest over a, too.

    curved: KL(center || p) <= radius. Otherwise lower <= p <= upper and the L1 distance to the center <= radius,
    the center within the bounds. Returns V (n_states,); best (n_states - 1,), the first of the best pairs of each
    state, empty with pi; and p (n_tuples,), which attains V.
    """

def optimistic_actions(space: Csr, lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], cost: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.float64]]:
    """
    V(s) = min_a [cost(s,a) + min_p sum_s' p(s') V(s')], lower <= p <= upper.

    Returns V (n_states,), best (n_states - 1,), the first pair of each state that attains the minimum, and p
    (n_tuples,), the minimiser of every pair.
    """

def dearest_values(space: Csr, lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], pi: NDArray[numpy.float64], cost: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """
    V(s) = sum_a pi(a|s) [cost(s,a) + max_p sum_s' p(s') V(s')], lower <= p <= upper. Returns V (n_states,).
    """

def visits(space: Csr, best: NDArray[numpy.int64], p: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """
    x (n_pairs,): how likely an episode is to pass each pair, if best[s] is taken at s under the model p.
    """

def best_mixture(space: Csr, lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], c: NDArray[numpy.float64], D: NDArray[numpy.float64], alpha: NDArray[numpy.float64], tolerance: float, max_pivots: int) -> tuple[bool, NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    min <c, x> over the x (n_pairs,) of all policies and all models between the bounds with D x <= alpha.

    Returns whether no x is within alpha (then x is one of least excess), the multipliers of alpha, and x.
    """

def euclidean_point(space: Csr, P: NDArray[numpy.float64], y: NDArray[numpy.float64], beta: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], float, float]:
    """
    x = [y + A'beta]_+, the residual Ax - b, the sum of its absolute values, and F(beta).
    """

def euclidean_step(space: Csr, P: NDArray[numpy.float64], x: NDArray[numpy.float64], residual: NDArray[numpy.float64], mu: float) -> NDArray[numpy.float64]:
    """
    The Newton step -(A D A' + mu)^-1 (Ax - b), D the pairs with x > 0; 0 at the last state.
    """

def least_prices(S: NDArray[numpy.float64], r: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """
    argmin over y >= 0 of <y, S y> / 2 - <r, y>, S (n, n) symmetric and positive semidefinite but for rounding.
    """

class Csr:
    """The compressed rows of a space, checked once; every kernel reads them."""

    def __init__(self, layer_ptr: object, state_ptr: object, pair_ptr: object, action: object, successor: object) -> None: ...

    @property
    def layer_ptr(self) -> object: ...

    @property
    def state_ptr(self) -> object: ...

    @property
    def pair_ptr(self) -> object: ...

    @property
    def action(self) -> object: ...

    @property
    def successor(self) -> object: ...

    def __getstate__(self) -> tuple[Any, ...]: ...

    def __setstate__(self, arg: tuple[Any, ...], /) -> None: ...

level: str

def levels() -> tuple[str, ...]:
    """Return the levels that this CPU supports, the best one last."""

"""Where kinds of confidence sets differ: which kernel runs is decided by the type of the set, when its caller compiles.

In the kernels a set is a NamedTuple of arrays by slot and by pair, its type is its *kind* (`projection/sets.py` lays it
out). Every kind answers the pair's question; how its answers move with the weights is asked in three more places:

    pair_question     here                  log W and p* of every pair
    spread_moving     `hessian.py`          q (p pᵀ + ∂p/∂β), added to a block of H
    hold, respond     `conjugate.py`        the same for the product with H: its diagonal, and the rest

Their usual kernels read ∂p/∂β off the labels below; `implement` registers another for a kind that moves otherwise.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba.extending import overload

from tightrope.kernels.compile import FASTMATH, Kernel, depend_on, inlined
from tightrope.projection.kernels.placement import extent

#: How p* moves with w. WHOLE in the first slot of a pair: all of p* is w normalised. Otherwise every slot of the pair
#: has a label: p* is proportional to w within SCALED_1 and within SCALED_2, and does not move where FIXED.
#: So ∂p/∂log w = diag(p_G) − p_G p_Gᵀ / p(G) on each of the two scaled groups G.
FIXED, SCALED_1, SCALED_2, WHOLE = 0, 1, 2, 3

_kernels: dict[Kernel, dict[type, Kernel]] = {}


def by_kind(usual: Kernel) -> Kernel:
    """A kernel of which a kind of set may have its own. Its first argument is the set."""
    kernels: dict[type, Kernel] = {}

    @wraps(usual)
    def chosen(data: Any, *rest: Any) -> Any:
        return kernels.get(type(data), usual)(data, *rest)

    @overload(chosen, strict=False, jit_options={"forceinline": True, "fastmath": FASTMATH, "error_model": "numpy"})
    def _chosen(data: Any, *rest: Any) -> Kernel:
        return kernels.get(data.instance_class, usual)

    _kernels[chosen] = kernels
    return chosen


def implement(kernel: Kernel, kind: type) -> Callable[[Kernel], Kernel]:
    """Register what `kernel`, one that is chosen `by_kind`, is for sets of this kind."""

    def register(own: Kernel) -> Kernel:
        depend_on(own.__code__.co_filename)
        _kernels[kernel][kind] = own
        return own

    return register


@inlined
def some_clipped(lanes, chunk, label):
    """Whether some pair of a chunk is not WHOLE."""
    _, n_lanes, first, _ = extent(lanes, chunk)
    clipped = False
    for v in range(n_lanes):
        clipped |= label[first + v] != WHOLE
    return clipped


@by_kind
def pair_question(data, lanes, work):
    """log W = max over p in C of Σ p(s') log( w(s') / p(s') ) and the maximiser p*, for every pair.

    work.p holds the weights w, 0 in the padding, and is overwritten by W p*; work.W holds their totals and is
    overwritten by W; work.label says how p* moves. work.thresholds[:, i] are two numbers that may be left for the next
    call on pair i: whatever is found there must be accepted. work.scratch is there to work with. Pairs that the set
    calls free may be several of a state in one, in a chunk of their own; they are always WHOLE.
    """
    raise NotImplementedError("no kernel answers the pair's question for this kind of confidence set")

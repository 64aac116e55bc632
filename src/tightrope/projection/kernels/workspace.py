"""All that a solve writes to: every array with its name, its shape and what it means.

An array costs a tenth of a microsecond each time it enters compiled code, a small solve in all takes fifteen. So what
is allocated, and passed, is a few arrays stacked by what they are indexed by; `by_name` gives each row its name.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.compile import inlined
from tightrope.projection.kernels.placement import LANES

FloatArray = NDArray[np.float64]

SCRATCH = 8 * LANES
THRESHOLDS = slice(2, 4)  # rows of `by_pair`


class Stacks(NamedTuple):
    """A workspace as it is allocated, and passed array by array: as a tuple they would cost a microsecond more."""

    beta: FloatArray
    panel_ptr: NDArray[np.uint64]
    panels: FloatArray
    by_state: FloatArray  # (11, n_states)
    by_pair: FloatArray  # (4, n_pairs)
    by_slot: FloatArray  # (2, n_slots)
    label: NDArray[np.int8]
    rest: FloatArray  # scratch, table and top, end to end


class Workspace(NamedTuple):
    """The arrays of a solve; `lanes.py` says what pairs and slots are."""

    # carried from one solve to the next
    beta: FloatArray  # (n_states,) potentials, 0 on the first and the last layer
    panel_ptr: NDArray[np.uint64]  # (L + 1,) where the rows of each layer begin in `panels`; (1,) if there are none
    panels: FloatArray  # H, then its factor (`tridiagonal.py`); empty where steps come from conjugate gradients
    thresholds: FloatArray  # (2, n_pairs) what the pair's question left for its next call

    # by state: (n_states,)
    trial: FloatArray  # potentials tried by the line search
    step: FloatArray  # the right-hand side outflow − inflow, then Newton's step
    scale: FloatArray  # e^{β − the largest β of the layer}
    inflow: FloatArray
    outflow: FloatArray
    cg: FloatArray  # (6, n_states) C, D, r, direction, t, y of `conjugate.py`

    # by pair: (n_pairs,)
    W: FloatArray
    share: FloatArray  # e^{−β} / Z, so that θ = share · W p*

    # by slot: (n_slots,)
    u: FloatArray  # reference · e^{−cost} (free pairs: summed), 0 in the padding; or its logarithm
    p: FloatArray  # w, then W p*, in the end θ / u
    label: NDArray[np.int8]  # how p* moves (`kinds.py`)

    scratch: FloatArray  # (SCRATCH,) eight rows of a number for each lane of a chunk
    table: FloatArray  # three numbers for each slot of the largest chunk
    top: FloatArray  # (L + 1,) largest potential of each layer

    @staticmethod
    def allocate(lanes: Any, beta: FloatArray, panel_ptr: NDArray[np.uint64], panels: FloatArray) -> Stacks:
        """Room for a solve in these lanes, around what is carried; the thresholds are 0."""
        n_states, n_pairs, n_slots = len(beta), len(lanes.origin), len(lanes.successor)
        return Stacks(
            beta, panel_ptr, panels,
            by_state=np.zeros((11, n_states)),
            by_pair=np.zeros((4, n_pairs)),
            by_slot=np.zeros((2, n_slots)),
            label=np.zeros(n_slots, dtype=np.int8),
            rest=np.zeros(SCRATCH + 3 * int(np.diff(lanes.chunk_slot).max()) + len(lanes.layer_state) - 1),
        )  # fmt: skip


@inlined
def by_name(n_layers, beta, panel_ptr, panels, by_state, by_pair, by_slot, label, rest):
    """The workspace in these stacks, of a space of as many layers, the last one included."""
    return Workspace(
        beta, panel_ptr, panels, thresholds=by_pair[2:],
        trial=by_state[0], step=by_state[1], scale=by_state[2], inflow=by_state[3], outflow=by_state[4],
        cg=by_state[5:], W=by_pair[0], share=by_pair[1], u=by_slot[0], p=by_slot[1], label=label,
        scratch=rest[:SCRATCH], table=rest[SCRATCH : rest.size - n_layers], top=rest[rest.size - n_layers :],
    )  # fmt: skip


def allocate_panels(layer_sizes: NDArray[np.integer]) -> tuple[NDArray[np.uint64], FloatArray]:
    """panel_ptr and panels for layers of these sizes, the last one left out: its potential is fixed."""
    onward = np.append(layer_sizes[1:], 0)[: len(layer_sizes)]
    panel_ptr = np.concatenate([[0], np.cumsum(layer_sizes * (layer_sizes + onward))]).astype(np.uint64)
    return panel_ptr, np.zeros(int(panel_ptr[-1]))

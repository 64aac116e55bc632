"""Mirror learners: an occupancy measure that moves by entropic mirror steps inside a confidence set.

    θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference),

Δ the measures whose conditionals lie in the confidence set of the epoch (`projection`). An epoch ends when some pair
was visited as often inside it as before it (and once; or a share of that), and the set is made anew from all counts.
"""

from tightrope.learners.parts import WarmStart
from tightrope.learners.shared.counting import CountingState
from tightrope.space import FloatArray
from tightrope.storage.state import measure, part, state


@state
class MirrorState(CountingState):
    """Counts, the measure, and where the solver of the next mirror step begins."""

    theta: FloatArray = measure()
    solver: WarmStart = part(written_as="_projector")

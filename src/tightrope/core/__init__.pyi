"""The compiled core: C++ kernels with one set of names. Written by `python -m tools.stubs`; do not edit."""

from typing import Any

from typing import Annotated, overload

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

SMALLEST: float = 1e-290

def weigh(V: float, f: NDArray[numpy.float64], Q: NDArray[numpy.float64], g: NDArray[numpy.float64], alpha: float) -> NDArray[numpy.float64]:
    """(V f + the sum of Q_i g_i) / alpha."""

def mix(csr: Csr, theta: NDArray[numpy.float64], lam: float) -> NDArray[numpy.float64]:
    """(1 - lam) theta + lam uniform on every layer."""

def mix_pairs(csr: Csr, theta: NDArray[numpy.float64], lam: float, even: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """
    (1 - lam) theta + lam even, of which every successor of pair i has even[i].
    """

def lift(csr: Csr, theta: NDArray[numpy.float64], floor: float) -> NDArray[numpy.float64]:
    """
    theta with at least `floor` of its layer in every state and of its state in every tuple.
    """

def average(mean: NDArray[numpy.float64], x: NDArray[numpy.float64], t: float) -> NDArray[numpy.float64]:
    """
    mean + (x - mean) / t, (I, n_tuples): the mean of t draws, of which x is the last; `mean` itself if x is equal.
    """

def dual_step(Q: NDArray[numpy.float64], g: NDArray[numpy.float64], theta: NDArray[numpy.float64], c: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """max(Q_i + <g_i, theta> - c_i, 0) for every i."""

@overload
def believe(csr: Csr, N: NDArray[numpy.int64], M: NDArray[numpy.int64], theta: NDArray[numpy.float64]) -> NDArray[numpy.float64]: ...

@overload
def believe(csr: Csr, N: NDArray[numpy.float64], M: NDArray[numpy.float64], theta: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """
    The model (n_tuples,) that is believed after the counts N and M, and by theta where little was counted.
    """

@overload
def uses(csr: Csr, pi: NDArray[numpy.float64], N: NDArray[numpy.int64], M: NDArray[numpy.int64], theta: NDArray[numpy.float64], g: NDArray[numpy.float64]) -> NDArray[numpy.float64]: ...

@overload
def uses(csr: Csr, pi: NDArray[numpy.float64], N: NDArray[numpy.float64], M: NDArray[numpy.float64], theta: NDArray[numpy.float64], g: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """
    What the policy uses (I,) of each constraint g under the model that is believed.
    """

@overload
def assess(csr: Csr, pi: NDArray[numpy.float64], N: NDArray[numpy.int64], M: NDArray[numpy.int64], theta: NDArray[numpy.float64], loss: NDArray[numpy.float64], costs: NDArray[numpy.float64], realism: float, limits: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]: ...

@overload
def assess(csr: Csr, pi: NDArray[numpy.float64], N: NDArray[numpy.float64], M: NDArray[numpy.float64], theta: NDArray[numpy.float64], loss: NDArray[numpy.float64], costs: NDArray[numpy.float64], realism: float, limits: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    By how much the policy is over each limit (I,) under the model that is believed, its responses b (I,) and A (I, I), and the spans (I,) of what is charged, which replaces the costs.
    """

@overload
def advantages(csr: Csr, pi: NDArray[numpy.float64], N: NDArray[numpy.int64], M: NDArray[numpy.int64], theta: NDArray[numpy.float64], g: NDArray[numpy.float64], optimism: float, steps: NDArray[numpy.int64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]: ...

@overload
def advantages(csr: Csr, pi: NDArray[numpy.float64], N: NDArray[numpy.float64], M: NDArray[numpy.float64], theta: NDArray[numpy.float64], g: NDArray[numpy.float64], optimism: float, steps: NDArray[numpy.int64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    What the policy uses (I,) under the model that is believed, and what paths through these tuples, in any order, used more than that (I,); the rows A of its advantages replace g.
    """

@overload
def evaluate(csr: Csr, pi: NDArray[numpy.float64], M: NDArray[numpy.int64], n: NDArray[numpy.int64], R: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]: ...

@overload
def evaluate(csr: Csr, pi: NDArray[numpy.float64], M: NDArray[numpy.float64], n: NDArray[numpy.float64], R: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    V (rows, n_states) and Q (rows, n_pairs) of the policy for every row of R, truncated.
    """

def mix_gap(csr: Csr, theta: NDArray[numpy.float64], x: NDArray[numpy.float64], eta: float) -> float:
    """Σ over layers of <θ, x> + log(Σ θ e^{−η x}) / η."""

def from_least(csr: Csr, f: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """f - the least f of the layer."""

def span(csr: Csr, f: NDArray[numpy.float64]) -> float:
    """The largest span of f within a layer."""

def in_spans(csr: Csr, g: NDArray[numpy.float64], budgets: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Replace g by its distance from the least of each layer, in shares of its span; return the budgets in these units, and the units.
    """

def mirror_step(csr: Csr, pi: NDArray[numpy.float64], q: NDArray[numpy.float64], step: float) -> NDArray[numpy.float64]:
    """The policy proportional to pi exp(-step q) in every state."""

def regularised_values(csr: Csr, pi: NDArray[numpy.float64], P: NDArray[numpy.float64], R: NDArray[numpy.float64], tau: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    V (rows, n_states) and Q (rows, n_pairs) with entropy tau, for every row of R.
    """

def regularised_step(csr: Csr, pi: NDArray[numpy.float64], q: NDArray[numpy.float64], step: float, tau: float) -> NDArray[numpy.float64]:
    """
    The policy proportional to pi^(1 - step tau) exp(step q) in every state.
    """

def bonus_values(csr: Csr, n_losses: NDArray[numpy.int64], N: NDArray[numpy.int64], M: NDArray[numpy.int64], total_loss: NDArray[numpy.float64], iota: float, rare: float, scale: float, before: NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
    """
    Optimistic values Q (n_pairs,), given those before, and the best pair of every state.
    """

def lower_means(n: NDArray[numpy.int64], total: NDArray[numpy.float64], V: NDArray[numpy.float64], log_inverse: float, scale: float) -> NDArray[numpy.float64]:
    """
    Lower bounds (I, n_pairs) on means, given counts n, sums and spreads V.
    """

def upper_occupancy(csr: Csr, pi: NDArray[numpy.float64], lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], path: NDArray[numpy.int64]) -> NDArray[numpy.float64]:
    """
    The largest probability (L,) of passing each pair of the path under a model of the box.
    """

NONE: float = 1e-300

def occupancy(csr: Csr, pi: NDArray[numpy.float64], P: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The occupancy measure (n_tuples,) of the policy pi under the model P."""

def policy_of(csr: Csr, theta: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The policy (n_pairs,) of an occupancy measure."""

def model_of(csr: Csr, theta: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The conditionals (n_tuples,) of an occupancy measure."""

def draw(p: NDArray[numpy.float64], lo: int, hi: int, u: float) -> int:
    """The index in lo:hi at which the running sum of p exceeds u."""

def sample_path(csr: Csr, pi: NDArray[numpy.float64], P: NDArray[numpy.float64], uniforms: NDArray[numpy.float64]) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64]]:
    """
    One episode: its states (L + 1,), its actions (L,) and the tuple of each step (L,).
    """

def find_path(csr: Csr, states: NDArray[numpy.int64], actions: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """
    The tuple (L,) of each step of a trajectory, -1 from the first step on that is no tuple of its layer.
    """

def play(csr: Csr, pi: NDArray[numpy.float64], P: NDArray[numpy.float64], uniforms: NDArray[numpy.float64], f: NDArray[numpy.float64], g: NDArray[numpy.float64], mean: NDArray[numpy.float64], budgets: NDArray[numpy.float64], total_f: NDArray[numpy.float64], over: NDArray[numpy.float64]) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], float, float]:
    """
    One episode and its account: states, actions, steps, the expected loss and the norm of what the policy uses beyond its budgets under `mean`. Adds f to total_f, and the use of g beyond the budgets to over.
    """

def count(csr: Csr, path: NDArray[numpy.int64], N: NDArray[numpy.int64], growth: float, n: NDArray[numpy.int32], m: NDArray[numpy.int32]) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32], bool]:
    """
    The counts n and m of an epoch with one more path, and whether it ends the epoch.
    """

def count_laws(csr: Csr, path: NDArray[numpy.int64], law: NDArray[numpy.int64], N: NDArray[numpy.int64], growth: float, n: NDArray[numpy.int64]) -> tuple[NDArray[numpy.int64], bool]:
    """
    The counts n of laws with one more path, and whether it ends the epoch.
    """

def frequencies(csr: Csr, N: NDArray[numpy.int64], M: NDArray[numpy.int64]) -> NDArray[numpy.float64]:
    """M / max(1, N) (n_tuples,)."""

def within(f: NDArray[numpy.float64], g: NDArray[numpy.float64], bound: float) -> bool:
    """Whether |f| <= bound and the sum over i of max |g_i| <= bound."""

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

def answer_l1(center: NDArray[numpy.float64], radius: NDArray[numpy.float64], p: NDArray[numpy.float64], W: NDArray[numpy.float64], label: NDArray[numpy.int8], thresholds: NDArray[numpy.float64]) -> None:
    """
    Answer for L1 balls: p holds w on entry and W p* on exit; W, label and thresholds are written.
    """

def answer_box(lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], center: NDArray[numpy.float64], radius: NDArray[numpy.float64], p: NDArray[numpy.float64], W: NDArray[numpy.float64], label: NDArray[numpy.int8], thresholds: NDArray[numpy.float64]) -> None:
    """Answer for boxes, as for L1 balls."""

def answer_kl(center: NDArray[numpy.float64], radius: NDArray[numpy.float64], p: NDArray[numpy.float64], W: NDArray[numpy.float64], label: NDArray[numpy.int8], thresholds: NDArray[numpy.float64], kappa: NDArray[numpy.float64]) -> None:
    """Answer for KL balls, as for L1 balls; kappa is written too."""

def move_kl(kappa: NDArray[numpy.float64], p: NDArray[numpy.float64], W: NDArray[numpy.float64], label: NDArray[numpy.int8], thresholds: NDArray[numpy.float64], share: NDArray[numpy.float64], aligned: bool, x: NDArray[numpy.float64], block: NDArray[numpy.float64], D: NDArray[numpy.float64], y: NDArray[numpy.float64]) -> None:
    """
    How the answers for KL balls move: adds to block, D and y (`sets.hpp`).
    """

def least_prices(S: NDArray[numpy.float64], r: NDArray[numpy.float64], most: NDArray[numpy.float64] | None = None) -> NDArray[numpy.float64]:
    """
    argmin over 0 <= y <= most of <y, S y> / 2 - <r, y>, S (n, n) symmetric and positive semidefinite but for
    rounding; without `most` there is no upper bound.
    """

class Solver:
    """
    Projects on a confidence set again and again, from where the last answer was.
    """

    def __init__(self, csr: object, direct: bool) -> None:
        """
        direct: Newton's steps come from a factor of H; otherwise from conjugate gradients.
        """

    def set_l1(self, center: NDArray[numpy.float64], radius: NDArray[numpy.float64], free: NDArray[numpy.bool_]) -> None:
        """
        Project on L1 balls from now on; free says which pairs may have any conditional.
        """

    def set_box(self, lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], free: NDArray[numpy.bool_]) -> None:
        """Project on boxes from now on."""

    def set_cut_box(self, lower: NDArray[numpy.float64], upper: NDArray[numpy.float64], center: NDArray[numpy.float64], radius: NDArray[numpy.float64], free: NDArray[numpy.bool_]) -> None:
        """Project on boxes that are cut by L1 balls from now on."""

    def set_kl(self, center: NDArray[numpy.float64], radius: NDArray[numpy.float64], free: NDArray[numpy.bool_]) -> None:
        """Project on KL balls from now on."""

    def solve(self, reference: NDArray[numpy.float64], cost: NDArray[numpy.float64], tolerance: float, theta: NDArray[numpy.float64]) -> tuple[float, float, int, bool]:
        """
        Write the answer into theta, NaN if there is none; return F, the flow residual, the number of Newton steps
        and whether weights may have left the range of numbers. An interrupted solver starts cold next time.
        """

    def solve_priced(self, reference: NDArray[numpy.float64], cost: NDArray[numpy.float64], A: NDArray[numpy.float64], b: NDArray[numpy.float64], most: NDArray[numpy.float64], tolerance: float, patience: int, y: NDArray[numpy.float64], theta: NDArray[numpy.float64]) -> tuple[float, float, float, int, bool]:
        """
        As `solve` with most_i [<A_i, theta> - b_i]_+ added for each row, from the prices y, which become those of
        the answer; return phi, the flow residual, the most by which a row's condition is missed in units of its
        largest coefficient, the number of Newton steps and whether weights may have left the range of numbers.
        """

    @property
    def potentials(self) -> NDArray[numpy.float64]:
        """beta itself, not a copy; the next solve starts here."""

    @property
    def factor_size(self) -> int: ...

    @property
    def factor_damping(self) -> float:
        """NaN while there is no factor."""

    def state(self, thresholds: NDArray[numpy.float64], factor: NDArray[numpy.float64]) -> None:
        """
        Write what the next solve starts from, potentials and factor_damping aside.
        """

    def restore(self, potentials: NDArray[numpy.float64], thresholds: NDArray[numpy.float64], factor: NDArray[numpy.float64], factor_damping: float) -> None:
        """Go on from the state of another solver."""

    def forget(self) -> None:
        """Start cold next time."""

class Parts(Solver):
    """A solver whose parts can be called one by one, for tests."""

    def __init__(self, csr: object, direct: bool) -> None: ...

    def evaluate(self, reference: NDArray[numpy.float64], cost: NDArray[numpy.float64], beta: NDArray[numpy.float64], logarithmic: bool = False) -> tuple[float, float]:
        """F and the flow residual at beta."""

    def divided(self) -> NDArray[numpy.float64]:
        """theta at the last evaluation; to be asked for once."""

    def assembled(self, damping: float) -> NDArray[numpy.float64]:
        """The panels of H at the last evaluation."""

    def find_pivots(self, damping: float) -> None:
        """C and D of conjugate.hpp."""

    def sweep(self, x: NDArray[numpy.float64], back: bool) -> float:
        """A sweep back, or forward: then x · y is returned."""

    def conjugate_gradients(self, damping: float, accuracy: float, x: NDArray[numpy.float64]) -> int:
        """
        Overwrite x by (H + damping diag(inflow + outflow))^-1 x, and return the iterations.
        """

    def respond(self, A: NDArray[numpy.float64], damping: float, drained: NDArray[numpy.float64], dbeta: NDArray[numpy.float64], S: NDArray[numpy.float64]) -> None:
        """
        Write what the rows of A drain at the last evaluation, dβ and S (`sensitivity.hpp`).
        """

    def arrays(self) -> dict[str, Any]:
        """Copies of the arrays of the layout and of the workspace, by name."""

def solve_tridiagonal(sizes: NDArray[numpy.int64], values: NDArray[numpy.float64], x: NDArray[numpy.float64]) -> None:
    """
    Overwrite the panels of a block-tridiagonal matrix by their factor, and x by the solution.
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

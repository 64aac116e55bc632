"""Both solvers in plain NumPy: `solve` the subproblem, pair by pair, and `solve_priced` with priced rows.

    min over θ of <cost, θ> + D(θ, reference),      θ an occupancy measure with conditionals in C

Fix a potential β(s) for every state, 0 on the first and the last layer, and let w = reference · e^{β(s') − cost}. Each
pair has a small problem of its own (`pair_question`), and the rest is a convex function of β (`dual`),

    log W = max over p in C of Σ p log(w/p),      F(β) = Σ_k log Σ_{pairs of layer k} e^{−β(s)} W(s,a),

whose gradient is inflow minus outflow of each state under θ = q p*, q the share of e^{−β} W in its layer. Where that is
0, θ is the answer (`solve`). With priced rows, `solve_priced` solves

    min over θ of <cost, θ> + D(θ, reference) + Σ_i most_i [<A_i, θ> − b_i]_+.

For prices y let θ(y) be the answer of the plain subproblem with cost + Σ_i y_i A_i, and F(y) its dual value. Then

    φ(y) = F(y) + <b, y>

is convex and smooth, with gradient b − A θ(y), and at its minimum over 0 <= y <= most, θ(y) is the answer. Newton's
method finds it. The second derivatives are −A ∂θ/∂y, one solve for each row with the Hessian of the plain dual. The
potentials follow each step in y to first order; then `solve` corrects them.

The core is tested against this module, which also solves for sets that the core does not know: those with a method
`pair_question` (`confidence.OwnSet`). It is for small problems: a solve takes about 0.1 ms for each pair and step, plus
time cubic in the number of states.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.arguments import shown
from tightrope.arithmetic import combine, products
from tightrope.confidence import Box, ConfidenceSet, KLBall, L1Ball, OwnSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.space import FloatArray, LayeredSpace

#: Larger differences between the logarithms of a pair's weights are cut to this.
SPREAD = 600.0

#: How far the sum of the probabilities that a user's own set returns may be from 1.
SUM_TOLERANCE = 1e-6


class Answer(NamedTuple):
    """The answer to the pair's question."""

    p: FloatArray  #: (n_successors,) p*
    movement: FloatArray  #: (n_successors, n_successors) ∂p*/∂log w


def pair_question(confidence: ConfidenceSet, space: LayeredSpace, i: int, log_w: FloatArray) -> Answer:
    """The maximiser p* of Σ p log(w/p) over the set of pair i, and how it moves with log w (n_successors,)."""
    here = slice(space.csr.pair_ptr[i], space.csr.pair_ptr[i + 1])
    if isinstance(confidence, OwnSet):
        return _own_answer(confidence, space, i, log_w)
    if isinstance(confidence, KLBall):
        return answer_for_kl_ball(log_w, confidence.center[here], float(confidence.radius[i]))
    ball: L1Ball | None
    if isinstance(confidence, L1Ball):
        bounds, ball = (np.zeros_like(log_w), np.ones_like(log_w)), confidence
    elif isinstance(confidence, Box):
        bounds, ball = (confidence.lower[here], confidence.upper[here]), confidence.ball
    else:
        raise InvalidInputError(
            f"{type(confidence).__name__} does not answer the pair's question; give it a method "
            "pair_question(i, log_w) as tightrope.confidence.OwnSet describes"
        )
    if ball is None or ball.radius[i] >= 2:
        return answer_for_box(log_w, *bounds)
    return answer_for_box(log_w, *bounds, ball.center[here], float(ball.radius[i]))


def answer_if_free(log_w: FloatArray) -> Answer:
    """Answer for the set of all distributions: w normalised."""
    w = np.exp(np.maximum(log_w - log_w.max(), -SPREAD))
    p = w / w.sum()
    return Answer(p, np.diag(p) - np.outer(p, p))


def _own_answer(confidence: OwnSet, space: LayeredSpace, i: int, log_w: FloatArray) -> Answer:
    """Return the checked answer of a user's own set."""
    n, wrong, answer = len(log_w), None, confidence.pair_question(i, log_w)
    try:
        p, movement = (np.asarray(part, dtype=float) for part in answer)
    except (TypeError, ValueError):
        wrong = f"{shown(answer)}; expected two arrays, p and its derivatives"
    else:
        if p.shape != (n,) or movement.shape != (n, n):
            wrong = f"shapes {p.shape} and {movement.shape}; expected ({n},) and ({n}, {n})"
        elif not (np.isfinite(p).all() and np.isfinite(movement).all()):
            wrong = "numbers that are not finite"
        elif p.min() < 0 or abs(p.sum() - 1) > SUM_TOLERANCE:
            wrong = f"p with smallest entry {p.min():.3g} and sum {p.sum():.12g}; expected a distribution"
    if wrong is not None:
        s, a = space.pairs[i]
        raise InvalidInputError(f"state {s}, action {a}: {type(confidence).__name__}.pair_question returned {wrong}")
    return Answer(p / p.sum(), movement)


# ------------------------------------------------------------------------------------- boxes and L1 balls


def answer_for_box(
    log_w: FloatArray, lower: FloatArray, upper: FloatArray, center: FloatArray | None = None, eps: float = np.inf
) -> Answer:
    """Answer for the distributions with lower <= p <= upper and, given a center, ‖p − center‖₁ <= eps.

    p* is w scaled and clipped: p = clip(κ w, lower, upper), Σ p = 1. If that is outside the ball, p* exceeds the center
    by eps/2 at some successors and is eps/2 below it at others, with a scale κ for each group. Clipped entries do not
    move with w; the others move in proportion to w, and the sum of each group is fixed.
    """
    w = np.exp(np.maximum(log_w - log_w.max(), -SPREAD))
    kappa = clip_scale(w, lower, upper, 1.0)
    p, parts = np.clip(kappa * w, lower, upper), [(lower < kappa * w) & (kappa * w < upper)]
    if center is not None and eps < 2 and np.abs(p - center).sum() > eps:
        x, y = clip_scale(w, center, upper, 1 + eps / 2), clip_scale(w, lower, center, 1 - eps / 2)
        p = np.clip(x * w, center, upper) + np.clip(y * w, lower, center) - center
        parts = [(center < x * w) & (x * w < upper), (lower < y * w) & (y * w < center)]
    movement = np.zeros((len(w), len(w)))
    for part in parts:
        p_G = np.where(part, p, 0.0)
        if p_G.sum() > 0:
            movement += np.diag(p_G) - np.outer(p_G, p_G) / p_G.sum()
    return Answer(p, movement)


def clip_scale(w: FloatArray, lower: FloatArray, upper: FloatArray, total: float) -> float:
    """Return κ with Σ clip(κ w, lower, upper) = total.

    The sum is piecewise linear in κ, so interpolate between kinks.
    """
    kinks = np.sort(np.concatenate([lower / w, upper / w]))
    sums = np.clip(kinks[:, None] * w, lower, upper).sum(axis=1)
    return float(np.interp(total, sums, kinks))


# ----------------------------------------------------------------------------------------------- KL balls


def answer_for_kl_ball(log_w: FloatArray, center: FloatArray, radius: float) -> Answer:
    """Answer for the distributions with KL(P̂‖p) <= r, P̂ the center.

    If w̄ = w / Σw is in the ball, it is the answer. Otherwise, with multipliers μ of the ball and λ of Σ p = 1,

        log p − log w̄ + λ = μ (P̂/p − 1):      μ (e^x − 1) + x = λ − log(w̄/P̂),   x = log(P̂/p),   where P̂ > 0

    and p = w̄ e^{−μ−λ} elsewhere. For every μ there is one λ with Σ p = 1, and KL(P̂‖p) falls with μ.

    The derivatives: with κ = 1 / (1 + μ P̂/p), κ̄ = Σ p κ and v = p (1 − κ/κ̄), Σ p = 1 and KL(P̂‖p) = r leave
    ∂p/∂log w = diag(p κ) − (p κ)(p κ)ᵀ / κ̄ − v vᵀ / σ, σ = Σ v² / (p κ).
    """
    inside, seen = answer_if_free(log_w), center > 0
    w_bar, log_ratio = inside.p, np.log(inside.p[seen] / center[seen])
    K = float(np.sum(center[seen] * above_tangent(-log_ratio)) + np.sum(w_bar[~seen]))
    if radius >= K:
        return inside
    if radius <= 0:
        return Answer(center / center.sum(), np.zeros_like(inside.movement))

    def at(mu: float, lam: float) -> tuple[FloatArray, FloatArray]:
        """Return p and x; x is 0 where P̂ is 0."""
        x, p = np.zeros_like(w_bar), w_bar * np.exp(-mu - lam)
        x[seen] = solve_log(lam - log_ratio, mu)
        p[seen] = center[seen] * np.exp(-x[seen])
        return p, x

    def shares(mu: float, x: FloatArray) -> FloatArray:
        """κ = 1 / (1 + μ P̂/p)."""
        return 1 / (1 + mu * np.where(seen, np.exp(x), 0.0))

    def given(mu: float) -> tuple[FloatArray, FloatArray]:
        """p and x for the λ that makes Σ p = 1."""

        def log_total(lam: float) -> tuple[float, float]:
            p, x = at(mu, lam)
            return float(np.log(p.sum())), -float(np.sum(p * shares(mu, x)) / p.sum())

        return at(mu, falling_root(log_total, -K - 1e-15, 1e-15, -K * (mu / (1 + mu)) ** 2, 1e-15))

    def log_excess(log_mu: float) -> tuple[float, float]:
        """Return log((KL(P̂‖p) + Σ p − 1) / r) and its slope in log μ."""
        mu = float(np.exp(log_mu))
        p, x = given(mu)
        kl = max(float(np.sum(center[seen] * above_tangent(x[seen])) + np.sum(p[~seen])), 1e-300)
        d, b = p * shares(mu, x), np.where(seen, -np.expm1(x), 1.0)
        curvature = np.sum(d * b * b) - np.sum(d * b) ** 2 / np.sum(d)
        return float(np.log(kl / radius)), -float(mu * curvature / kl)

    # near the center KL(P̂‖p) is quadratic, and p divides the way from P̂ to w̄ in the ratio 1 : μ
    most = float(np.log(K / radius))
    start = float(np.log(max(np.sqrt(K / radius) - 1, 1e-16)))
    mu = float(np.exp(falling_root(log_excess, most - 100.0, most, start, 1e-12)))
    p, x = given(mu)
    p, kappa = p / p.sum(), shares(mu, x)
    mean = np.sum(p * kappa)
    v = p * (1 - kappa / mean)
    sigma = np.sum(p * (1 - kappa / mean) ** 2 / kappa)
    across = np.outer(v, v) / sigma if sigma > 0 else 0.0
    return Answer(p, np.diag(p * kappa) - np.outer(p * kappa, p * kappa) / mean - across)


def above_tangent(x: FloatArray) -> FloatArray:
    """Return h(x) = e^{−x} − 1 + x, by its series for small x; KL(P̂‖p) + Σ p − 1 = Σ P̂ h(log(P̂/p))."""
    series = x * x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6))))
    return np.where(np.abs(x) < 3e-3, series, np.expm1(-x) + x)


def solve_log(a: FloatArray, mu: float) -> FloatArray:
    """Return x with μ (e^x − 1) + x = a.

    The left side is convex, so Newton's method descends to x from an upper bound.
    """
    bound = np.where(a < 0, a + mu, np.log1p(np.maximum(a, 0.0) / mu))
    x = np.minimum(a / (1 + mu), bound)
    for _ in range(100):
        lower = x - (mu * np.expm1(x) + x - a) / (1 + mu * np.exp(x))
        if not (lower < x).any():
            break
        x = np.minimum(x, lower)
    return x


def falling_root(
    f: Callable[[float], tuple[float, float]], low: float, high: float, x: float, tolerance: float
) -> float:
    """Return the root of a decreasing function f, which returns its value and slope, to a tolerance on the value.

    Newton's method from x, and bisection where a step leaves the bracket.
    """
    for _ in range(200):
        value, slope = f(x)
        low, high = (x, high) if value > 0 else (low, x)
        new = x - value / slope if slope < 0 else x
        if not low < new < high:
            new = (low + high) / 2
        if abs(value) <= tolerance or abs(new - x) <= 1e-15 * abs(x):
            break
        x = new
    return x


# ----------------------------------------------------------------------------------------------- the dual


class Dual(NamedTuple):
    """The dual at one β."""

    beta: FloatArray  #: (n_states,)
    F: float
    theta: FloatArray  #: (n_tuples,) q p*
    inflow: FloatArray  #: (n_states,)
    outflow: FloatArray  #: (n_states,)
    H: FloatArray  #: (n_states, n_states) Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ]
    answers: list[Answer]  #: of every pair
    q: FloatArray  #: (n_pairs,)

    @property
    def gradient(self) -> FloatArray:
        """∂F/∂β for the states whose potentials are free, 0 elsewhere."""
        gradient = self.inflow - self.outflow
        gradient[[0, -1]] = 0.0
        return gradient

    @property
    def residual(self) -> float:
        """Σ |inflow − outflow| over the inner states."""
        return float(np.abs(self.gradient).sum())


def dual(
    space: LayeredSpace, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, beta: FloatArray
) -> Dual:
    """F(β), its gradient (inflow − outflow) and H.

    F does not change when a constant is added to β on one layer. H is the Hessian of Σ_k Z_k instead, at Z_k = 1, which
    is positive definite; its Newton step is that of F up to such constants.
    """
    n, successor, state = space.n_states, space.tuples[:, 2], space.pairs[:, 0]
    log_w = np.log(reference) - cost + beta[successor]
    rows = [slice(*ends) for ends in zip(space.csr.pair_ptr[:-1], space.csr.pair_ptr[1:], strict=True)]
    answers = [
        answer_if_free(log_w[here]) if free else pair_question(confidence, space, i, log_w[here])
        for i, (here, free) in enumerate(zip(rows, confidence.free(space), strict=True))
    ]
    p = np.concatenate([answer.p for answer in answers])
    log_p = np.log(p, where=p > 0, out=np.zeros_like(p))
    log_W = space.sum_over_successors(np.where(p > 0, p * (log_w - log_p), 0.0))

    log_shares, starts = log_W - beta[state], space.csr.state_ptr[space.csr.layer_ptr[:-2]]
    largest = np.maximum.reduceat(log_shares, starts)
    shares = np.exp(log_shares - largest[space.layer_of_pair])
    Z = np.add.reduceat(shares, starts)
    q = shares / Z[space.layer_of_pair]
    theta = space.expand_to_tuples(q) * p

    H = np.zeros((n, n))
    for i, answer in enumerate(answers):
        to, leaving = successor[rows[i]], np.zeros(n)
        leaving[state[i]] = 1.0
        leaving[to] = -answer.p
        H += q[i] * np.outer(leaving, leaving)
        H[np.ix_(to, to)] += q[i] * answer.movement
    inflow, outflow = flows(space, theta)
    return Dual(beta, float(np.sum(largest + np.log(Z))), theta, inflow, outflow, H, answers, q)


def flows(space: LayeredSpace, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_states,) the inflow and the outflow of every state."""
    inflow, outflow = np.zeros((2, space.n_states))
    np.add.at(inflow, space.tuples[:, 2], theta)
    np.add.at(outflow, space.tuples[:, 0], theta)
    return inflow, outflow


# ------------------------------------------------------------------------------------------------- Newton

ARMIJO = 1e-4  # share of the promised decrease of F that a step has to bring
BELIEVABLE = 200.0  # move of a potential up to which a step is shortened to MAX_MOVE; beyond, H is damped
FIRST_DAMPING, MAX_DAMPING = 1e-4, 1e8
MAX_MOVE = 20.0  # of a potential in one step: e^20 in the weights
MAX_STEPS = 500
ROUNDING = 1e-11  # of F, relative


class Solution(NamedTuple):
    """The answer of the subproblem."""

    theta: FloatArray  #: (n_tuples,)
    potentials: FloatArray  #: (n_states,) β
    dual_value: float  #: F
    flow_residual: float
    iterations: int  #: Newton steps


def solve(
    space: LayeredSpace,
    reference: FloatArray,
    cost: FloatArray,
    confidence: ConfidenceSet,
    tolerance: float = 1e-10,
    start: FloatArray | None = None,
) -> Solution:
    """Minimise F by Newton's method, from the potentials `start` or from 0, to a tolerance on the flow residual.

    If a step is implausibly long, or does not reduce F enough, H is damped by a multiple of inflow + outflow. The step
    then turns towards (inflow − outflow) / (inflow + outflow), which is at most 1 in every entry.

    Raises
    ------
    ConvergenceError : if the tolerance is not met.
    """
    beta = np.zeros(space.n_states) if start is None else start
    steps, at = _search(space, reference, cost, confidence, tolerance, beta)
    if not at.residual <= tolerance and start is not None and start.any():
        more, at = _search(space, reference, cost, confidence, tolerance, np.zeros(space.n_states))
        steps += more
    if not at.residual <= tolerance:
        raise ConvergenceError(
            f"the projection stopped at a flow residual of {at.residual:.3g}, above its tolerance of {tolerance:.3g}, "
            f"after {steps} Newton steps; no answer is returned"
        )
    return Solution(at.theta, at.beta, at.F, at.residual, steps)


def _search(
    space: LayeredSpace,
    reference: FloatArray,
    cost: FloatArray,
    confidence: ConfidenceSet,
    tolerance: float,
    beta: FloatArray,
) -> tuple[int, Dual]:
    """Run Newton's method from β; return the number of steps and the last point."""
    at, damping, steps = dual(space, reference, cost, confidence, beta), 0.0, 0
    while not at.residual <= tolerance and steps < MAX_STEPS and damping < MAX_DAMPING:
        steps += 1
        step = newton_step(at, damping)
        longest, accepted = float(np.abs(step).max()), False
        if longest < BELIEVABLE:
            t = min(1.0, MAX_MOVE / longest)
            there = dual(space, reference, cost, confidence, at.beta + t * step)
            rise, slope = there.F - at.F, float(np.sum(at.gradient * step))
            level = rise <= ROUNDING * (1 + abs(at.F)) and there.residual <= 0.9 * at.residual
            accepted = level or rise <= ARMIJO * t * slope
        if accepted:
            at, damping = there, 0.1 * damping if damping > 1e-8 else 0.0
        else:
            damping = max(10 * damping, FIRST_DAMPING)
    return steps, at


def newton_step(at: Dual, damping: float) -> FloatArray:
    """−(H + damping · diag(inflow + outflow))⁻¹ (inflow − outflow); the last state's potential is fixed."""
    size = at.inflow + at.outflow
    step = solve_positive((at.H + damping * np.diag(size))[:-1, :-1], -at.gradient[:-1])
    step[0] = 0.0
    return np.append(step, 0.0)


def solve_positive(H: FloatArray, b: FloatArray) -> FloatArray:
    """Return H⁻¹ b by Cholesky's method; an unknown with a pivot of 0 or less is 0.

    H is positive definite up to rounding.

    The order of operations is fixed, so the bits do not depend on the CPU, as those of LAPACK do.
    """
    n, A, x = len(b), H.copy(), b.copy()
    smallest = 1e-14 * np.maximum(np.diag(H), 0.0)
    for j in range(n):
        if A[j, j] > smallest[j]:
            A[j:, j] /= np.sqrt(A[j, j])
            A[j + 1 :, j + 1 :] -= A[j + 1 :, j, None] * A[None, j + 1 :, j]
        else:
            A[j:, j], A[j, j] = 0.0, np.inf
    for j in range(n):
        x[j] /= A[j, j]
        x[j + 1 :] -= A[j + 1 :, j] * x[j]
    for j in reversed(range(n)):
        x[j] = (x[j] - np.sum(A[j + 1 :, j] * x[j + 1 :])) / A[j, j]
    return x


def sensitivities(space: LayeredSpace, at: Dual, A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives when `cost` moves along each row of A: (m, n_states) of β, (m, n_tuples) of θ.

    Let log w change by x. Then dθ = q (∂p/∂log w) x + θ (x̄ − Σ θ x), with x̄ the mean of x under p and the sum over the
    layer. Flow stays conserved if β moves by dβ = −H⁻¹ d(inflow − outflow), and x = −A + dβ(s') − dβ(s).
    """
    state, successor = space.tuples[:, 0], space.tuples[:, 2]
    dbeta, dtheta = np.zeros((len(A), space.n_states)), np.empty_like(A)
    for i, row in enumerate(A):
        inflow, outflow = flows(space, _move(space, at, -row))
        change = outflow - inflow
        change[[0, -1]] = 0.0
        dbeta[i, 1:-1] = solve_positive(at.H[:-1, :-1], change[:-1])[1:]
        dtheta[i] = _move(space, at, dbeta[i, successor] - dbeta[i, state] - row)
    return dbeta, dtheta


def _move(space: LayeredSpace, at: Dual, x: FloatArray) -> FloatArray:
    """Return dθ when log w changes by x and the potentials stay."""
    by_pair = np.split(x, space.csr.pair_ptr[1:-1])
    moves = [np.sum(answer.movement * here, axis=1) for answer, here in zip(at.answers, by_pair, strict=True)]
    within = space.expand_to_tuples(at.q) * np.concatenate(moves)
    mass = space.sum_over_successors(at.theta)
    mean = space.sum_over_successors(at.theta * x) / np.where(mass > 0, mass, 1.0)
    overall = np.add.reduceat(at.theta * x, space.tuples_before[:-1])[space.layer_of_pair]
    moved: FloatArray = within + at.theta * space.expand_to_tuples(mean - overall)
    return moved


MAX_PRICE_STEPS = 120
#: The largest move of a price in one step, in units of cost, and the smallest before the search stops.
REACH, SMALLEST_REACH = 20.0, 1e-9
#: The share of the promised decrease of φ that a step must achieve; the relative rounding error of φ.
PRICE_ARMIJO, PRICE_ROUNDING = 1e-4, 1e-12
#: Added to second derivatives: rows may be equal, or the same for all θ.
SINGULAR = 1e-10


class PricedSolution(NamedTuple):
    """The answer of the subproblem with priced rows."""

    theta: FloatArray  #: (n_tuples,)
    potentials: FloatArray  #: (n_states,) β
    prices: FloatArray  #: (m,) y
    dual_value: float  #: φ
    flow_residual: float
    missed: float  #: the largest violation of a row's optimality condition, in units of its largest coefficient
    iterations: int  #: Newton steps, those for prices and all in β that these took


class PricedAnswer(NamedTuple):
    """The solution of the plain subproblem at prices y; all in units of the rows' largest coefficients."""

    y: FloatArray
    phi: float
    slack: FloatArray  #: b − A θ(y), the gradient of φ
    missed: float  #: max_i |y_i − clip(y_i − slack_i, 0, most_i)|
    plain: Solution


def solve_priced(
    space: LayeredSpace,
    reference: FloatArray,
    cost: FloatArray,
    confidence: ConfidenceSet,
    A: FloatArray,
    b: FloatArray,
    most: FloatArray,
    tolerance: float = 1e-9,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> PricedSolution:
    """Minimise φ over the prices, from the potentials and prices `start` or from 0; `missed` is the remaining error.

    Raises
    ------
    ConvergenceError : if the plain subproblem cannot be solved.
    """
    size = np.abs(A).max(axis=1, initial=0.0)
    empty = size == 0
    size[empty] = 1.0
    rows, limits = A / size[:, None], b / size
    highest = np.where(empty & np.isfinite(most), 0.0, most * size)  # a row of zeros has no price
    steps = 0

    def at(y: FloatArray, beta: FloatArray) -> PricedAnswer:
        nonlocal steps
        found = solve(space, reference, cost + combine(y, rows), confidence, tolerance / 10, beta)
        steps += found.iterations
        slack = limits - products(rows, found.theta[None])[:, 0]
        missed = float(np.max(np.abs(y - np.clip(y - slack, 0.0, highest)), initial=0.0))
        return PricedAnswer(y, found.dual_value + core.dot(limits, y), slack, missed, found)

    def search(y: FloatArray, beta: FloatArray) -> PricedAnswer:
        nonlocal steps
        here, reach, tried = at(y, beta), REACH, 0
        while here.missed > tolerance and tried < MAX_PRICE_STEPS and reach > SMALLEST_REACH:
            tried, steps = tried + 1, steps + 1
            prices, dbeta = _price_step(space, reference, cost, confidence, rows, highest, here, reach)
            try:
                there = at(prices, here.plain.potentials + combine(prices - here.y, dbeta))
            except ConvergenceError:  # weights overflow
                there = None
            accepted = there is not None and _low_enough(there, here)
            reach = min(4 * reach, REACH) if accepted else reach / 4
            here = there if there is not None and accepted else here
        return here

    beta, y = (np.zeros(space.n_states), np.zeros(len(b))) if start is None else start
    try:
        here = search(np.clip(y * size, 0.0, np.where(empty, 0.0, highest)), beta)
    except ConvergenceError:
        here = None
    if here is None or here.missed > tolerance:
        here = search(np.zeros(len(b)), np.zeros(space.n_states))
    found = here.plain
    return PricedSolution(
        found.theta, found.potentials, here.y / size, here.phi, found.flow_residual, here.missed, steps
    )


def _price_step(
    space: LayeredSpace,
    reference: FloatArray,
    cost: FloatArray,
    confidence: ConfidenceSet,
    rows: FloatArray,
    highest: FloatArray,
    here: PricedAnswer,
    reach: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the prices within reach that minimise the quadratic model of φ, and the derivatives of β by each price."""
    at = dual(space, reference, cost + combine(here.y, rows), confidence, here.plain.potentials)
    dbeta, dtheta = sensitivities(space, at, rows)
    S = -products(rows, dtheta)
    model = (S + S.T) / 2 + np.diag(SINGULAR * (np.maximum(np.diag(S), 0.0) + SINGULAR))
    low = np.maximum(here.y - reach, 0.0)
    width = np.minimum(here.y + reach, highest) - low
    away = core.least_prices(model, products(model, (here.y - low)[None])[:, 0] - here.slack, width)
    return low + away, dbeta


def _low_enough(there: PricedAnswer, here: PricedAnswer) -> bool:
    promised = core.dot(here.slack, there.y - here.y)
    level = there.phi <= here.phi + PRICE_ROUNDING * (1 + abs(here.phi)) and there.missed <= 0.5 * here.missed
    return level or there.phi <= here.phi + PRICE_ARMIJO * promised

"""How the answer of the subproblem moves with its cost: what Newton's method on prices of inequalities needs.

At the answer θ = q p let every log w(s,a,s') change by x(s,a,s'). With x̄ the mean of x under p, and ∂p/∂log w that of
`kinds.py`,

    dθ = q (∂p/∂log w) x + θ (x̄ − Σ θ x),      sums over the layer,

and if flow is to be conserved the potentials move too, by the dβ with H dβ = −d(inflow − outflow): then
x = −A + dβ(s') − dβ(s) for a cost that changes by A. It all follows from θ itself, tuple by tuple.
"""

from tightrope.kernels.compile import inlined, jit
from tightrope.projection.kernels.conjugate import conjugate_gradients
from tightrope.projection.kernels.dual import evaluate, tilt
from tightrope.projection.kernels.hessian import assemble
from tightrope.projection.kernels.kinds import FIXED, SCALED_1, SCALED_2, WHOLE, by_kind, implement
from tightrope.projection.kernels.kl_movement import KLData
from tightrope.projection.kernels.newton import MAX_CG
from tightrope.projection.kernels.tridiagonal import factorise, solve
from tightrope.projection.kernels.workspace import by_name

ACCURACY = 1e-9  # of dβ by conjugate gradients
LARGEST = 1e12  # a dβ beyond is rounding: β stays, and θ is said to move more than it will


@jit
def sensitivities(
    csr, lanes, data, free, reference, cost, A, theta, x, dbeta, dtheta,
    beta, panel_ptr, panels, by_state, by_pair, by_slot, label, rest,
):  # fmt: skip
    """dβ (m, n_states) and dθ (m, n_tuples), the derivatives of the answer along each row of A (m, n_tuples).

    θ and β, with the rest of the stacks, are those that `solve_subproblem` left; x (n_tuples,) is to work with. A
    factor of H at β is left behind, where there is one.
    """
    n_layers = lanes.layer_state.size - 1
    work = by_name(n_layers, beta, panel_ptr, panels, by_state, by_pair, by_slot, label, rest)
    logarithmic = tilt(lanes, reference, cost, work, x)
    evaluate(lanes, data, beta, logarithmic, work)
    direct = panel_ptr.size > 1
    if direct:
        assemble(lanes, data, 0.0, work)
        factorise(lanes.layer_state, panel_ptr, panels)
    first, last = lanes.layer_state[1], lanes.layer_state[n_layers - 1]
    for i in range(A.shape[0]):
        for j in range(x.size):
            x[j] = -A[i, j]
        move(csr, lanes, data, free, label, theta, x, dtheta[i])
        drain(csr, dtheta[i], dbeta[i])
        sound = True
        for s in range(first, last):
            sound &= abs(dbeta[i, s]) < LARGEST
        for s in range(dbeta.shape[1]):
            if not sound or s < first or s >= last:
                dbeta[i, s] = 0.0
        if direct:
            solve(lanes.layer_state, panel_ptr, panels, dbeta[i])
        else:
            conjugate_gradients(lanes, data, 0.0, ACCURACY, MAX_CG, work, dbeta[i])
        sound = True
        for s in range(first, last):
            sound &= abs(dbeta[i, s]) < LARGEST
        for s in range(dbeta.shape[1]):
            if not sound or s < first or s >= last:
                dbeta[i, s] = 0.0
        tilt_along(csr, A[i], dbeta[i], x)
        move(csr, lanes, data, free, label, theta, x, dtheta[i])


@inlined
def drain(csr, d, out):
    """outflow − inflow of every state under d."""
    out[:] = 0.0
    for s in range(csr.state_ptr.size - 1):
        for j in range(csr.pair_ptr[csr.state_ptr[s]], csr.pair_ptr[csr.state_ptr[s + 1]]):
            out[s] += d[j]
            out[csr.successor[j]] -= d[j]


@inlined
def tilt_along(csr, A, dbeta, x):
    """x = −A + dβ(s') − dβ(s)."""
    for s in range(csr.state_ptr.size - 1):
        for j in range(csr.pair_ptr[csr.state_ptr[s]], csr.pair_ptr[csr.state_ptr[s + 1]]):
            x[j] = dbeta[csr.successor[j]] - dbeta[s] - A[j]


@jit
def move(csr, lanes, data, free, label, theta, x, d):
    """d = dθ as every log w changes by x, potentials aside."""
    layer_ptr, state_ptr, pair_ptr = csr.layer_ptr, csr.state_ptr, csr.pair_ptr
    for k in range(layer_ptr.size - 2):
        begin, end = state_ptr[layer_ptr[k]], state_ptr[layer_ptr[k + 1]]
        overall = 0.0
        for j in range(pair_ptr[begin], pair_ptr[end]):
            overall += theta[j] * x[j]
        for i in range(begin, end):
            first, last = pair_ptr[i], pair_ptr[i + 1]
            q, mean = 0.0, 0.0
            for j in range(first, last):
                q += theta[j]
                mean += theta[j] * x[j]
            mean = mean / q if q > 0.0 else 0.0
            if free[i] or label[lanes.slot[first]] == WHOLE:
                for j in range(first, last):
                    d[j] = theta[j] * (x[j] - overall)
            else:
                move_within(data, lanes.slot, label, first, last, q, theta, x, d)
                for j in range(first, last):
                    d[j] += theta[j] * (mean - overall)


@by_kind
def move_within(data, slot, label, first, last, q, theta, x, d):
    """d = q (∂p/∂log w) x for a pair that is not WHOLE, with tuples first:last and mass q."""
    mass_1, mass_2, mean_1, mean_2 = 0.0, 0.0, 0.0, 0.0
    for j in range(first, last):
        mine = label[slot[j]]
        mass_1 += theta[j] if mine == SCALED_1 else 0.0
        mean_1 += theta[j] * x[j] if mine == SCALED_1 else 0.0
        mass_2 += theta[j] if mine == SCALED_2 else 0.0
        mean_2 += theta[j] * x[j] if mine == SCALED_2 else 0.0
    mean_1 = mean_1 / mass_1 if mass_1 > 0.0 else 0.0
    mean_2 = mean_2 / mass_2 if mass_2 > 0.0 else 0.0
    for j in range(first, last):
        mine = label[slot[j]]
        d[j] = 0.0 if mine == FIXED else theta[j] * (x[j] - (mean_1 if mine == SCALED_1 else mean_2))


@implement(move_within, KLData)
def move_within_kl(data, slot, label, first, last, q, theta, x, d):
    """q (diag(p κ) − (p κ)(p κ)ᵀ / κ̄ − v vᵀ / σ) x, v = p (1 − κ/κ̄), σ = Σ v² / (p κ) (`kl_movement.py`)."""
    mean, moment = 0.0, 0.0
    for j in range(first, last):
        kappa = data.kappa[slot[j]]
        mean += theta[j] * kappa
        moment += theta[j] * kappa * x[j]
    if not mean > 0.0:
        d[first:last] = 0.0
        return
    moment /= mean
    mean /= q
    sigma, across = 0.0, 0.0
    for j in range(first, last):
        kappa = data.kappa[slot[j]]
        off = 1.0 - kappa / mean
        sigma += theta[j] * off * off / kappa if kappa > 0.0 else 0.0
        across += theta[j] * off * x[j]
    across = across / sigma if sigma > 0.0 else 0.0
    for j in range(first, last):
        kappa = data.kappa[slot[j]]
        d[j] = theta[j] * (kappa * (x[j] - moment) - (1.0 - kappa / mean) * across)

"""Semismooth Newton on the dual of the subproblem, with a line search.

A factor of H is kept, over episodes too, and renewed when one more step with it would not end the search.
"""

import numpy as np

from tightrope.kernels.arithmetic import extremes
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.conjugate import conjugate_gradients
from tightrope.projection.kernels.dual import RANGE, divide, evaluate, tilt, unpack
from tightrope.projection.kernels.hessian import assemble
from tightrope.projection.kernels.tridiagonal import factorise, solve

ARMIJO = 1e-4  # share of the promised decrease of F that a step has to bring
BACKTRACKS = 4  # halvings of a step before H is damped
CLOSE = 0.03  # relative accuracy of a step from conjugate gradients, close to the solution
FAR = 0.5  # the same far from it: a step that is cut short goes less astray
MAX_CG = 500  # iterations of the conjugate gradient method in one step
MAX_DAMPING = 1e8
MAX_MOVE = 20.0  # of a potential in one step: e^20 in the weights
ROUNDING = 1e-11  # of F, relative


@jit
def newton_step(layout, panel_ptr, damping, renew, direct, accuracy, work):
    """Write the step −H⁻¹ (inflow − outflow), and return F's slope along it, and max |step|.

    It comes from a factor of H, a new one if asked to; or, if not `direct`, from conjugate gradients, to the given
    relative accuracy.
    """
    step, inflow, outflow, layer_state = work.step, work.inflow, work.outflow, layout.layer_state
    first, last = layer_state[1], layer_state[layer_state.size - 2]
    step[0] = 0.0
    for s in range(first, last):
        step[s] = outflow[s] - inflow[s]
    if direct:
        if renew:
            assemble(layout, panel_ptr, damping, work)
            factorise(layer_state, panel_ptr, work.panels)
        solve(layer_state, panel_ptr, work.panels, step)
    else:
        conjugate_gradients(layout, damping, work, accuracy, MAX_CG, step)
    slope, longest = 0.0, 0.0
    for s in range(first, last):
        slope += (inflow[s] - outflow[s]) * step[s]
        longest = max(longest, abs(step[s]))
    return slope, longest


@jit
def solve_subproblem(
    layout, data, panel_ptr, factor_damping, reference, cost, tolerance, max_steps, theta,
    states, layers, pairs, warm, slots, group, scratch, table, panels,
):  # fmt: skip
    """Minimise F from where β is; if that fails from 0; if that fails too, by conjugate gradients instead of factors.

    factor_damping is how much damping the factor in `panels` holds, NaN if there is none. θ is the answer if the
    tolerance is met, and NaN if not.

    Returns F, the flow residual, the number of steps, whether weights may have left the range of numbers, and the
    damping of the factor left behind. Where Newton's step is too long to be believed, H gets a multiple of its own
    diagonal's size: the step then turns towards (inflow − outflow) / (inflow + outflow), which is never longer than 1.
    """
    work = unpack(states, layers, pairs, warm, slots, group, scratch, table, panels)
    beta, trial, step, layer_state = work.beta, work.trial, work.step, layout.layer_state
    first, last = layer_state[1], layer_state[layer_state.size - 2]
    direct = panel_ptr.size > 1
    logarithmic = tilt(layout, reference, cost, work, theta)
    F, residual, slope = np.inf, np.inf, 0.0
    t, tries, steps, limit, damping = 0.0, 0, 0, max_steps, 0.0
    stale, exact, failures = factor_damping != 0.0, False, 0
    for s in range(first, last):
        trial[s] = beta[s]
    while True:
        F_trial, residual_trial = evaluate(layout, data, trial, logarithmic, work)
        if tries > 0:  # trial = β + t · step
            # at the floor of rounding F no longer tells better from worse: the residual does
            level = F_trial <= F + ROUNDING * (1.0 + abs(F)) and residual_trial <= 0.5 * residual
            if level or F_trial <= F + ARMIJO * t * slope:
                stale = damping > 0.0 or residual_trial * residual_trial > tolerance * residual
                damping = 0.1 * damping if t < 1.0 or damping > 1e-8 else 0.0
            elif tries > 1:
                t, tries = 0.5 * t, tries - 1
                for s in range(first, last):
                    trial[s] = beta[s] + t * step[s]
                continue
            else:  # back to β for a better H, or a shorter step
                stale, tries = True, 0
                damping = max(10.0 * damping, 1e-4) if exact else damping
                for s in range(first, last):
                    trial[s] = beta[s]
                continue
        F, residual = F_trial, residual_trial
        for s in range(first, last):
            beta[s] = trial[s]
        if residual <= tolerance:
            break

        believable = False
        while not believable and damping < MAX_DAMPING and steps < limit:
            steps += 1
            exact = stale or not direct
            accuracy = max(min(FAR, residual), min(CLOSE, 0.3 * tolerance / residual))
            slope, longest = newton_step(layout, panel_ptr, damping, stale, direct, accuracy, work)
            factor_damping = damping if stale and direct else factor_damping
            believable = longest < 10.0 * MAX_MOVE and slope < 0.0  # false for NaN too
            stale = not believable
            if not believable and exact:
                damping = max(10.0 * damping, 1e-4)
        if believable:
            t, tries = min(1.0, MAX_MOVE / longest), BACKTRACKS if exact else 1
            for s in range(first, last):
                trial[s] = beta[s] + t * step[s]
        elif failures == 0 or direct:
            direct = direct and failures == 0
            failures, tries, damping, stale, limit = failures + 1, 0, 0.0, True, steps + max_steps
            factor_damping = np.nan
            for s in range(first, last):
                trial[s] = 0.0
        else:
            break

    if residual <= tolerance:
        divide(layout, logarithmic, work, theta)
    else:
        theta[:] = np.nan
    low, high = extremes(beta, work.scratch)
    return F, residual, steps, logarithmic or high - low > RANGE, factor_damping

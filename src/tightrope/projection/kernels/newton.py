"""Semismooth Newton on the dual of the subproblem: three loops, one inside the other.

    attempts       from where β is; if that fails from 0; if that fails too, by conjugate gradients instead of factors;
                   and at last with states of next to no mass held back
    steps          −H⁻¹ (inflow − outflow), until the flow residual is within the tolerance
    line search    half of the step, and half of that, until F is low enough

A factor of H is kept, over episodes too, and renewed when one more step with it would not end the search. Where a step
is too long to be believed, or no part of it is good enough, H gets a multiple of its own diagonal's size: the step then
turns towards (inflow − outflow) / (inflow + outflow), which is never longer than 1. That slows all states down, be it
for the sake of some that nothing depends on: in the last attempt these alone are held back (`restrain`).
"""

import numpy as np

from tightrope.kernels.arithmetic import extremes
from tightrope.kernels.compile import inlined, jit
from tightrope.projection.kernels.conjugate import conjugate_gradients
from tightrope.projection.kernels.dual import RANGE, divide, evaluate, tilt
from tightrope.projection.kernels.hessian import assemble
from tightrope.projection.kernels.tridiagonal import factorise, solve
from tightrope.projection.kernels.workspace import by_name

ARMIJO = 1e-4  # share of the promised decrease of F that a step has to bring
BACKTRACKS = 4  # lengths of a step tried before H is damped
BELIEVABLE = 200.0  # move of a potential up to which a step is shortened to MAX_MOVE; beyond, H is damped
CLOSE = 0.03  # relative accuracy of a step from conjugate gradients, close to the solution
DAMPED_GAIN = 0.98  # of the residual, in a damped step where F is all rounding
FAR = 0.5  # the same far from it: a step that is cut short goes less astray
FIRST_DAMPING = 1e-4
MAX_CG = 500  # iterations of the conjugate gradient method in one step
MAX_DAMPING = 1e8
MAX_MOVE = 20.0  # of a potential in one step: e^20 in the weights
MAX_STEPS = 500  # of one attempt
ROUNDING = 1e-11  # of F, relative
UNSEEN = 1e-6  # share of the tolerance; a state with less mass than that is next to nothing


@jit
def solve_subproblem(
    lanes, data, reference, cost, tolerance, factor_damping, theta,
    beta, panel_ptr, panels, by_state, by_pair, by_slot, label, rest,
):  # fmt: skip
    """Minimise F and write the θ of its minimum, NaN if the flow residual stays above the tolerance.

    factor_damping is how much damping the factor in `panels` holds, NaN if there is none. β and what follows are the
    stacks of a workspace: the search starts from the β, the factor and the thresholds in it, and leaves its own.

    Returns F, the flow residual, the number of steps, whether weights may have left the range of numbers, and the
    damping of the factor left behind.
    """
    n_layers = lanes.layer_state.size - 1
    work = by_name(n_layers, beta, panel_ptr, panels, by_state, by_pair, by_slot, label, rest)
    trial, step, first, last = work.trial, work.step, lanes.layer_state[1], lanes.layer_state[n_layers - 1]
    logarithmic = tilt(lanes, reference, cost, work, theta)
    direct = panel_ptr.size > 1
    F, residual, steps = np.inf, np.inf, 0

    for attempt in range(4):
        if attempt == 2 and not direct:
            continue
        if attempt > 0:  # cold
            beta[:] = 0.0
            factor_damping = np.nan
        direct, unseen = direct and attempt < 2, UNSEEN * tolerance if attempt == 3 else 0.0
        renew, damping, limit = factor_damping != 0.0, 0.0, steps + MAX_STEPS
        F, residual = evaluate(lanes, data, beta, logarithmic, work)

        while not residual <= tolerance:  # NaN is not
            believable = False
            while not believable and damping < MAX_DAMPING and steps < limit:
                steps += 1
                exact = renew or not direct  # H is that of β, not of some β before
                accuracy = max(min(FAR, residual), min(CLOSE, 0.3 * tolerance / residual))
                slope, longest = newton_step(lanes, data, direct, renew, damping, accuracy, unseen, work)
                factor_damping = damping if renew and direct else factor_damping
                believable = longest < BELIEVABLE
                renew = not believable
                damping = damping if believable or not exact else max(10.0 * damping, FIRST_DAMPING)
            if not believable:
                break

            t, accepted = min(1.0, MAX_MOVE / longest), False
            for _ in range(BACKTRACKS if exact else 1):
                for s in range(first, last):
                    trial[s] = beta[s] + t * step[s]
                F_trial, residual_trial = evaluate(lanes, data, trial, logarithmic, work)
                accepted = low_enough(F_trial, residual_trial, F, residual, t, slope, damping)
                if accepted:
                    break
                t *= 0.5
            if accepted:
                renew = damping > 0.0 or residual_trial * residual_trial > tolerance * residual
                damping = 0.1 * damping if t < 1.0 or damping > 1e-8 else 0.0
                F, residual = F_trial, residual_trial
                for s in range(first, last):
                    beta[s] = trial[s]
            else:  # back to β for a better H, or a shorter step
                renew = True
                damping = max(10.0 * damping, FIRST_DAMPING) if exact else damping
                F, residual = evaluate(lanes, data, beta, logarithmic, work)
        if residual <= tolerance:
            break

    if residual <= tolerance:
        divide(lanes, logarithmic, work, theta)
    else:
        theta[:] = np.nan
    low, high = extremes(beta, work.scratch)
    return F, residual, steps, logarithmic or high - low > RANGE, factor_damping


@inlined
def low_enough(F_trial, residual_trial, F, residual, t, slope, damping):
    """Armijo's rule; and at the floor of rounding, where F no longer tells better from worse, the residual.

    A step with the whole of H halves it at the least; a damped one falls short of that by design.
    """
    enough = 0.5 if damping == 0.0 else DAMPED_GAIN
    level = F_trial <= F + ROUNDING * (1.0 + abs(F)) and residual_trial <= enough * residual
    return level or F_trial <= F + ARMIJO * t * slope


@inlined
def newton_step(lanes, data, direct, renew, damping, accuracy, unseen, work):
    """Write the step −H⁻¹ (inflow − outflow), and return F's slope along it, and max |step|.

    It comes from the factor of H, a new one if asked to; or, if not `direct`, from conjugate gradients, to the given
    relative accuracy. States with less mass than `unseen` are held back.
    """
    step, inflow, outflow, layer_state = work.step, work.inflow, work.outflow, lanes.layer_state
    first, last = layer_state[1], layer_state[layer_state.size - 2]
    step[0] = 0.0
    for s in range(first, last):
        step[s] = outflow[s] - inflow[s]
    if direct:
        if renew:
            assemble(lanes, data, damping, work)
            factorise(layer_state, work.panel_ptr, work.panels)
        solve(layer_state, work.panel_ptr, work.panels, step)
    else:
        conjugate_gradients(lanes, data, damping, accuracy, MAX_CG, work, step)
    slope, longest = 0.0, 0.0
    for s in range(first, last):
        mass = inflow[s] + outflow[s]
        if mass < unseen:
            step[s] = restrain(step[s], mass, unseen)
        slope += (inflow[s] - outflow[s]) * step[s]
        longest = max(longest, abs(step[s]))
    return slope, longest


@inlined
def restrain(move, mass, unseen):
    """No further than to where a state would have `unseen` for its mass, and a little: nobody else is moved by that."""
    most = min(1.0 + np.log(unseen / mass), MAX_MOVE)
    return min(max(move, -most), most)

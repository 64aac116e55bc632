"""Trajectories: look one up, sample one."""

import numpy as np

from tightrope.kernels.compile import jit


@jit
def find_path(layer_ptr, state_ptr, pair_ptr, action, successor, states, actions, steps):
    """Write the tuple index of each step into `steps`; return -1, or the first step that is no tuple of its layer."""
    L = actions.size
    for k in range(L):
        steps[k] = -1
        if states[k] < layer_ptr[k] or states[k] >= layer_ptr[k + 1]:
            return k
        for i in range(state_ptr[states[k]], state_ptr[states[k] + 1]):
            if action[i] == actions[k]:
                lo, hi = pair_ptr[i], pair_ptr[i + 1]
                j = lo + np.searchsorted(successor[lo:hi], states[k + 1])
                if j < hi and successor[j] == states[k + 1]:
                    steps[k] = j
        if steps[k] < 0:
            return k
    return -1


@jit
def sample_path(csr, pi, P, uniforms, states, actions, steps):
    """One episode by inversion: uniforms[2k] picks the action of step k, uniforms[2k+1] the successor."""
    s = 0
    for k in range(actions.size):
        i = draw(pi, csr.state_ptr[s], csr.state_ptr[s + 1], uniforms[2 * k])
        j = draw(P, csr.pair_ptr[i], csr.pair_ptr[i + 1], uniforms[2 * k + 1])
        states[k], actions[k], steps[k] = s, csr.action[i], j
        s = csr.successor[j]
    states[actions.size] = s


@jit
def draw(p, lo, hi, u):
    """The index in lo:hi at which the running sum of p passes u; never one of probability 0."""
    chosen = lo
    total = 0.0
    for i in range(lo, hi):
        if p[i] > 0.0:
            chosen = i
            total += p[i]
            if u < total:
                break
    return chosen

"""Dynamic programming that picks the model, too, out of a confidence set: the largest values there can be.

`largest_values` asks every pair for max over p in C of Σ p v, given the values v of its successors. C is a box cut by
an L1 ball (`transport`) or a KL ball (`tilted`); where neither bounds anything the answer is the largest v.
"""

import math

import numpy as np

from tightrope.kernels.compile import inlined, jit

STEPS = 100  # of Newton's method in `tilted`, which halves its bracket otherwise
LONGEST = 5.0  # of its steps
FAR = 300.0  # from the logarithm of the span of v: the squares of what is smaller than e^-300 of it are no numbers
EXACT = 1e-13  # the logarithm of what it looks for is known to that


@jit
def largest_values(csr, curved, lower, upper, center, radius, cost, pi, V, best, p):
    """V(s) = Σ_a π(a|s) max_p Σ_s' p(s') (cost(s,a,s') + V(s')); with an empty π the largest over a, too.

    `curved`: KL(center‖p) <= radius; else lower <= p <= upper and ‖p − center‖₁ <= radius, center within the bounds.
    Writes V (n_states,), the p that attain it (n_tuples,), and best (n_states − 1,), the first of the best pairs of
    each state, if π is empty.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    end = layer_ptr[layer_ptr.size - 2]
    widest = 0
    for i in range(pair_ptr.size - 1):
        widest = max(widest, pair_ptr[i + 1] - pair_ptr[i])
    v, order, given = np.empty(widest), np.empty(widest, np.int64), pi.size > 0
    V[end] = 0.0
    for s in range(end - 1, -1, -1):
        V[s] = 0.0 if given else -np.inf
        for i in range(state_ptr[s], state_ptr[s + 1]):
            first, n = pair_ptr[i], pair_ptr[i + 1] - pair_ptr[i]
            for r in range(n):
                v[r] = cost[first + r] + V[successor[first + r]]
            if n == 1:
                p[first] = 1.0
            elif curved:
                tilted(center, radius[i], v, first, n, p)
            else:
                transport(lower, upper, center, radius[i], v, order, first, n, p)
            value = 0.0
            for r in range(n):
                value += p[first + r] * v[r]
            if given:
                V[s] += pi[i] * value
            elif value > V[s]:
                V[s], best[s] = value, i


@inlined
def transport(lower, upper, center, radius, v, order, first, n, p):
    """p takes what it may, half the radius at the most, from the successors of least v to those of the largest."""
    for r in range(n):
        p[first + r] = center[first + r]
        at = r
        while at > 0 and v[order[at - 1]] > v[r]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = r
    left, low, high = 0.5 * radius, 0, n - 1
    while low < high and left > 0.0:
        giver, taker = first + order[low], first + order[high]
        spare, room = p[giver] - lower[giver], upper[taker] - p[taker]
        moved = max(min(left, spare, room), 0.0)
        p[giver] -= moved
        p[taker] += moved
        left -= moved
        if spare <= room:
            low += 1
        if room <= spare:
            high -= 1


@inlined
def tilted(center, radius, v, first, n, p):
    """p ∝ P̂ / (ν − v), with the ν at which KL(P̂‖p) is the radius.

    If some v that was never seen is larger than that ν would be, ν is the largest v, and what is left of p goes there.
    With ν = max v + G the divergence is at most log(1 + span/G): where that is the radius the bracket ends.
    """
    top, seen, least = 0, -np.inf, np.inf
    for r in range(n):
        top = r if v[r] > v[top] else top
        least = min(least, v[r])
        seen = max(seen, v[r]) if center[first + r] > 0.0 else seen
    span, most = v[top] - least, v[top]
    if radius == 0.0 or not span > 0.0 or center[first + top] == 1.0:
        for r in range(n):
            p[first + r] = center[first + r]
        return
    if radius == np.inf:
        for r in range(n):
            p[first + r] = 1.0 if r == top else 0.0
        return
    gap, rest = 0.0, 0.0
    if most > seen and divergence(center, v, first, n, most, 0.0)[0] <= radius:
        rest = -math.expm1(divergence(center, v, first, n, most, 0.0)[0] - radius)
    else:
        above = math.log(span) - math.log(math.expm1(min(radius, 700.0)))
        below, x = min(above, math.log(span)) - FAR, min(above, math.log(span / math.sqrt(radius)))
        for _ in range(STEPS):
            over, slope = divergence(center, v, first, n, most, math.exp(x))
            if over > radius:
                below = x
            else:
                above = x
            move = (radius - over) / (slope * math.exp(x)) if slope < 0.0 else -LONGEST
            moved = x + min(max(move, -LONGEST), LONGEST)
            moved = moved if below < moved < above else 0.5 * (below + above)
            done = abs(moved - x) <= EXACT * (1.0 + abs(x))
            x = moved
            if done:
                break
        gap = math.exp(x)
    total = 0.0
    for r in range(n):
        p[first + r] = center[first + r] / (gap + (most - v[r])) if center[first + r] > 0.0 else 0.0
        total += p[first + r]
    for r in range(n):
        p[first + r] *= (1.0 - rest) / total
    p[first + top] += rest


@inlined
def divergence(center, v, first, n, most, gap):
    """KL(P̂‖p) of p ∝ P̂ / (ν − v), ν = most + gap: Σ P̂ log(ν − v) + log Σ P̂ / (ν − v), and its derivative by ν."""
    mean, inverse, squares = 0.0, 0.0, 0.0
    for r in range(n):
        P, away = center[first + r], gap + (most - v[r])
        if P > 0.0:
            mean += P * math.log(away)
            inverse += P / away
            squares += P / (away * away)
    return mean + math.log(inverse), inverse - squares / inverse

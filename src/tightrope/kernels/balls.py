"""Whether a confidence set is one."""

from tightrope.kernels.compile import jit


@jit
def are_balls(pair_ptr, center, radius, tolerance):
    """Whether every radius is 0 or more, and every center a distribution where the radius is less than 2."""
    for i in range(radius.size):
        total, smallest = 0.0, 0.0
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            total += center[j]
            smallest = min(smallest, center[j])
        free = radius[i] >= 2.0
        if not (free or (radius[i] >= 0.0 and smallest >= 0.0 and abs(total - 1.0) <= tolerance)):
            return False
    return True

"""Edge cloud: host a service near a user who moves, at prices that change from episode to episode.

Cells lie on a ring, and the sites that can host the service are spaced evenly over it. A state is (cell of
the user, site that hosts); the action a is the site that hosts from now on. In a step the service migrates to
a, the user is served from there, and then moves: one cell clockwise with probability 0.4, counter-clockwise
with 0.2, else stays. User and service start in cell 0. With d(·,·) the distance around the ring in hops, D
the largest there is, and p_k(a) the price of site a in scenario k:

    loss      f_k = 0.75 p_k(a) + 0.25 d(site, a) / D            price of hosting, and of migrating
    delay     d(cell, a)                                         hops between the user and the service
    energy    0.8 power(a) + 0.2 d(site, a) / D                  power of the host, energy of migrating

The limits `max_delay` (in hops) and `max_energy` (1 is the most a step can use) are averages over the steps of an
episode. By default the noise is `scaled` by up to a quarter; the learner meets g = s · (delay / D, energy) with
s = 1 / (2 · 1.25), so that Σ_i max |g_i^t| ≤ 1 with the noise, and budgets c = n_steps · s · (max_delay / D,
max_energy).

Each scenario has a different cheap site; on average over the scenarios no site is much cheaper than the others. The
cheap sites of scenarios 0 and 1 draw much power, and following the user costs money and energy.

At the defaults (8 cells, 4 sites, 12 steps, s = 0.4, 318 states) the budgets are 1.44 and 2.16. The uses
of the best policies per step (among equally good ones, the one with the least use):

    scenario   no budgets: loss  hops   energy    within them: loss  hops   energy    multipliers
    0                     1.025  1.638  0.488                 2.375  1.200  0.450     1.698  2.484
    1                     1.150  2.582  0.657                 3.803  1.200  0.450     0.276  2.287
    2                     1.025  2.362  0.408                 1.593  1.200  0.300     0.610  0
    mean                  4.025  2.362  0.408                 4.586  1.200  0.450     0.446  0.159

No policy gets below 0.465 hops, or below 0.24 energy; some policy has a slack of 0.587 in each budget
(Slater).

References: S. Qiu, X. Wei, Z. Yang, J. Ye, Z. Wang, "Upper confidence primal-dual reinforcement learning for
CMDP with adversarial loss", NeurIPS 2020 (the example, in words). R. Urgaonkar, S. Wang, T. He, M. Zafer, K.
Chan, K. K. Leung, "Dynamic service migration and workload scheduling in edge-clouds", Performance Evaluation
91, 2015. S. Wang, R. Urgaonkar, M. Zafer, T. He, K. Chan, K. K. Leung, "Dynamic service migration in mobile
edge-clouds", IFIP Networking 2015. The numbers are this package's own.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import number, room, whole
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.layout import Indices
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: Price of hosting at each site, one row a scenario.
PRICES = ((0.9, 0.1, 0.5, 0.7), (0.7, 0.9, 0.1, 0.5), (0.2, 0.6, 0.8, 0.1))

#: Power that each site draws.
POWER = (0.3, 0.6, 0.8, 0.5)

#: Weight of migrating against hosting, in the loss and in the energy.
MIGRATION_PRICE, MIGRATION_ENERGY = 0.25, 0.2

#: How the user moves: (cells clockwise, probability).
WALK = ((0, 0.4), (1, 0.4), (-1, 0.2))


def edge_cloud(
    *,
    n_cells: int = 8,
    n_steps: int = 12,
    prices: ArrayLike = PRICES,
    power: ArrayLike = POWER,
    max_delay: float = 1.2,
    max_energy: float = 0.45,
    losses: LossChoice = "switching",
    noise: NoiseChoice = "scaled",
) -> Problem:
    """`prices` (n_scenarios, n_sites) and `power` (n_sites,) in [0, 1], limits as averages over the steps."""
    n_cells = whole(n_cells, "n_cells", at_least=3)
    n_steps = whole(n_steps, "n_steps", at_least=1)
    price, drawn = _in_unit_interval(prices, "prices", ndim=2), _in_unit_interval(power, "power", ndim=1)
    n_sites, farthest = len(drawn), n_cells // 2
    if price.shape[1] != n_sites or n_sites > n_cells:
        raise InvalidInputError(
            f"prices has {price.shape[1]} sites and power has {n_sites}; "
            f"they must have equally many, and at most one in each of the {n_cells} cells"
        )

    room(n_cells * n_sites**2 * len(WALK), "so many cells and sites")
    cell, site, host = np.indices((n_cells, n_sites, n_sites)).reshape(3, -1)
    moves = [((cell + hops) % n_cells * n_sites + host, probability) for hops, probability in WALK]
    rows = [np.stack([cell * n_sites + site, host, target], axis=1) for target, _ in moves]
    probabilities = np.repeat([probability for _, probability in moves], len(cell))
    layout = unroll(np.concatenate(rows), probabilities, n_steps=n_steps)

    position = np.arange(n_sites) * n_cells // n_sites

    def distance(x: Indices, y: Indices) -> FloatArray:
        hops: FloatArray = np.minimum((x - y) % n_cells, (y - x) % n_cells).astype(np.float64)
        return hops

    state, host, _, _ = layout.tuples.T
    cell, site = np.divmod(state, n_sites)
    migration = distance(position[site], position[host]) / farthest
    delay = distance(cell, position[host])
    energy = (1 - MIGRATION_ENERGY) * drawn[host] + MIGRATION_ENERGY * migration
    limits = np.array([number(max_delay, "max_delay", 0, farthest), number(max_energy, "max_energy", 0, 1)])
    return Problem.from_units(
        name="edge-cloud",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=(1 - MIGRATION_PRICE) * price[:, host] + MIGRATION_PRICE * migration,
        losses=losses,
        uses=[delay, energy],
        use_bounds=[farthest, 1],
        noise=noise,
        budgets=n_steps * limits,
        constraint_names=("delay", "energy"),
        constraint_units=("hops", ""),
        state_names=layout.state_names([f"cell {c}, site {s}" for c in range(n_cells) for s in range(n_sites)]),
        action_names=tuple(f"site {s}" for s in range(n_sites)),
    )


def _in_unit_interval(values: ArrayLike, what: str, ndim: int) -> FloatArray:
    array = floats(values, what, ("n_scenarios", "n_sites")[-ndim:])
    if array.size == 0:
        raise InvalidInputError(f"{what} has shape {array.shape}; expected {ndim} dimensions, the last over sites")
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidInputError(f"{what} holds {array.tolist()}; every entry must be in [0, 1]")
    return array

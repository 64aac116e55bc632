"""Subproblems to solve, from ordinary to nasty, all from one seed each."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.conftest import FloatArray, pair_of_tuple, random_shares, random_sparse_space
from tightrope import Box, L1Ball, LayeredMDP, LayeredSpace, Policy
from tightrope.confidence import ConfidenceSet


class Instance(NamedTuple):
    space: LayeredSpace
    reference: FloatArray
    cost: FloatArray
    confidence: L1Ball


def random_instance(seed: int, max_steps: int = 5, max_width: int = 6, max_actions: int = 4) -> Instance:
    """One-state layers, one action, sparse rows, zero and near-deterministic centres, radii from 0 to free,
    costs up to 50, reference mass down to 1e-12: each of them in a good share of the seeds, alone and together."""
    rng = np.random.default_rng([seed, 2604])
    sizes = [1, *rng.integers(1, max_width + 1, size=rng.integers(0, max_steps)), 1]
    n_actions = int(rng.integers(1, max_actions + 1))
    dense = rng.random() < 0.5
    space = LayeredSpace.dense(sizes, n_actions) if dense else random_sparse_space(rng, sizes, n_actions, 0.4)
    pair = pair_of_tuple(space)

    center = rng.gamma(rng.choice([0.02, 0.3, 1.0, 20.0]), size=space.n_tuples) + 1e-290
    if rng.random() < 0.5:
        center *= rng.random(space.n_tuples) < 0.5
    empty = np.bincount(pair, center)[pair] == 0
    center = np.where(empty, 1.0, center) / np.bincount(pair, np.where(empty, 1.0, center))[pair]
    radii = rng.choice([0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.9, 2.0, np.inf], size=rng.integers(1, 4))
    radius = rng.choice(radii, size=space.n_pairs) * np.where(rng.random(space.n_pairs) < 0.5, 1.0, rng.random())

    floor = rng.choice([1e-12, 1e-6, 1e-2, 0.5])
    reference = np.exp(rng.uniform(np.log(floor), 0.0, space.n_tuples))
    if rng.random() < 0.5:
        reference = np.where(rng.random(space.n_tuples) < 0.3, floor, reference)
    cost = rng.choice([0.01, 1.0, 10.0, 50.0]) * rng.uniform(-1, 1, space.n_tuples)
    return Instance(space, reference, cost, L1Ball(center, np.nan_to_num(radius, nan=np.inf, posinf=np.inf)))


class Boxed(NamedTuple):
    """As `Instance`, with a box."""

    space: LayeredSpace
    reference: FloatArray
    cost: FloatArray
    confidence: Box


def random_box(seed: int, with_ball: bool) -> Boxed:
    """The instance of that seed with bounds around its centers: points, free pairs, narrow and lopsided boxes."""
    space, reference, cost, ball = random_instance(seed)
    rng = np.random.default_rng([seed, 77])
    width = space.expand_to_tuples(rng.choice([0.0, 1e-6, 0.05, 0.3, 1.0, 2.0], size=space.n_pairs))
    below, above = width * rng.random((2, space.n_tuples)) ** rng.choice([0.2, 1.0, 4.0])
    lower, upper = np.maximum(0, ball.center - below), np.minimum(1, ball.center + above)
    return Boxed(space, reference, cost, Box(lower, upper, ball if with_ball else None))


class Nasty(NamedTuple):
    space: LayeredSpace
    reference: FloatArray
    cost: FloatArray
    confidence: ConfidenceSet
    traits: str  #: what is nasty about it, in words


def nasty_instance(seed: int) -> Nasty:
    """All that was ever seen to trouble a solver of this kind, and what might: one trait of each sort, by chance.

    Layers of one state and of a hundred, one action, states that one pair alone can reach; centres that are
    deterministic, nearly so, full of zeros, or none at all; radii from 0 over 1e-6 to free, boxes of one point, boxes
    cut by balls; references down to 1e-12, spread out or nearly deterministic; costs up to 50 in size, some of them
    against the reference.
    """
    rng = np.random.default_rng([seed, 8128])
    shape, space = _nasty_space(rng)
    around, center = _nasty_center(rng, space)
    size, radius = _nasty_radius(rng, space)
    empty = rng.random(space.n_pairs) < (0.3 if around == "zeros" else 0.0)  # never visited: no centre, and free
    radius = np.where(empty, np.inf, radius)
    center = np.where(space.expand_to_tuples(empty), 0.0, center)
    mass, reference = _nasty_reference(rng, space, center)
    price, cost = _nasty_cost(rng, space, reference)
    confidence: ConfidenceSet = L1Ball(center, radius)
    if size == "box":
        size, confidence = _nasty_box(rng, space, center, empty)
    return Nasty(space, reference, cost, confidence, f"{shape} space, {around} centre, {size} radius, {mass}, {price}")


def wide_instance(seed: int, span: float) -> Nasty:
    """The random instance of that seed with weights e^span apart: of a reference, of a cost, or all or nothing."""
    space, reference, cost, ball = random_instance(seed)
    rng = np.random.default_rng([seed, 5])
    where = ("spread reference", "cost", "floor reference")[seed % 3]
    if where == "spread reference":
        reference = np.exp(rng.uniform(-span, 0.0, space.n_tuples))
    elif where == "cost":
        cost = span / 2 * rng.uniform(-1, 1, space.n_tuples)
    else:
        reference = np.where(rng.random(space.n_tuples) < 0.5, np.exp(-span), 1.0)
    return Nasty(space, reference, cost, ball, f"{where} over e^{span:g}")


def _nasty_space(rng: np.random.Generator) -> tuple[str, LayeredSpace]:
    shape = str(rng.choice(["dense", "sparse", "private", "wide", "narrow", "long", "one action"]))
    n_actions = 1 if shape == "one action" else int(rng.integers(1, 5))
    sizes = [int(n) for n in rng.integers(1, 8, size=rng.integers(0, 5))]
    if shape == "wide":
        sizes = [int(rng.integers(20, 101)) if rng.random() < 0.4 else n for n in [*sizes, 100]]
        n_actions = min(n_actions, 2)
    elif shape == "narrow":
        sizes = [n if rng.random() < 0.4 else 1 for n in sizes]
    elif shape == "long":
        sizes = [int(n) for n in rng.integers(1, 4, size=rng.integers(15, 40))]
    sizes = [1, *sizes, 1]
    if shape == "private" or (shape in ("wide", "long") and rng.random() < 0.5):
        return shape, _private_space(rng, sizes, n_actions)
    if shape == "sparse":
        return shape, random_sparse_space(rng, sizes, n_actions, float(rng.choice([0.0, 0.2, 0.6])))
    return shape, LayeredSpace.dense(sizes, n_actions)


def _private_space(rng: np.random.Generator, sizes: list[int], n_actions: int) -> LayeredSpace:
    """Every pair has a share of the next layer to itself, or leads to one state: most have one way in."""
    tuples, start = [], 0
    for n, n_next in pairwise(sizes):
        pairs = [(start + s, a) for s in range(n) for a in range(n_actions)]
        owner = rng.integers(len(pairs), size=n_next)
        for i, pair in enumerate(pairs):
            own = np.flatnonzero(owner == i)
            own = own if len(own) else rng.integers(n_next, size=1)
            tuples += [(*pair, start + n + int(t)) for t in own]
        start += n
    return LayeredSpace.from_tuples(sizes, n_actions, tuples)


def _nasty_center(rng: np.random.Generator, space: LayeredSpace) -> tuple[str, FloatArray]:
    around = str(rng.choice(["smooth", "zeros", "counted", "deterministic", "nearly deterministic", "tiny"]))
    pair = pair_of_tuple(space)
    center = random_shares(rng, pair, zeros=0.5 if around == "zeros" else 0.0)
    if around == "counted":
        counts = rng.multinomial(1, [0.5, 0.5], size=space.n_tuples)[:, 0] * rng.integers(1, 4, space.n_tuples)
        counts[space.csr.pair_ptr[:-1]] += space.sum_over_successors(counts.astype(float)) == 0
        center = counts / space.expand_to_tuples(space.sum_over_successors(counts.astype(float)))
    elif around in ("deterministic", "nearly deterministic"):
        first, width = space.csr.pair_ptr[:-1], space.successors_per_pair
        sure = np.zeros(space.n_tuples)
        sure[first + rng.integers(width)] = 1.0
        rest = 10.0 ** rng.uniform(-16, -2) if around == "nearly deterministic" else 0.0
        center = (1 - rest) * sure + rest * center
    elif around == "tiny":
        center = np.maximum(center ** rng.uniform(5, 60), 1e-290)
        center /= space.expand_to_tuples(space.sum_over_successors(center))
    return around, center


def _nasty_radius(rng: np.random.Generator, space: LayeredSpace) -> tuple[str, FloatArray]:
    size = str(rng.choice(["any", "tiny", "zero", "counted", "nearly free", "few", "box"]))
    n = space.n_pairs
    radius = {
        "any": np.exp(rng.uniform(np.log(1e-6), np.log(2.0), n)),
        "tiny": np.exp(rng.uniform(np.log(1e-6), np.log(1e-4), n)),
        "zero": np.where(rng.random(n) < 0.7, 0.0, 10.0 ** rng.uniform(-16, 0, n)),
        "counted": 3 / np.sqrt(rng.integers(1, 1000, n)),
        "nearly free": 2 - 10.0 ** rng.uniform(-15, -1, n),
        "few": rng.choice([0.0, 1e-6, 1e-3, 0.1, 1.0, 2.0, np.inf], n),
        "box": np.zeros(n),
    }[size]
    return size, radius


def _nasty_reference(rng: np.random.Generator, space: LayeredSpace, center: FloatArray) -> tuple[str, FloatArray]:
    mass = str(rng.choice(["spread reference", "floor reference", "played reference", "steep reference"]))
    floor = 10.0 ** rng.uniform(-12, -2)
    if mass == "spread reference":
        return mass, np.exp(rng.uniform(np.log(floor), 0.0, space.n_tuples))
    if mass == "floor reference":
        return mass, np.where(rng.random(space.n_tuples) < 0.8, floor, 1.0)
    # what an episode leaves: the measure of some policy, mixed with little uniform mass
    model = LayeredMDP.from_occupancy(space, center)
    sharp = rng.random(space.n_pairs) ** (40.0 if mass == "steep reference" else 1.0) + 1e-300
    policy = Policy.from_occupancy(space, space.expand_to_tuples(sharp / space.successors_per_pair))
    return mass, (1 - floor) * model.occupancy(policy) + floor * space.uniform()


def _nasty_cost(rng: np.random.Generator, space: LayeredSpace, reference: FloatArray) -> tuple[str, FloatArray]:
    price = str(rng.choice(["small cost", "any cost", "signs", "one action dear", "against the reference"]))
    scale = 0.01 if price == "small cost" else float(np.exp(rng.uniform(np.log(0.1), np.log(50.0))))
    if price == "signs":
        return price, scale * rng.choice([-1.0, 1.0], space.n_tuples)
    if price == "one action dear":
        return price, scale * space.expand_to_tuples((space.pairs[:, 1] == 0).astype(float))
    if price == "against the reference":
        order = np.argsort(np.argsort(reference)) / space.n_tuples
        return price, scale * (2 * order - 1)
    return price, scale * rng.uniform(-1, 1, space.n_tuples)


def _nasty_box(
    rng: np.random.Generator, space: LayeredSpace, center: FloatArray, empty: NDArray[np.bool_]
) -> tuple[str, Box]:
    """Bounds around the centre, one point where the slack is 0, which it often is; in half of them a ball as well."""
    slack = space.expand_to_tuples(rng.choice([0.0, 0.0, 1e-6, 0.1], space.n_pairs))
    free = space.expand_to_tuples(empty)
    lower = np.where(free, 0.0, np.maximum(center - slack, 0.0))
    upper = np.where(free, 1.0, np.minimum(center + slack, 1.0))
    if rng.random() < 0.5:
        return "box", Box(lower, upper)
    radius = np.where(empty, np.inf, rng.choice([0.0, 1e-6, 0.05, 1.0], space.n_pairs))
    return "box and ball", Box(lower, upper, L1Ball(center, radius))


def objective(instance: Instance | Boxed | Nasty, theta: FloatArray) -> float:
    """<cost, θ> + D(θ, reference), straight from the definition."""
    logs = np.log(np.where(theta > 0, theta, 1.0) / instance.reference)
    entropy = np.where(theta > 0, theta * logs, 0.0) - theta + instance.reference
    return float(np.sum(instance.cost * theta + entropy))


def flow_residual(space: LayeredSpace, theta: FloatArray) -> float:
    """Σ |inflow − outflow| over inner states plus |mass − 1| over layers, without the compressed rows."""
    outflow = np.bincount(space.tuples[:, 0], theta, minlength=space.n_states)
    inflow = np.bincount(space.tuples[:, 2], theta, minlength=space.n_states)
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
    mass = np.bincount(layer[space.tuples[:, 0]], theta)
    return float(np.abs(inflow - outflow)[1:-1].sum() + np.abs(mass - 1).sum())


def set_violation(instance: Instance, theta: FloatArray) -> float:
    """The most by which a conditional leaves its ball, without the compressed rows."""
    pair = pair_of_tuple(instance.space)
    mass = np.bincount(pair, theta)
    p = np.divide(theta, mass[pair], where=mass[pair] > 0, out=np.zeros_like(theta))
    distance = np.bincount(pair, np.abs(p - instance.confidence.center))
    return float(np.max(np.where(mass > 0, distance - instance.confidence.radius, 0.0), initial=0.0))

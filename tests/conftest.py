"""Random small problems that every test file shares: spaces, models, policies.

The plain functions take a generator; the strategies draw sizes (so that failures shrink) and a seed.
"""

import signal
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tightrope import LayeredMDP, LayeredSpace, Policy

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.register_profile("brief", settings.get_profile("deterministic"), max_examples=5)  # for the count of branches
settings.load_profile("deterministic")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it in commands that it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def random_sparse_space(
    rng: np.random.Generator, layer_sizes: Sequence[int], n_actions: int, density: float = 0.4
) -> LayeredSpace:
    """Some tuples of the dense space: every state keeps an action, every state is reached by something."""
    dense = LayeredSpace.dense(layer_sizes, n_actions)
    kept = rng.random(dense.n_tuples) < density
    for column in (0, 2):  # a way out of every state but the last, a way into every state but the first
        ends = dense.tuples[:, column]
        for state in np.setdiff1d(ends, ends[kept]):
            kept[rng.choice(np.flatnonzero(ends == state))] = True
    return LayeredSpace.from_tuples(layer_sizes, n_actions, rng.permutation(dense.tuples[kept]))


def random_shares(rng: np.random.Generator, groups: np.ndarray, zeros: float = 0.0) -> FloatArray:
    """Positive numbers that sum to one over each group (0.., sorted); about a share `zeros` of them 0."""
    weights = rng.exponential(size=len(groups)) * (rng.random(len(groups)) >= zeros)
    weights[np.searchsorted(groups, groups[np.bincount(groups, weights)[groups] == 0])] = 1.0
    shares: FloatArray = weights / np.bincount(groups, weights)[groups]
    return shares


def random_mdp(rng: np.random.Generator, space: LayeredSpace, zeros: float = 0.0) -> LayeredMDP:
    return LayeredMDP(space, random_shares(rng, pair_of_tuple(space), zeros))


def random_policy(rng: np.random.Generator, space: LayeredSpace, zeros: float = 0.0) -> Policy:
    return Policy(space, random_shares(rng, space.pairs[:, 0], zeros))


def random_counts(rng: np.random.Generator, mdp: LayeredMDP, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Visits of pairs, none of some, and where they led."""
    space = mdp.space
    N = rng.integers(0, most, size=space.n_pairs)
    M = np.zeros(space.n_tuples, dtype=np.int64)
    for i, (first, last) in enumerate(zip(space.csr.pair_ptr[:-1], space.csr.pair_ptr[1:], strict=True)):
        P = mdp.transitions[first:last]
        M[first:last] = rng.multinomial(N[i], P / P.sum())
    return N, M


def pair_of_tuple(space: LayeredSpace) -> np.ndarray:
    """(n_tuples,) the index of the pair of each tuple, found without the compressed rows."""
    _, index = np.unique(space.tuples[:, :2], axis=0, return_inverse=True)
    return index.reshape(-1)


def rngs() -> st.SearchStrategy[np.random.Generator]:
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def layer_sizes(max_steps: int = 4, max_width: int = 4) -> st.SearchStrategy[list[int]]:
    inner = st.lists(st.integers(1, max_width), max_size=max_steps - 1)
    return inner.map(lambda sizes: [1, *sizes, 1])


@st.composite
def spaces(draw: st.DrawFn, max_steps: int = 4, max_width: int = 4, max_actions: int = 3) -> LayeredSpace:
    """Dense or sparse, with one-state layers and one action among them."""
    sizes, n_actions = draw(layer_sizes(max_steps, max_width)), draw(st.integers(1, max_actions))
    if draw(st.booleans()):
        return LayeredSpace.dense(sizes, n_actions)
    return random_sparse_space(draw(rngs()), sizes, n_actions, draw(st.sampled_from([0.0, 0.3, 0.7])))


@st.composite
def mdps(draw: st.DrawFn, max_steps: int = 4, max_width: int = 4, max_actions: int = 3) -> LayeredMDP:
    """A random model on a random space, with and without transitions of probability 0."""
    space = draw(spaces(max_steps, max_width, max_actions))
    return random_mdp(draw(rngs()), space, zeros=draw(st.sampled_from([0.0, 0.4])))

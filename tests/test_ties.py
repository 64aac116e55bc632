"""Ties: what may be declared, what is pooled, and when an epoch of laws is over."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import random_mdp, rngs
from tests.trajectories import trajectories
from tightrope import BanditEpisode, Episode, InvalidInputError, LayeredSpace, Policy, Ties, make_learner, unroll
from tightrope.checks.worlds import World, drive, world
from tightrope.confidence import Counts
from tightrope.learners import LEARNERS
from tightrope.learners.shared.counting import CountingLearner

#: Two states and two actions at each of three steps, and the last.
SPACE = LayeredSpace.dense([1, 2, 2, 2, 1], 2)


def by_state_and_action(space: LayeredSpace = SPACE) -> Ties:
    """The dynamics do not depend on the step; the first step and the last are of their own."""
    rows = []
    for s, a, s_next in space.tuples.tolist():
        layer = space.layer_of(s)
        step = 0 if 0 < layer < space.n_layers - 1 else layer + 1
        place, to = s - space.states_of(layer)[0], s_next - space.states_of(layer + 1)[0]
        rows.append((step, place, a, to))
    return Ties(space, np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1))


def test_laws_of_an_unrolled_space() -> None:
    ties = by_state_and_action()
    assert ties.n_laws == 2 + 4 + 4  # the first step, two steps in one, the last
    assert ties.law[2:6].tolist() == ties.law[6:10].tolist()
    assert len(set(ties.law[:6].tolist())) == 6


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ([0, 1, 0, 1, 0], "state 0, action 0 and state [123], action 0"),  # two outcomes against one
        ([0, 0, 2, 3, 4], "state 0, action 0: two of its successors"),
        ([0, 1, 1, 2, 3], "tied, but have different"),
        ([0.0, 1, 2, 3, 4], "float64"),
        ([0, 1, 2, 3], r"\(4,\)"),
    ],
)
def test_what_cannot_be_tied_is_refused_with_the_place(outcome: list[float], words: str) -> None:
    space = LayeredSpace.from_tuples(
        [1, 2, 2, 1], 1, [(0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 0, 4), (3, 0, 5), (4, 0, 5)]
    )
    with pytest.raises(InvalidInputError, match=words):
        Ties(space, [*outcome, 9] if len(outcome) == 5 else outcome)


def test_the_pairs_that_are_named_do_differ() -> None:
    """Of three that are tied, two agree: the third is named."""
    tuples = [(0, a, s) for a in range(3) for s in (1, 2)] + [(1, 0, 3), (2, 0, 3)]
    space = LayeredSpace.from_tuples([1, 2, 1], 3, tuples)
    for outcome, words in (
        ([0, 1, 0, 1, 0, 2], "state 0, action [01] and state 0, action 2"),
        ([0, 2, 0, 1, 0, 1], "state 0, action 0 and state 0, action [12]|state 0, action [12] and state 0, action 0"),
        ([0, 3, 1, 3, 0, 3], "state 0, action [02] and state 0, action 1|state 0, action 1 and state 0, action [02]"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            Ties(space, [*outcome, 8, 9])


@settings(max_examples=30)
@given(rngs(), st.floats(0.05, 1.0))
def test_epochs_and_pools_against_a_literal_twin(rng: np.random.Generator, growth: float) -> None:
    """Dictionaries of laws, counted step by step."""
    ties, mdp = by_state_and_action(), random_mdp(rng, SPACE)
    paths = [path for path, _ in trajectories(mdp, Policy.uniform(SPACE))]
    counts = Counts(SPACE, ties, growth)
    before: dict[int, int] = {}
    inside: dict[int, int] = {}
    moves: dict[int, int] = {}
    epoch = 1
    for _ in range(60):
        path = paths[int(rng.integers(len(paths)))]
        for j in path.tolist():
            law = int(ties.law[SPACE.pair_of_tuple[j]])
            inside[law] = inside.get(law, 0) + 1
            moves[int(ties.outcome[j])] = moves.get(int(ties.outcome[j]), 0) + 1
        over = any(
            inside[law] >= max(1, growth * before.get(law, 0))
            for law in {int(ties.law[SPACE.pair_of_tuple[j]]) for j in path.tolist()}
        )
        counts, ended = counts.after(path)
        assert ended == over
        N, M = counts.laws_so_far
        assert M.tolist() == [moves.get(k, 0) for k in ties.outcome.tolist()]
        assert N.tolist() == [before.get(k, 0) + inside.get(k, 0) for k in ties.law.tolist()]
        if over:
            counts, epoch = counts.next_epoch(), epoch + 1
            before = {law: before.get(law, 0) + inside.get(law, 0) for law in {*before, *inside}}
            inside = {}
            assert counts.laws[0].tolist() == [before.get(k, 0) for k in ties.law.tolist()]
        assert counts.epoch == epoch


def tied_world() -> tuple[World, Ties]:
    """A small world whose dynamics do not depend on the step, and says so."""
    ties = by_state_and_action()
    at = world(SPACE, 1)
    P = at.mdp.transitions.copy()
    first = np.unique(ties.outcome, return_index=True)[1]
    P = P[first][ties.outcome]
    P /= SPACE.expand_to_tuples(SPACE.sum_over_successors(P))
    return World(type(at.mdp)(SPACE, P), at.scenarios, at.mean, at.budgets), ties


COUNTING = [name for name, kind in LEARNERS.items() if "ties" in kind.parameter_fields()]


def test_every_learner_of_unknown_dynamics_can_be_told() -> None:
    unknown = {
        name for name, kind in LEARNERS.items() if issubclass(kind, CountingLearner) and "model" not in kind.needs
    }
    assert set(COUNTING) == unknown
    assert len(COUNTING) >= 11


@pytest.mark.parametrize("name", COUNTING)
def test_ties_pool_what_is_known_of_the_dynamics(name: str) -> None:
    """Tied, all pairs of a law know the same; untied, they do not; and the difference is in what is played."""
    at, ties = tied_world()
    tied = make_learner(name, at, episodes=60, ties=ties)
    alone = make_learner(name, at, episodes=60, ties=False)
    assert isinstance(tied, CountingLearner) and isinstance(alone, CountingLearner)
    assert (tied.settings["ties"], alone.settings["ties"]) == (str(ties), "none")
    drive(at, tied, last=40)
    drive(at, alone, last=40)
    N, _ = tied.state.counts.laws_so_far
    assert N[2:6].tolist() == N[6:10].tolist()
    assert alone.state.counts.laws_so_far[0][2:6].tolist() != alone.state.counts.laws_so_far[0][6:10].tolist()
    assert N[:2].sum() == 40 and N[2:6].sum() == 80


@pytest.mark.parametrize("name", COUNTING)
def test_visits_in_one_layer_count_in_the_tied_layers(name: str) -> None:
    """In state 0 one may gamble, for 1 (good) or 2 (bad), or stay. At step 1 the gamble came out well, once; at step 0
    badly, five times. Whoever knows that it is the same gamble takes it less at step 1."""
    layout = unroll([(0, 0, 1), (0, 0, 2), (0, 1, 0), (1, 0, 1), (2, 0, 2)], [0.5, 0.5, 1, 1, 1], n_steps=3)
    space, f = layout.space, layout.lay_out(np.array([[0.0, 0.0], [-0.9, 0.0], [0.9, 0.0]]))
    g = np.empty((0, space.n_tuples))
    at = World(layout.mdp, np.stack([f, f]), g, np.empty(0))
    once = [([0, 1, 4, 7], [1, 1, 0]), ([0, 1, 4, 7], [1, 1, 1]), ([0, 1, 5, 7], [1, 0, 0])]
    episodes = once + 5 * [([0, 3, 6, 7], [0, 0, 0])]
    # neither hope nor chance
    tuning = {"radius_scale": 1e-3, "prior": 1e-3} | ({"learning_rate": 1e3} if name == "fpop" else {})
    options: dict[str, Any] = {key: tuning[key] for key in tuning if key in LEARNERS[name].parameter_fields()}

    def gambles(ties: Ties | None) -> float:
        learner = make_learner(name, at, episodes=len(episodes), ties=ties, **options)
        for states, actions in episodes:
            path = space.path(states, actions)
            learner.observe(
                BanditEpisode(states, actions, f[path], g[:, path])
                if learner.feedback == "bandit"
                else Episode(states, actions, f, g)
            )
        return float(learner.policy.probabilities[2])

    assert gambles(layout.ties) < gambles(None) - 0.003


@pytest.mark.parametrize("name", COUNTING)
def test_empty_ties_change_nothing(name: str) -> None:
    """Every pair a law of its own: the same bits as without ties."""
    at, _ = tied_world()
    trivial = Ties(SPACE, np.arange(SPACE.n_tuples))
    one = drive(at, make_learner(name, at, episodes=30, ties=trivial), last=30)
    other = drive(at, make_learner(name, at, episodes=30, ties=False), last=30)
    for (p, Q, epoch), (p_, Q_, epoch_) in zip(one, other, strict=True):
        assert p.tobytes() == p_.tobytes()
        assert Q.tobytes() == Q_.tobytes()
        assert epoch == epoch_

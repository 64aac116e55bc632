"""Posterior sampling: against a plain twin that draws from the same stream, by its posterior, and that it learns."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import FloatArray
from tests.learners.gap import regret_per_episode
from tightrope import BanditEpisode, InvalidInputError, LayeredSpace, Policy, make, make_learner
from tightrope.checks.worlds import WORLDS
from tightrope.learners.psrl import PSRL


def best_of_a_draw(
    space: LayeredSpace, moves: dict[tuple[int, int, int], int], losses: dict[tuple[int, int], list[float]],
    rng: np.random.Generator, prior: float,
) -> FloatArray:  # fmt: skip
    """Gammas one by one in the order of tuples, then betas one by one in that of pairs, then backwards."""
    weight = {move: rng.standard_gamma(prior + moves.get(move, 0)) for move in map(tuple, space.tuples.tolist())}
    loss = {}
    for pair in map(tuple, space.pairs.tolist()):
        met = losses.get(pair, [])
        loss[pair] = rng.beta(prior + sum(met), prior + sum(1 - one for one in met))
    V, pi = {space.n_states - 1: 0.0}, np.zeros(space.n_pairs)
    for s in reversed(range(space.n_states - 1)):
        value = {}
        for i in np.flatnonzero(space.pairs[:, 0] == s).tolist():
            a = int(space.pairs[i, 1])
            out = {move: w for move, w in weight.items() if move[:2] == (s, a)}
            value[i] = loss[s, a] + sum(w / sum(out.values()) * V[move[2]] for move, w in out.items())
        V[s] = min(value.values())
        pi[min(value, key=lambda i: value[i])] = 1.0
    return pi


@pytest.mark.parametrize("resample", ["episode", "dynamic"])
def test_a_run_is_that_of_its_twin(resample: str) -> None:
    """Ouyang: a draw is kept until it lasted longer than the one before, or visits of some pair doubled."""
    at, T, prior = WORLDS["a_sparse_space"](), 60, 0.7
    learner = PSRL(at.space, at.budgets, episodes=T, rng=np.random.default_rng(8), prior=prior, resample=resample)  # type: ignore[arg-type]
    rng = np.random.default_rng(8)
    moves: dict[tuple[int, int, int], int] = {}
    losses: dict[tuple[int, int], list[float]] = {}
    pi, drawn = best_of_a_draw(at.space, moves, losses, rng, prior), 1
    lasted, before, then = 0, 0, dict[tuple[int, int], int]()
    for t in range(1, T + 1):
        np.testing.assert_array_equal(learner.policy.probabilities, pi)
        assert learner.epoch == drawn
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng([2, t]))
        learner.observe(episode)
        for s, a, s_next, f in zip(episode.states[:-1].tolist(), episode.actions.tolist(), episode.states[1:].tolist(),
                                   episode.losses.tolist(), strict=True):  # fmt: skip
            moves[s, a, s_next] = moves.get((s, a, s_next), 0) + 1
            losses.setdefault((s, a), []).append((f + 1) / 2)
        lasted += 1
        doubled = any(
            len(met) >= 2 * then.get(pair, 0) and len(met) > then.get(pair, 0) for pair, met in losses.items()
        )
        if resample == "episode" or doubled or lasted == before + 1:
            pi, drawn = best_of_a_draw(at.space, moves, losses, rng, prior), drawn + 1
            lasted, before, then = 0, lasted, {pair: len(met) for pair, met in losses.items()}
    assert drawn == T + 1 if resample == "episode" else 15 < drawn < 40


def test_the_posterior_by_hand() -> None:
    """One pair, two successors: after three visits, two to the first, losses 1, 1, 0.5 in [0, 1].

    a = 1: Dirichlet(3, 2), so the first is drawn with mean 3/5 and variance 0.6·0.4/6 = 0.04; Beta(3.5, 1.5), mean 0.7.
    """
    space = LayeredSpace.dense([1, 2, 1], 1)
    learner = PSRL(space, [], episodes=5, rng=np.random.default_rng(0))
    for s, f in ((1, 1.0), (1, 1.0), (2, 0.0)):
        learner.observe(BanditEpisode([0, s, 3], [0, 0], [f, 0.0], np.zeros((0, 2))))
    drawn = []

    def look(csr: object, P: FloatArray, loss: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
        drawn.append((P[0], loss[0]))
        return np.zeros(space.n_states), np.arange(3)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tightrope.core.best_actions", look)
        for _ in range(4000):
            learner._plan(learner.state.counts, learner.state.total_loss, learner.state.draws)
    first, loss = np.array(drawn).T
    assert first.mean() == pytest.approx(0.6, abs=0.01)
    assert first.var() == pytest.approx(0.04, abs=0.003)
    assert loss.mean() == pytest.approx(0.7, abs=0.01)
    assert loss.var() == pytest.approx(0.7 * 0.3 / 6, abs=0.003)


def test_laws_that_are_tied_are_drawn_once() -> None:
    problem = make("media-streaming")
    learner = make_learner("psrl", problem, episodes=5, ties=True)
    assert isinstance(learner, PSRL) and learner.ties is not None
    drawn: list[FloatArray] = []

    def look(csr: object, P: FloatArray, loss: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
        drawn.append(P)
        return np.zeros(problem.space.n_states), problem.space.csr.state_ptr[:-2].astype(np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tightrope.core.best_actions", look)
        learner._plan(learner.state.counts, learner.state.total_loss, learner.state.draws)
    outcome = learner.ties.outcome
    for k in range(outcome.max() + 1):
        assert len(set(drawn[0][outcome == k])) == 1
    assert len(set(drawn[0])) > 10


def test_regret_per_episode_falls() -> None:
    for resample in ("episode", "dynamic"):
        early, late = (regret_per_episode("psrl", "iid", T, resample=resample) for T in (50, 2000))  # type: ignore[arg-type]
        assert 0 < late < early / 5


def test_a_draw_that_fails_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner, twin = (PSRL(space, [], episodes=5, rng=np.random.default_rng(0)) for _ in range(2))
    episode = BanditEpisode([0, 1, 3], [0, 0], [0.5, 0.5], np.zeros((0, 2)))
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.core.best_actions", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.observe(episode)
    for _ in range(20):
        learner.observe(episode)
        twin.observe(episode)
        np.testing.assert_array_equal(learner.policy.probabilities, twin.policy.probabilities)


def test_a_prior_near_zero_is_still_a_policy() -> None:
    space = LayeredSpace.dense([1, 3, 1], 2)
    learner = PSRL(space, [], episodes=5, rng=np.random.default_rng(0), prior=1e-6)
    Policy(space, learner.policy.probabilities)
    with pytest.raises(InvalidInputError, match="resample cannot be 'never'"):
        PSRL(space, [], episodes=5, rng=np.random.default_rng(0), resample="never")  # type: ignore[arg-type]

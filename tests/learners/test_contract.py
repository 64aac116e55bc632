"""Every learner keeps the public contract, and the contract catches every way of breaking it that we could think of."""

import inspect
from collections.abc import Callable
from copy import copy
from typing import Any, get_args

import numpy as np
import pytest

from tests.conftest import FloatArray
from tightrope import UCPD, BanditEpisode, Episode, InvalidInputError, LayeredSpace, Policy
from tightrope.checks import check_learner, yield_learner_checks
from tightrope.core import policy_of
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.learners.base import Constants, Feedback, Offer, Seen, State
from tightrope.learners.episodes import checked_bandit_episode, checked_episode
from tightrope.learners.needs import NEEDS

CHECKS = {check.__name__: check for check in yield_learner_checks()}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_keeps_the_contract(name: str) -> None:
    assert set(check_learner(name)) == set(CHECKS)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_reports_its_name(name: str) -> None:
    learner = LEARNERS[name]
    assert learner.name == name
    assert 20 < len(learner.summary()) <= 110
    assert (learner.constants == "none") == (learner.reference == "none")
    assert learner.constants in get_args(Constants)
    if learner.constants == "declared departure" and not learner.reference.startswith("tightrope"):
        assert "Where we depart from the publication" in (inspect.getmodule(learner).__doc__ or "")
    assert set(learner.needs) <= set(NEEDS)
    parameters = inspect.signature(learner).parameters
    assert [*parameters][:3] == ["space", "budgets", "episodes"]
    assert set(learner.needs) <= set(parameters)
    for parameter in [*parameters][3:]:
        has_default = parameters[parameter].default is not parameters[parameter].empty
        assert has_default != (parameter in learner.needs), "what is no need has a published value"


class Weights:
    """A learner of a user's own, without our base class: weights of pairs, lowered by what they cost."""

    feedback: Feedback = "full"

    def __init__(self, space: LayeredSpace, budgets: FloatArray, rng: np.random.Generator) -> None:
        self.space, self.budgets, self.rng = space, np.array(budgets), rng
        self.weights = np.ones(space.n_tuples)
        self.multipliers = np.zeros(len(budgets))
        self.epoch = 1
        self.settings: dict[str, float | str] = {"learner": "weights", "rate": 0.3}
        self.episodes: list[Any] = []
        self._policy = self._make_policy()

    @property
    def policy(self) -> Policy:
        return self._policy

    def _make_policy(self) -> Policy:
        return Policy.from_occupancy(self.space, self.weights)

    def check(self, episode: Any) -> tuple[Any, FloatArray, FloatArray]:
        return checked_episode(self.space, len(self.budgets), 1, episode)

    def observe(self, episode: Any) -> None:
        _, f, g = self.check(episode)
        self.weights = self.weights * np.exp(-0.3 * (f + g.sum(axis=0)) + 0.01 * self.rng.random())
        self.multipliers = np.abs(self.multipliers + 0.1)
        self.epoch += 1
        self._policy = self._make_policy()


class BanditWeights(Weights):
    """The same with bandit feedback."""

    feedback: Feedback = "bandit"

    def check(self, episode: Any) -> tuple[Any, FloatArray, FloatArray]:
        path, losses, g = checked_bandit_episode(self.space, len(self.budgets), 1, episode)
        f_everywhere, g_everywhere = np.zeros(self.space.n_tuples), np.zeros((len(g), self.space.n_tuples))
        f_everywhere[path], g_everywhere[:, path] = losses, g
        return path, f_everywhere, g_everywhere


def maker(kind: type[Weights]) -> Any:
    return lambda problem, *, episodes, seed: kind(problem.space, problem.budgets, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", [Weights, BanditWeights])
def test_a_learner_of_ones_own_can_be_checked_without_saving(kind: type[Weights]) -> None:
    passed = check_learner(maker(kind))
    assert passed == [check.__name__ for check in yield_learner_checks(saving=False)]
    assert len(passed) >= 35


#: What can be wrong with a learner, and the check that is there to find it.
WRONG: dict[str, type[Weights]] = {}


def wrong(check: str) -> Callable[[type[Weights]], type[Weights]]:
    def note(kind: type[Weights]) -> type[Weights]:
        assert check not in WRONG
        WRONG[check] = kind
        return kind

    return note


@wrong("check_a_copy_goes_on_the_same_and_alone")
class _Copied(Weights):
    def __deepcopy__(self, memo: object) -> "_Copied":
        twin = copy(self)
        twin.rng = self.rng
        return twin


@wrong("check_acting_is_drawing_from_the_policy")
class _Acting(Weights):
    def act(self, state: int, rng: np.random.Generator) -> int:
        self.weights = self.weights * np.linspace(1.0, 1.0 + 1e-9, len(self.weights))
        return self.policy.sample(state, rng)


@wrong("check_it_says_what_feedback_it_takes")
class _Feedback(Weights):
    feedback = "everything"  # type: ignore[assignment]


@wrong("check_it_is_made_for_the_space_and_the_budgets")
class _Budgets(Weights):
    def __init__(self, space: LayeredSpace, budgets: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(space, budgets, rng)
        self.budgets = self.budgets + 1e-9


@wrong("check_it_has_budgets_of_its_own")
class _Alias(Weights):
    def __init__(self, space: LayeredSpace, budgets: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(space, budgets, rng)
        self.budgets = budgets


@wrong("check_the_policy_is_a_distribution_at_every_state")
class _Distribution(Weights):
    def _make_policy(self) -> Policy:
        policy = super()._make_policy()
        policy.probabilities[-1] += 1e-6 * (self.epoch == 12)
        return policy


@wrong("check_looking_at_the_policy_changes_nothing")
class _Looking(Weights):
    @property
    def policy(self) -> Policy:
        self.weights = self.weights * np.linspace(1.0, 1.0 + 1e-9, len(self.weights))
        return self._policy


@wrong("check_a_policy_handed_out_stays_as_it_was")
class _Reused(Weights):
    def _make_policy(self) -> Policy:
        if self.epoch == 1:
            return super()._make_policy()
        self._policy.probabilities[:] = policy_of(self.space.native, self.weights)
        return self._policy


@wrong("check_multipliers_are_finite_and_not_negative")
class _Multipliers(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        self.multipliers = np.where(self.epoch > 10, np.nan, self.multipliers)


@wrong("check_the_epoch_counts_up_from_one")
class _Epoch(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        self.epoch -= 2 * (self.epoch == 9)


@wrong("check_settings_are_plain_and_stay")
class _Settings(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        self.settings = self.settings | {"rate": 0.3 / self.epoch}


@wrong("check_observing_does_not_change_its_inputs")
class _Writes(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        np.asarray(episode.loss)[...] *= 1.0


@wrong("check_it_keeps_nothing_of_its_inputs")
class _Keeps(Weights):
    last: Any = None

    def observe(self, episode: Any) -> None:
        super().observe(episode)
        if self.last is not None:
            self.weights = self.weights * np.exp(0.1 * np.asarray(self.last))
            self._policy = self._make_policy()
        self.last = episode.loss


@wrong("check_lists_will_do")
class _Lists(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        self.weights = self.weights * (1.0 if isinstance(episode.loss, np.ndarray) else np.arange(1, 19))
        self._policy = self._make_policy()


@wrong("check_the_same_seed_gives_the_same_bits")
class _Bits(Weights):
    made = 0

    def __init__(self, space: LayeredSpace, budgets: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(space, budgets, rng)
        type(self).made += 1
        self.weights[0] += 1e-9 * type(self).made


@wrong("check_learners_do_not_share_anything")
class _Shared(Weights):
    noise = np.random.default_rng(0)

    def __init__(self, space: LayeredSpace, budgets: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(space, budgets, rng)
        type(self).noise = np.random.default_rng(0)

    def observe(self, episode: Any) -> None:
        super().observe(episode)
        self.weights = self.weights * type(self).noise.random(len(self.weights))


@wrong("check_global_randomness_is_left_alone")
class _Global(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        np.random.random()  # noqa: NPY002


@wrong("check_it_goes_on_beyond_the_last_episode")
class _Ends(Weights):
    def observe(self, episode: Any) -> None:
        assert self.epoch <= 3, "it is over"
        super().observe(episode)


@wrong("check_extreme_losses_are_fine")
class _Extreme(Weights):
    def _make_policy(self) -> Policy:
        policy = super()._make_policy()
        if (self.weights == self.weights[0]).all() and self.epoch > 1:
            policy.probabilities[:] = np.nan
        return policy

    def observe(self, episode: Any) -> None:
        _, f, _ = self.check(episode)
        super().observe(episode)
        if (f == f[0]).all():
            self.weights[:] = 1.0
            self._policy = self._make_policy()


@wrong("check_its_memory_is_bounded")
class _Memory(Weights):
    def observe(self, episode: Any) -> None:
        super().observe(episode)
        self.episodes.append(self.policy)


@wrong("check_it_refuses_feedback_of_the_other_kind")
class _Kind(Weights):
    def check(self, episode: Any) -> tuple[Any, FloatArray, FloatArray]:
        if isinstance(episode, BanditEpisode):
            return None, np.zeros(self.space.n_tuples), np.zeros((2, self.space.n_tuples))
        return super().check(episode)


@wrong("check_it_refuses_what_is_no_episode")
class _NoEpisode(Weights):
    def check(self, episode: Any) -> tuple[Any, FloatArray, FloatArray]:
        if not isinstance(episode, Episode | BanditEpisode):
            raise AttributeError("no states")
        return super().check(episode)


class Lenient(Weights):
    """Takes what it is shown after a repair of its own."""

    def repair(self, episode: Any) -> Any:
        return episode

    def check(self, episode: Any) -> tuple[Any, FloatArray, FloatArray]:
        return super().check(self.repair(episode) if isinstance(episode, Episode) else episode)


def _replaced(episode: Any, **fields: Any) -> Any:
    parts = {name: getattr(episode, name) for name in episode.__slots__}
    return type(episode)(**parts | fields)


@wrong("check_it_refuses_losses_of_the_wrong_shape")
class _LossShape(Lenient):
    def repair(self, episode: Any) -> Any:
        return _replaced(episode, loss=np.broadcast_to(np.asarray(episode.loss).flat[0], 18))


@wrong("check_it_refuses_constraints_of_the_wrong_shape")
class _ConstraintShape(Lenient):
    def repair(self, episode: Any) -> Any:
        return _replaced(episode, constraints=np.resize(np.asarray(episode.constraints), (len(self.budgets), 18)))


@wrong("check_it_refuses_trajectories_of_the_wrong_length")
class _Length(Lenient):
    def repair(self, episode: Any) -> Any:
        whole = len(episode.states) == 4 and len(episode.actions) == 3
        return episode if whole else _replaced(episode, states=[0, 1, 4, 7], actions=[0, 1, 0])


@wrong("check_it_refuses_trajectories_that_cannot_happen")
class _Impossible(Lenient):
    def repair(self, episode: Any) -> Any:
        whole = len(episode.states) == 4 and len(episode.actions) == 3
        return _replaced(episode, states=[0, 1, 4, 7], actions=[0, 1, 0]) if whole else episode


@wrong("check_it_refuses_losses_that_are_not_finite")
class _LossNaN(Lenient):
    def repair(self, episode: Any) -> Any:
        finite = np.isfinite(np.asarray(episode.loss)).all()
        return episode if finite else _replaced(episode, loss=np.zeros(18))


@wrong("check_it_refuses_losses_beyond_their_bounds")
class _LossBounds(Lenient):
    def repair(self, episode: Any) -> Any:
        f = np.asarray(episode.loss)
        return _replaced(episode, loss=np.clip(f, -1, 1)) if np.isfinite(f).all() else episode


@wrong("check_it_refuses_constraints_that_are_not_finite")
class _ConstraintNaN(Lenient):
    def repair(self, episode: Any) -> Any:
        finite = np.isfinite(np.asarray(episode.constraints)).all()
        return episode if finite else _replaced(episode, constraints=np.zeros((2, 18)))


@wrong("check_it_refuses_constraints_beyond_their_bounds")
class _ConstraintBounds(Lenient):
    def repair(self, episode: Any) -> Any:
        g = np.asarray(episode.constraints)
        sane = g.shape == (2, 18) and np.isfinite(g).all()
        return _replaced(episode, constraints=np.clip(g, -0.5, 0.5)) if sane else episode


@pytest.mark.parametrize("name", WRONG)
def test_each_check_finds_the_fault_that_it_is_for(name: str) -> None:
    with pytest.raises(AssertionError):
        CHECKS[name](maker(WRONG[name]))
    CHECKS[name](maker(Weights))


def test_a_refusal_that_leaves_traces_is_found() -> None:
    class Counting(Weights):
        def observe(self, episode: Any) -> None:
            self.weights[0] *= 1.01
            super().observe(episode)

    for name, check in CHECKS.items():
        if name.startswith("check_it_refuses"):
            with pytest.raises(AssertionError, match="does not change"):
                check(maker(Counting))


def test_a_learner_that_forgets_part_of_its_state_is_found() -> None:
    class Forgetful(LearnerBase[State]):
        """It keeps the number of its steps beside its state."""

        name = "forgetful"
        reference = "none"

        def configure(self) -> None:
            self.steps = 0

        def initial(self) -> State:
            return State()

        def step(self, state: State, seen: Seen) -> State:
            self.steps += 1
            return State(observed=state.observed + 1)

        def offer(self, state: State) -> Offer:
            weights = np.ones(self.space.n_tuples)
            weights[0] += self.steps
            return Offer(Policy.from_occupancy(self.space, weights), np.zeros(len(self.budgets)))

    def make(problem: Any, *, episodes: int, seed: int) -> LearnerBase:
        return Forgetful(problem.space, problem.budgets, episodes=episodes)

    with pytest.raises(AssertionError, match="saved after 1 episodes"):
        CHECKS["check_saved_in_mid_run_it_goes_on_the_same"](make)


def test_a_failure_names_the_check() -> None:
    with pytest.raises(AssertionError) as failure:
        check_learner(maker(_Memory))
    assert failure.value.__notes__ == ["(check_its_memory_is_bounded of tightrope.checks)"]


def test_an_unknown_learner_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'nobody'"):
        check_learner("nobody")
    with pytest.raises(InvalidInputError, match=r"the class UCPD; expected a name, or a function make\("):
        check_learner(UCPD)  # type: ignore[arg-type]

"""Shadow mode, stop-loss, champion and challenger; all survive reopening, to the bit."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from fuzz.twin import with_one_more
from tests.durable.stories import WORLD, fresh, number_of, one_more, opened, played, rows, story
from tests.durable.test_learner import episode_fields, observe
from tightrope import (
    ConvergenceError,
    DurableLearner,
    Episode,
    InvalidInputError,
    LayeredMDP,
    LayeredSpace,
    Policy,
    UCPDPractical,
)
from tightrope.durable import StopLoss
from tightrope.errors import ConflictError, StorageError
from tightrope.ops.state import LARGEST_WEIGHT, Account, Guard, Shadow, importance_weights
from tightrope.storage.checkpoints import fingerprint

SAFE = Policy.uniform(WORLD.space)


class FailsAtTheThird(UCPDPractical):
    """Fails at its third episode, as a solver that does not converge."""

    name = "fails"
    error: ClassVar[Exception] = ConvergenceError("too hard")

    def observe(self, episode: Episode) -> None:
        if self.observed == 2:
            raise self.error
        super().observe(episode)


def _pairs(told: dict[str, Any]) -> NDArray[np.int64]:
    return WORLD.space.pair_of_tuple[WORLD.space.path(told["states"], told["actions"])]


def weights(own: list[float], played: list[float]) -> list[float]:
    return [float(weight) for weight in importance_weights(np.array(own), np.array(played))]


def told(learner: DurableLearner, id: str, policy: Policy) -> None:
    """Tell an episode that `policy` played."""
    learner.tell(id, **story(policy, learner.feedback, int(id.partition("-")[0])))


class TestShadow:
    def test_watched_episodes_are_learned_and_weighed(self, tmp_path: Path) -> None:
        twin = fresh("ucpd-bandit")
        with opened(tmp_path, fresh("ucpd-bandit"), snapshot_every=3) as learner:
            for _ in range(8):
                id = learner.watch(SAFE)
                parts = story(SAFE, "bandit", int(id.partition("-")[0]))
                learner.tell(id, **parts)
                observe(twin, SAFE, episode_fields(parts))
        with opened(tmp_path) as learner:
            assert learner.fingerprint() == fingerprint(twin)
            [standing] = learner.status.standings
            assert (standing.weighed, standing.on_paths) == (8, 0)

    def test_importance_weights_computed_by_hand(self) -> None:
        """Two steps, two actions each: π takes the first action with 0.9, μ with 0.5."""
        own, played_ = np.array([0.9, 0.1, 0.9, 0.1]), np.array([0.5, 0.5, 0.5, 0.5])
        costs = np.array([[1.0, 1.0], [0.5, 0.25]])
        shadow = Shadow.empty(1).after(costs, np.array([0, 3]), own, played_)  # the first action, then the second
        rho = [0.9 / 0.5, 0.9 / 0.5 * 0.1 / 0.5]
        assert shadow.by_importance == pytest.approx([rho[0] + rho[1], 0.5 * rho[0] + 0.25 * rho[1]])
        again = shadow.after(costs, np.array([0, 3]), own, None)
        assert again.by_path == pytest.approx([2.0, 0.75])
        assert (again.weighed, again.met) == (1, 1)

    @pytest.mark.parametrize("rare", [1e-200, 1e-310])
    def test_extreme_importance_weights_stay_finite(self, tmp_path: Path, rare: float) -> None:
        """The product of the ratios overflows; after an action that π never takes it is 0."""
        hardly = SAFE.probabilities.copy()
        first = WORLD.space.csr.state_ptr[:-2]
        hardly[:] = rare
        hardly[first] = 1.0
        others = Policy(WORLD.space, hardly)
        episode = next(
            told for k in range(1000) if not others.probabilities[_pairs(told := story(SAFE, "full", k))].max() > rare
        )
        with opened(tmp_path, fresh(), snapshot_every=1) as learner:
            assert learner.tell(learner.watch(others), **episode) == "learned"
            [standing] = learner.status.standings
            assert np.isfinite([*standing.would_have_spent, *standing.standard_errors]).all()
        with opened(tmp_path) as learner:
            assert learner.status.told == 1
        assert weights([0.5, 0.5, 0.0], [rare, rare, 0.5]) == [LARGEST_WEIGHT, LARGEST_WEIGHT, 0.0]
        assert weights([0.5, 0.0, 0.5], [0.5, 0.0, 0.5]) == [1.0, 0.0, 0.0]
        assert weights([0.1, 0.7], [0.1, 0.7]) == [1.0, 1.0]

    def test_importance_estimates_are_unbiased(self) -> None:
        """Compared with the exact occupancy measure, within four standard errors, which are small."""
        mdp: LayeredMDP = WORLD.mdp
        own = Policy(WORLD.space, fresh().policy.probabilities)
        biased = SAFE.probabilities * np.linspace(1, 2, WORLD.space.n_pairs)
        own = Policy.unchecked(WORLD.space, biased / np.add.reduceat(biased, WORLD.space.csr.state_ptr[:-2]).repeat(
            np.diff(WORLD.space.csr.state_ptr[:-1])
        ))  # fmt: skip
        shadow = Shadow.empty(2)
        for t in range(3000):
            parts = story(SAFE, "full", t)
            path = WORLD.space.path(parts["states"], parts["actions"])
            costs = np.vstack([parts["loss"], parts["constraints"]])[:, path]
            shadow = shadow.after(costs, WORLD.space.pair_of_tuple[path], own.probabilities, SAFE.probabilities)
        exact = 3000 * WORLD.mean @ mdp.occupancy(own)
        error = shadow.standard_error()[1:]
        assert (error < 0.03 * exact).all()
        assert np.abs(shadow.by_importance[1:] - exact) == pytest.approx(0, abs=float(4 * error.max()))

    def test_episodes_whose_policy_does_not_cover_are_left_out(self, tmp_path: Path) -> None:
        """A safe policy that never takes the learner's actions does not lower the estimate of its spending."""
        first = WORLD.space.csr.state_ptr[:-2]
        always = np.zeros(WORLD.space.n_pairs)
        always[first] = 1.0
        with opened(tmp_path, fresh(), snapshot_every=3) as learner:
            for _ in range(4):
                one_more(learner)
            [before] = learner.status.standings
            learner.stop_loss({"constraint 0": StopLoss(most=-1e6, back=-2e6)}, Policy(WORLD.space, always))
            for _ in range(5):
                one_more(learner)
        with opened(tmp_path) as learner:
            [after] = learner.status.standings
            assert (after.weighed, after.uncovered, learner.status.told) == (4, 5, 9)
            assert (after.would_have_spent, after.loss) == (before.would_have_spent, before.loss)

    def test_a_policy_covers_another_if_it_takes_all_its_actions(self) -> None:
        some, all_, other = np.array([0.5, 0.5, 0.0]), np.array([0.8, 1e-310, 0.2]), np.array([0.0, 0.5, 0.5])

        def covers(played: NDArray[np.float64], own: NDArray[np.float64]) -> bool:
            return not Shadow.empty(0).after(np.zeros((1, 1)), np.array([0]), own, played).uncovered

        assert covers(all_, some) and covers(some, some)
        assert not covers(some, all_) and not covers(other, some)

    def test_episodes_of_unknown_policies_are_summed_apart(self, tmp_path: Path) -> None:
        with opened(tmp_path, fresh(), snapshot_every=2) as learner:
            for _ in range(3):
                told(learner, learner.watch(), SAFE)
            one_more(learner)
        with opened(tmp_path) as learner:
            [standing] = learner.status.standings
            assert (standing.on_paths, standing.weighed) == (3, 1)
            whole = np.array(standing.would_have_spent) + standing.spent_on_paths
            assert whole == pytest.approx([one.spent for one in learner.status.spending])
            learner.watch()
            assert learner.open_episodes() == {}
            assert learner.status.open == 1

    def test_watching_is_refused_if_a_learner_cannot_learn_from_others(self, tmp_path: Path) -> None:
        with opened(tmp_path, fresh("ucpd-bandit")) as learner:
            with pytest.raises(InvalidInputError, match="only with their policy"):
                learner.watch()
            with pytest.raises(InvalidInputError, match="policy is for"):
                learner.watch(Policy.uniform(LayeredSpace.dense([1, 1], 2)))
        with DurableLearner(tmp_path / "own", fresh("shifted-bandit-uc-o-reps")) as learner:
            with pytest.raises(InvalidInputError, match="cannot learn from episodes that others play"):
                learner.watch(SAFE)
            with pytest.raises(InvalidInputError, match="safe policy"):
                learner.stop_loss({}, SAFE)
            with pytest.raises(InvalidInputError, match="a challenger plays"):
                learner.challenge("other", fresh())

    def test_a_learner_that_needs_the_policy_does_not_learn_without_it(self, tmp_path: Path) -> None:
        """As a challenger it fails, as the champion it refuses the episode."""
        with opened(tmp_path, fresh()) as learner:
            first, second = learner.watch(), learner.watch()
            learner.challenge("other", fresh("ucpd-bandit"))
            before = learner.fingerprint("other")
            learner.tell(first, **story(SAFE, "full", 1))
            assert learner.status.standings[1].failed == (
                "it could not learn from episode 1: the policy that played it is not known"
            )
            assert learner.fingerprint("other") == before
            learner.challenge("another", fresh("ucpd-bandit"))
            learner.promote("another")
            with pytest.raises(ConflictError, match=f"the policy that played episode {second} is not known.*give the"):
                learner.tell(second, **story(SAFE, "full", 2))
            assert (learner.status.told, learner.status.open) == (1, 1)
        with opened(tmp_path) as learner:
            assert learner.fingerprint("another") == learner.fingerprint("other") == before

    @pytest.mark.parametrize("policy", [0, "", [], False, np.full(2, 0.5)])
    def test_watch_refuses_what_is_not_a_policy(self, tmp_path: Path, policy: Any) -> None:
        with opened(tmp_path, fresh()) as learner, pytest.raises(InvalidInputError, match=r"policy is .*a Policy"):
            learner.watch(policy)


class TestStopLoss:
    def test_a_rule_stops_above_most_until_back(self, tmp_path: Path) -> None:
        """Three steps use 0.2 each, of a budget of 0.25: 0.35, 0.7, 1.05, 1.4 over; then nothing, down by 0.25 each."""
        space = WORLD.space
        rules = {"constraint 0": StopLoss(most=0.6, back=0.25)}
        with opened(tmp_path, fresh(), snapshot_every=2) as learner:
            learner.set_budgets([0.25, 1.0])
            learner.stop_loss(rules, SAFE)
            over, stopped, tips = 0.0, False, []
            for t in range(14):
                if t % 3 == 1:  # opened again in between
                    learner.close()
                    learner = opened(tmp_path)
                assert learner.status.stopped is stopped
                use = 0.2 if t < 4 else 0.0
                parts = played(learner, episode := learner.ask())
                assert np.array_equal(episode.policy.probabilities, SAFE.probabilities) is (stopped or t == 0)
                constraints = np.vstack([np.full(space.n_tuples, use), np.zeros(space.n_tuples)])
                learner.tell(episode.id, **(parts | {"constraints": constraints}))
                over += space.n_layers * use - 0.25
                before, stopped = stopped, over > (0.25 if stopped else 0.6)
                if stopped is not before:
                    tips.append(t)
            assert tips == [1, 8]
            learner.close()

    def test_a_predicted_rule_looks_at_the_horizon(self) -> None:
        """After 2 of 10 episodes with uses 3 and 1 of a budget of 1, the rate 2 predicts 4 + 8·2 − 10 = 10.

        After the first one, 3 was used and 1 allowed; that the others use as much is not expected of one episode.
        """
        rule = StopLoss(most=9.9, by="predicted", horizon=10, window=2, back=4.0)
        account, budgets = Account.empty(1), np.array([0.5])
        two = np.array([2.0])  # two units are one of the learner's
        guard = Guard.empty(4, 1).with_rules(np.full(4, 0.5), {0: rule}, two, account, budgets)
        for use, over in ((1.5, 2.0), (0.5, 10.0)):
            account = with_one_more(account, [0.0, use], budgets)
            guard = guard.after(account, np.array([use]), budgets, by_safe=False)
            assert 2 * guard.overspending(account, budgets) == pytest.approx([over])
        assert guard.stops
        seen = []
        for _ in range(3):  # the safe policy uses nothing, and the rate is what it was: 10 − 2 k
            account = with_one_more(account, [0.0, 0.0], budgets)
            guard = guard.after(account, np.zeros(1), budgets, by_safe=True)
            seen.append((float(2 * guard.overspending(account, budgets)[0]), guard.stops))
        assert seen == [(8.0, True), (6.0, True), (4.0, False)]

    def test_new_rules_hold_at_once_and_keep_a_stop(self, tmp_path: Path) -> None:
        """The overspending is 2 × 0.35 = 0.7; setting the same rule again lifts no stop."""
        space = WORLD.space
        with opened(tmp_path, fresh()) as learner:
            learner.set_budgets([0.25, 1.0])
            constraints = np.vstack([np.full(space.n_tuples, 0.2), np.zeros(space.n_tuples)])
            for _ in range(2):
                parts = played(learner, episode := learner.ask())
                learner.tell(episode.id, **(parts | {"constraints": constraints}))
            for most, back, stopped in (
                (0.8, 0.0, False),
                (0.6, 0.0, True),
                (0.6, 0.0, True),
                (0.8, 0.6, True),  # between the two, and it was stopped
                (0.8, 0.75, False),
                (0.8, 0.6, False),  # between the two, and it was not
            ):
                learner.stop_loss({"constraint 0": StopLoss(most=most, back=back)}, SAFE)
                assert learner.status.stopped is stopped, (most, back)
            learner.stop_loss({"constraint 0": StopLoss(most=0.6)}, SAFE)
            assert np.array_equal(learner.ask().policy.probabilities, SAFE.probabilities)
            learner.stop_loss({}, SAFE)
            assert not learner.status.stopped

    def test_rules_after_no_rules_start_afresh(self) -> None:
        """The mean use before the rules were removed is forgotten."""
        rule = StopLoss(most=1.0, by="predicted", horizon=1000, window=2)
        account, budgets, safe, one = Account.empty(1), np.array([0.5]), np.full(4, 0.5), np.ones(1)
        guard = Guard.empty(4, 1).with_rules(safe, {0: rule}, one, account, budgets)
        for use in (3.0, 3.0):
            account = with_one_more(account, [0.0, use], budgets)
            guard = guard.after(account, np.array([use]), budgets, by_safe=False)
        assert guard.stops
        guard = guard.with_rules(safe, {}, one, account, budgets)
        for _ in range(20):
            account = with_one_more(account, [0.0, 0.0], budgets)
            guard = guard.after(account, np.zeros(1), budgets, by_safe=False)
        guard = guard.with_rules(safe, {0: rule}, one, account, budgets)  # 6 used, 11 allowed
        assert guard.overspending(account, budgets) == pytest.approx([-5.0])
        assert not guard.stops

    def test_stop_loss_is_reassessed_after_new_budgets_or_a_new_champion(self, tmp_path: Path) -> None:
        """A rate of 0.6, for 10 − 3 more episodes: within a budget of 0.7, over one of 0.25."""
        with opened(tmp_path, fresh()) as learner:
            learner.set_budgets([0.7, 1.0])
            rule = StopLoss(most=1.0, back=1.0, by="predicted", horizon=10, window=2)
            learner.stop_loss({"constraint 0": rule}, SAFE)
            n_tuples = WORLD.space.n_tuples
            constraints = np.vstack([np.full(n_tuples, 0.2), np.zeros(n_tuples)])
            for _ in range(3):  # the first policy is the safe one
                parts = played(learner, episode := learner.ask())
                learner.tell(episode.id, **(parts | {"constraints": constraints}))
            seen = [learner.status.stopped]
            learner.set_budgets([0.25, 1.0])
            seen.append(learner.status.stopped)
            assert np.array_equal(learner.ask().policy.probabilities, SAFE.probabilities)
            learner.challenge("richer", fresh("ucpd-bandit").with_budgets([0.7, 1.0]))
            learner.promote("richer")
            assert [*seen, learner.status.stopped] == [False, True, False]
        with opened(tmp_path) as learner:
            assert not learner.status.stopped

    @pytest.mark.parametrize("rules", [None, [], "constraint 0", StopLoss(most=1.0)])
    def test_rules_of_the_wrong_type_are_refused(self, tmp_path: Path, rules: Any) -> None:
        with opened(tmp_path, fresh()) as learner, pytest.raises(InvalidInputError, match="rules is "):
            learner.stop_loss(rules, SAFE)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"by": "clock"}, "by cannot be"),
            ({"back": 2.0}, "above most"),
            ({"by": "predicted"}, "horizon is 0"),
            ({"horizon": 9}, "horizon is 9, but nothing is predicted"),
            ({"window": 0}, "window is 0"),
            ({"most": np.nan}, "most is nan"),
        ],
    )
    def test_invalid_rules_are_refused(self, change: dict[str, object], words: str) -> None:
        with pytest.raises(InvalidInputError, match=words):
            StopLoss(**({"most": 1.0} | change))  # type: ignore[arg-type]

    def test_rules_with_too_large_numbers_are_refused(self, tmp_path: Path) -> None:
        """With a unit of 1e-9, 1e300 units overflow in the units of the learner."""
        with opened(tmp_path, fresh()) as learner:
            learner._units = replace(learner._units, scales=(1e-9, 1.0))
            with pytest.raises(InvalidInputError, match=r"back of constraint 0 is -1e\+300; the limit is 1e\+291"):
                learner.stop_loss({"constraint 0": StopLoss(most=1.0, back=-1e300)}, SAFE)
            learner.stop_loss({"constraint 0": StopLoss(most=1.0, back=-1e290)}, SAFE)
            learner.snapshot()
        with opened(tmp_path) as learner:
            with pytest.raises(InvalidInputError, match="safe_policy is missing"):
                learner.stop_loss({"constraint 0": StopLoss(most=1.0)})
            learner.stop_loss({})
            assert not learner.status.guard.has_rules

    def test_rules_accept_numpy_numbers(self, tmp_path: Path) -> None:
        numbers: dict[str, Any] = {
            "most": np.float32(0.5),
            "back": np.int64(0),
            "horizon": np.int64(9),
            "window": np.int32(3),
        }
        rule = StopLoss(by="predicted", **numbers)
        with opened(tmp_path, fresh()) as learner:
            learner.stop_loss({learner.status.spending[0].name: rule}, SAFE)
        assert [type(value) for value in (rule.most, rule.back, rule.horizon, rule.window)] == [float, float, int, int]

    def test_rules_of_unknown_budgets_are_refused(self, tmp_path: Path) -> None:
        with opened(tmp_path, fresh()) as learner, pytest.raises(InvalidInputError, match="no budget 'delay'"):
            learner.stop_loss({"delay": StopLoss(most=1.0)}, SAFE)


class TestChallengers:
    def test_champion_and_challenger_learn_from_the_same_episodes(self, tmp_path: Path) -> None:
        champion, challenger = fresh(), fresh("ucpd-bandit")
        with opened(tmp_path, fresh(), snapshot_every=4) as learner:
            for t in range(12):
                if t == 2:
                    learner.challenge("bandit", fresh("ucpd-bandit"))
                if t == 7:
                    learner.promote("bandit")
                playing = champion if t < 7 else challenger
                episode = learner.ask()
                assert np.array_equal(episode.policy.probabilities, playing.policy.probabilities)
                parts = played(learner, episode)
                learner.tell(episode.id, **parts)
                observe(champion, None, episode_fields(parts))
                if t >= 2:
                    path = WORLD.space.path(parts["states"], parts["actions"])
                    met = {"loss": parts["loss"][path], "constraints": parts["constraints"][:, path]}
                    observe(challenger, episode.policy, episode_fields(parts | met))
        with opened(tmp_path, fresh()) as learner:
            assert learner.status.champion == "bandit"
            assert learner.fingerprint("ucpd-practical") == fingerprint(champion)
            assert learner.fingerprint("bandit") == learner.fingerprint() == fingerprint(challenger)
            first, second = learner.status.standings
            assert (first.weighed, second.weighed) == (12, 10)

    def test_the_feedback_stays_when_the_first_learner_is_dismissed(self, tmp_path: Path) -> None:
        with opened(tmp_path, fresh(), snapshot_every=1) as learner:
            learner.challenge("bandit", fresh("ucpd-bandit"))
            one_more(learner)
            with pytest.raises(InvalidInputError, match="promote another"):
                learner.dismiss("ucpd-practical")
            learner.promote("bandit")
            learner.dismiss("ucpd-practical")
            one_more(learner)
        with opened(tmp_path) as learner:
            assert learner.feedback == "full"
            assert [one.name for one in learner.status.standings] == ["bandit"]
            one_more(learner)
            assert learner.status.told == 3

    def test_new_budgets_hold_for_all_learners_or_none(self, tmp_path: Path) -> None:
        with opened(tmp_path, fresh()) as learner:
            learner.challenge("dual", fresh("opt-primal-dual"))
            before = learner.fingerprint()
            with pytest.raises(InvalidInputError, match="was given its slack"):
                learner.set_budgets(WORLD.budgets / 2)
            assert learner.fingerprint() == before
            learner.dismiss("dual")
            learner.set_budgets(WORLD.budgets / 2)
            assert learner.status.spending[0].budget == WORLD.budgets[0] / 2

    @pytest.mark.parametrize("error", [ConvergenceError("too hard"), KeyError("too hard")])
    def test_a_failed_challenger_does_not_stop_the_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        """Whatever the challenger raises."""
        monkeypatch.setattr(FailsAtTheThird, "error", error)
        classes = (FailsAtTheThird,)
        twin, frozen = fresh(), fresh()
        with opened(tmp_path, fresh(), classes=classes, snapshot_every=4) as learner:
            learner.challenge("weak", FailsAtTheThird(WORLD.space, WORLD.budgets, episodes=1000))
            learner.challenge("third", fresh("ucpd-bandit"))
            for t in range(6):
                parts = played(learner, episode := learner.ask())
                assert learner.tell(episode.id, **parts) == "learned"
                observe(twin, None, episode_fields(parts))
                if t < 2:
                    observe(frozen, None, episode_fields(parts))
                first, weak, third = learner.status.standings
                assert bool(weak.failed) is (t >= 2)
                assert (first.weighed, weak.weighed, third.weighed) == (t + 1, min(t + 1, 2), t + 1)
            kinds = [kind for (kind,) in rows(learner, "SELECT kind FROM events WHERE seq > 4 ORDER BY seq")]
            assert kinds == ["tell", "failed", "tell", "tell", "tell"]
            with pytest.raises(InvalidInputError, match=f"weak has failed, it could not learn from episode 3: {error}"):
                learner.promote("weak")
            learner.watch(SAFE)
            learner.set_budgets(WORLD.budgets)
            assert learner.status.event == 2 + 6 + 1 + 1
        for _ in range(2):  # from the snapshot, and from the one before, with the journal
            with opened(tmp_path, classes=classes) as learner:
                assert learner.fingerprint() == fingerprint(twin.with_budgets(WORLD.budgets))
                weak = learner.status.standings[1]
                assert weak.failed == f"it could not learn from episode 3: {error}"
                assert np.array_equal(weak.policy.probabilities, frozen.policy.probabilities)
            max((tmp_path / "it").glob("snapshot-*-1.npz"), key=lambda path: path.name).write_bytes(b"")
        with opened(tmp_path, classes=classes) as learner:
            learner.dismiss("weak")
            assert [one.name for one in learner.status.standings] == ["ucpd-practical", "third"]

    def test_an_episode_that_the_champion_cannot_learn_is_refused(self, tmp_path: Path) -> None:
        champion = FailsAtTheThird(WORLD.space, WORLD.budgets, episodes=1000)
        with opened(tmp_path, champion, classes=(FailsAtTheThird,)) as learner:
            learner.challenge("other", fresh())
            one_more(learner), one_more(learner)
            before, parts = learner.fingerprint("other"), played(learner, episode := learner.ask())
            with pytest.raises(ConvergenceError, match="too hard"):
                learner.tell(episode.id, **parts)
            assert learner.fingerprint("other") == before
            assert (learner.status.told, learner.status.open) == (2, 1)
            learner.promote("other")
            assert learner.tell(episode.id, **parts) == "learned"
            assert learner.status.standings[0].failed.endswith("too hard")

    def test_the_status_shows_only_what_is_on_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with opened(tmp_path, fresh()) as learner:
            learner.challenge("other", fresh("ucpd"))

            def full(*event: object) -> None:
                raise StorageError("the disk is full")

            with monkeypatch.context() as patch, pytest.raises(StorageError):
                patch.setattr(learner._store, "append", full)
                learner.promote("other")
            assert learner.settings["learner"] == learner.status.champion == "ucpd-practical"
            learner.promote("other")
            assert learner.settings["learner"] == "ucpd"

    def test_unfit_challengers_are_refused(self, tmp_path: Path) -> None:
        with opened(tmp_path, fresh("ucpd-bandit")) as learner:
            for name, other, words in (
                ("full", fresh(), "only paths are told"),
                ("own", fresh("shifted-bandit-uc-o-reps"), "its own policy only"),
                ("ucpd-bandit", fresh("ucpd-bandit"), "which another learner has"),
                ("", fresh("ucpd-bandit"), "expected at most 100 printable characters without /"),
                ("a/b", fresh("ucpd-bandit"), "expected at most 100 printable characters without /"),
                ("..", fresh("ucpd-bandit"), "expected at most 100 printable characters without /"),
                (101 * "n", fresh("ucpd-bandit"), "expected at most 100 printable characters without /"),
                ("fewer", UCPDPractical(WORLD.space, [0.1]), "other budgets"),
            ):
                with pytest.raises(InvalidInputError, match=words):
                    learner.challenge(name, other)
            with pytest.raises(InvalidInputError, match="no learner here called"):
                learner.promote("nobody")
            assert number_of(one_more(learner)) == 1

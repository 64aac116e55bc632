"""A durable learner has the bits of a plain learner that observed the same episodes in the same order."""

import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import tightrope as tr
from tests.durable.stories import WORLD, fresh, number_of, one_more, opened, played, rows, story
from tightrope import (
    BanditEpisode,
    ConvergenceError,
    DurableLearner,
    Episode,
    InfeasibleError,
    InvalidInputError,
    LayeredSpace,
    Policy,
    UCPDPractical,
)
from tightrope.durable import StopLoss
from tightrope.errors import ConflictError, StorageError, TooManyOpenError, UnknownEpisodeError
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.learners.base import Seen
from tightrope.learners.ucpd_practical import PracticalState
from tightrope.learners.uob_reps import UOBREPS
from tightrope.ops.inspection import inspect
from tightrope.storage.checkpoints import fingerprint

#: Its generator goes on when it is read from a file; nothing is drawn from it again.
REDRAWN = ("fpop",)

#: Of the budgets of a problem.
NAMES = {"constraint_names": ("a", "b"), "constraint_scales": (1.0, 1.0)}


def observe(learner: LearnerBase, policy: Any, parts: dict[str, Any]) -> None:
    """Let a plain learner observe what `tell` is passed."""
    if learner.feedback == "full":
        learner.observe(Episode(**parts))
    else:
        losses = {"losses" if name == "loss" else name: part for name, part in parts.items()}
        learner.observe(BanditEpisode(**losses, policy=policy))


def episode_fields(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: parts[name] for name in ("states", "actions", "loss", "constraints")}


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in REDRAWN])
def test_a_durable_learner_has_the_bits_of_its_learner(tmp_path: Path, name: str) -> None:
    twin = fresh(name)
    with opened(tmp_path, fresh(name), snapshot_every=4) as learner:
        for _ in range(9):
            episode = learner.ask()
            parts = played(learner, episode)
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
        assert learner.fingerprint() == fingerprint(twin)
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == fingerprint(twin)
        assert np.array_equal(learner.policy.probabilities, twin.policy.probabilities)
        assert learner.status.told == 9


def test_a_perturbation_is_not_drawn_again_by_a_replay(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("fpop"), snapshot_every=2) as learner:
        for _ in range(5):
            one_more(learner)
        policy = learner.policy.probabilities
    with opened(tmp_path) as learner:
        assert np.array_equal(learner.policy.probabilities, policy)


@pytest.mark.parametrize("name", ["ucpd-practical", "ucpd", "ucpd-bandit", "uob-reps", "opt-primal-dual"])
def test_episodes_are_learned_in_the_order_of_tell(tmp_path: Path, name: str) -> None:
    twin, waiting = fresh(name), []
    with opened(tmp_path, fresh(name), snapshot_every=3) as learner:
        for k in range(12):
            waiting.append(learner.ask())
            if k >= 4:  # the newest but one
                episode = waiting.pop(-2)
                parts = played(learner, episode)
                learner.tell(episode.id, **parts)
                observe(twin, episode.policy, episode_fields(parts))
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == fingerprint(twin)
        found = learner.open_episodes()
        assert list(found) == [episode.id for episode in waiting]
        for episode in waiting:
            assert np.array_equal(found[episode.id].policy.probabilities, episode.policy.probabilities)


def test_importance_weights_use_the_policy_given_at_ask(tmp_path: Path) -> None:
    """Without the policy of the late episode, a learner ends with another policy."""
    with opened(tmp_path, fresh("uob-reps")) as learner:
        late = learner.ask()
        for _ in range(5):
            one_more(learner)
        twin = tr.load(_saved(learner, tmp_path))
        parts = played(learner, late)
        learner.tell(late.id, **parts)
        observe(twin, None, episode_fields(parts))
        assert not np.array_equal(learner.policy.probabilities, twin.policy.probabilities)


def _saved(learner: DurableLearner, folder: Path) -> Path:
    path = folder / "saved.npz"
    path.write_bytes(learner.fingerprint())
    return path


def test_a_learner_of_its_own_policy_refuses_late_episodes(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("shifted-bandit-uc-o-reps")) as learner:
        late = learner.ask()
        one_more(learner)
        before = learner.fingerprint()
        with pytest.raises(ConflictError, match="give the episode up"):
            learner.tell(late.id, **played(learner, late))
        assert learner.fingerprint() == before
        assert learner.give_up(late.id) == "given up"


def test_the_same_outcome_counts_once_and_another_is_a_conflict(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=2) as learner:
        episode = learner.ask()
        parts = played(learner, episode)
        learner.tell(episode.id, **parts)
        for _ in range(6):  # its row is pruned
            one_more(learner)
        before, other = learner.fingerprint(), parts | {"loss": parts["loss"] / 2}
        assert learner.tell(episode.id, **parts) == "already"
        assert (
            learner.tell(episode.id, **{name: np.asarray(part).tolist() for name, part in parts.items()}) == "already"
        )
        with pytest.raises(ConflictError, match="told with another outcome"):
            learner.tell(episode.id, **other)
        with pytest.raises(ConflictError, match="was told before"):
            learner.give_up(episode.id)
        assert (learner.fingerprint(), learner.status.told) == (before, 7)


def test_an_episode_that_was_given_up_cannot_be_told(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        episode = learner.ask()
        assert learner.give_up(episode.id) == "given up"
        assert learner.give_up(episode.id) == "already"
        with pytest.raises(ConflictError, match="given up"):
            learner.tell(episode.id, **played(learner, episode))
        status = learner.status
        assert (status.asked, status.open, status.told, status.given_up) == (1, 0, 0, 1)


def test_ids_are_unique_across_directories(tmp_path: Path) -> None:
    ids = []
    for _ in range(3):
        with opened(tmp_path, fresh()) as learner:
            ids += [learner.ask().id, learner.ask().id]
    assert len(set(ids)) == 6
    with DurableLearner(tmp_path / "other", fresh()) as other:
        mine = other.ask()
        for stranger in (ids[0], "1", "1-", "x", f"{2**70}-abc", "٣-abc", mine.id + "0", "0" + mine.id):
            with pytest.raises(UnknownEpisodeError, match="no episode"):
                other.give_up(stranger)
        with pytest.raises(InvalidInputError, match="id is 1"):
            other.give_up(1)  # type: ignore[arg-type]


def test_forgotten_episodes_are_unknown(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=1, remember=2) as learner:
        still_open = learner.ask()
        old, *_, new = (one_more(learner) for _ in range(5))
        assert learner.tell(new.id, **played(learner, new)) == "already"
        with pytest.raises(UnknownEpisodeError, match="more than 2 episodes ago"):
            learner.tell(old.id, **played(learner, old))
        assert learner.tell(still_open.id, **played(learner, still_open)) == "learned"


def test_the_number_of_open_episodes_is_limited(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), most_open=2) as learner:
        first = learner.ask()
        learner.ask()
        with pytest.raises(TooManyOpenError, match="2 episodes are open"):
            learner.ask()
        learner.give_up(first.id)
        learner.ask()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": np.full(WORLD.space.n_tuples, 2.0)}, "losses lie in"),
        ({"loss": np.full(WORLD.space.n_tuples, np.nan)}, "loss is nan"),
        ({"constraints": np.zeros((1, WORLD.space.n_tuples))}, "constraints has shape"),
        ({"states": [0, 0, 0, 0]}, "episode 1"),
        ({"actions": "abc"}, "actions"),
    ],
)
def test_an_invalid_outcome_is_refused_and_the_episode_stays_open(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    with opened(tmp_path, fresh()) as learner:
        episode = learner.ask()
        parts = played(learner, episode)
        with pytest.raises(InvalidInputError, match=words):
            learner.tell(episode.id, **(parts | change))
        assert learner.tell(episode.id, **parts) == "learned"


@pytest.mark.parametrize("name", ["loss", "constraints"])
def test_loss_and_constraints_are_both_checked_in_every_episode(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, fresh()) as learner:
        parts = story(learner.policy, "full", 1)
        assert learner.tell(learner.ask().id, **parts) == "learned"
        with pytest.raises(InvalidInputError, match=r"episode 2: .*Assumption 2"):
            learner.tell(learner.ask().id, **(parts | {name: 1 + np.abs(parts[name])}))


class Boastful(UCPDPractical):
    """Its policy has values that are no probabilities."""

    name = "boastful"

    @property  # type: ignore[misc]
    def policy(self) -> Policy:
        return Policy.unchecked(self.space, np.full(self.space.n_pairs, 5.0))

    @policy.setter
    def policy(self, policy: Policy) -> None:
        pass


def test_an_outcome_equal_to_a_policy_is_checked_too(tmp_path: Path) -> None:
    """The policy has the same bytes as the loss: there are as many pairs as tuples."""
    space = LayeredSpace.from_tuples((1, 1, 1), 2, [(0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 1, 2)])
    with DurableLearner(tmp_path / "it", Boastful(space, [1.0], episodes=9), classes=(Boastful,)) as learner:
        told = np.full(space.n_tuples, 5.0)
        with pytest.raises(InvalidInputError, match="losses lie in"):
            learner.tell(learner.ask().id, [0, 1, 2], [0, 0], told, [told])


class Fragile(UCPDPractical):
    """Fails at its third episode after changing its solver."""

    name = "fragile"
    error: ClassVar[Exception] = ConvergenceError("no step")

    def step(self, state: PracticalState, seen: Seen) -> PracticalState:
        if state.observed == 2 and seen.loss[0] > 0:
            self._step._priced.from_(state.solver).plain.potentials += 1
            raise self.error
        return super().step(state, seen)


@pytest.mark.parametrize("error", [ConvergenceError("no step"), InfeasibleError("no step")])
def test_an_episode_that_cannot_be_learned_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Fragile, "error", error)
    twin, space = Fragile(WORLD.space, WORLD.budgets), WORLD.space
    with opened(tmp_path, Fragile(WORLD.space, WORLD.budgets), classes=(Fragile,)) as learner:
        for _ in range(2):
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
        episode = learner.ask()
        parts = played(learner, episode)
        bad = parts | {"loss": np.full(space.n_tuples, 0.5)}
        for _ in range(2):
            with pytest.raises(type(error)):
                learner.tell(episode.id, **bad)
        assert (learner.fingerprint(), learner.status.told) == (fingerprint(twin), 2)
        good = parts | {"loss": np.full(space.n_tuples, -0.5)}
        assert learner.tell(episode.id, **good) == "learned"


def test_another_learner_is_refused_with_the_parameter_that_differs(tmp_path: Path) -> None:
    opened(tmp_path, fresh()).close()
    for other, words in (
        (fresh("uniform"), "learner = 'ucpd-practical', the one given with 'uniform'"),
        (fresh(prudence=2.0), "prudence = 0.5, the one given with 2.0"),
        (UCPDPractical(WORLD.space, WORLD.budgets * 0.5), "other budgets"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            opened(tmp_path, other)
    opened(tmp_path, fresh()).close()


def test_a_directory_has_one_owner_and_no_other_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="contains no learner yet"):
        opened(tmp_path)
    with opened(tmp_path, fresh()), pytest.raises(InvalidInputError, match="one process at a time"):
        opened(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="no durable learner"):
        DurableLearner(tmp_path, fresh())
    with pytest.raises(InvalidInputError, match="expected a LearnerBase"):
        DurableLearner(tmp_path / "new", object())  # type: ignore[arg-type]


def test_a_closed_learner_refuses_calls(tmp_path: Path) -> None:
    learner = opened(tmp_path, fresh())
    learner.close()
    learner.close()
    with pytest.raises(InvalidInputError, match="is closed"):
        learner.ask()


class Careless(UCPDPractical):
    """Writes to the arrays of the episode."""

    name = "careless"

    def observe(self, episode: Episode) -> None:
        super().observe(episode)
        for array in (episode.loss, episode.constraints):
            array *= 0  # type: ignore[operator]


def test_a_learner_may_write_to_the_arrays_of_an_episode(tmp_path: Path) -> None:
    """Neither the caller's arrays nor the stored ones change."""
    careless = Careless(WORLD.space, WORLD.budgets, episodes=100)
    twin = Careless(WORLD.space, WORLD.budgets, episodes=100)
    with DurableLearner(tmp_path / "it", careless, classes=(Careless,)) as learner:
        for t in range(1, 4):
            parts = story(learner.policy, "full", t)
            told = {name: array.copy() for name, array in parts.items()}
            assert learner.tell(id := learner.ask().id, **told) == "learned"
            assert all(np.array_equal(told[name], array) for name, array in parts.items())
            assert learner.tell(id, **parts) == "already"
            observe(twin, None, episode_fields(parts))
    with DurableLearner(tmp_path / "it", classes=(Careless,)) as learner:
        assert learner.fingerprint() == fingerprint(twin)


class CarelessBandit(UOBREPS):
    """Writes to the policy of the episode."""

    name = "careless-bandit"

    def observe(self, episode: BanditEpisode) -> None:
        super().observe(episode)
        assert episode.policy is not None
        episode.policy.probabilities[:] = 0


def test_a_learner_may_write_to_the_policy_of_an_episode(tmp_path: Path) -> None:
    careless = CarelessBandit(WORLD.space, WORLD.budgets, episodes=100)
    twin = UOBREPS(WORLD.space, WORLD.budgets, episodes=100)
    with DurableLearner(tmp_path / "it", careless, classes=(CarelessBandit,)) as learner:
        for episode in [learner.ask() for _ in range(3)]:
            parts = story(episode.policy, "bandit", number_of(episode))
            learner.tell(episode.id, **parts)
            observe(twin, episode.policy, episode_fields(parts))
        assert np.array_equal(learner.policy.probabilities, twin.policy.probabilities)
        standing = learner.status.standings
    with DurableLearner(tmp_path / "it", classes=(CarelessBandit,)) as learner:
        assert np.array_equal(learner.policy.probabilities, twin.policy.probabilities)
        assert learner.status.standings[0].would_have_spent == standing[0].would_have_spent


def test_equal_arrays_are_stored_once(tmp_path: Path) -> None:
    """Losses and constraints are stored by digest; pruned ones are stored again when they are told again."""
    twin, one = fresh().with_budgets(WORLD.budgets), story(fresh().policy, "full", 1)
    with opened(tmp_path, fresh(), snapshot_every=10_000) as learner:
        for parts in (one, one | {"loss": -one["loss"]}, one, one):
            learner.tell(learner.ask().id, **parts)
            observe(twin, None, episode_fields(parts))
            if learner.status.event == 2:
                learner.snapshot()
                learner.set_budgets(WORLD.budgets)
                learner.snapshot()  # prunes the first two events, and both losses
        assert rows(
            learner, "SELECT count(DISTINCT loss), count(DISTINCT constraints), max(length(body)) FROM events"
        ) == [(1, 1, 8 * WORLD.space.n_layers)]
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == fingerprint(twin)


@pytest.mark.parametrize(
    ("format", "words"),
    [
        (1, "journal format 1, which no release wrote; tightrope .* reads 6 to 7"),
        (99, "journal format 99, which a later version wrote; .* reads formats 6 to 7: upgrade tightrope"),
    ],
)
def test_a_directory_of_an_unknown_format_is_refused(tmp_path: Path, format: int, words: str) -> None:
    """Nothing is added to its tables."""
    (tmp_path / "it").mkdir()
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)")
        sql.executemany("INSERT INTO facts VALUES (?, ?)", [("format", str(format)), ("tightrope", '"0.1"')])
    before = (tmp_path / "it" / "journal.sqlite").read_bytes()
    for look in (lambda: opened(tmp_path), lambda: inspect(tmp_path / "it")):
        with pytest.raises(InvalidInputError, match=words):
            look()
    assert (tmp_path / "it" / "journal.sqlite").read_bytes() == before


def test_new_parent_directories_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("tightrope.ops.sqlite.sync_folder", synced.append)
    DurableLearner(tmp_path / "a" / "b" / "it", fresh()).close()
    assert set(synced) == {tmp_path, tmp_path / "a", tmp_path / "a" / "b"}


def test_progress_reports_replayed_events_and_may_end_the_opening(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=4) as learner:
        for _ in range(7):
            one_more(learner)
    heard: list[int] = []
    with opened(tmp_path, progress=heard.append) as learner:
        assert learner.status.told == 7
    assert heard == [0, 1, 2]  # since the snapshot after 4
    with pytest.raises(ZeroDivisionError):
        opened(tmp_path, progress=lambda learnt: 1 // (1 - learnt))
    with pytest.raises(InvalidInputError, match="progress is 3"):
        opened(tmp_path, progress=3)
    with opened(tmp_path) as learner:
        assert learner.status.told == 7


def test_the_journal_is_pruned_after_snapshots(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=5) as learner:
        waiting = learner.ask()
        for _ in range(23):
            one_more(learner)
        events = [seq for (seq,) in rows(learner, "SELECT seq FROM events ORDER BY seq")]
        assert events == list(range(16, 24))  # since the older of two snapshots, 15 and 20
        assert sorted(path.name for path in learner.directory.glob("snap*")) == ["snapshot-15.npz", "snapshot-20.npz"]
        [[arrays]] = rows(learner, "SELECT count(*) FROM arrays")
        assert arrays <= 9 + 2 * 8  # policies of 8 events and the open episode, losses and constraints of the events
    with opened(tmp_path) as learner:
        assert learner.tell(waiting.id, **played(learner, waiting)) == "learned"


def test_the_policy_of_an_episode_is_a_copy(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        episode = learner.ask()
        before = learner.policy.probabilities.copy()
        episode.policy.probabilities[:] = 0
        assert np.array_equal(learner.policy.probabilities, before)


def test_arrays_of_the_status_are_copies_or_read_only(tmp_path: Path) -> None:
    twin = fresh()
    with opened(tmp_path, fresh()) as learner:
        learner.stop_loss({"constraint 0": StopLoss(most=100.0)}, Policy.uniform(WORLD.space))
        for _ in range(3):
            status = learner.status
            for shown in (learner.policy, status.policy, status.standings[0].policy):
                shown.probabilities[:] = 0.0
            status.budgets[:] = 0.0
            status.multipliers[:] = 9.0
            for kept in (status.account.spent, status.account.allowed, status.guard.safe):
                with suppress(ValueError):  # read only
                    kept[:] = 0.0
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
        seen = learner.status.spending
        assert learner.status.guard.safe.any()
        assert learner.fingerprint() == fingerprint(twin)
    with opened(tmp_path) as learner:
        assert learner.status.spending == seen


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"learner": 0}, "learner is 0; expected a LearnerBase"),
        ({"learner": []}, "learner is "),
        ({"learner": np.zeros(2)}, "learner is "),
        ({"classes": None}, "classes is None"),
        ({"classes": int}, "classes is "),
        ({"classes": [5]}, "classes is 5; expected a type"),
        ({"problem": SimpleNamespace(**NAMES, state_names=None)}, "problem.state_names is None"),
        ({"problem": SimpleNamespace(**NAMES, action_names=[1, 2])}, "problem.action_names"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        DurableLearner(tmp_path / "it", **({"learner": fresh()} | given))


def test_stories_are_deterministic() -> None:
    """The same number and policy give the same episode."""
    policy = fresh().policy
    one, other = (story(policy, "full", 3) for _ in range(2))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_journal_that_lost_its_end_is_detected(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        for _ in range(3):
            assert number_of(one_more(learner)) == learner.status.asked
        learner._store.database._sql.execute("DELETE FROM events WHERE seq = 3")  # type: ignore[attr-defined]
    with pytest.raises(StorageError, match="ends at event 2, but event 3 was acknowledged"):
        opened(tmp_path)


def test_new_budgets_hold_from_the_next_episode_on(tmp_path: Path) -> None:
    twin = fresh()
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        allowed = np.zeros(2)
        for t in range(10):
            if t == 4:
                learner.set_budgets(WORLD.budgets / 2)
                twin = twin.with_budgets(WORLD.budgets / 2)
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
            allowed += twin.budgets
    with opened(tmp_path, fresh()) as learner:
        assert learner.fingerprint() == fingerprint(twin)
        assert [one.allowed for one in learner.status.spending] == pytest.approx(allowed)
        assert [one.budget for one in learner.status.spending] == pytest.approx(WORLD.budgets / 2)
        with pytest.raises(InvalidInputError, match="there are 1 budgets"):
            learner.set_budgets([0.1])
        one_more(learner)


def test_spending_is_the_sum_along_the_paths_in_the_units_of_the_problem(tmp_path: Path) -> None:
    class Named:
        name = "here"
        constraint_names = ("delay", "energy")
        constraint_scales = (10.0, 0.5)
        constraint_units = ("hops", "")

    spent = np.zeros(2)
    with opened(tmp_path, fresh(), problem=Named()) as learner:
        for _ in range(4):
            parts = played(learner, episode := learner.ask())
            spent += parts["constraints"][:, WORLD.space.path(parts["states"], parts["actions"])].sum(axis=1)
            learner.tell(episode.id, **parts)
    with opened(tmp_path) as learner:
        delay, energy = learner.status.spending
        assert (delay.name, delay.unit, energy.unit) == ("delay", "hops", "")
        assert (delay.spent, energy.spent) == pytest.approx((10 * spent[0], 0.5 * spent[1]))
        assert delay.allowed == pytest.approx(10 * 4 * WORLD.budgets[0])
        assert delay.share == pytest.approx(spent[0] / (4 * WORLD.budgets[0]))
    with pytest.raises(InvalidInputError, match="the learner has 1"):
        Named.constraint_names = ("delay",)  # type: ignore[assignment]
        DurableLearner(tmp_path / "other", UCPDPractical(WORLD.space, [0.1]), problem=Named())

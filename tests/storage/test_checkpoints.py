"""What is saved comes back bit for bit, and nothing else comes in."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import FloatArray
from tightrope import (
    UCPD,
    BernsteinBox,
    Episode,
    InvalidInputError,
    L1Ball,
    LayeredMDP,
    LayeredSpace,
    PaperRadius,
    Policy,
    load,
    make_learner,
)
from tightrope.checks.worlds import WORLDS, World, drive
from tightrope.confidence import ConfidenceRule
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.learners.base import Offer, Seen
from tightrope.learners.ucpd_practical_0_2 import UCPDPractical02
from tightrope.storage import checkpoints
from tightrope.storage.checkpoints import DOCUMENT, Decoder, Encoder
from tightrope.storage.state import State, check_field, limits_of, numbers, part, state

SPACE = LayeredSpace.dense([1, 2, 2, 1], 2)


class Box:
    """A value with a state of its own."""

    def __init__(self, floats: FloatArray, warm: FloatArray) -> None:
        self.floats, self.warm = floats, warm

    def state(self) -> dict[str, FloatArray]:
        return {"floats": self.floats, "warm": self.warm}

    def restored(self, state: dict[str, FloatArray]) -> "Box":
        return Box(state["floats"], state["warm"])


@state
class EverythingState(State):
    """One field of each kind."""

    ints: NDArray[np.int64] = numbers()
    small: NDArray[np.int8] = numbers()
    flag: bool = numbers()
    word: str = part()
    number: float = numbers()
    draws: np.random.Generator = part()
    policy: Policy = part()
    box: Box = part()


class Everything(LearnerBase[EverythingState]):
    """It has one field of each kind, and draws a number in every episode."""

    name = "everything"
    reference = "none"

    model: LayeredMDP | None = None
    start: Policy | None = None
    rng: np.random.Generator = None  # type: ignore[assignment]
    scale: float = 1.0
    rule: Any = None

    def configure(self) -> None:
        """Nothing follows from the parameters."""

    def initial(self) -> EverythingState:
        return EverythingState(
            ints=np.zeros((2, 3), dtype=np.int64), small=np.zeros(2, dtype=np.int8), flag=False, word="", number=0.0,
            draws=self.rng or np.random.default_rng(1), policy=self.start or Policy.uniform(self.space),
            box=Box(np.zeros(3), np.zeros(2)),
        )  # fmt: skip

    def step(self, state: EverythingState, seen: Seen) -> EverythingState:
        draws = deepcopy(state.draws)
        return replace(state, observed=state.observed + 1, draws=draws, number=float(draws.random()))

    def offer(self, state: EverythingState) -> Offer:
        return Offer(state.policy, np.zeros(len(self.budgets)), epoch=1 + state.observed)


@dataclass(frozen=True, kw_only=True)
class OwnRule:
    """A confidence rule of a user's own."""

    widths: FloatArray

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        return L1Ball(LayeredMDP.from_occupancy(space, M.astype(float)).transitions, self.widths)


def saved(learner: LearnerBase, folder: Path) -> Path:
    path = folder / "learner"
    learner.save(path)
    return path


def test_one_of_each_kind_comes_back_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    model = LayeredMDP(SPACE, 1 / SPACE.expand_to_tuples(SPACE.successors_per_pair))
    policy = Policy(SPACE, np.tile([0.1, 0.9], SPACE.n_pairs // 2))
    made = Everything(SPACE, [0.3], episodes=7, model=model, start=policy, rng=rng, scale=np.inf)
    made.state = replace(
        made.state,
        box=Box(np.array([0.1, -0.0, np.nan]), np.array([np.pi, 5e-324])),
        ints=np.array([[1, -2, 3], [2**62, 5, 6]]), small=np.array([-128, 127], dtype=np.int8),
        flag=True, word="é", number=-5e-324, observed=41,
        policy=Policy(SPACE, np.tile([0.25, 0.75], SPACE.n_pairs // 2)),
    )  # fmt: skip
    rng.random(5)
    again = load(saved(made, tmp_path), Everything)
    assert isinstance(again, Everything)
    ours, theirs = made.state, again.state
    assert (theirs.observed, theirs.flag, theirs.word, theirs.number) == (41, True, "é", -5e-324)
    assert (again.observed, again.epoch) == (41, 42)
    assert theirs.box.floats.tobytes() == ours.box.floats.tobytes()
    assert theirs.box.warm.tobytes() == ours.box.warm.tobytes()
    assert theirs.ints.tobytes() == ours.ints.tobytes()
    assert theirs.small.tobytes() == ours.small.tobytes()
    assert again.policy.probabilities.tobytes() == made.policy.probabilities.tobytes()
    assert again.parameters["start"].probabilities.tobytes() == policy.probabilities.tobytes()
    assert again.model is not None
    assert again.model.transitions.tobytes() == model.transitions.tobytes()
    assert again.model.space is again.space
    assert again.space == SPACE
    assert again.scale == np.inf
    assert again.budgets.tobytes() == made.budgets.tobytes()
    assert theirs.draws.random() == rng.random()


def test_a_learner_that_draws_continues_with_the_same_numbers(tmp_path: Path) -> None:
    episode = Episode([0, 1, 3, 5], [0, 0, 0], np.zeros(SPACE.n_tuples), np.zeros((1, SPACE.n_tuples)))
    made = Everything(SPACE, [0.3], episodes=7)
    for _ in range(3):
        made.observe(episode)
    again = load(saved(made, tmp_path), Everything)
    assert isinstance(again, Everything)
    for _ in range(3):
        made.observe(episode)
        again.observe(episode)
        assert again.state.number == made.state.number
    assert made.state.number > 0


def test_a_number_of_a_state_is_finite(tmp_path: Path) -> None:
    made = Everything(SPACE, [0.3], episodes=7)
    made.state = replace(made.state, number=-np.inf)
    with pytest.raises(InvalidInputError, match="number is -inf; expected a finite number"):
        load(saved(made, tmp_path), Everything)


def test_the_same_state_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    at = next(iter(WORLDS.values()))()
    one, other = (make_learner("drift-plus-penalty", at, episodes=9) for _ in range(2))
    assert checkpoints.fingerprint(one) == checkpoints.fingerprint(other)
    drive(at, one, last=2)
    assert checkpoints.fingerprint(one) != checkpoints.fingerprint(other)
    drive(at, other, last=2)
    assert checkpoints.fingerprint(one) == checkpoints.fingerprint(other)
    assert saved(one, tmp_path).read_bytes() == checkpoints.fingerprint(one)
    assert checkpoints.fingerprint(load(tmp_path / "learner")) == checkpoints.fingerprint(one)


def test_numpy_opens_it_without_pickle(tmp_path: Path) -> None:
    made = Everything(SPACE, np.array([0.3, 0.4]), episodes=7)
    with np.load(saved(made, tmp_path), allow_pickle=False) as file:
        assert file["parameters/budgets"].tolist() == [0.3, 0.4]
        assert json.loads(file[DOCUMENT])["learner"] == "everything"


def test_budgets_that_change_afterwards_are_no_matter(tmp_path: Path) -> None:
    for budgets in (np.array([0.3]), [0.3]):
        made = Everything(SPACE, budgets, episodes=7)
        budgets[0] = 9
        assert load(saved(made, tmp_path), Everything).budgets.tolist() == [0.3]


def test_lists_within_lists_come_back(tmp_path: Path) -> None:
    given = [1, [2.5, None, np.inf], "three", np.arange(3)]
    again = load(saved(Everything(SPACE, [0.3], episodes=7, rule=given), tmp_path), Everything)
    assert isinstance(again, Everything)
    assert again.rule[:3] == given[:3]
    assert again.rule[3].tolist() == [0, 1, 2]


def test_a_confidence_rule_of_ones_own(tmp_path: Path) -> None:
    rule = OwnRule(widths=np.full(SPACE.n_pairs, 0.2))
    made = UCPD(SPACE, [0.3], episodes=7, confidence=rule)
    path = saved(made, tmp_path)
    with pytest.raises(InvalidInputError, match=r"'OwnRule'.*pass your own class to load"):
        load(path)
    again = load(path, OwnRule)
    assert isinstance(again, UCPD)
    assert isinstance(again.rule, OwnRule)
    assert again.rule.widths.tolist() == rule.widths.tolist()


@pytest.mark.parametrize(
    "rule", [PaperRadius(episodes=7, level=0.1), BernsteinBox(episodes=7, level=0.1, scale=0.5)], ids=str
)
def test_every_rule_of_ours_comes_back(rule: ConfidenceRule, tmp_path: Path) -> None:
    again = load(saved(UCPD(SPACE, [0.3], episodes=7, confidence=rule), tmp_path))
    assert isinstance(again, UCPD)
    assert again.rule == rule


@pytest.mark.parametrize(
    "given",
    [{"float": "1.5"}, {"array": "parameters/budgets"}, {"space": 0}, {"dict": {"dict": {}}}, {"dataclass": "x"}, {}],
    ids=str,
)
def test_a_dictionary_is_never_taken_for_something_else(given: Any, tmp_path: Path) -> None:
    again = load(saved(Everything(SPACE, [0.3], episodes=7, rule=given), tmp_path), Everything)
    assert isinstance(again, Everything)
    assert again.rule == given


def test_what_schema_2_wrote_is_read(at: World, tmp_path: Path) -> None:
    """State by dotted name, dictionaries without a tag, a dataclass beside its fields."""
    learner = UCPD(at.space, at.budgets, episodes=9, confidence=PaperRadius(episodes=9, level=0.1))
    drive(at, learner, last=5)
    path = saved(learner, tmp_path)

    def as_schema_2(document: dict[str, Any], arrays: dict[str, Any]) -> None:
        document["schema"] = 2
        del document["state"]["mean_constraints"], arrays["state/mean_constraints"]
        counts = document["state"].pop("counts")["state"]
        document["state"].update({f"counts.{name}": value for name, value in counts.items()})
        rule = document["parameters"]["confidence"]["dataclass"]
        document["parameters"]["confidence"] = {"dataclass": rule["name"], "fields": rule["fields"]}

    rewritten(path, as_schema_2)
    again = load(path)
    assert checkpoints.fingerprint(again) == checkpoints.fingerprint(learner)


def test_what_schema_3_wrote_of_ucpd_practical_is_read(at: World, tmp_path: Path) -> None:
    """It took a step in every episode, and had no block to carry; nor was it prudent. It is called -0.2 now."""
    learner = UCPDPractical02(at.space, at.budgets)
    drive(at, learner, last=5)
    path = saved(learner, tmp_path)

    def as_schema_3(document: dict[str, Any], arrays: dict[str, Any]) -> None:
        document |= {"schema": 3, "learner": "ucpd-practical"}
        for name in ("losses", "waiting", "steps", "last_use", "squares"):
            del document["state"][name]
        for name in ("losses", "last_use", "squares"):
            del arrays[f"state/{name}"]

    rewritten(path, as_schema_3)
    none = np.zeros(len(at.budgets))
    learner.state = replace(learner.state, last_use=none, squares=none)
    assert checkpoints.fingerprint(load(path)) == checkpoints.fingerprint(learner)


def test_counts_that_contradict_each_other_are_refused(at: World, tmp_path: Path) -> None:
    learner = make_learner("ucpd", at, episodes=9)
    drive(at, learner, last=5)
    for name, change in (("M", 1), ("m", -1), ("N", 1)):
        path = saved(learner, tmp_path)
        rewritten(path, lambda document, arrays: arrays[f"state/counts/{name}"].__iadd__(change))  # noqa: B023
        with pytest.raises(InvalidInputError, match=r"contradict|they are 0 or more"):
            load(path)


def elsewhere(document: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Counts of a step that begins where none ended."""
    M, N = arrays["state/counts/m"], arrays["state/counts/n"]
    M[-1] += 1
    N[-1] += 1


def test_counts_of_no_paths_are_refused(at: World, tmp_path: Path) -> None:
    learner = make_learner("ucpd", at, episodes=9)
    drive(at, learner, last=5)
    path = saved(learner, tmp_path)
    rewritten(path, elsewhere)
    with pytest.raises(InvalidInputError, match="of no paths"):
        load(path)
    for observed, words in (
        (6, "observed is 6, but its counts have 5 episodes"),
        (-1, "observed is -1; expected a finite number from 0"),
    ):
        path = saved(learner, tmp_path)
        rewritten(path, lambda document, arrays: document["state"].update(observed=observed))  # noqa: B023
        with pytest.raises(InvalidInputError, match=words):
            load(path)


def test_an_invalid_measure_is_refused(at: World, tmp_path: Path) -> None:
    learner = make_learner("ucpd", at, episodes=9)
    for value, words in (
        (np.nan, "theta is nan"),
        (np.inf, "theta is inf"),
        (-0.1, "is -0.1"),
        (0.9, "not an occupancy measure"),
    ):
        path = saved(learner, tmp_path)
        rewritten(path, lambda document, arrays: arrays["state/theta"].__setitem__(0, value))  # noqa: B023
        with pytest.raises(InvalidInputError, match=words):
            load(path)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_field_of_a_state_declares_limits_and_keeps_them(name: str, at: World) -> None:
    learner = make_learner(name, at, episodes=9)
    drive(at, learner, last=5)
    limits = limits_of(learner.state)
    assert limits.keys() == {field.name for field in fields(learner.state) if "limits" in field.metadata}
    for name_, limit in limits.items():
        value = getattr(learner.state, name_)
        if isinstance(value, np.ndarray | float | int):
            check_field(learner.space, name_, value, limit)
            assert (limit.least <= np.asarray(value)).all(), name_
            assert (np.asarray(value) <= limit.most).all(), name_


@pytest.mark.parametrize("name", LEARNERS)
def test_numbers_that_are_none_are_refused_wherever_they_are_carried(name: str, at: World, tmp_path: Path) -> None:
    learner = make_learner(name, at, episodes=9)
    drive(at, learner, last=5)
    data = saved(learner, tmp_path).read_bytes()
    path = tmp_path / "learner"
    with np.load(path) as file:
        floats = [name for name in file.files if name.startswith("state/") and file[name].dtype.kind == "f"]
        floats = [name for name in floats if file[name].size]
        damping = [file[name] for name in floats if name.endswith("factor_damping")]
    for entry in floats:
        for value in (np.nan, np.inf, -np.inf):
            if entry.endswith("factor_damping") and np.isnan(value):
                continue  # there is none
            path.write_bytes(data)
            rewritten(path, lambda document, arrays: arrays[entry].flat.__setitem__(-1, value))  # noqa: B023
            if entry.endswith("factor") and all(np.isnan(one).all() for one in damping):
                continue  # and so it is not looked at
            with pytest.raises(InvalidInputError, match=rf"{entry.rpartition('/')[2]}|probabilities"):
                load(path)


def test_a_learner_of_ones_own_must_be_given(tmp_path: Path) -> None:
    path = saved(Everything(SPACE, [0.3], episodes=7), tmp_path)
    with pytest.raises(InvalidInputError, match=r"'everything'.*pass your own class to load"):
        load(path)


@pytest.mark.parametrize(
    "thing",
    [
        lambda: 0,
        object(),
        {"a": {1}},
        1j,
        np.array(["a"]),
        np.array([object()]),
        np.random.Generator(np.random.MT19937(0)),
    ],
)
def test_what_cannot_be_saved_is_refused_and_the_old_file_stays(thing: Any, tmp_path: Path) -> None:
    path = saved(Everything(SPACE, [0.3], episodes=7), tmp_path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="parameters/rule"):
        Everything(SPACE, [0.3], episodes=7, rule=thing).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["learner"]


def test_equal_spaces_are_written_once() -> None:
    encoder = Encoder()
    twin = LayeredSpace.dense([1, 2, 2, 1], 2)
    other = LayeredSpace.dense([1, 2, 1], 2)
    spaces = {"a": SPACE, "b": twin, "c": other, "d": SPACE}
    encoded = encoder.encode_all(spaces, "x")
    assert list(encoder.arrays) == ["x/a/tuples", "x/c/tuples"]
    assert (encoded["b"], encoded["d"]) == ({"space": 0}, {"space": 0})
    decoder = Decoder(archive_of({}, encoder.arrays), {})
    assert decoder.decode_all(encoded) == spaces


def archive_of(
    document: Any, arrays: dict[str, NDArray[Any]], compression: int = zipfile.ZIP_STORED
) -> zipfile.ZipFile:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr(DOCUMENT, json.dumps(document))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=True)
    return zipfile.ZipFile(buffer)


Parts = tuple[dict[str, Any], dict[str, Any]]


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None], compression: int = 0) -> None:
    """Take the file apart into JSON and arrays, change them, and put it together again."""
    with np.load(path, allow_pickle=False) as file:
        document = json.loads(file[DOCUMENT])
        arrays = {name: file[name] for name in file.files if name != DOCUMENT}
    change(document, arrays)
    archive = archive_of(document, arrays, compression)
    assert archive.fp is not None
    archive.fp.seek(0)
    path.write_bytes(archive.fp.read())


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1.0


DAMAGE: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], Any], str]] = {
    "another schema": (lambda d, a: d.update(schema=99), "schema 99"),
    "schema 1, with counts of 64 bits": (
        lambda d, a: d.update(schema=1),
        "schema 1; .* reads schemas 2 to 5",
    ),
    "no schema": (lambda d, a: d.pop("schema"), "schema"),
    "no state": (lambda d, a: d.pop("state"), "state"),
    "state of another class": (lambda d, a: d["state"].pop("x"), "its state has"),
    "too much state": (lambda d, a: d["state"].update(more=1), "its state has"),
    "no parameters": (lambda d, a: d.pop("parameters"), "parameters"),
    "an unknown parameter": (lambda d, a: d["parameters"].update(colour="red"), "colour"),
    "a parameter out of range": (lambda d, a: d["parameters"].update(alpha=-1.0), "alpha is -1"),
    "state of the wrong type": (lambda d, a: d["state"].update(observed=1.5), "observed is 1.5"),
    "state that is text": (lambda d, a: d["state"].update(observed="1"), "observed is '1'"),
    "array where a number was": (lambda d, a: d["state"].update(observed={"array": "state/x"}), "observed"),
    "number where an array was": (lambda d, a: d["state"].update(x=3.0), "damaged"),
    "a missing array": (lambda d, a: a.pop("state/x"), "state/x"),
    "an array too long": (lambda d, a: a.update({"state/x": np.zeros(10**6)}), r"shape \(1000000,\); expected float64"),
    "an array of another dtype": (lambda d, a: a.update({"state/x": a["state/x"].astype(np.int64)}), "is int64"),
    "an array of the other byte order": (lambda d, a: a.update({"state/x": a["state/x"].astype(">f8")}), "is >f8"),
    "an array of another shape": (lambda d, a: a.update({"state/x": np.zeros((10, 1))}), r"\(10, 1\)"),
    "an array of objects": (lambda d, a: a.update({"state/x": np.array([{}] * 10)}), "object"),
    "a budget that is not finite": (lambda d, a: a.update({"parameters/budgets": np.array([np.nan, 0])}), "budget 0"),
    "another space": (lambda d, a: a.update({"parameters/space/tuples": np.zeros((5, 3), dtype=np.int32)}), "tuple"),
    "more states than moves": (
        lambda d, a: d["parameters"]["space"]["space"].update(layer_sizes=[1, 10**12, 1]),
        "1000000000002 states, and 22 tuples",
    ),
    "one array again and again": (
        lambda d, a: d["parameters"].update(budgets=[{"array": "parameters/budgets"}] * 2000),
        "parameters/budgets is referred to twice",
    ),
    "an entry that nothing refers to": (lambda d, a: a.update(more=np.zeros(3)), "'more.npy', to which nothing refers"),
    "a count beyond counting": (lambda d, a: d["state"].update(observed=10**400), "a count is at most"),
    "multipliers below zero": (lambda d, a: a["state/multipliers"].__setitem__(0, -1), "multipliers is -1 at index 0"),
    "multipliers without end": (
        lambda d, a: a["state/multipliers"].__setitem__(1, np.inf),
        "multipliers is inf at index 1",
    ),
    "nested without end": (lambda d, a: d["parameters"].update(alpha=nested(400)), "damaged"),
    "a state of the projector too short": (
        lambda d, a: a.update({"state/_projector/potentials": np.zeros(1)}),
        r"shape \(1,\)",
    ),
    "a model that is none": (lambda d, a: a["parameters/model"].__setitem__(0, 0.9), "sum"),
}


@pytest.fixture
def at() -> World:
    return WORLDS["a_dense_space_with_two_constraints"]()


@pytest.fixture
def path(at: World, tmp_path: Path) -> Path:
    learner = make_learner("drift-plus-penalty", at, episodes=9, alpha=5.0)
    drive(at, learner, last=2)
    return saved(learner, tmp_path)


def test_taken_apart_and_put_together_it_still_loads(path: Path) -> None:
    rewritten(path, lambda document, arrays: None)
    assert load(path).observed == 2


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_refused_in_words(kind: str, path: Path) -> None:
    change, words = DAMAGE[kind]
    rewritten(path, change)
    with pytest.raises(InvalidInputError, match=words) as refusal:
        load(path)
    assert str(path) in str(refusal.value)


def test_a_compressed_file_is_refused_before_anything_is_read(path: Path) -> None:
    rewritten(path, lambda document, arrays: arrays.update(bomb=np.zeros(10**7)), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**6
    with pytest.raises(InvalidInputError, match="compressed"):
        load(path)


def test_two_entries_of_one_name_or_in_one_place_are_refused(path: Path) -> None:
    data = path.read_bytes()
    for words in ("two entries of one name", "larger than the file"):
        path.write_bytes(data)
        with zipfile.ZipFile(path, "a") as archive:
            twin = copy(max(archive.infolist(), key=lambda member: member.file_size))
            for k in range(1 if words.startswith("two") else 1000):
                more = copy(twin)
                more.filename += "" if words.startswith("two") else str(k)
                archive.filelist.append(more)
            archive._didModify = True  # type: ignore[attr-defined]
        with pytest.raises(InvalidInputError, match=words):
            load(path)


def test_the_json_has_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "LARGEST_DOCUMENT", 100)
    with pytest.raises(InvalidInputError, match=r"its learner.json has more than"):
        load(path)


def test_a_generator_in_no_state_is_refused(at: World, tmp_path: Path) -> None:
    path = saved(make_learner("fpop", at, episodes=9), tmp_path)
    rewritten(path, lambda document, arrays: document["parameters"]["rng"]["generator"]["state"].update(inc=2))
    with pytest.raises(InvalidInputError, match="generator"):
        load(path)


@pytest.mark.parametrize("name", ["parameters/budgets", "state/x"])
def test_a_header_that_claims_more_than_there_is(name: str, path: Path) -> None:
    """A terabyte is not even asked for."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    header = io.BytesIO()
    shape = (10**12,)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    members[f"{name}.npy"] = header.getvalue() + bytes(96)
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    with pytest.raises(InvalidInputError, match="is not float64 of shape"):
        load(path)


def test_a_file_cut_short_or_turned_over_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for cut in range(0, len(data), 97):
        path.write_bytes(data[:cut])
        with pytest.raises(InvalidInputError):
            load(path)
    theta = data.index(b"state/x.npy") + 200
    path.write_bytes(data[:theta] + bytes([data[theta] ^ 1]) + data[theta + 1 :])
    with pytest.raises(InvalidInputError, match="damaged"):
        load(path)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("text", "other.npz", "nothing", ".", "pipe", "device"):
        with pytest.raises(InvalidInputError, match=str(tmp_path)):
            load(tmp_path / name)

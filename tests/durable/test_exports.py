"""An exported file gives back the directory, bit by bit; or the history of another learner."""

import json
from pathlib import Path
from typing import Any

import pytest

from fuzz.durable import sight_of
from fuzz.twin import SAFE, rules, somebody
from tests.durable.stories import fresh, one_more, opened, played, rows, story
from tests.durable.test_corrections import bits, command, ids, plain, tell_some
from tightrope import DurableLearner, InvalidInputError
from tightrope.durable import export_episodes, import_episodes
from tightrope.ops.inspection import inspect


def eventful(folder: Path, name: str, keep: int) -> tuple[dict[str, Any], Any]:
    """Make a directory with every kind of event; return what is to be seen of it."""
    with opened(folder, fresh(name), snapshot_every=6, keep_journal=1000) as learner:
        told = tell_some(learner, 12, "sensor 1")
        learner.challenge("other", fresh("ucpd-bandit"))
        learner.set_budgets(learner.status.budgets * 1.1)
        tell_some(learner, 9)
        other = learner.watch(somebody(2))
        learner.tell(other, **story(somebody(2), learner.feedback, 99))
        learner.stop_loss(rules(1), SAFE)
        amended = learner.amend(told[7][0].id, **story(told[7][0].policy, learner.feedback, 1000), author="alice")
        learner.retract(ids(told[8:10]), reason="fault")
        learner.undo(amended.event)
        tell_some(learner, 6)
        learner.promote("other")
        learner.amend(told[7][0].id, **story(told[7][0].policy, learner.feedback, 1001))
        learner.give_up(learner.ask().id)
        learner.ask(key="mine", author="bob")
    with opened(folder, snapshot_every=6, keep_journal=keep) as learner:
        tell_some(learner, 60 if keep < 100 else 3)  # deletes the events before the corrections, or nothing
        [[first]] = rows(learner, "SELECT min(seq) FROM events WHERE kind = 'tell'")
        assert first == 1 if keep == 1000 else first > learner.corrections()[-1].event
        return sight_of(learner), learner.corrections()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize(("name", "keep"), [("ucpd-practical", 1000), ("ucpd-bandit", 1000), ("ucpd-practical", 10)])
def test_a_round_trip_gives_the_same_bits(tmp_path: Path, suffix: str, name: str, keep: int) -> None:
    seen = eventful(tmp_path, name, keep)
    (tmp_path / "it" / "tables.npz").write_bytes(b"of a problem")
    file = tmp_path / f"episodes{suffix}"
    code, said = command("export", tmp_path / "it", file)
    assert (code, "outcomes" in said) == (0, True), said
    code, said = command("import", file, tmp_path / "new")
    assert (code, "1 open" in said) == (0, True), said
    assert not inspect(tmp_path / "new").damage
    assert (tmp_path / "new" / "tables.npz").read_bytes() == b"of a problem"
    with opened(tmp_path) as old, DurableLearner(tmp_path / "new", keep_journal=1000) as new:
        assert (sight_of(new), new.corrections()) == seen
        assert new._store.chain == old._store.chain
        assert new._store.episodes() == old._store.episodes()
        assert new.opened_at() == old.opened_at()
        waiting = old.ask(key="mine")
        assert new.ask(key="mine").id == waiting.id
        for learner in (old, new):
            learner.tell(waiting.id, **played(learner, waiting))
        assert bits(new) == bits(old)
        if keep == 1000:
            last = new.corrections()[-1].event
            assert new.undo(last).episodes == old.undo(last).episodes == ()
            assert bits(new) == bits(old)
    with opened(tmp_path) as old:
        one_more(old)
    export_episodes(tmp_path / "new", again := tmp_path / f"again{suffix}")
    assert import_episodes(again, tmp_path / "newer").told == new.status.told


def test_lines_contain_the_author_time_and_outcome(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), keep_journal=1000) as learner:
        told = tell_some(learner, 3, "sensor 1")
        learner.retract(ids(told[1:2]))
    assert export_episodes(tmp_path / "it", tmp_path / "it.jsonl") == 3
    header, *records = map(json.loads, (tmp_path / "it.jsonl").read_text().splitlines())
    assert header["facts"]["units"]["names"] == ["constraint 0", "constraint 1"]
    outcomes = [record for record in records if record["kind"] == "tell"]
    assert [record["episode"] for record in outcomes] == ids(told)
    assert [record.get("corrected") for record in outcomes] == [None, 0, None]
    assert {record["author"] for record in outcomes} == {"sensor 1"}
    for record, (episode, parts) in zip(outcomes, told, strict=True):
        assert record["policy"] == episode.policy.probabilities.tolist()
        assert {name: record[name] for name in parts} == {name: part.tolist() for name, part in parts.items()}


@pytest.mark.parametrize(("old", "new"), [("uniform", "ucpd"), ("ucpd", "ucpd-bandit"), ("ucpd-bandit", "uob-reps")])
def test_outcomes_are_the_history_of_a_new_learner(tmp_path: Path, old: str, new: str) -> None:
    with opened(tmp_path, fresh(old), keep_journal=1000) as learner:
        told = tell_some(learner, 30)
        learner.retract(ids(told[3:6]))
        other = story(told[9][0].policy, learner.feedback, 1000)
        learner.amend(told[9][0].id, **other)
        told[9] = told[9][0], other
        feedback = learner.feedback
    export_episodes(tmp_path / "it", tmp_path / "it.jsonl")
    status = import_episodes(tmp_path / "it.jsonl", tmp_path / "new", fresh(new))
    assert status.told == 27
    seen = told[:3] + told[6:]
    if feedback == "full" and fresh(new).feedback == "bandit":
        seen = [(episode, along_the_path(parts)) for episode, parts in seen]
    with DurableLearner(tmp_path / "new") as learner:
        assert bits(learner) == plain(new, seen)
        one_more(learner)
    with pytest.raises(InvalidInputError, match="exists and is not empty"):
        import_episodes(tmp_path / "it.jsonl", tmp_path / "new", fresh(new))


def along_the_path(parts: dict[str, Any]) -> dict[str, Any]:
    path = fresh().space.path(parts["states"], parts["actions"])
    return parts | {"loss": parts["loss"][path], "constraints": parts["constraints"][:, path]}


def test_a_foreign_or_changed_export_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("ucpd-bandit"), keep_journal=1000) as learner:
        tell_some(learner, 6)
    export_episodes(tmp_path / "it", file := tmp_path / "it.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    for changed, words in (
        ("".join(lines[:-1]), "was changed, or is not complete"),
        ("".join(lines).replace('"author":""', '"author":"x"'), "was changed|cannot|damaged|no export"),
        ("".join(lines)[:-40], "is not an export of tightrope, or is damaged"),
        ("[]\n", "is not an export of tightrope, or is damaged"),
        ("".join(lines).replace('"tightrope_export":1', '"tightrope_export":9'), "has version 9"),
    ):
        file.write_text(changed)
        if changed == "".join(lines):
            continue
        with pytest.raises(InvalidInputError, match=words):
            import_episodes(file, tmp_path / "new")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["it", "it.jsonl"]
    file.write_text("".join(lines))
    with pytest.raises(InvalidInputError, match="needs full feedback"):
        import_episodes(file, tmp_path / "new", fresh("ucpd"))
    with pytest.raises(InvalidInputError, match=r"write \.jsonl or \.parquet"):
        export_episodes(tmp_path / "it", tmp_path / "it.csv")
    with pytest.raises(InvalidInputError, match="contains no durable learner"):
        export_episodes(tmp_path / "nothing", file)

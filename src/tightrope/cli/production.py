"""What the commands on durable learners do, after parsing: create, inspect, back up, correct, export."""

import json
from collections.abc import Sequence
from datetime import datetime
from getpass import getuser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tightrope.arguments import printable, shown
from tightrope.cli import note, show
from tightrope.errors import InvalidInputError, TightropeError, in_words
from tightrope.lab.plan import folder_of
from tightrope.learners import make_learner
from tightrope.ops.api import Tell
from tightrope.ops.backups import backup, restore
from tightrope.ops.database import POSTGRES
from tightrope.ops.exports import export_episodes, import_episodes
from tightrope.ops.formats import FORMAT
from tightrope.ops.inputs import ProblemTables, Translator
from tightrope.ops.inspection import as_json, format_of, inspect, page, table, write_policy
from tightrope.ops.learner import DurableLearner
from tightrope.ops.rebuilding import Effect
from tightrope.problems import make
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem

#: Numbers of episodes that are printed.
MOST_SHOWN = 20


def inspect_directory(folder: Path, in_json: bool, policy: Path | None) -> bool:
    """Print the state of a durable learner, write its policy; return whether its directory is undamaged."""
    found = inspect(folder)
    show(json.dumps(as_json(found), indent=2, ensure_ascii=False) if in_json else "\n".join(page(found)))
    if policy is not None and found.status is not None:
        write_policy(found.status.policy, policy, found.facts.get("states", ()), found.facts.get("actions", ()))
        note(f"policy  {policy}")
    return not found.damage


def migrate_directory(folder: Path, dry_run: bool) -> None:
    """Migrate the directory of a durable learner to the present format; a dry run does so in memory."""
    found = inspect(folder)
    if found.damage:
        raise TightropeError(f"{folder} is damaged and was not migrated: {'; '.join(found.damage)}")
    before = format_of(folder)
    if before == FORMAT:
        show(f"{folder} has format {FORMAT} already")
        return
    if not dry_run:
        DurableLearner(folder).close()
    show(f"{folder} {'would be' if dry_run else 'was'} migrated from format {before} to {FORMAT}")
    copy = folder / f"before-format-{FORMAT}"
    note(f"a copy of format {before} {'would be' if dry_run else 'is'} kept in {copy}")


def backup_directory(folder: Path, file: Path) -> None:
    """Write a backup of a durable learner."""
    last = backup(folder, file)
    show(f"{file} holds {folder} up to event {last}, {file.stat().st_size / 1e6:.2f} MB")


def restore_directory(file: Path, folder: Path, to_event: int | None) -> None:
    """Restore a durable learner from a backup."""
    status = restore(file, folder, to_event).status
    if status is not None:
        show(f"{folder} is at event {status.event}: {status.told} episodes told, {status.open} open")


def served_place(address: str, name: str | None) -> Path | str:
    """Return where the learner of `tightrope serve` is: a directory, or the address of a database with a schema."""
    if not address.startswith(POSTGRES):
        return Path(address) / name if name else Path(address)
    return f"{address}{'&' if '?' in address else '?'}schema={quote(name)}" if name else address


def new_learner(place: Path | str, problem: str, learner: str, episodes: int | None, name: str | None) -> Any:
    """Make the learner that the options of `tightrope serve` describe, for its directory or database."""
    from tightrope.ops.server import NewLearner

    if name is not None and (not name or name in (".", "..") or "/" in name):
        raise InvalidInputError(f"--name {name!r} cannot be the name of a folder")
    folder = folder_of(problem, Path())
    found: Problem = make(problem) if folder is None else load_problem(folder)
    return NewLearner(place, found, make_learner(learner, found, episodes=episodes))


def retract_outcomes(
    place: str,
    episodes: Sequence[str] | None,
    since: str | None,
    until: str | None,
    told_by: str | None,
    undo: int | None,
    **recorded: Any,
) -> None:
    """Retract outcomes, or undo a correction, and print the effect."""
    recorded["author"] = _author(recorded["author"])
    conditions = {"episodes": episodes or None, "since": _time(since), "until": _time(until), "told_by": told_by}
    if undo is not None and any(value is not None for value in conditions.values()):
        raise InvalidInputError("--undo is given with episodes, --since, --until or --told-by; give one or the other")
    with DurableLearner(place) as durable:
        if undo is None:
            effect = durable.retract(**conditions, **recorded)  # type: ignore[arg-type]
            what = f"retracts {len(effect.episodes)} episodes: {_numbers(effect.episodes)}"
        else:
            effect, what = durable.undo(undo, **recorded), f"undoes the correction of event {undo}"
    _print(effect, what)


def amend_outcome(place: str, episode: str, file: Path, **recorded: Any) -> None:
    """Replace the outcome of an episode by the one in a file, and print the effect."""
    recorded["author"] = _author(recorded["author"])
    try:
        body = msgspec.json.decode(file.read_bytes(), type=Tell)
    except OSError as error:
        raise InvalidInputError(f"cannot read {in_words(error)}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{printable(file)} is not an outcome: {error}") from error
    with DurableLearner(place) as durable:
        outcome = Translator.of(durable).outcome(body)
        effect = durable.amend(episode, **outcome, **recorded)
    _print(effect, f"amends episode {episode}")


def _author(given: str | None) -> str:
    """Return the name that is recorded: the one given, or the login name if there is one."""
    if given is not None:
        return given
    try:
        return getuser()
    except (OSError, KeyError, ImportError):  # a container without users
        return ""


def _time(given: str | None) -> datetime | None:
    try:
        return None if given is None else datetime.fromisoformat(given)
    except ValueError as error:
        raise InvalidInputError(f"{shown(given)} is not a time; write it as 2026-11-18T09:00Z") from error


def _numbers(episodes: Sequence[int]) -> str:
    more = f" and {len(episodes) - MOST_SHOWN} more" if len(episodes) > MOST_SHOWN else ""
    return ", ".join(map(str, episodes[:MOST_SHOWN])) + more


def _print(effect: Effect, what: str) -> None:
    show(f"event {effect.event} {what}" if effect.event else f"a correction now {what}")
    if effect.left_out:
        show(f"left out, because the corrected learner cannot learn them: {_numbers(effect.left_out)}")
    before, after = effect.before, effect.after
    show(f"episodes  {before.told} told before, {after.told} after; {effect.replayed} events replayed")
    rows = [["budget", "unit", "spent before", "after", "price before", "after"]]
    for old, new in zip(before.spending, after.spending, strict=True):
        numbers = (old.spent, new.spent, old.price, new.price)
        rows.append([old.name, old.unit or "-", *(f"{x:.6g}" for x in numbers)])
    show("\n".join(table(rows) if before.spending else ["no budgets"]))
    if not effect.event:
        note("this was a dry run: nothing was changed")


def export_directory(folder: Path, file: Path) -> None:
    """Write the episodes of a directory to a file."""
    count = export_episodes(folder, file)
    show(f"{file} holds {count} outcomes of {folder}, {file.stat().st_size / 1e6:.2f} MB")


def import_directory(file: Path, folder: Path, problem: str | None, learner: str, episodes: int | None) -> None:
    """Make a directory from an exported file, with the learner of the file or a new one."""
    if problem is None:
        status = import_episodes(file, folder)
    else:
        new = new_learner(folder, problem, learner, episodes, None)
        status = import_episodes(file, folder, new.learner, new.problem)
        with DurableLearner(folder) as durable:
            ProblemTables.of(new.problem).write(durable.database)
    show(f"{folder} is at event {status.event}: {status.told} episodes told, {status.open} open")

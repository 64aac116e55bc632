"""The migration of a directory of an earlier release, killed again and again: it is the old one or the new one.

python -m fuzz.migrations --kills 200 --seed 0

A process opens a directory that a release wrote, which migrates it, and is killed (SIGKILL) at a random moment of that.
Then the journal must have all rows that the release wrote in the old format, or all of them in the new one; what
`inspect` finds must be as before; and the next opening must migrate it and learn on.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.releases.archives import top_folders, unpack
from tightrope.durable import DurableLearner
from tightrope.ops.formats import FORMAT
from tightrope.ops.inspection import as_json, inspect

RELEASES = Path(__file__).parents[1] / "tests" / "releases"


def rows_of(folder: Path) -> dict[str, list[Any]]:
    """Return the columns that every format has, of every row, and the format."""
    found = {}
    with closing(sqlite3.connect(folder / "journal.sqlite")) as sql:
        for table, columns in {
            "events": "seq, kind, episode, policy, loss, constraints, body, digest",
            "episodes": "number, token, policy, fate, contents, digest",
            "arrays": "digest, numbers",
            "snapshots": "seq, chain, contents, digest",
            "facts": "name, value",
            "sqlite_sequence": "name, seq",
        }.items():
            where = "WHERE name <> 'format'" if table == "facts" else ""
            found[table] = sql.execute(f"SELECT {columns} FROM {table} {where} ORDER BY 1").fetchall()
    return found


def format_of(folder: Path) -> int:
    """Return the format of a journal."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as sql:
        [[value]] = sql.execute("SELECT value FROM facts WHERE name = 'format'")
    return int(value)


def sight_of(folder: Path) -> dict[str, Any]:
    """Return what `tightrope inspect --json` finds, but for sizes and the path."""
    found = as_json(inspect(folder))
    return {name: value for name, value in found.items() if name not in ("growth", "directory")}


def check(folder: Path, rows: dict[str, list[Any]], sight: dict[str, Any], old: int) -> int:
    """Check a directory whose migration was cut off; return its format."""
    found = format_of(folder)
    assert found in (old, FORMAT), found
    assert rows_of(folder) == rows
    assert sight_of(folder) == sight
    if found == FORMAT:
        copy = folder / f"before-format-{FORMAT}"
        assert format_of(copy) == old and rows_of(copy) == rows and sight_of(copy) == sight
    return found


def disturb(archive: Path, name: str, kills: int, seed: int, where: Path | None) -> Counter[str]:
    """Kill so many migrations of a directory of an archive; return how often it was the old and the new one."""
    rng, counts = random.Random(seed), Counter[str]()
    with TemporaryDirectory(prefix="fuzz-", dir=where) as place:
        unpack(archive, Path(place))
        source, target = Path(place) / name / "directory", Path(place) / "it"
        sight, old = sight_of(source), format_of(source)
        rows = rows_of(source)
        shutil.copytree(source, target)
        began = time.monotonic()
        DurableLearner(target).close()
        longest = time.monotonic() - began
        for _ in range(kills):
            shutil.rmtree(target)
            shutil.copytree(source, target)
            if (pid := os.fork()) == 0:
                try:
                    DurableLearner(target).close()
                finally:
                    os._exit(0)
            time.sleep(rng.uniform(0, longest))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            if any(target.glob("before-format-*.partial")):
                counts["killed while it was copied"] += 1
            counts[f"format {check(target, rows, sight, old)}"] += 1
            with DurableLearner(target) as learner:
                learner.give_up(learner.ask().id)
            assert format_of(target) == FORMAT
            assert not json.loads(json.dumps(sight_of(target)))["damage"]
    return counts


def main() -> None:
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.migrations", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="other moments (default 0)")
    parser.add_argument("--kills", type=int, default=200, help="in all, the same for each directory (default 200)")
    parser.add_argument("--folder", type=Path, help="where directories are made (default in memory)")
    given = parser.parse_args()
    memory = Path("/dev/shm")
    where = given.folder or (memory if memory.is_dir() else None)
    cases = [(archive, name) for archive in sorted(RELEASES.glob("*/durable.tar.gz")) for name in top_folders(archive)]
    total = Counter[str]()
    for k, (archive, name) in enumerate(cases):
        total += disturb(archive, name, given.kills // len(cases), given.seed + k, where)
    print(f"seed {given.seed}: {given.kills // len(cases) * len(cases)} kills: {dict(sorted(total.items()))}")


if __name__ == "__main__":
    main()

"""Readers of checkpoints and problem folders, fuzzed by what they execute: inputs that reach new lines are kept.

python -m fuzz.guided checkpoints --seconds 300
python -m fuzz.guided folders --seconds 300

Needs the extra `fuzz` (atheris). Files of one thing are joined to one input; checksums are made right before it is
read. Whatever is not refused in words ends it, with the input in a file `crash-…`: --again FILE tries that once more.
"""

import argparse
import inspect
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import tightrope as tr
from fuzz.checkpoints import PLAYED, play_on, saved, taken_apart
from fuzz.folders import BASES
from tightrope.checks.worlds import WORLDS
from tightrope.errors import missing
from tightrope.learners import LEARNERS, load
from tightrope.problems.files import load_problem

#: What is watched: the readers. Kernels could not be compiled any more.
WATCHED = ("tightrope.storage", "tightrope.problems.files", "tightrope.learners.base", "tightrope.learners.registry")
#: Between the files of an input, and between a file's name and what is in it.
BETWEEN, NAMED = b"\0\xff\0", b"\0\xfe\0"
LONGEST = 200_000

Files = dict[str, bytes]


def joined(files: Files) -> bytes:
    return BETWEEN.join(name.encode() + NAMED + content for name, content in files.items())


def parted(data: bytes) -> Files:
    parts = (part.partition(NAMED) for part in data.split(BETWEEN))
    return {name.decode("utf-8", "replace"): content for name, _, content in parts}


def checkpoints() -> list[bytes]:
    """What to begin with: every learner, after a few episodes."""
    begin = []
    for learner in LEARNERS:
        document, entries = taken_apart(saved(learner, next(iter(WORLDS)), PLAYED[-1]))
        begin.append(joined({"learner.json": json.dumps(document).encode(), **entries}))
    return begin


def read_checkpoint(data: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parted(data).items():
            archive.writestr(zipfile.ZipInfo(name or "nameless"), content)
    try:
        learner = load(buffer.getvalue())
    except tr.InvalidInputError as error:
        str(error).encode()  # it can be shown
        return
    with suppress(tr.ConvergenceError):  # in which other parameters may end
        play_on(learner, WORLDS[next(iter(WORLDS))]())


def folders() -> list[bytes]:
    """What to begin with: every kind of folder."""
    return [joined({name: text.encode() for name, text in base.items()}) for base in BASES]


def read_folder(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        for name, content in parted(data).items():
            if name.isprintable() and name.strip(".") and "/" not in name and len(name.encode()) < 200:
                (Path(place) / name).write_bytes(content)
        try:
            load_problem(place)
        except tr.InvalidInputError as error:
            str(error).encode()


READERS: dict[str, tuple[Callable[[], list[bytes]], Callable[[bytes], None]]] = {
    "checkpoints": (checkpoints, read_checkpoint),
    "folders": (folders, read_folder),
}


def watch(instrument: Callable[[Any], Any]) -> None:
    """Have the fuzzer see which lines of the readers are executed."""
    for name, module in list(sys.modules.items()):
        if name.startswith(WATCHED):
            classes = [found for _, found in inspect.getmembers(module, inspect.isclass) if found.__module__ == name]
            for place in (module, *classes):
                for found in vars(place).values():
                    if isinstance(found, FunctionType) and found.__module__ == name:
                        instrument(found)


def main() -> None:
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description=str(__doc__).splitlines()[0])
    parser.add_argument("what", choices=READERS)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="a file of an input that ended it")
    given = parser.parse_args()
    begin, read = READERS[given.what]
    if given.again:
        read(given.again.read_bytes())
        return
    try:
        import atheris
    except ImportError:
        sys.exit(str(missing("atheris", "fuzz")))
    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(begin()):
            (Path(corpus) / str(number)).write_bytes(data)
            read(data)  # compiles what it needs
        watch(atheris.instrument_func)
        limits = [f"-max_total_time={given.seconds}", f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], f"-seed={given.seed}", *limits, corpus], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Formulas of learners, changed one at a time: which changes do the tests notice?

python -m fuzz.mutations --count 100 --seed 0 --jobs 2

`fuzz.changes` says what a change is. A sample of all of them, the same for the same seed and sources, is put one at a
time into a copy of the tree, in which the tests of learners (TESTS) run until one fails: first the files that mention
the changed module, then those that mention a learner that imports it, then what is asked of all learners. What came of
each is a file in --results, written once: run again, it goes on where it stopped; --again tries survivors once more.
In the end the tests that failed run without any change, and have to pass.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fuzz.changes import Change, changes_of

ROOT = Path(__file__).resolve().parents[1]
LEARNERS = "src/tightrope/learners"
TESTS = ("tests/learners/test_*.py", "tests/test_anytime.py", "tests/test_ties.py", "tests/test_units.py")

#: What reads, lists and checks, and has no formulas.
NOT_CHANGED = {"__init__", "base", "episodes", "parameters", "registry"}

#: Seconds that the tests of a change may take; whole and on a busy machine they took 90.
PATIENCE = 900

#: Exit codes of pytest: nothing failed, or there was nothing to run; something failed, or could not even be imported.
PASSED, NOTICED = (0, 5), (1, 2)


class Outcome(NamedTuple):
    """Of one change: "caught", "survived" or "endless", by whom, and after how many seconds."""

    word: str
    by: str
    seconds: float


def modules(tree: Path) -> list[str]:
    """The files whose formulas are changed."""
    files = sorted((tree / LEARNERS).rglob("*.py"))
    return [file.relative_to(tree).as_posix() for file in files if file.stem not in NOT_CHANGED]


def sample(tree: Path, count: int, seed: int) -> list[Change]:
    """So many of all changes, drawn by lot: each has its own, so that most stay the same when learners are added."""
    every = [change for path in modules(tree) for change in changes_of(path, (tree / path).read_text("utf-8"))]
    return sorted(every, key=lambda change: change.digest(seed))[:count]


def importers(tree: Path, path: str) -> list[str]:
    """The module and all that import it, directly or not, the nearest first; not who only lists them."""
    texts = {file: (tree / file).read_text("utf-8") for file in modules(tree)}
    found = [path]
    for module in found:
        name = module.removeprefix("src/").removesuffix(".py").replace("/", ".")
        found += [file for file, text in texts.items() if f"from {name} import" in text and file not in found]
    return found


def calls_for(tree: Path, path: str) -> list[list[str]]:
    """What pytest is called with, in turn: the tests that mention the module, then those that mention who imports it;
    and of the tests of all learners those of the ones that may be changed by it."""
    files = [file for pattern in TESTS for file in sorted(tree.glob(pattern))]
    texts = {file.relative_to(tree).as_posix(): file.read_text("utf-8") for file in files}
    mention, names = list[str](), list[str]()
    for module in importers(tree, path):
        named = re.findall(r'^    name = "([^"]+)"', (tree / module).read_text("utf-8"), re.M)
        words = [f"{Path(module).stem} import", *(f'"{name}"' for name in named)]
        mention += [file for file, text in texts.items() if any(word in text for word in words)]
        names += named
    of_all = [file for file, text in texts.items() if re.search(r"\bLEARNERS\b", text)]
    return [[*dict.fromkeys(mention)], [*of_all, *(["-k", " or ".join(names)] if names else [])]]


def copied(source: Path, to: Path) -> Path:
    """The tree with its compiled core."""
    for folder in ("src", "tests", "fuzz"):
        shutil.copytree(source / folder, to / folder)
    shutil.copy2(source / "pyproject.toml", to)
    return to


def run_tests(tree: Path, tests: list[str], patience: float) -> Outcome:
    """Run the tests until one fails."""
    environment = os.environ | {
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}",
        "PYTHONDONTWRITEBYTECODE": "1",  # a changed line may be as long, and as old to the second, as the one before
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", *tests]
    began = time.monotonic()
    try:
        ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return Outcome("endless", "", time.monotonic() - began)
    seconds = time.monotonic() - began
    if ended.returncode in PASSED:
        return Outcome("survived", "", seconds)
    if ended.returncode not in NOTICED and ended.returncode > 0:
        raise RuntimeError(f"pytest could not run: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", ended.stdout, re.M)
    return Outcome("caught", failed[1] if failed else f"exit code {ended.returncode}", seconds)


def first_to_notice(tree: Path, calls: list[list[str]], patience: float) -> Outcome:
    """What the first call with a failure says; that all survived, with the seconds of all, if there is none."""
    seconds = 0.0
    for tests in filter(None, calls):
        outcome = run_tests(tree, tests, patience)
        seconds += outcome.seconds
        if outcome.word != "survived":
            break
    return outcome._replace(seconds=seconds)


def try_out(tree: Path, change: Change, patience: float) -> Outcome:
    """The tests with this change in the tree, which is left as it was."""
    file = tree / change.path
    original = file.read_bytes()
    try:
        file.write_text(change.applied_to(original.decode()), "utf-8")
        return first_to_notice(tree, calls_for(tree, change.path), patience)
    finally:
        file.write_bytes(original)


def result_file(results: Path, change: Change) -> Path:
    return results / f"{Path(change.path).stem}-{change.digest()[:16]}.json"


def keep(file: Path, change: Change, outcome: Outcome) -> None:
    """Write it whole or not at all."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(change._asdict() | outcome._asdict(), indent=1, ensure_ascii=False), "utf-8")
    new.replace(file)


def shown(change: Change, outcome: Outcome) -> str:
    by, place = f" by {outcome.by}" if outcome.by else "", f"{change.path}:{change.line}"
    lines = f"  - {change.before.strip()}\n  + {change.after.strip()}"
    return f"{outcome.word}{by} ({outcome.seconds:.0f} s): {place}\n{lines}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("runs/mutations"))
    parser.add_argument("--again", action="store_true", help="try once more what survived")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for the tests of one change")
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    changes = sample(ROOT, given.count, given.seed)

    outcomes: dict[Change, Outcome] = {}
    for change in changes:
        file = result_file(given.results, change)
        if file.exists():
            kept = json.loads(file.read_text("utf-8"))
            outcome = Outcome(*(kept[name] for name in Outcome._fields))
            if not (given.again and outcome.word == "survived"):
                outcomes[change] = outcome

    with TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for job in range(given.jobs):
            trees.put(copied(ROOT, Path(folder) / str(job)))

        def judge(change: Change) -> None:
            tree = trees.get()
            try:
                outcomes[change] = try_out(tree, change, given.patience)
                keep(result_file(given.results, change), change, outcomes[change])
                print(shown(change, outcomes[change]), flush=True)
            finally:
                trees.put(tree)

        for _ in pool.map(judge, [change for change in changes if change not in outcomes]):
            pass
        noticed = sorted({outcome.by.partition("[")[0] for outcome in outcomes.values() if "tests/" in outcome.by})
        unchanged = run_tests(trees.get(), noticed, PATIENCE)
        if unchanged.word != "survived":
            raise SystemExit(f"without any change it does not pass either: {unchanged.by or unchanged.word}")

    counts = Counter(outcome.word for outcome in outcomes.values())
    print("\nSurvivors:" if counts["survived"] else "\nNo survivors.")
    for change in changes:
        if outcomes[change].word == "survived":
            print(shown(change, outcomes[change]))
    words = ", ".join(f"{number} {word}" for word, number in counts.most_common())
    print(f"\n{len(changes)} changes: {words}")


if __name__ == "__main__":
    main()

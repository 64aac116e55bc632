"""Files are whole or untouched, and a run's folder belongs to that run alone."""

import csv
import errno
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tightrope import InvalidInputError
from tightrope.errors import in_words
from tightrope.storage.files import claim_folder, locked, replacing, write_bytes, write_csv, write_json

MARK = "study.toml"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_replaces_the_old_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"old")
    write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    write_bytes(tmp_path / "a", b"old")
    with pytest.raises(error), replacing(tmp_path / "a") as file:
        file.write(b"half of the new")
        raise error
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"old")
    with replacing(tmp_path / "a") as file:
        file.write(b"new")
        file.flush()
        assert len(names(tmp_path)) == 2
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"


def test_data_and_folder_are_on_disk_before_and_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def record_fsync(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def record_rename(self: Path, target: Path) -> Path:
        events.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "replace", record_rename)
    write_bytes(tmp_path / "a", b"data")
    assert events == ["file", "rename", "folder"]


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"old")
    (tmp_path / "link").symlink_to("a")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"


def test_an_ordinary_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_bytes(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o664])
def test_a_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(mode)
    with replacing(tmp_path / "a") as file:
        file.write(b"new")
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o177 & ~mode == 0  # no one else can look meanwhile
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    assert (tmp_path / "a").read_bytes() == b"new"


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name, words in (
        ("folder", "is a folder"),
        ("pipe", "is a pipe"),
        ("link", "is a pipe"),
        ("/dev/null", "is a device"),
        ("null\0null", "not a valid file name"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            write_bytes(tmp_path / name, b"data")
    with pytest.raises((InvalidInputError, OSError)):
        write_bytes(tmp_path / "circle", b"data")
    assert names(tmp_path) == ["circle", "folder", "link", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127], ids=["letters", "two bytes each"])
def test_a_name_may_be_as_long_as_the_system_allows(name: str, tmp_path: Path) -> None:
    for data in (b"old", b"new"):
        write_bytes(tmp_path / name, data)
    assert names(tmp_path) == [name]


def test_what_a_killed_writer_left_behind_is_removed_by_the_next_one(tmp_path: Path) -> None:
    killed = """
import os, pathlib
from tightrope.storage.files import replacing
writers = [replacing(pathlib.Path(name)) for name in ("a", "b")]
files = [writer.__enter__() for writer in writers]
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", killed], cwd=tmp_path, check=True)
    assert len(names(tmp_path)) == 2
    with replacing(tmp_path / "a") as file:  # of a writer that lives
        file.write(b"first")
        write_bytes(tmp_path / "a", b"second")
        assert len(names(tmp_path)) == 3  # a, its temporary file, and what was left of b
    assert (tmp_path / "a").read_bytes() == b"first"
    write_bytes(tmp_path / "b", b"data")
    assert names(tmp_path) == ["a", "b"]


def test_json_is_readable_and_strict(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"α": 1, "none": None})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"α": 1, "none": None}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"α": 1, "none": None}


def test_csv_reads_back_to_the_same_bits(tmp_path: Path, rng: np.random.Generator) -> None:
    columns = {
        "episode": np.arange(1.0, 51.0),
        "x": rng.standard_normal(50) * 10.0 ** rng.integers(-300, 300, 50),
    }
    columns["x"][:3] = np.nan, -0.0, 1e22
    write_csv(tmp_path / "a.csv", columns)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "episode,x"
    assert lines[1] == "1,nan"
    table = np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table[:, 0], columns["episode"])
    assert table[:, 1].tobytes() == columns["x"].tobytes()


def test_csv_holds_any_text(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = {"a, b": ['say "x"', "1\n2", "é"], "n": [1, 2.5, ""]}
    write_csv(tmp_path / "a.csv", columns)
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert [*csv.reader(file)] == [["a, b", "n"], ['say "x"', "1"], ["1\n2", "2.5"], ["é", ""]]


def test_a_new_folder_is_made_and_then_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    for first in (True, False):
        with claim_folder(folder, MARK) as new:
            assert new is first
            (folder / MARK).write_text("ours")


@pytest.mark.parametrize("name", ["thesis.tex", ".hidden", "settings.json"])
def test_files_of_others_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(InvalidInputError, match="not a study"), claim_folder(tmp_path, MARK):
        pass
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "x"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidInputError, match=f"folder {folder}"), claim_folder(folder, MARK):
            pass


def test_names_that_are_not_utf_8_read_back_from_json(tmp_path: Path) -> None:
    value = {"problem": os.fsdecode(b"caf\xe9"), "plain": "café → \\"}
    write_json(tmp_path / "settings.json", value)
    assert json.loads((tmp_path / "settings.json").read_text("utf-8")) == value
    assert "café → " in (tmp_path / "settings.json").read_text("utf-8")


def test_a_folder_is_refused_while_another_process_writes_to_it(tmp_path: Path) -> None:
    refused = pytest.raises(InvalidInputError, match=rf"another process is writing to {tmp_path}.*--out")
    with claim_folder(tmp_path, MARK), refused, claim_folder(tmp_path, MARK):
        pass
    with claim_folder(tmp_path, MARK) as new:
        assert new


def test_a_locked_folder_is_awaited_with_patience(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
        stack.enter_context(locked(tmp_path))

        def wait() -> bool:
            with locked(tmp_path, patience=60.0):
                return True

        waiting = threads.submit(wait)
        assert not waiting.done()
        stack.close()
        assert waiting.result()


def test_of_processes_that_claim_a_folder_at_once_one_gets_it(tmp_path: Path) -> None:
    claiming = """
import pathlib, sys
from tightrope.errors import InvalidInputError
from tightrope.storage.files import claim_folder
for k in range(100):
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        with claim_folder(pathlib.Path(str(k)), "mark"):
            print("in", flush=True)
            sys.stdin.readline()
    except InvalidInputError as error:
        print(error, flush=True)
        sys.stdin.readline()
"""
    command = [sys.executable, "-c", claiming]
    start = partial(subprocess.Popen[str], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, text=True)
    with ExitStack() as stack:
        pair = [stack.enter_context(start(command)) for _ in range(2)]

        def told() -> list[str]:
            return [process.stdout.readline().strip() for process in pair if process.stdout]

        def go() -> None:
            for process in pair:
                assert process.stdin
                process.stdin.write("\n")
                process.stdin.flush()

        for k in range(100):
            assert told() == ["ready", "ready"]
            go()
            refused, claimed = sorted(told(), key=len, reverse=True)
            assert claimed == "in"
            assert refused.startswith(f"another process is writing to {k};")
            go()


def test_a_folder_with_nothing_but_what_a_killed_run_left_is_new(tmp_path: Path) -> None:
    (tmp_path / f".tightrope-{'0' * 16}-{'0' * 16}.tmp").write_bytes(b"{")
    with claim_folder(tmp_path, MARK) as new:
        assert new


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_named_with_the_file_and_nothing_is_left(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_bytes(tmp_path / "a", b"old")
    if call == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        if call == "fsync":
            write_bytes(tmp_path / "a", b"new")
        else:
            with replacing(tmp_path / "a"):
                full()
    assert caught.value.filename == str(tmp_path / "a")
    assert in_words(caught.value) == f"{tmp_path / 'a'}: No space left on device"
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"

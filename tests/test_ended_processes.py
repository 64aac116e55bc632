"""Signals, closed streams and full disks: one line in words, an exit code, and nothing left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import python

#: Signals as a terminal has them, however the tests were started.
FRESH = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    """Send it a signal once it has printed a line; what it says, when all who can say something are gone."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


WORKERS = """
from tightrope.signals import answer_signals
from tightrope.lab.pool import side_by_side
answer_signals()
with side_by_side([{"configuration": {}, "folder": "nowhere", "save_every": 1.0}] * 2, 2, 1):
    print("ready", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_workers_end_with_their_parent(number: signal.Signals, tmp_path: Path) -> None:
    with python(FRESH + WORKERS, tmp_path) as process:
        code, err = ended(process, number)
    if number == signal.SIGKILL:
        assert (code, err) == (-9, "")
    else:
        assert code == 128 + number
        assert err.startswith("tightrope: ") and err.count("\n") == 1


COMPARING = """
import threading, time
from pathlib import Path
import tightrope as tr
def forever(problem, **_):
    Path("playing").touch()
    time.sleep(1000)
def ready():
    while not Path("playing").exists():
        time.sleep(0.05)
    print("ready", flush=True)
threading.Thread(target=ready).start()
tr.compare(tr.make("media-streaming"), {"a": forever, "b": forever}, episodes=1, n_jobs=2)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_workers_of_a_comparison_end_with_it(number: signal.Signals, tmp_path: Path) -> None:
    with python(FRESH + COMPARING, tmp_path) as process:
        code, _ = ended(process, number)  # reads until all who could write are gone
    assert code == -number


def test_a_dead_worker_is_replaced_and_none_is_left(tmp_path: Path) -> None:
    killing = """
from tightrope.lab import pool as workers
started = []
start = workers._start
workers._start = lambda *how: started.append(start(*how)) or started[-1]
job = {"configuration": {}, "folder": "nowhere", "save_every": 1.0}
with workers.side_by_side([job, job], 1, 1) as answers:
    started[0].kill()
    print(next(answers))
    print("missing required field" in next(answers))
print(len(started), [worker.returncode for worker in started])
"""
    with python(FRESH + killing, tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert (out, err) == ("None\nTrue\n2 [-9, 0]\n", "")


@pytest.mark.parametrize("where", ["finaliser", "import", "callback"])
def test_signals_are_handled_where_exceptions_are_lost(where: str, tmp_path: Path) -> None:
    raising = "os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "module.py").write_text(f"import os, signal\n{raising}\n")
    code = {
        "finaliser": f"class A:\n    def __del__(self): {raising}\nA()",
        "import": "try:\n    import module\nexcept BaseException: pass",
        "callback": f"import atexit; atexit.register(lambda: {raising})",
    }[where]
    with python(
        FRESH + f"import os\nfrom tightrope.signals import answer_signals; answer_signals()\n{code}", tmp_path
    ) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "tightrope: interrupted\n")


def test_temporary_files_are_removed_and_held_blocks_finish(tmp_path: Path) -> None:
    writing = """
import os, pathlib
from tightrope.signals import answer_signals, held
from tightrope.storage.files import write_bytes
from tightrope.storage.files import replacing
answer_signals()
with held():
    os.kill(os.getpid(), signal.SIGTERM)
    write_bytes(pathlib.Path("whole"), b"data")
    writer = replacing(pathlib.Path("half"))
    writer.__enter__().write(b"da")
print("never")
"""
    with python(FRESH + writing, tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "", "tightrope: ended on request (SIGTERM)\n")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    nohup = """
import os
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from tightrope.signals import answer_signals
answer_signals()
os.kill(os.getpid(), signal.SIGHUP)
print("still here")
"""
    with python(FRESH + nohup, tmp_path) as process:
        assert process.communicate(timeout=60) == ("still here\n", "")


@pytest.mark.parametrize(
    ("redirection", "argument", "code", "err"),
    [
        ("2>&-", "walk", 2, ""),
        (">&-", "--version", 0, ""),
        ("<&- >&- 2>&-", "--version", 0, ""),
        (">/dev/full", "--version", 1, "tightrope: stdout: No space left on device\n"),
        (">/dev/full 2>&1", "--version", 1, ""),
    ],
)
def test_streams_that_cannot_be_written(redirection: str, argument: str, code: int, err: str) -> None:
    command = ["bash", "-c", f"{sys.executable} -m tightrope.cli {argument} {redirection}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, err)


def test_a_closed_stderr_does_not_change_the_exit_code() -> None:
    left = """
import io, sys
from tightrope.cli import main
sys.argv[1:] = ["--version"]
sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False))
sys.stderr.write("left in the buffer")
main()
"""
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([sys.executable, "-c", left], stdout=full, stderr=full, check=False).returncode == 1


def test_a_closed_pipe_is_not_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tightrope.cli", "--version"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = """
from tightrope.cli import open_streams
open_streams()
file = open("results", "w")
from tightrope.lab.runner import shown
with shown(10, 2, 0, 0):
    assert file.fileno() > 2
"""
    (tmp_path / "code.py").write_text(code)
    done = subprocess.run(["bash", "-c", f"{sys.executable} code.py 2>&-"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "results").read_bytes() == b""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_what_stdout_cannot_encode_is_replaced(encoding: str, tmp_path: Path) -> None:
    code = "from tightrope.cli import open_streams; open_streams(); print('a − \\udce9')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode(encoding) == ("a − ?\n" if encoding == "utf-8" else "a ? ?\n")

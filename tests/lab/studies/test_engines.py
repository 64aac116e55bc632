"""The same study on all backends, and with workers that are killed."""

import os
from pathlib import Path
from typing import get_args

import pytest
from joblib.externals.loky import get_reusable_executor

from tightrope import Study
from tightrope.lab.engines import Backend, Engine, Task, play
from tightrope.lab.runner import conducted
from tightrope.lab.study import Records

STUDY = Study(
    problems=[{"name": "random", "layer_sizes": [1, 2, 1], "n_actions": 2, "losses": "random-walk", "noise": "scaled"}],
    learners=["uniform", "o-reps"],
    episodes=50,
    seeds=2,
    records=Records(count=6),
)


def table(folder: Path, engine: Engine) -> bytes:
    with conducted(STUDY, folder, engine) as done:
        assert done.failed == {}
        return done.tables[0].read_bytes()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of a process that plays one after another."""
    return table(tmp_path_factory.mktemp("alone"), Engine(jobs=1))


@pytest.mark.parametrize("backend", get_args(Backend))
@pytest.mark.filterwarnings("ignore")  # of the clusters, about themselves
def test_the_table_is_the_same_on_all_backends(backend: Backend, alone: bytes, tmp_path: Path) -> None:
    if backend in ("dask", "ray"):
        pytest.importorskip({"dask": "dask.distributed", "ray": "ray"}[backend])
    assert table(tmp_path, Engine(jobs=2, backend=backend)) == alone


@pytest.mark.parametrize("backend", ["processes", "loky"])
def test_the_run_of_a_killed_worker_is_played_again(
    backend: Backend, alone: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of them, on its way to its first run."""
    get_reusable_executor().shutdown()  # loky's processes of an earlier test would serve again
    mark = tmp_path / "killed"
    monkeypatch.setenv("TIGHTROPE_TEST_KILL", str(mark))
    killing = tmp_path / "site" / "sitecustomize.py"
    killing.parent.mkdir()
    killing.write_text(
        """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "tightrope.lab.engines" and not os.path.exists(os.environ["TIGHTROPE_TEST_KILL"]):
            open(os.environ["TIGHTROPE_TEST_KILL"], "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
sys.meta_path.insert(0, Finder())
"""
    )
    monkeypatch.setenv("PYTHONPATH", f"{killing.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.syspath_prepend(str(killing.parent))
    assert table(tmp_path / "out", Engine(jobs=2, backend=backend)) == alone
    assert mark.exists()


def test_a_run_whose_worker_always_dies_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def die(self: Engine, tasks: list[Task], callback: None) -> list[str | None]:
        tried.append(len(tasks))
        return [None if task.configuration.seed else play(task) for task in tasks]

    monkeypatch.setattr(Engine, "_play_once", die)
    with conducted(STUDY, tmp_path, Engine()) as done:
        assert len(done.runs) == 2
        assert set(done.failed.values()) == {"its process was ended from outside 3 times"}
    assert tried == [4, 2, 2, 2]

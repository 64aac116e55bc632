"""The examples of docs/how-to/python.md run, with stand-ins for the trackers that they feed."""

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "python.md").read_text("utf-8")


class Tracker:
    """What is asked of MLflow and of Weights & Biases."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.parameters: dict[str, Any] = {}

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        assert all(type(name) is str and type(value) is float for name, value in metrics.items())
        self.logged.append((step, metrics))

    log = log_metrics

    def log_params(self, parameters: dict[str, Any]) -> None:
        self.parameters = parameters

    @contextmanager
    def start_run(self) -> Any:
        yield self

    def init(self, project: str, config: dict[str, Any]) -> Any:
        self.parameters = config
        return self.start_run()


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    trackers = {"mlflow": Tracker(), "wandb": Tracker()}
    for name, tracker in trackers.items():
        monkeypatch.setitem(sys.modules, name, tracker)
    monkeypatch.chdir(tmp_path)
    examples: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(example, "python.md", "exec"), examples)

    for tracker in trackers.values():
        assert tracker.parameters["learner"] == "ucpd-practical"
        assert [step for step, _ in tracker.logged][-1] == 400
        assert {"regret", "violation", "use_delay", "violation_energy"} <= set(tracker.logged[-1][1])
    assert re.search(r"after \d+ of 400 episodes: three hops an episode over", capsys.readouterr().out)
    assert len(list((tmp_path / "boards").iterdir())) == 2 + 4  # of the comparison, and of the study
    assert examples["frame"]["episode"].iloc[-1] < 400
    assert SimpleNamespace(**examples).action in range(4)

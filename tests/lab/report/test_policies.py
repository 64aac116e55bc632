"""Policies on the page are those of the checkpoint and of the hindsight LP, in a small real study."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.lab.report.folders import write_study
from tests.lab.studies.cuts import PowerCutError, conduct, cut_after
from tightrope import Study
from tightrope.lab.report import content

GRID: dict[str, Any] = {"name": "grid", "n_rows": 3, "n_columns": 3, "n_steps": 3, "start": [0, 0], "losses": "fixed"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "study"
    study = Study(problems=[GRID], learners=["ucpd", "uniform"], episodes=50, seeds=1)
    conduct(study, folder)
    return folder


def test_policies_are_those_of_the_checkpoint_and_of_the_lp(folder: Path) -> None:
    [section] = content(folder)["sections"]
    found = section["policies"]
    problem = tr.make(**GRID)
    space = problem.space
    assert found["words"] == "" and found["actions"] == ["up", "right", "down", "left"]
    assert [len(layer) for layer in found["layers"]] == list(space.layer_sizes[:-1])
    assert found["layers"][0][0]["cell"] == [1, 1] and found["layers"][1][-1]["cell"] == [2, 1]
    assert [(one["label"], one["episode"]) for one in found["learned"]] == [("ucpd", 50), ("uniform", 50)]

    [run] = [path for path in (folder / "runs").iterdir() if "uniform" not in path.name]
    learner = tr.load(run / "checkpoint")
    loss = 50 * problem.losses.begin(np.random.default_rng(0)).loss(1)
    best = tr.solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets).policy
    for shown, policy in ((found["learned"][0]["states"], learner.policy), (found["hindsight"], best)):
        theta = problem.mdp.occupancy(policy)
        assert len(shown) == space.n_states - 1
        for state, (visits, chosen) in enumerate(shown):
            assert visits == pytest.approx(theta[space.tuples[:, 0] == state].sum(), abs=1e-4)
            of_state = space.pairs[:, 0] == state
            shares = dict(zip(space.pairs[of_state, 1].tolist(), policy.probabilities[of_state], strict=True))
            assert dict(chosen) == pytest.approx({a: p for a, p in shares.items() if round(p, 3) >= 0.005}, abs=1e-3)


def test_policies_of_a_running_study_are_those_of_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(problems=[GRID], learners=["ucpd"], episodes=50)
    with cut_after(13, monkeypatch), pytest.raises(PowerCutError):
        conduct(study, tmp_path, save_every=0.0)
    [section] = content(tmp_path, live=True)["sections"]
    [learned] = section["policies"]["learned"]
    [run] = (tmp_path / "runs").iterdir()
    learner = tr.load(run / "checkpoint")
    assert learned["episode"] == learner.observed == 13
    shares = [share for _, chosen in learned["states"] for _, share in chosen]
    kept = learner.policy.probabilities.round(3)
    assert shares == pytest.approx(kept[kept >= 0.005].tolist())


def test_without_checkpoints_the_page_says_so(tmp_path: Path) -> None:
    write_study(tmp_path, learners=("ucpd",), n_seeds=1)
    [section] = content(tmp_path)["sections"]
    assert section["policies"] == {"words": "The policies are unknown: run-0-0: there is no checkpoint"}

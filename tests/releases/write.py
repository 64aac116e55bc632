"""python -m tests.releases.write: what the installed release of tightrope writes, as fixtures for later versions.

Run it in the root of the repository with a release installed. It writes `tests/releases/VERSION/`, which must not exist
yet, and `test_releases.py` then checks with every later version that

    learners.tar.gz   checkpoints (`learner.save`) open with the policy that they had and learn on,
    studies.tar.gz    a finished study is kept as it is, and one that was cut is resumed,
    durable.tar.gz    directories of `tr.DurableLearner` open with their status and policy and learn on.

Each archive also holds what the release itself did next: the episodes that it observed, and the policies that it then
had. So a later version can observe the same episodes, and no random draw depends on the last bits of a policy.

Problems are tiny, so that files are small, and their numbers are random, so that no choice between actions or vertices
is a tie that rounding decides: an argmax over losses that are equal by symmetry would be one.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from tests.recording import Recorder
from tests.releases.archives import pack
from tightrope.learners import LEARNERS

HERE = Path(__file__).parent

#: Episodes before a learner is saved, and after.
BEFORE, AFTER = 60, 24

#: The problems by name: that of `tr.make`, and its options.
PROBLEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": (
        "random",
        {"layer_sizes": [1, 3, 2, 1], "n_actions": 2, "n_constraints": 2, "losses": "iid", "seed": 13},
    ),
    "ties": (
        "river-swim",
        {"n_places": 3, "n_steps": 4, "budget": 2.0, "losses": {"name": "drifting", "period": 17}, "noise": "scaled"},
    ),
}


@dataclass(frozen=True)
class Case:
    """A learner, and how it is made."""

    learner: str
    problem: str = "random"
    options: Mapping[str, Any] = field(default_factory=dict)

    def make_problem(self) -> tr.Problem:
        """The problem that it plays."""
        name, options = PROBLEMS[self.problem]
        return tr.make(name, **options)


#: Options with which policies change within so few episodes. Most of these learners are optimistic by more than any
#: loss until every pair was visited thousands of times.
OPTIONS: dict[str, dict[str, Any]] = {
    "always-safe": {"radius_scale": 0.01},
    "c-ucrl": {"radius_scale": 0.01},
    "dope": {"radius_scale": 1e-4},
    "fpop": {"radius_scale": 0.03},
    "opdop": {"radius_scale": 0.01},
    "opt-cmdp": {"radius_scale": 0.003},
    "opt-dual-cmdp": {"radius_scale": 0.003},
    "opt-pomd": {"radius_scale": 0.1},
    "opt-primal-dual": {"radius_scale": 0.01, "policy_step": 0.1},
    "optpess-lp": {"radius_scale": 1e-4},
    "q-learning-ucb": {"radius_scale": 0.03},
    "s-ops": {"radius_scale": 0.03},
    "shifted-bandit-uc-o-reps": {"radius_scale": 0.1},
    "triple-q": {"tuning": "code"},
    "ucbvi": {"radius_scale": 0.03},
    "ucrl2": {"radius_scale": 0.01},
    "uob-reps": {"radius_scale": 0.1},
    "uopt-rpgpd": {"radius_scale": 0.01},
}

#: Learners that never change their policy.
FIXED = ("hindsight", "safe-baseline", "uniform")

#: Every learner, then some with parameters that are stored in another way: ties, confidence rules.
CASES: dict[str, Case] = {name: Case(name, options=OPTIONS.get(name, {})) for name in LEARNERS} | {
    "ucpd-practical-ties": Case("ucpd-practical", "ties", {"radius_scale": 0.3}),
    "ucpd-bandit-ties": Case("ucpd-bandit", "ties", {"radius_scale": 0.3}),
    "ucpd-bernstein": Case("ucpd", options={"confidence": tr.BernsteinBox(episodes=100, level=0.1, scale=0.1)}),
    "ucpd-paper": Case("ucpd", options={"confidence": tr.PaperRadius(episodes=100, level=0.1, scale=0.1)}),
    "ucpd-kl": Case("ucpd", options={"confidence": "kl", "radius_scale": 0.1}),
    "ucpd-kl-l1": Case("ucpd", options={"confidence": "kl-l1", "radius_scale": 0.1}),
    "ucpd-kl-box": Case("ucpd", options={"confidence": "kl-box", "radius_scale": 0.1}),
    "ucpd-kl-l1-box": Case("ucpd", options={"confidence": "kl-l1-box", "radius_scale": 0.1}),
}


def main() -> None:
    """Write the folder of the installed version."""
    version = ".".join(tr.__version__.split(".")[:2])
    folder = HERE / version
    if folder.exists():
        sys.exit(f"{folder} exists. What a release wrote does not change; delete the folder to write it again.")
    with tempfile.TemporaryDirectory() as scratch:
        writers = {"learners": write_learners, "studies": write_studies, "durable": write_durable}
        for name, write in writers.items():
            Path(scratch, name).mkdir()
            write(Path(scratch, name))
        folder.mkdir()
        for name in writers:
            pack(Path(scratch, name), folder / f"{name}.tar.gz")


def write_learners(folder: Path) -> None:
    """For each case CASE/checkpoint, saved after `BEFORE` episodes, and CASE/expected.npz, with `AFTER` more.

    expected.npz has
        policy (AFTER + 1, n_pairs), multipliers (AFTER + 1, I), epoch (AFTER + 1,): at the save, after each episode
        states (AFTER, L + 1), actions (AFTER, L): the trajectories of these episodes
        loss (AFTER, n_tuples), constraints (AFTER, I, n_tuples): whole functions; with bandit feedback along the path,
            (AFTER, L) and (AFTER, I, L)
    """
    for name, case in CASES.items():
        (folder / name).mkdir()
        problem = case.make_problem()
        learner = tr.make_learner(case.learner, problem, episodes=BEFORE + AFTER, **case.options)
        recorder = Recorder(learner)
        run = tr.Run(problem, recorder, episodes=BEFORE + AFTER, regret="never")
        run.play(until=BEFORE)
        learner.save(folder / name / "checkpoint")
        recorder.episodes.clear()
        trace = [now(learner)]
        for _ in range(AFTER):
            run.step()
            trace.append(now(learner))
        if case.learner not in FIXED and np.ptp([one["policy"] for one in trace], axis=0).max() < 1e-4:
            raise SystemExit(f"{name} does not change its policy after it was saved; choose other options")
        observed = [story(episode) for episode in recorder.episodes]
        np.savez_compressed(folder / name / "expected.npz", **stacked(trace), **stacked(observed))


def now(learner: Any) -> dict[str, Any]:
    """What is expected of a later version at this point."""
    return {
        "policy": learner.policy.probabilities.copy(),
        "multipliers": np.array(learner.multipliers),
        "epoch": learner.epoch,
    }


def stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One array for each key, with an axis of rows before the others."""
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def story(episode: tr.Episode | tr.BanditEpisode) -> dict[str, Any]:
    """The arrays of an episode by the names that `DurableLearner.tell` has for them."""
    loss = episode.loss if isinstance(episode, tr.Episode) else episode.losses
    parts = {"states": episode.states, "actions": episode.actions, "loss": loss, "constraints": episode.constraints}
    return {name: np.array(value) for name, value in parts.items()}


STUDY = """\
problems = [{name = "random", layer_sizes = [1, 3, 2, 1], n_actions = 2, seed = 11}]
learners = ["ucpd-practical", {name = "opt-cmdp", radius_scale = 0.1}]
losses = [{name = "drifting", period = 17}]
episodes = 40
seeds = 2

[records]
count = 8
spacing = "linear"
"""

#: Runs the command line, and ends the process without any warning at an episode: `python -c CUT 65 sweep …`.
CUT = """\
import os, sys
import tightrope as tr
from tightrope.cli import main

step, left = tr.Run.step, int(sys.argv.pop(1))

def step_or_end(run):
    global left
    if left == 0:
        os._exit(3)
    left -= 1
    step(run)

tr.Run.step = step_or_end
sys.exit(main())
"""


def write_studies(folder: Path) -> None:
    """finished/, a study of four runs, and cut/, the same after its process was killed in the second run.

    The first run of cut/ is finished, the second has a checkpoint at episode 25 of 40, the others have nothing.
    """
    file = folder / "study.toml"
    file.write_text(STUDY)
    options = ["sweep", str(file), "--jobs", "1", "--checkpoint-every", "0", "--out"]
    subprocess.run([sys.executable, "-m", "tightrope", *options, str(folder / "finished")], check=True)
    cut = subprocess.run([sys.executable, "-c", CUT, "65", *options, str(folder / "cut")])
    if cut.returncode != 3:
        sys.exit(f"the study that was to be cut ended with exit code {cut.returncode}")
    file.unlink()


def write_durable(folder: Path) -> None:
    """open/ and guarded/, each with `directory` and `expected.json`.

    expected.json has
        inspection: `tightrope inspect --json` of the directory as it is
        policy: the policy that `ask` returns, by pair
        policies: those of all learners, by name
        open: the policies of the open episodes, by id
        stories: arguments of `tell` for what was told next, each with the `id` of an open episode or null for a new one
        continued: the first four after that
    """
    for name, write in (("open", write_open), ("guarded", write_guarded)):
        (folder / name).mkdir()
        directory = folder / name / "directory"
        with tempfile.TemporaryDirectory() as scratch:
            first, second = Path(scratch, "first"), Path(scratch, "second")
            with write(first):
                copy_files(first, directory)  # while it is open, as a process leaves it that is killed
            copy_files(directory, second)
            expected = inspected(second)
            expected["stories"] = go_on(second)
            expected["continued"] = inspected(second)
        (folder / name / "expected.json").write_text(json.dumps(expected))


def copy_files(source: Path, target: Path) -> None:
    """Copy a directory while no process writes to it."""
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())


def inspected(directory: Path) -> dict[str, Any]:
    """What the command line and the library show of a directory."""
    command = [sys.executable, "-m", "tightrope", "inspect", str(directory), "--json"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    del shown["directory"], shown["growth"]  # depend on where the files are, and on how SQLite fills its pages
    with tr.DurableLearner(directory) as durable:
        open_ = {id_: one.policy.probabilities.tolist() for id_, one in durable.open_episodes().items()}
        policies = {one.name: one.policy.probabilities.tolist() for one in durable.status.standings}
        policy = durable.policy.probabilities.tolist()
        return {"inspection": shown, "policy": policy, "policies": policies, "open": open_}


class Player:
    """Plays the policies of a durable learner on the problem "random", and keeps the outcomes."""

    def __init__(self, seed: int) -> None:
        self.problem = CASES["ucpd-practical"].make_problem()
        self.rng = np.random.default_rng(seed)
        adversary_rng, constraints_rng = self.rng.spawn(2)
        self.adversary = self.problem.losses.begin(adversary_rng)
        self.regulator = self.problem.begin_constraints(constraints_rng)
        self.told: list[dict[str, Any]] = []

    def play(self, policy: tr.Policy) -> dict[str, Any]:
        """An episode under `policy`: arguments of `tell`."""
        space, mdp = self.problem.space, self.problem.mdp
        states, actions = [0], []
        for _ in range(space.n_layers):
            actions.append(policy.sample(states[-1], self.rng))
            [rows] = np.nonzero((space.tuples[:, 0] == states[-1]) & (space.tuples[:, 1] == actions[-1]))
            states.append(int(space.tuples[self.rng.choice(rows, p=mdp.transitions[rows]), 2]))
        t = len(self.told) + 1
        loss, constraints = self.adversary.loss(t), self.regulator.constraints(t)
        return {"states": states, "actions": actions, "loss": loss.tolist(), "constraints": constraints.tolist()}

    def tell(self, durable: tr.DurableLearner, id_: str, policy: tr.Policy, new: bool = True) -> None:
        """Play some episodes and tell their outcomes."""
        told = self.play(policy)
        durable.tell(id_, **told)
        self.told.append(told | {"id": None if new else id_})


def write_open(directory: Path) -> tr.DurableLearner:
    """Episodes told out of order, one given up, other budgets, a snapshot, events after it, three episodes open."""
    player = Player(1)
    problem = player.problem
    learner = tr.make_learner("ucpd-practical", problem, radius_scale=0.3)
    with tr.DurableLearner(directory, learner, problem=problem, snapshot_every=20) as durable:
        for _ in range(25):
            first, second = durable.ask(), durable.ask()
            player.tell(durable, second.id, second.policy)
            player.tell(durable, first.id, first.policy)
    durable = tr.DurableLearner(directory)  # again, so that SQLite's log is short
    durable.give_up(durable.ask().id)
    durable.set_budgets({problem.constraint_names[0]: 0.9 * problem.use_in_units(problem.budgets)[0]})
    for _ in range(3):
        durable.ask()
        episode = durable.ask()
        player.tell(durable, episode.id, episode.policy)
    return durable


def write_guarded(directory: Path) -> tr.DurableLearner:
    """A promoted champion, challengers, episodes that another system played, and a stop-loss that has stopped."""
    player = Player(2)
    problem = player.problem
    learner = tr.make_learner("ucpd", problem, episodes=100, radius_scale=0.1)
    with tr.DurableLearner(directory, learner, problem=problem, snapshot_every=20) as durable:
        durable.challenge("practical", tr.make_learner("ucpd-practical", problem, radius_scale=0.3))
        durable.challenge("leader", tr.make_learner("follow-the-leader", problem, episodes=100))
        for _ in range(30):
            episode = durable.ask()
            player.tell(durable, episode.id, episode.policy)
    durable = tr.DurableLearner(directory)
    durable.promote("practical")
    uniform = tr.Policy.uniform(problem.space)
    player.tell(durable, durable.watch(uniform), uniform)
    player.tell(durable, durable.watch(), uniform)
    safe = tr.make_learner("safe-baseline", problem, episodes=1).policy
    rules = {problem.constraint_names[0]: tr.durable.StopLoss(most=-5.0, back=-10.0)}
    durable.stop_loss(rules, safe)
    for _ in range(4):
        episode = durable.ask()
        player.tell(durable, episode.id, episode.policy)
    if not durable.status.stopped:
        raise SystemExit("the stop-loss has not stopped; choose other numbers")
    return durable


def go_on(directory: Path) -> list[dict[str, Any]]:
    """Tell of all open episodes, then of some new ones; returns what was told."""
    player = Player(3)
    with tr.DurableLearner(directory) as durable:
        for id_, episode in durable.open_episodes().items():
            player.tell(durable, id_, episode.policy, new=False)
        for _ in range(6):
            episode = durable.ask()
            player.tell(durable, episode.id, episode.policy)
    return player.told


if __name__ == "__main__":
    main()

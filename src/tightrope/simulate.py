"""The protocol of an episode, and exact accounting of what it cost.

For t = 1, 2, …: the adversary fixes f^t; the learner's policy is played once; the constraints g^t are drawn; the
learner observes the trajectory and f^t and g^t, whole or (bandit feedback) as they were on it; an adaptive adversary
sees the policy. What is recorded are exact expectations under the true model, never sampled returns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from tightrope.errors import InvalidInputError
from tightrope.kernels.episode import play
from tightrope.learners import Maker, learner_called, make_learner
from tightrope.learners.base import BanditEpisode, Episode, Learner, checked_feedback
from tightrope.options import unknown, whole
from tightrope.planning import HindsightLP
from tightrope.problems.base import Problem
from tightrope.space import FloatArray
from tightrope.streams import streams

COLUMNS = (
    "episode",
    "loss",
    "hindsight",
    "regret",
    "violation",
    "strong_violation",
    "multiplier_norm",
    "epoch",
)


class History(Mapping[str, FloatArray]):
    """Columns over the logged episodes; loss, hindsight, regret and both violations are cumulative up to there.

    loss              Σ <f^τ, θ̄^τ>
    hindsight         the smallest Σ <f^τ, θ> of a fixed policy that meets the budgets in expectation
    regret            loss − hindsight
    violation         ‖[Σ (g^τ(θ̄^τ) − c)]_+‖₂: good episodes pay for bad ones
    strong_violation  Σ ‖[g(θ̄^τ) − c]_+‖₂, g the mean: no paying back
    multiplier_norm   ‖Q(t)‖₂, and epoch, ℓ(t): as they were while the episode was played
    """

    def __init__(self, columns: Mapping[str, FloatArray], settings: Mapping[str, float | str]) -> None:
        self._columns = {name: np.asarray(columns[name]) for name in COLUMNS}
        self.settings = dict(settings)

    def __getitem__(self, name: str) -> FloatArray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        last = ", ".join(f"{name} {column[-1]:.6g}" for name, column in self.items())
        return f"History({len(self['episode'])} records; last: {last})"


def log_spaced(episodes: int, records: int = 60) -> NDArray[np.int64]:
    """At most `records` episodes, evenly spaced in their logarithm from the last down to 1."""
    return np.unique(np.round(np.geomspace(episodes, 1, records)).astype(np.int64))


def run(
    problem: Problem,
    learner: str | Learner = "ucpd",
    *,
    episodes: int,
    seed: int = 0,
    records: int = 60,
    regret: Literal["records", "last", "never"] = "records",
    progress: Callable[[int], None] | None = None,
) -> History:
    """Play `episodes` episodes of `problem` and account for them exactly.

    Parameters
    ----------
    learner : a name, for that learner with its published parameters, or a learner of your own making.
    seed : gives independent streams to environment, constraints, adversary and learner; same seed, same bits.
    records : how many log-spaced episodes to record; the last is always among them.
    regret : solve the hindsight LP at every record, only at the last, or never; regret is NaN where it was not solved.
        Budgets that no policy can meet are refused before the first episode, unless no LP is asked for.
    progress : called now and then with the number of episodes done.
    """
    episodes, seed, records = whole(episodes, "episodes", 1), whole(seed, "seed", 0), whole(records, "records", 1)
    if regret not in ("records", "last", "never"):
        raise unknown("regret cannot be asked for at", regret, ("records", "last", "never"))
    for_environment, for_constraints, for_adversary, _ = streams(seed)
    space, mdp, budgets, mean = problem.space, problem.mdp, problem.budgets, problem.constraints.mean
    hindsight = HindsightLP(mdp, mean, budgets) if regret != "never" else None
    player = make_learner(learner, problem, episodes=episodes, seed=seed) if isinstance(learner, str) else learner
    if player.space != space or player.budgets.shape != budgets.shape:
        raise InvalidInputError(
            f"the learner was made for {player.space!r} with {len(player.budgets)} budgets; "
            f"the problem has {space!r} with {len(budgets)}"
        )
    adversary = problem.losses.begin(for_adversary)

    L, n_constraints = space.n_layers, len(budgets)
    theta, d, total_loss = np.empty(space.n_tuples), np.empty(space.n_states), np.zeros(space.n_tuples)
    over, steps = np.zeros(n_constraints), np.empty(L, dtype=np.int64)
    loss = strong_violation = 0.0
    expected_shapes = ((space.n_tuples,), (n_constraints, space.n_tuples), (space.n_pairs,))
    logged = set(log_spaced(episodes, records).tolist())
    report_every = max(1, episodes // 500)
    rows: list[tuple[float, ...]] = []

    for t in range(1, episodes + 1):
        f = adversary.loss(t)
        g = problem.constraints.sample(for_constraints)
        policy = player.policy
        shapes = (f.shape, g.shape, policy.probabilities.shape)
        if shapes != expected_shapes:  # compiled code does not look
            names = ("the adversary's loss", "the draw of the constraints", "the learner's policy")
            for name, shape, expected in zip(names, shapes, expected_shapes, strict=True):
                if shape != expected:
                    raise InvalidInputError(f"episode {t}: {name} has shape {shape}; expected {expected}")
        if player.feedback == "bandit":  # nobody else sees the whole of f and g
            try:
                checked_feedback(space.tuples, f, g, n_constraints, "loss")
            except InvalidInputError as error:
                raise InvalidInputError(f"episode {t}: {error}") from None
        states, actions = np.empty(L + 1, dtype=np.int64), np.empty(L, dtype=np.int64)
        episode_loss, episode_violation = play(
            space.csr, policy.probabilities, mdp.transitions, for_environment.random(2 * L), f, g, mean, budgets,
            states, actions, steps, d, theta, total_loss, over,
        )  # fmt: skip
        loss += episode_loss
        strong_violation += episode_violation
        multipliers, epoch = player.multipliers, player.epoch

        if player.feedback == "full":
            player.observe(Episode(states, actions, f, g))
        else:
            player.observe(BanditEpisode(states, actions, f[steps], g[:, steps]))
        adversary.watch(policy)

        if t in logged:
            best = np.nan
            if hindsight is not None and (regret == "records" or t == episodes):
                best = hindsight.solve(total_loss).value
            violation = norm(np.maximum(over, 0.0))
            rows.append((t, loss, best, loss - best, violation, strong_violation, norm(multipliers), epoch))
        if progress is not None and (t % report_every == 0 or t == episodes):
            progress(t)

    table = np.array(rows, dtype=np.float64).T
    settings = player.settings | {
        "problem": problem.name,
        "losses": repr(problem.losses),
        "constraints": repr(problem.constraints),
        "episodes": episodes,
        "planned_episodes": player.settings.get("episodes", episodes),  # what the learner was made for
        "seed": seed,
    }
    return History(dict(zip(COLUMNS, table, strict=True)), settings)


def compare(
    problem: Problem,
    learners: Sequence[str] | Mapping[str, Maker],
    *,
    episodes: int,
    seeds: int | Sequence[int] = 1,
    n_jobs: int = 1,
    records: int = 60,
    regret: Literal["records", "last", "never"] = "records",
) -> dict[str, list[History]]:
    """Play `problem` with several learners: for each one history per seed, all under the same conditions.

    Parameters
    ----------
    learners : names, or labels with what makes each learner: {"wide": partial(tr.make_learner, "ucpd"), …}.
    seeds : how many (0, 1, …), or which.
    n_jobs : how many processes share the runs; -1 is one per core. The results are the same.
    records, regret : as in `run`.
    """
    if not isinstance(learners, Mapping):
        learners = {learner_called(name).name: partial(make_learner, name) for name in learners}
    which = range(whole(seeds, "seeds", 1)) if isinstance(seeds, int) else seeds

    def play_one(make: Maker, seed: int) -> History:
        learner = make(problem, episodes=episodes, seed=seed)
        return run(problem, learner, episodes=episodes, seed=seed, records=records, regret=regret)

    jobs = (delayed(play_one)(make, seed) for make in learners.values() for seed in which)
    played = iter(Parallel(n_jobs=n_jobs)(jobs))
    return {label: [next(played) for _ in which] for label in learners}


def norm(values: FloatArray) -> float:
    """Euclidean norm."""
    return float(np.sqrt(values @ values))

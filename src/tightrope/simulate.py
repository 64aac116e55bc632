"""The protocol of an episode, and exact accounting of what it cost.

For t = 1, 2, …: the adversary fixes f^t; the learner's policy is played once; the constraints g^t are drawn; the
learner observes trajectory, f^t and g^t; an adaptive adversary sees the policy. What is recorded are exact
expectations under the true model, never sampled returns.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InvalidInputError
from tightrope.kernels.episode import play
from tightrope.learners import make_learner
from tightrope.learners.base import Episode, Learner
from tightrope.planning import HindsightLP
from tightrope.problems.base import Problem
from tightrope.space import FloatArray

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
    """At most `records` episodes from 1 to the last, evenly spaced in their logarithm."""
    return np.unique(np.round(np.geomspace(1, episodes, records)).astype(np.int64))


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
    progress : called now and then with the number of episodes done.
    """
    if episodes < 1:
        raise InvalidInputError(f"episodes is {episodes}; at least one is needed")
    for_environment, for_constraints, for_adversary, _ = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(4)
    )
    space, mdp, budgets, mean = problem.space, problem.mdp, problem.budgets, problem.constraints.mean
    player = make_learner(learner, space, budgets, episodes=episodes) if isinstance(learner, str) else learner
    adversary = problem.losses.begin(for_adversary)
    hindsight = HindsightLP(mdp, mean, budgets)

    L, n_constraints = space.n_layers, len(budgets)
    theta, d, total_loss = np.empty(space.n_tuples), np.empty(space.n_states), np.zeros(space.n_tuples)
    usage, mean_usage, over = np.empty(n_constraints), np.empty(n_constraints), np.zeros(n_constraints)
    steps = np.empty(L, dtype=np.int64)
    loss = strong_violation = 0.0
    logged = set(log_spaced(episodes, records).tolist())
    report_every = max(1, episodes // 500)
    rows: list[tuple[float, ...]] = []

    for t in range(1, episodes + 1):
        f = adversary.loss(t)
        g = problem.constraints.sample(for_constraints)
        policy = player.policy
        states, actions = np.empty(L + 1, dtype=np.int64), np.empty(L, dtype=np.int64)
        loss += play(
            space.csr, policy.probabilities, mdp.transitions, for_environment.random(2 * L), f, g, mean,
            states, actions, steps, d, theta, usage, mean_usage, total_loss,
        )  # fmt: skip
        over += usage - budgets
        strong_violation += norm(np.maximum(mean_usage - budgets, 0.0))
        multiplier_norm, epoch = norm(player.multipliers), player.epoch

        player.observe(Episode(states, actions, f, g))
        adversary.watch(policy)

        if t in logged:
            solve = regret == "records" or (regret == "last" and t == episodes)
            best = hindsight.solve(total_loss).value if solve else np.nan
            violation = norm(np.maximum(over, 0.0))
            rows.append((t, loss, best, loss - best, violation, strong_violation, multiplier_norm, epoch))
        if progress is not None and (t % report_every == 0 or t == episodes):
            progress(t)

    table = np.array(rows, dtype=np.float64).T
    settings: dict[str, float | str] = {
        "problem": problem.name,
        "losses": repr(problem.losses),
        "episodes": episodes,
        "seed": seed,
    }
    return History(dict(zip(COLUMNS, table, strict=True)), settings | player.settings)


def norm(values: FloatArray) -> float:
    """Euclidean norm."""
    return float(np.sqrt(values @ values))

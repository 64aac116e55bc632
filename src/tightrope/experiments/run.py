"""The protocol of an episode, and exact accounting of what it cost.

For t = 1, 2, …: the adversary fixes f^t; the learner's policy is played once; the constraints g^t are drawn; the
learner observes the trajectory and f^t and g^t, whole or (bandit feedback) as they were on it; an adaptive adversary
sees the policy. What is recorded are exact expectations under the true model, never sampled returns.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import MANY, choice, function, having, instance, whole
from tightrope.errors import InvalidInputError
from tightrope.experiments.history import COLUMNS, History, use_columns
from tightrope.experiments.kernels import play
from tightrope.learners import make_learner
from tightrope.learners.base import BanditEpisode, Episode, Learner
from tightrope.learners.episodes import checked_feedback
from tightrope.model import Policy
from tightrope.planning.hindsight import HindsightLP
from tightrope.problems.base import Problem
from tightrope.space import FloatArray, IntArray
from tightrope.streams import streams


def log_spaced(episodes: int, records: int = 60) -> NDArray[np.int64]:
    """At most `records` episodes, evenly spaced in their logarithm from the last down to 1."""
    return np.unique(np.round(np.geomspace(episodes, 1, records)).astype(np.int64))


class Account:
    """What the policies played so far cost, in exact expectation under the true model."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        space = problem.space
        self.loss = 0.0  #: Σ <f^τ, θ̄^τ>
        self.total_loss = np.zeros(space.n_tuples)  #: Σ f^τ
        self.over = np.zeros(len(problem.budgets))  #: Σ (g^τ(θ̄^τ) − c)
        self.strong_violation = 0.0  #: Σ ‖[g(θ̄^τ) − c]_+‖₂
        self._mean = np.ascontiguousarray(problem.constraints.mean, dtype=np.float64)

    def play(self, policy: Policy, f: FloatArray, g: FloatArray, uniforms: FloatArray) -> tuple[IntArray, ...]:
        """Sample one episode and account for its policy; returns states, actions and the tuple of each step."""
        space, mdp, problem = self.problem.space, self.problem.mdp, self.problem
        L = space.n_layers
        states, actions, steps = np.empty(L + 1, np.int64), np.empty(L, np.int64), np.empty(L, np.int64)
        d, theta = np.empty(space.n_states), np.empty(space.n_tuples)  # not kept: the learner needs the memory next
        loss, strong_violation = play(
            space.csr, policy.probabilities, mdp.transitions, uniforms, f, g, self._mean, problem.budgets,
            states, actions, steps, d, theta, self.total_loss, self.over,
        )  # fmt: skip
        self.loss += loss
        self.strong_violation += strong_violation
        return states, actions, steps


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
    instance(problem, "problem", Problem)
    episodes, seed, records = whole(episodes, "episodes", 1), whole(seed, "seed", 0), whole(records, "records", 1, MANY)
    choice(regret, "regret", ("records", "last", "never"))
    if progress is not None:
        function(progress, "progress")
    for_environment, for_constraints, for_adversary, _ = streams(seed)
    space, budgets = problem.space, problem.budgets
    hindsight = HindsightLP(problem.mdp, problem.constraints.mean, budgets) if regret != "never" else None
    player = (
        make_learner(learner, problem, episodes=episodes, seed=seed)
        if isinstance(learner, str)
        else having(learner, "learner", "space", "budgets", "observe")
    )
    if player.space != space or player.budgets.shape != budgets.shape:
        raise InvalidInputError(
            f"the learner was made for {player.space!r} with {len(player.budgets)} budgets; "
            f"the problem has {space!r} with {len(budgets)}"
        )
    adversary = problem.losses.begin(for_adversary)
    account = Account(problem)
    expected_shapes = ((space.n_tuples,), (len(budgets), space.n_tuples), (space.n_pairs,))
    logged = set(log_spaced(episodes, records).tolist())
    report_every = max(1, episodes // 500)
    rows: list[tuple[float, ...]] = []

    for t in range(1, episodes + 1):
        f = np.ascontiguousarray(adversary.loss(t), dtype=np.float64)
        g = np.ascontiguousarray(problem.constraints.sample(for_constraints), dtype=np.float64)
        policy = player.policy
        _check(t, player, f, g, policy, expected_shapes)
        states, actions, steps = account.play(policy, f, g, for_environment.random(2 * space.n_layers))
        if t in logged:  # before it learns
            multipliers, epoch = player.multipliers, player.epoch

        if player.feedback == "full":
            player.observe(Episode(states, actions, f, g))
        else:
            player.observe(BanditEpisode(states, actions, f[steps], g[:, steps]))
        adversary.watch(policy)

        if t in logged:
            best = np.nan
            if hindsight is not None and (regret == "records" or t == episodes):
                best = hindsight.solve(account.total_loss).value
            violation = norm(np.maximum(account.over, 0.0))
            spent = (account.loss, best, account.loss - best, violation, account.strong_violation)
            rows.append((t, *spent, norm(multipliers), epoch, *(account.over + t * budgets)))
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
    return History(dict(zip((*COLUMNS, *use_columns(problem)), table, strict=True)), settings)


def _check(
    t: int, player: Learner, f: FloatArray, g: FloatArray, policy: Policy, expected: tuple[tuple[int, ...], ...]
) -> None:
    """Refuse what compiled code would not look at, and what a learner with bandit feedback does not see."""
    shapes = (f.shape, g.shape, policy.probabilities.shape)
    if shapes != expected:
        names = ("the adversary's loss", "the draw of the constraints", "the learner's policy")
        for name, shape, right in zip(names, shapes, expected, strict=True):
            if shape != right:
                raise InvalidInputError(f"episode {t}: {name} has shape {shape}; expected {right}")
    if player.feedback == "bandit":
        try:
            checked_feedback(player.space.tuples, f, g, len(g), "loss")
        except InvalidInputError as error:
            raise InvalidInputError(f"episode {t}: {error}") from None


def norm(values: FloatArray) -> float:
    """Euclidean norm."""
    return float(np.sqrt(values @ values))

"""python -m benchmarks.published --theirs DIR: learners that have public code, beside it, in its settings.

DIR has the files that `benchmarks/theirs.py` wrote: uopt.npz, and dope, optpess and always, each for media and for
factored, such as dope-media.npz; files that are missing are left out.
Numbers of the environments are those of the repositories:
random is in uopt.npz, media-streaming is bundled (MediaControl), `factored` is below (FactoredCMDP). Prints a table;
--write puts it into docs/explanation/comparison-tables.md.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import page
from tests.learners.problems import Turns
from tightrope import BanditEpisode, LayeredMDP, LayeredSpace, Problem
from tightrope.core import sample_path
from tightrope.learners import LearnerBase, make_learner
from tightrope.learners.registry import LEARNERS
from tightrope.planning.hindsight import solve_cmdp
from tightrope.problems import make
from tightrope.problems.constraints import Deterministic
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: The episodes that the table shows.
SHOWN = (100, 500, 1_000, 5_000, 10_000, 14_000, 100_000)


def settled(theirs: Path) -> Problem:
    """Return their random problem: a utility u = 1 − r, of which half of the largest is required (notebook)."""
    drawn = np.load(theirs)
    P, r = drawn["P"], drawn["rew"]
    H, S, A = r.shape
    start = int(drawn["init"].argmax())
    sizes = [1, *[S] * (H - 1), 1]
    space = LayeredSpace.dense(sizes, A)
    layer = np.repeat(np.arange(H + 1), sizes)
    at = np.concatenate([[start], np.tile(np.arange(S), H - 1), [0]])  # the index of our states in theirs
    s, a, s_next = space.tuples.T
    rewards = r[layer[s], at[s], a].astype(float)
    moves = np.where(layer[s_next] == H, 1.0, P[layer[s], at[s], a, at[s_next]].astype(float))
    moves /= space.expand_to_tuples(space.sum_over_successors(moves))
    return Problem(
        name="random, half of the utility",
        mdp=LayeredMDP(space, moves),
        losses=Turns([1 - 2 * rewards]),
        constraints=Deterministic([2 * rewards - 1]),
        budgets=np.array([H - 2 * float(drawn["const"])]),
        constraint_names=("not utility",),
    )


def factored() -> Problem:
    """Return a ring of three states, six steps: moving pays (s + 1)/3 and uses 1 of 3 (model_factored.py)."""
    rows = [(s, a, (s + a) % 3) for s in range(3) for a in range(2)]
    layout = unroll(rows, [1.0] * 6, n_steps=6)
    s, a, _, _ = layout.tuples.T
    return Problem.from_units(
        name="factored", mdp=layout.mdp, ties=layout.ties, scenarios=[-a * (s + 1) / 3], losses="fixed", uses=[a],
        noise="none", budgets=[3.0], constraint_names=("moves",),
    )  # fmt: skip


def made(name: str, problem: Problem, episodes: int) -> LearnerBase:
    """Make a learner with ties, as their counts are pooled; their safe policy is best with a fifth of the budget."""
    if "safe_policy" not in LEARNERS[name].needs:
        return make_learner(name, problem, episodes=episodes, ties=True)
    f, g = problem.losses.begin(np.random.default_rng(0)).loss(1), problem.constraints.mean
    safe = solve_cmdp(problem.mdp, f, g, problem.budgets / 5).policy
    told: dict[str, Any] = {"safe_policy": safe, "safe_usage": g @ problem.mdp.occupancy(safe), "ties": problem.ties}
    return LEARNERS[name](problem.space, problem.budgets, episodes=episodes, **told)


def played(problem: Problem, learner: LearnerBase, episodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the loss above the best within the budget and the excess, for the policy of every episode."""
    space, L, rng = problem.space, problem.space.n_layers, np.random.default_rng(0)
    f, g = problem.losses.begin(rng).loss(1), problem.constraints.mean
    best, P = solve_cmdp(problem.mdp, f, g, problem.budgets).value, problem.mdp.transitions
    apart, over = np.empty(episodes), np.empty(episodes)
    for k in range(episodes):
        theta = problem.mdp.occupancy(learner.policy)
        apart[k], over[k] = f @ theta - best, (g @ theta - problem.budgets)[0]
        states, actions, steps = sample_path(space.native, learner.policy.probabilities, P, rng.random(2 * L))
        learner.observe(BanditEpisode(states, actions, f[steps], g[:, steps]))
    return apart, over


def cells(values: FloatArray, episodes: int) -> list[str]:
    return [f"{values[k - 1]:,.2f}" if k <= min(len(values), episodes) else "" for k in SHOWN]


def settling(theirs: Path, episodes: int) -> list[list[str]]:
    """Return the excess in rewards, half of the losses here; the gap is its negative, as r + u = 1 in every step."""
    problem = settled(theirs)
    learner = make_learner("uopt-rpgpd", problem, radius_scale=0.001 / problem.space.n_layers, level=0.1)
    _, over = played(problem, learner, episodes)
    return [
        ["`uopt-rpgpd`", "random, over in that episode", "ours", *cells(over / 2, episodes)],
        ["", "", "theirs", *cells(np.load(theirs)["uopt_vio"], episodes)],
    ]


def regrets(theirs: Path) -> list[list[str]]:
    """Return summed regret in the units of the environment, as theirs, and whether a budget was ever exceeded."""
    rows = []
    for place, problem in (("media", make("media-streaming")), ("factored", factored())):
        for name, code in (("dope", "dope"), ("optpess-lp", "optpess"), ("always-safe", "always")):
            file = theirs / f"{code}-{place}.npz"
            if file.exists():
                saved = np.load(file)
                n = len(saved["regret"])
                apart, over = played(problem, made(name, problem, n), n)
                most = max(over.max(), saved["violation"].max())
                rows.append([f"`{name}`", f"{place}, regret", "ours", *cells(np.cumsum(apart), n)])
                rows.append(["", f"(over by {max(most, 0):.0e} at most)", "theirs", *cells(saved["regret"], n)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--theirs", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=100_000, help="number of episodes of uopt-rpgpd")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    drawn = given.theirs / "uopt.npz"
    rows = settling(drawn, given.episodes) if drawn.exists() else []
    rows += regrets(given.theirs)
    text = page.table(("learner", "what", "", *(f"{k:,}" for k in SHOWN)), rows)
    print(text)
    if given.write:
        page.write("published", text, page.COMPARISON)


if __name__ == "__main__":
    main()

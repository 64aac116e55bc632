"""The contract of a problem as small named checks, for `tightrope.checks`."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tightrope.arguments import instance
from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, Policy
from tightrope.planning.hindsight import slater_slack
from tightrope.problems.base import Problem
from tightrope.problems.constraints import ChangingConstraints, Regulator
from tightrope.problems.losses import Adversary
from tightrope.space import FloatArray, LayeredSpace
from tightrope.units import BOUND_TOLERANCE

__all__ = ["check_problem", "yield_problem_checks"]

#: The number of episodes of a check, and the number of draws of an average.
EPISODES, DRAWS = 100, 400

#: The largest error of an average in standard errors; the probability of a larger one is below 1e-8.
SIGMAS = 6.0

ProblemCheck = Callable[[Problem], None]


def check_problem(problem: Problem) -> list[str]:
    """Run every check on `problem`; return their names.

    Raises
    ------
    AssertionError : by the first check that fails, with the promise and what happened instead.
    """
    instance(problem, "problem", Problem)
    return passed(yield_problem_checks(), problem, f", on {problem.name!r}")


def passed(checks: Iterable[Any], subject: object, place: str = "") -> list[str]:
    """Run checks on a subject; return their names. A failure is noted with the name of its check and the place."""
    if not __debug__:
        raise InvalidInputError("the checks are assertions; run Python without -O")
    names = []
    for check in checks:
        try:
            check(subject)
        except Exception as error:
            error.add_note(f"({check.__name__} of tightrope.checks{place})")
            raise
        names.append(check.__name__)
    return names


def yield_problem_checks() -> Iterator[ProblemCheck]:
    """Yield the checks of a problem, each a function of the problem."""
    yield check_names_tell_states_and_actions_apart
    yield check_transitions_are_distributions
    yield check_every_state_can_be_reached
    yield check_budgets_are_within_assumption_2
    yield check_budgets_can_be_met
    yield check_units_lead_there_and_back
    yield check_losses_are_within_assumption_2
    yield check_losses_repeat_with_the_seed
    yield check_losses_handed_out_stay_as_they_were
    yield check_constraints_are_within_assumption_2
    yield check_constraints_repeat_with_the_seed
    yield check_constraints_stay_between_their_extremes
    yield check_constraints_average_to_their_mean
    yield check_constraints_are_independent_from_episode_to_episode
    yield check_playing_changes_nothing


def check_names_tell_states_and_actions_apart(problem: Problem) -> None:
    """The names of states, of actions and of constraints are distinct and not empty."""
    space = problem.space
    for what, names in (
        ("state", [problem.state_name(s) for s in range(space.n_states)]),
        ("action", [problem.action_name(a) for a in range(space.n_actions)]),
        ("constraint", list(problem.constraint_names)),
    ):
        assert all(names), f"{what} {names.index('')} has an empty name"
        twice = [name for name, next_name in pairwise(sorted(names)) if name == next_name]
        assert not twice, f"two {what}s are called {twice[0]!r}"


def check_transitions_are_distributions(problem: Problem) -> None:
    """Transition probabilities are not negative and sum to one for every pair."""
    P, space = problem.mdp.transitions, problem.space
    assert P.shape == (space.n_tuples,), f"transitions has shape {P.shape}, not ({space.n_tuples},)"
    j = int(np.argmin(P))
    assert P[j] >= 0, f"the probability of {problem.tuple_name(j)} is {P[j]}"
    off = np.abs(space.sum_over_successors(P) - 1)
    s, a = space.pairs[np.argmax(off)].tolist()
    assert off.max() <= SUM_TOLERANCE, (
        f"probabilities from {problem.state_name(s)} under {problem.action_name(a)} are {off.max():.3g} off one"
    )


def check_every_state_can_be_reached(problem: Problem) -> None:
    """Some policy reaches every state with positive probability."""
    space = problem.space
    reached = np.zeros(space.n_states, dtype=bool)
    reached[0] = True
    first_tuple = space.csr.pair_ptr[space.csr.state_ptr[space.csr.layer_ptr[:-1]]]
    for first, last in pairwise(first_tuple.tolist()):  # layer by layer
        s, s_next = space.tuples[first:last, 0], space.tuples[first:last, 2]
        reached[s_next[reached[s] & (problem.mdp.transitions[first:last] > 0)]] = True
    assert reached.all(), f"{problem.state_name(int(np.argmin(reached)))} is reached with probability 0 by every policy"


def check_budgets_are_within_assumption_2(problem: Problem) -> None:
    """Σ |c_i| is at most the number of steps."""
    total, L = np.abs(problem.budgets).sum(), problem.space.n_layers
    assert total <= L + BOUND_TOLERANCE, f"the budgets sum to {total} in absolute value, more than {L} steps"


def check_budgets_can_be_met(problem: Problem) -> None:
    """Some policy meets all budgets in expectation, under the mean."""
    slack = slater_slack(problem.mdp, problem.constraints.mean, problem.budgets)
    assert slack >= -BOUND_TOLERANCE, f"every policy exceeds some budget, by {-slack:.6g} or more"


def check_units_lead_there_and_back(problem: Problem) -> None:
    """Scales are positive, one for each constraint, and conversion to units and back is the identity."""
    scales = problem.constraint_scales
    assert scales.shape == problem.budgets.shape, f"constraint_scales has shape {scales.shape}"
    assert problem.loss_scale > 0, f"loss_scale is {problem.loss_scale}"
    assert (scales > 0).all(), f"constraint_scales is {scales}"
    again = problem.use_in_units(problem.budgets) / scales
    np.testing.assert_allclose(again, problem.budgets, rtol=1e-12, err_msg="budgets in units do not convert back")
    loss, episodes = 0.25 * problem.space.n_layers * 3, 3
    shifted = problem.loss_in_units(loss, episodes) - problem.loss_offset * problem.space.n_layers * episodes
    np.testing.assert_allclose(
        shifted, problem.regret_in_units(loss), rtol=1e-9, atol=1e-12, err_msg="losses and regrets differ in scale"
    )


def check_losses_are_within_assumption_2(problem: Problem) -> None:
    """Every f^t is a float array (n_tuples,) with entries in [-1, 1] under any policies."""
    for t, f in enumerate(_played(problem, np.random.default_rng(1)), 1):
        assert f.dtype == np.float64, f"the loss of episode {t} is of {f.dtype}, not float64"
        assert f.shape == (problem.space.n_tuples,), f"the loss of episode {t} has shape {f.shape}"
        bad = ~(np.abs(f) <= 1 + BOUND_TOLERANCE)
        j = int(np.argmax(bad))
        assert not bad[j], f"the loss of episode {t} is {f[j]} at tuple {j} ({problem.tuple_name(j)})"


def check_losses_repeat_with_the_seed(problem: Problem) -> None:
    """The same seed and policies give the same bits, also if another run is in progress."""
    alone = [f.tobytes() for f in _played(problem, np.random.default_rng(2))]
    one, other = (_played(problem, np.random.default_rng(seed)) for seed in (2, 3))
    for t, (bits, f, _) in enumerate(zip(alone, one, other, strict=True), 1):
        assert f.tobytes() == bits, f"the loss of episode {t} differs in a second run with the same seed"


def check_losses_handed_out_stay_as_they_were(problem: Problem) -> None:
    """An array that was returned as f^t is not written to later."""
    kept = [(f, f.copy()) for f in _played(problem, np.random.default_rng(4), episodes=10)]
    for t, (f, then) in enumerate(kept, 1):
        assert np.array_equal(f, then), f"the loss of episode {t} was changed after it had been returned"


def check_constraints_are_within_assumption_2(problem: Problem) -> None:
    """Every g^t is a float array (I, n_tuples), finite, with Σ_i max |g_i^t| at most 1."""
    shape = (len(problem.budgets), problem.space.n_tuples)
    for t, g in enumerate(_regulated(problem, np.random.default_rng(5)), 1):
        assert g.dtype == np.float64, f"draw {t} of the constraints is of {g.dtype}, not float64"
        assert g.shape == shape, f"draw {t} of the constraints has shape {g.shape}, not {shape}"
        total = np.abs(g).max(axis=1, initial=0.0).sum()
        assert total <= 1 + BOUND_TOLERANCE, f"the largest entries of draw {t} of the constraints sum to {total}"


def check_constraints_repeat_with_the_seed(problem: Problem) -> None:
    """The same seed and the same policies give the same bits."""
    one, other = (_regulated(problem, np.random.default_rng(6), episodes=10) for _ in range(2))
    for t, (g, again) in enumerate(zip(one, other, strict=True), 1):
        assert g.tobytes() == again.tobytes(), f"draw {t} of the constraints differs for the same seed"


def check_constraints_stay_between_their_extremes(problem: Problem) -> None:
    """Under constraints that change, no policy uses more in an episode than under the worst of their extremes."""
    if not isinstance(problem.constraints, ChangingConstraints):
        return
    occupancies = np.stack([problem.mdp.occupancy(policy) for policy in _policies(problem.space)], axis=1)
    most = (problem.constraints.extremes @ occupancies).max(axis=0) + BOUND_TOLERANCE
    for t, g in enumerate(_regulated(problem, np.random.default_rng(10)), 1):
        assert (g @ occupancies <= most).all(), f"in episode {t} a policy uses more than under any of the extremes"


def check_constraints_average_to_their_mean(problem: Problem) -> None:
    """The average use of draws, under a few policies, is the use of the mean (not for constraints that change)."""
    if problem.changing:
        return
    uses, expected = _uses(problem)
    off = np.abs(uses.mean(axis=0) - expected)
    allowed = SIGMAS * uses.std(axis=0) / np.sqrt(len(uses)) + BOUND_TOLERANCE
    worst = int(np.argmax(off - allowed)) if off.size else 0
    assert (off <= allowed).all(), (
        f"the average use of draws differs from that of their mean by {off[worst]:.3g}, {allowed[worst]:.3g} allowed"
    )


def check_constraints_are_independent_from_episode_to_episode(problem: Problem) -> None:
    """Uses of successive draws are uncorrelated up to chance (not for constraints that change)."""
    if problem.changing:
        return
    uses, _ = _uses(problem)
    centred = uses - uses.mean(axis=0)
    power = (centred**2).mean(axis=0)
    correlation = (centred[1:] * centred[:-1]).mean(axis=0) / np.where(power > 1e-20, power, np.inf)
    largest = np.abs(correlation).max(initial=0.0)
    allowed = SIGMAS / np.sqrt(len(uses))
    assert largest <= allowed, f"successive draws have a correlation of {largest:.3g}, {allowed:.3g} allowed"


def check_playing_changes_nothing(problem: Problem) -> None:
    """A run does not change the model, the mean of the constraints or the budgets."""

    def parts() -> dict[str, FloatArray]:
        mean = problem.constraints.mean
        return {"transitions": problem.mdp.transitions, "mean of the constraints": mean, "budgets": problem.budgets}

    before = {name: part.copy() for name, part in parts().items()}
    rng = np.random.default_rng(8)
    for _ in zip(_played(problem, rng, episodes=10), _regulated(problem, rng, episodes=10), strict=True):
        pass
    for name, part in parts().items():
        assert np.array_equal(before[name], part), f"the {name} changed while the problem was played"


def _played(problem: Problem, rng: np.random.Generator, episodes: int = EPISODES) -> Iterator[FloatArray]:
    """Yield f^1, f^2, … of a new run in which a few policies are played in turn."""
    policies = _policies(problem.space)
    adversary: Adversary = problem.losses.begin(rng)
    for t in range(1, episodes + 1):
        yield adversary.loss(t)
        adversary.watch(policies[t // 3 % len(policies)])


def _regulated(problem: Problem, rng: np.random.Generator, episodes: int = EPISODES) -> Iterator[FloatArray]:
    """Yield g^1, g^2, … of a new run in which a few policies are played in turn."""
    policies = _policies(problem.space)
    regulator: Regulator = problem.begin_constraints(rng)
    for t in range(1, episodes + 1):
        yield regulator.constraints(t)
        regulator.watch(policies[t // 3 % len(policies)])


def _uses(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return the uses <g_i^t, θ> of draws under a few policies, (DRAWS, I · policies), and those of the mean."""
    occupancies = np.stack([problem.mdp.occupancy(policy) for policy in _policies(problem.space)], axis=1)
    rng = np.random.default_rng(7)
    drawn = [(problem.constraints.sample(rng) @ occupancies).ravel() for _ in range(DRAWS)]
    return np.array(drawn), (problem.constraints.mean @ occupancies).ravel()


def _policies(space: LayeredSpace) -> list[Policy]:
    """Return the uniform policy, and two random ones that are nearly deterministic."""
    policies, rng = [Policy.uniform(space)], np.random.default_rng(9)
    for _ in range(2):
        weights = rng.exponential(size=space.n_pairs) ** 4
        policies.append(Policy.from_occupancy(space, space.expand_to_tuples(weights)))
    return policies

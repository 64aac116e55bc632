"""What a log says of a policy: by hand, by simulation, and where it says nothing."""

from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from benchmarks.off_policy import costs, coverage, policies, truth
from tests.problems.recorded import recorded
from tightrope import InvalidInputError
from tightrope.lab.metrics import Account
from tightrope.problems.logs.evaluation import Estimate, Evaluation

BUDGETS = ("hours",)


def test_the_value_of_the_logging_policy_is_the_mean_of_the_log() -> None:
    columns = recorded(300, seed=1)
    problem = truth()
    evaluation = tr.evaluate(tr.Policy.uniform(problem.space), columns, budgets=BUDGETS)
    assert evaluation.importance is not None
    paid = np.reshape(columns["loss"], (300, 7)).sum(axis=1).mean()
    assert evaluation.importance["loss"].value == pytest.approx(paid)
    assert evaluation.effective == pytest.approx(300)
    assert evaluation.model["loss"].value == pytest.approx(paid, abs=15)
    for found in (evaluation.model, evaluation.importance):
        for name, right in costs(problem, tr.Policy.uniform(problem.space)).items():
            assert right in found[name]


def test_the_model_that_is_believed_is_the_problem_of_the_log() -> None:
    """With costs and laws pooled over steps alike, up to the last moves, which lead nowhere in layers."""
    columns = recorded(200, seed=2)
    apart = tr.Problem.from_log(columns, budgets={"hours": 2}, by_step=True)
    policy = tr.Policy.uniform(apart.space)
    evaluation = tr.evaluate(policy, columns, budgets=BUDGETS, by_step=True)
    theta = apart.mdp.occupancy(policy)
    loss = apart.loss_in_units(float(apart.losses.begin(np.random.default_rng(0)).loss(1) @ theta), 1.0)
    assert evaluation.model["loss"].value == pytest.approx(loss)
    [hours] = apart.use_in_units(apart.constraints.mean @ theta)
    assert evaluation.model["hours"].value == pytest.approx(hours)


def test_intervals_hold_as_often_as_they_say() -> None:
    """A smaller edition of python -m benchmarks.off_policy, which makes 1,000 simulations."""
    for policy, method, what, n, held, _ in coverage(40, seed=5000):
        assert held >= 0.9 * n, (policy, method, what, held, n)


def test_intervals_are_wider_at_a_higher_level_and_with_fewer_episodes() -> None:
    policy = policies(truth())["near"]
    log = tr.read_log(recorded(400, seed=3), budgets=BUDGETS)
    few = tr.read_log(recorded(100, seed=3), budgets=BUDGETS)

    def widths(evaluation: Evaluation) -> list[float]:
        assert evaluation.importance is not None
        found = (*evaluation.model.values(), *evaluation.importance.values())
        return [estimate.high - estimate.low for estimate in found]

    for wide in (widths(tr.evaluate(policy, log, level=0.99)), widths(tr.evaluate(policy, few))):
        for one, two in zip(wide, widths(tr.evaluate(policy, log)), strict=True):
            assert one > two


def test_what_was_never_tried_is_refused() -> None:
    problem = truth()
    columns = recorded(50, seed=4, first=1.0)  # the machine was never serviced
    serviced = policies(problem)["near"]
    with pytest.raises(InvalidInputError, match=r"does not have in \d+% of its episodes.*'service' in 'good"):
        tr.evaluate(serviced, columns, budgets=BUDGETS)
    seldom = tr.Policy.uniform(problem.space).probabilities.copy()
    for i, (s, a) in enumerate(problem.space.pairs.tolist()):
        many = (problem.space.pairs[:, 0] == s).sum() > 1
        first = problem.action_name(a) in ("run", "stand")
        seldom[i] = (0.999 if first else 0.001) if many else 1.0
    evaluation = tr.evaluate(tr.Policy(problem.space, seldom), columns, budgets=BUDGETS)
    assert 0.001 < evaluation.unknown < 0.01
    assert "takes actions that the log does not have in 0." in str(evaluation)


def test_weights_that_few_episodes_carry_are_refused() -> None:
    evaluation = tr.evaluate(policies(truth())["best"], recorded(100, seed=5), budgets=BUDGETS)
    assert evaluation.importance is None
    assert evaluation.effective is not None and evaluation.effective < 20
    assert "No estimate by importance" in str(evaluation)


def test_without_probabilities_there_are_no_weights() -> None:
    columns = recorded(60, seed=6)
    del columns["probability"]
    evaluation = tr.evaluate(tr.Policy.uniform(truth().space), columns, budgets=BUDGETS)
    assert (evaluation.importance, evaluation.effective, evaluation.why) == (None, None, "")
    assert str(evaluation).splitlines()[2].startswith("loss   by the model   -")


def test_bounds_that_do_not_hold_are_refused_and_wider_ones_make_wider_intervals() -> None:
    columns, policy = recorded(60, seed=7), tr.Policy.uniform(truth().space)
    with pytest.raises(InvalidInputError, match=r"row \d+: loss is .*, outside the bounds -1 to 1"):
        tr.evaluate(policy, columns, budgets=BUDGETS, bounds={"loss": (-1, 1)})
    wide = tr.evaluate(policy, columns, budgets=BUDGETS, bounds={"loss": (-1000, 1000)})
    assert wide.model["loss"].high > tr.evaluate(policy, columns, budgets=BUDGETS).model["loss"].high


def test_learners_are_evaluated_by_their_policy() -> None:
    columns, problem = recorded(60, seed=8), truth()
    learner = tr.make_learner("ucpd-practical", problem)
    assert tr.evaluate(learner, columns, budgets=BUDGETS) == tr.evaluate(learner.policy, columns, budgets=BUDGETS)
    with pytest.raises(InvalidInputError, match="policy is 3"):
        tr.evaluate(3, columns, budgets=BUDGETS)


def test_an_estimate_is_printed_with_its_interval() -> None:
    assert str(Estimate(1.23456, 1, 2)) == "1.235 (1 to 2)"
    assert 1.5 in Estimate(1, 1, 2) and 2.5 not in Estimate(1, 1, 2)


# learners that know a log


def test_a_learner_counts_a_log_of_any_policy() -> None:
    problem, log = truth(), tr.read_log(recorded(200, seed=9), budgets=BUDGETS)
    for name in ("ucpd-practical", "ucpd"):
        learner, plain = (tr.make_learner(name, problem, episodes=50) for _ in range(2))
        learner.learn_from(log)  # type: ignore[attr-defined]
        visits, _ = learner.counts.totals()  # type: ignore[attr-defined]
        assert visits[:2].sum() == 200 == learner.counts.episodes  # type: ignore[attr-defined]
        assert learner.observed == 0
        np.testing.assert_array_equal(learner.policy.probabilities, plain.policy.probabilities)
        assert np.isfinite(learner.confidence_set.radius).sum() > np.isfinite(plain.confidence_set.radius).sum()  # type: ignore[attr-defined]
        warm, cold = (tr.run(problem, one, episodes=50, regret="last") for one in (learner, plain))
        assert warm["loss"][-1] != cold["loss"][-1]


class Played:
    """Episodes of the uniform policy, as their paths."""

    def __init__(self, problem: tr.Problem, episodes: int, rng: np.random.Generator) -> None:
        account, space = Account(problem), problem.space
        loss, uses = np.zeros(space.n_tuples), np.zeros((len(problem.budgets), space.n_tuples))
        even = tr.Policy.uniform(space)
        self.episodes = [
            np.array(account.play(even, loss, uses, rng.random(2 * space.n_layers))[2]) for _ in range(episodes)
        ]

    def paths(self, space: tr.LayeredSpace) -> list[np.ndarray]:
        return self.episodes


def test_a_warm_start_pays() -> None:
    problem = tr.make("inventory")
    regrets, violations = [], []
    for log in (Played(problem, 400, np.random.default_rng(1)), None):
        learner = tr.make_learner("ucpd-practical", problem)
        if log is not None:
            learner.learn_from(log)  # type: ignore[attr-defined]
        history = tr.run(problem, learner, episodes=300, seed=2, regret="last")
        regrets.append(float(history["regret"][-1]))
        violations.append(float(history["violation"][-1]))
    assert regrets[0] < 0.75 * regrets[1]
    assert violations[0] <= violations[1]


def test_a_warm_started_learner_is_saved_and_continues(tmp_path: Path) -> None:
    problem, path = truth(), tmp_path / "learner"
    learner = tr.make_learner("ucpd-practical", problem)
    learner.learn_from(tr.read_log(recorded(100, seed=11), budgets=BUDGETS))  # type: ignore[attr-defined]
    learner.save(path)
    loaded = tr.load(path)
    first, second = (tr.run(problem, one, episodes=30, regret="never") for one in (learner, loaded))
    np.testing.assert_array_equal(first["loss"], second["loss"])


@pytest.mark.parametrize(
    ("name", "words"),
    [("opt-cmdp", "averages costs over its own visits"), ("ucpd-known", "knows the dynamics")],
)
def test_learners_for_which_counts_are_more_than_dynamics_refuse(name: str, words: str) -> None:
    learner = tr.make_learner(name, truth(), episodes=10)
    with pytest.raises(InvalidInputError, match=words):
        learner.learn_from(tr.read_log(recorded(10, seed=12), budgets=BUDGETS))  # type: ignore[attr-defined]


def test_a_log_comes_before_the_first_episode() -> None:
    problem = truth()
    learner = tr.make_learner("ucpd-practical", problem)
    tr.run(problem, learner, episodes=3, regret="never")
    with pytest.raises(InvalidInputError, match="has observed 3 episodes; a log comes before the first"):
        learner.learn_from(tr.read_log(recorded(10, seed=13), budgets=BUDGETS))  # type: ignore[attr-defined]


def test_names_of_states_do_not_change_an_interval() -> None:
    columns = recorded(200, seed=1)
    other = {"good": "start", "worn": "done"}
    renamed = {
        name: [other.get(cell, cell) for cell in cells] if name in ("state", "next_state") else cells
        for name, cells in columns.items()
    }
    found = []
    for log in (tr.read_log(columns, budgets=["hours"]), tr.read_log(renamed, budgets=["hours"])):
        problem = tr.Problem.from_log(log, budgets={"hours": 2})
        found.append(tr.evaluate(tr.Policy.uniform(problem.space), log).model)
    assert found[0] == found[1]


def test_bounds_of_what_the_log_does_not_have_are_refused() -> None:
    log = tr.read_log(recorded(60, seed=1), budgets=["hours"])
    policy = tr.Policy.uniform(tr.Problem.from_log(log, budgets={"hours": 2}).space)
    with pytest.raises(InvalidInputError, match="bounds are for 'days'"):
        tr.evaluate(policy, log, bounds={"days": (0.0, 1.0)})

"""The contracts of problems and learners as small named checks, which you can run on your own.

    tr.checks.check_problem(problem)
    tr.checks.check_learner(lambda problem, *, episodes, seed: Mine(problem.space, problem.budgets))

Each check raises an AssertionError that says what was promised and what happened instead. In a test of yours:

    @pytest.mark.parametrize("check", tr.checks.yield_problem_checks(), ids=lambda check: check.__name__)
    def test_my_problem(check):
        check(my_problem())

Random numbers in the checks have fixed seeds, so a problem that passes once always passes.
"""

from tightrope.checks.learner import check_learner, yield_learner_checks
from tightrope.checks.problems import (
    DRAWS,
    EPISODES,
    SIGMAS,
    ProblemCheck,
    check_budgets_are_within_assumption_2,
    check_budgets_can_be_met,
    check_constraints_are_independent_from_episode_to_episode,
    check_constraints_are_within_assumption_2,
    check_constraints_average_to_their_mean,
    check_constraints_repeat_with_the_seed,
    check_constraints_stay_between_their_extremes,
    check_every_state_can_be_reached,
    check_losses_are_within_assumption_2,
    check_losses_handed_out_stay_as_they_were,
    check_losses_repeat_with_the_seed,
    check_names_tell_states_and_actions_apart,
    check_playing_changes_nothing,
    check_problem,
    check_transitions_are_distributions,
    check_units_lead_there_and_back,
    yield_problem_checks,
)

__all__ = [
    "DRAWS",
    "EPISODES",
    "SIGMAS",
    "ProblemCheck",
    "check_budgets_are_within_assumption_2",
    "check_budgets_can_be_met",
    "check_constraints_are_independent_from_episode_to_episode",
    "check_constraints_are_within_assumption_2",
    "check_constraints_average_to_their_mean",
    "check_constraints_repeat_with_the_seed",
    "check_constraints_stay_between_their_extremes",
    "check_every_state_can_be_reached",
    "check_learner",
    "check_losses_are_within_assumption_2",
    "check_losses_handed_out_stay_as_they_were",
    "check_losses_repeat_with_the_seed",
    "check_names_tell_states_and_actions_apart",
    "check_playing_changes_nothing",
    "check_problem",
    "check_transitions_are_distributions",
    "check_units_lead_there_and_back",
    "yield_learner_checks",
    "yield_problem_checks",
]

"""Ties of problems: declared by unroll, possible in pad, and true."""

from dataclasses import replace

import numpy as np
import pytest

from tightrope import InvalidInputError, LayeredMDP, Ties, make, pad, unroll
from tightrope.checks import check_problem
from tightrope.problems import PROBLEMS

#: A coin and a die in a loop: state 0 goes to 0 or 1, state 1 back or to the end, 2.
ROWS = [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 2), (2, 0, 2)]
CHANCES = [0.25, 0.75, 0.4, 0.6, 1.0]


def test_unrolled_a_state_and_action_has_one_law() -> None:
    layout = unroll(ROWS, CHANCES, n_steps=4)
    assert layout.ties is not None
    laws: dict[tuple[int, int], set[int]] = {}
    for (s, a), law, d in zip(
        layout.space.pairs.tolist(), layout.ties.law.tolist(), layout.space.successors_per_pair, strict=True
    ):
        if d > 1:
            laws.setdefault((int(layout.state[s]), a), set()).add(law)
    assert {key: len(value) for key, value in laws.items()} == {(0, 0): 1, (1, 0): 1}
    assert len(set.union(*laws.values())) == 2
    for j, k in zip(*np.nonzero(layout.ties.outcome[:, None] == layout.ties.outcome[None]), strict=True):
        assert layout.mdp.transitions[j] == layout.mdp.transitions[k]
        assert layout.tuples[j, :3].tolist() == layout.tuples[k, :3].tolist()


def test_terminal_states_are_merged_alike_at_every_step() -> None:
    """Two ways into two terminal states are one outcome, the same one at every step."""
    rows, chances = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 1)], [0.5, 0.2, 0.3, 0.5, 0.5]
    layout = unroll(rows, chances, n_steps=4, terminal=[1, 2])
    assert layout.ties is not None
    wide = layout.space.successors_per_pair > 1
    assert len(set(layout.ties.law[wide].tolist())) == 2
    assert wide.sum() == 6


def test_what_changes_over_time_is_not_tied() -> None:
    steps = np.repeat(np.arange(3), len(ROWS))
    assert unroll(ROWS * 3, CHANCES * 3, n_steps=3, steps=steps).ties is None
    assert unroll([(0, 0, 0)], [1.0], n_steps=3).ties is None


def test_a_padded_graph_says_which_rows_are_one_outcome() -> None:
    rows = [(0, 0, 1), (0, 0, 2), (1, 0, 3), (1, 0, 4), (2, 0, 3), (2, 0, 4), (3, 0, 5), (4, 0, 5)]
    chances = [0.5, 0.5, 0.1, 0.9, 0.1, 0.9, 1.0, 1.0]
    assert pad(rows, chances).ties is None
    layout = pad(rows, chances, ties=[0, 1, 2, 3, 2, 3, 4, 5])
    assert layout.ties is not None
    assert layout.ties.law.tolist() == [0, 1, 1, 2, 3]
    with pytest.raises(
        InvalidInputError, match=r"^row 2 \(1, 0, 3\) and row 4 \(2, 0, 3\) are tied, but have different successors"
    ):
        pad(rows, chances, ties=[0, 1, 2, 3, 2, 9, 4, 5])
    with pytest.raises(InvalidInputError, match=r"^row 2 \(1, 0, 3\): two of its successors are tied"):
        pad(rows, chances, ties=[0, 1, 2, 2, 3, 9, 4, 5])
    with pytest.raises(
        InvalidInputError, match=r"^row 4 \(2, 0, 3\) and row 3 \(1, 0, 4\) .* probabilities are 0.1 and"
    ):
        pad(rows, chances, ties=[0, 1, 2, 3, 3, 2, 4, 5])
    with pytest.raises(InvalidInputError, match=r"shape \(3,\)"):
        pad(rows, chances, ties=[0, 1, 2])


def test_an_outcome_is_as_likely_wherever_it_comes() -> None:
    """Also where nothing is left to learn, so that no two pairs with a law meet."""
    with pytest.raises(
        InvalidInputError, match=r"row 2 \(1, 0, 3\) and row 0 \(0, 0, 1\) .* probabilities are 1 and 0.5"
    ):
        pad([(0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 0, 3), (3, 0, 4)], [0.5, 0.5, 1, 1, 1], ties=[0, 1, 0, 2, 3])


def test_unrolled_rows_of_several_pairs_and_steps_may_share_a_law() -> None:
    """Two machines that wear out alike, in two steps of three."""
    rows = [(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 0)]
    chances = np.array([[0.9, 0.1, 0.9, 0.1], [0.5, 0.5, 0.5, 0.5], [0.9, 0.1, 0.9, 0.1], [0.9, 0.1, 0.9, 0.1]])
    labels = [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [0, 1, 0, 1]]
    steps = np.repeat(np.arange(4), 4)
    assert unroll(rows * 4, chances.ravel(), n_steps=4, steps=steps).ties is None
    layout = unroll(rows * 4, chances.ravel(), n_steps=4, steps=steps, ties=np.ravel(labels))
    assert layout.ties is not None
    assert layout.ties.law.tolist() == [0, 1, 1, 0, 0, 2, 3]  # the last step leads to the end, whatever happens
    both = unroll(rows, chances[0], n_steps=3, ties=labels[0])
    assert both.ties is not None
    assert both.ties.law.tolist() == [0, 0, 0, 1, 2]


def test_tied_pairs_of_different_laws_are_refused_with_the_place() -> None:
    problem = make("media-streaming")
    assert problem.ties is not None
    P = problem.mdp.transitions.copy()
    shared = np.bincount(problem.ties.outcome)[problem.ties.outcome] > 1
    j = int(np.flatnonzero((P < 1) & shared)[-1])
    first, last = np.searchsorted(problem.space.pair_of_tuple, problem.space.pair_of_tuple[j] + np.arange(2))
    P[first:last] = np.eye(last - first)[0]
    with pytest.raises(InvalidInputError, match="are tied, but their probabilities are"):
        replace(problem, mdp=LayeredMDP(problem.space, P))
    with pytest.raises(InvalidInputError, match="the ties are for"):
        replace(problem, ties=Ties(make("random").space, np.arange(make("random").space.n_tuples)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_that_is_unrolled_says_so(name: str) -> None:
    problem = make(name)
    once = name in ("ev-charging", "machine-cycle", "taxi-fuel", "mannor-game")  # nothing to learn more than once
    assert (problem.ties is None) == (name in ("random", "random-cmdp") or once)


def test_the_checks_of_a_problem_pass_with_ties() -> None:
    check_problem(make("inventory"))

"""What one does with a policy: look a state up, draw an action, take it as a table; by number, and by name."""

import copy
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tests.test_space import diamond

STATES, ACTIONS = ["home", "lane", "road", "town"], ["walk", "ride", "run"]

#: Of (home, walk), (home, ride), (lane, walk), (lane, run), (road, ride).
PROBABILITIES = [0.25, 0.75, 0.9, 0.1, 1.0]


def policy() -> tr.Policy:
    return tr.Policy(diamond().named(STATES, ACTIONS), PROBABILITIES)


def test_a_state_is_looked_up_by_number_or_name() -> None:
    assert policy()[1] == policy()[np.int32(1).item()] == {0: 0.9, 2: 0.1}
    assert policy()["lane"] == {"walk": 0.9, "run": 0.1}
    assert policy()["town"] == policy()[3] == {}
    assert tr.Policy(diamond(), PROBABILITIES)[0] == {0: 0.25, 1: 0.75}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (4, "state is 4; it must be a whole number of at least 0 and at most 3"),
        (-1, "state is -1"),
        (True, "state is True"),
        ("lain", r"there is no state 'lain'; did you mean 'lane'\?"),
    ],
)
def test_an_unknown_state_is_refused(state: int | str, words: str) -> None:
    with pytest.raises(tr.InvalidInputError, match=words):
        policy()[state]


def test_names_that_are_missing_or_not_unique() -> None:
    with pytest.raises(tr.InvalidInputError, match=r"'home', and the states of .* have no names, only numbers"):
        tr.Policy(diamond(), PROBABILITIES)["home"]
    twice = tr.Policy(diamond().named(["home", "way", "way", "town"]), PROBABILITIES)
    assert twice["home"] == {"0": 0.25, "1": 0.75}
    with pytest.raises(tr.InvalidInputError, match="several states have the name 'way'; give a number"):
        twice["way"]
    with pytest.raises(tr.InvalidInputError, match="state_names has 2 names; expected 4, or none"):
        diamond().named(["home", "town"])
    with pytest.raises(TypeError, match="not iterable"):
        list(policy())  # type: ignore[call-overload]


def test_draws_have_the_probabilities_and_take_one_number_each() -> None:
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    drawn = [policy().sample("lane", rng) for _ in range(4000)]
    assert drawn == np.where(twin.random(4000) < 0.9, 0, 2).tolist()  # walk below 0.9, else run
    assert {policy().sample("road", rng) for _ in range(5)} == {1}
    with pytest.raises(tr.InvalidInputError, match="state 'town' ends the episode"):
        policy().sample("town", rng)
    with pytest.raises(tr.InvalidInputError, match="rng is 3; expected a Generator"):
        policy().sample(0, 3)  # type: ignore[arg-type]


def test_the_table_has_a_row_for_each_pair() -> None:
    assert policy().table() == {
        "layer": [0, 0, 1, 1, 1],
        "state": [0, 0, 1, 1, 2],
        "action": [0, 1, 0, 2, 1],
        "probability": PROBABILITIES,
        "state_name": ["home", "home", "lane", "lane", "road"],
        "action_name": ["walk", "ride", "walk", "run", "ride"],
    }
    assert tr.Policy(diamond(), PROBABILITIES).table()["state_name"] == ["0", "0", "1", "1", "2"]


def test_named_spaces_are_the_same_spaces() -> None:
    space = diamond()
    named = space.named(STATES)
    assert named == space
    assert hash(named) == hash(space)
    assert named.state_number("home") == 0
    assert named.named(["a", "b", "c", "d"]).state_number("d") == 3
    assert named.named(action_names=ACTIONS).state_names == tuple(STATES)
    assert space.state_names == ()
    assert copy.deepcopy(named) is named


def test_policies_of_learners_have_the_names_of_the_problem(tmp_path: Path) -> None:
    problem = tr.make("edge-cloud")
    learner = tr.make_learner("ucpd-practical", problem, episodes=5)
    assert learner.policy["cell 0, site 0, step 0"] == {f"site {k}": 0.25 for k in range(4)}
    rngs = np.random.default_rng(2), np.random.default_rng(2)
    assert learner.act("cell 0, site 0, step 0", rngs[0]) == learner.policy.sample(0, rngs[1])
    learner.save(tmp_path / "learner")  # names are the problem's, and not saved
    again = tr.Policy(problem.space, tr.load(tmp_path / "learner").policy.probabilities)
    assert again.table() == learner.policy.table()


def test_an_error_lists_only_some_of_many_states() -> None:
    policy = tr.Policy.uniform(tr.make("edge-cloud").space)
    with pytest.raises(tr.InvalidInputError, match=r"no state 'cell 9'.* and 2\d\d more\)$") as caught:
        policy["cell 9"]
    assert len(str(caught.value)) < 1000

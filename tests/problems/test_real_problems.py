"""The problems on recorded data: their moves and charges by hand, from the tables themselves."""

import re

import numpy as np
import pytest

from tests.conftest import FloatArray
from tightrope import Problem, make
from tightrope.problems import PROBLEMS
from tightrope.problems.losses import Replay
from tightrope.problems.suite import ev_charging, flight_turnaround, low_carbon_compute
from tightrope.problems.traces import read_rows

REAL = [name for name, entry in PROBLEMS.items() if entry.episodes is not None]


def losses(problem: Problem) -> FloatArray:
    """(n_episodes, n_tuples) in the problem's own units."""
    assert isinstance(problem.losses, Replay)
    return problem.losses.scenarios * problem.loss_scale + problem.loss_offset


def named(problem: Problem, j: int) -> tuple[str, str, str]:
    s, a, s_next = problem.space.tuples[j].tolist()
    return problem.state_name(s), problem.action_name(a), problem.state_name(s_next)


def test_there_are_three() -> None:
    assert REAL == ["ev-charging", "flight-turnaround", "low-carbon-compute"]


@pytest.mark.parametrize("name", REAL)
def test_losses_are_the_recorded_episodes_in_their_order(name: str) -> None:
    problem = make(name)
    assert isinstance(problem.losses, Replay)
    assert len(problem.losses.scenarios) == PROBLEMS[name].episodes
    play = problem.losses.begin(np.random.default_rng(0))
    for episode in (1, 2, PROBLEMS[name].episodes):
        assert episode is not None
        np.testing.assert_array_equal(play.loss(episode), problem.losses.scenarios[episode - 1])


def test_charging_is_paid_at_the_price_of_its_hour() -> None:
    problem = make("ev-charging")
    charged, uses = losses(problem), problem.use_in_units(problem.constraints.mean.T)
    _, rows = read_rows("dutch-day-ahead-prices")
    units = dict(ev_charging.RATES)
    night = 2800  # some night of 2022
    for j in range(problem.space.n_tuples):
        state, action, then = named(problem, j)
        step = int(state.rpartition(" ")[2])
        hour = ev_charging.HOURS[step]
        price = float(rows[night + (hour < 12)][1 + hour]) / 1000
        n = units[action]
        grid = 3.7 * n / 0.92 if n > 0 else 3.7 * n * 0.92
        assert charged[night, j] == pytest.approx(price * grid, abs=1e-9)
        assert uses[j, 1] == pytest.approx(3.7 if n < 0 else 0.0)
        if state.startswith("away"):
            assert n == 0
            continue
        left = float(state.split()[0]) - 3.7 * n
        assert uses[j, 0] == pytest.approx(left if hour == 6 else 0.0, abs=0.06)
        if hour != 6:
            assert float(then.split()[0]) == pytest.approx(left, abs=0.06)


def test_every_car_is_home_by_midnight_and_none_is_full() -> None:
    arrives, missing = ev_charging.home_charging()
    assert (arrives[:7] < 0.6).all()
    assert arrives[7] == 1
    assert missing.sum() == pytest.approx(1)
    assert missing[0] == 0
    assert missing @ np.arange(13) * 3.7 == pytest.approx(22.2, abs=2)  # kWh, of a mean session at home


def test_jobs_emit_what_the_grid_does_in_their_hour() -> None:
    problem = make("low-carbon-compute", utility="SCE")
    kilograms, uses = losses(problem), problem.use_in_units(problem.constraints.mean.T)
    rows = [row for row in read_rows("california-marginal-emissions")[1] if row[0] == "SCE"]
    for j in range(problem.space.n_tuples):
        state, action, _ = named(problem, j)
        waiting, hour, run = int(state.split()[0]), int(state.rpartition(" ")[2]), int(action.split()[1])
        assert kilograms[100, j] == pytest.approx(20 * run * float(rows[100][2 + hour]) / 1000)
        assert uses[j, 0] == pytest.approx((waiting - run) * (8 if hour == 23 else 1), abs=1e-9)
        assert uses[j, 1] == pytest.approx(20 * run * (0.4 if 16 <= hour < 21 else 0.18), abs=1e-9)


def test_jobs_come_whatever_waits_and_a_full_queue_takes_no_more() -> None:
    problem = make("low-carbon-compute")
    found: dict[tuple[str, str], dict[str, float]] = {}
    for j in range(problem.space.n_tuples):
        state, action, then = named(problem, j)
        found.setdefault((state, action), {})[then] = float(problem.mdp.transitions[j])
    assert found["4 waiting, step 9", "run 1"] == pytest.approx(
        {"3 waiting, step 10": 0.3, "4 waiting, step 10": 0.4, "5 waiting, step 10": 0.3}
    )
    assert found["8 waiting, step 22", "run 1"] == pytest.approx({"7 waiting, step 23": 0.7, "8 waiting, step 23": 0.3})
    assert problem.ties is not None
    assert problem.ties.n_laws < problem.space.n_pairs / 5


def test_delays_propagate_as_they_did_and_hurrying_makes_up_time() -> None:
    problem = make("flight-turnaround")
    counts: dict[tuple[int, int], dict[int, int]] = {}
    for row in read_rows("new-york-turnarounds")[1]:
        part, now, next_class, count = map(int, row)
        counts.setdefault((part, now), {})[next_class] = count
    minutes, delays = losses(problem), list(flight_turnaround.DELAYS)
    late = [row for row in read_rows("new-york-lateness")[1] if row[0] == "2013-07-01"]
    day = sorted({row[0] for row in read_rows("new-york-lateness")[1]}).index("2013-07-01")
    leaves = {"standard": 0, "quick": 15, "double": 30, "spare": 1000}
    checked = 0
    for j in range(problem.space.n_tuples):
        state, action, then = named(problem, j)
        match = re.fullmatch(r"(\d+) minutes late, step (\d)", state)
        if match is None:
            assert state == "start"
            continue
        delay, part = int(match[1]), int(match[2])
        minute = max(0, delay - leaves[action])
        now = sum(minute >= first for first in flight_turnaround.CLASS_FROM)
        assert minutes[day, j] == pytest.approx(int(late[part][3 + now]) / 10)
        if part < 3:
            law = counts[part, now]
            expected = law[delays.index(int(then.split()[0]))] / sum(law.values())
            assert problem.mdp.transitions[j] == pytest.approx(expected)
            checked += 1
    assert checked > 300


def test_budgets_are_options() -> None:
    night = make("ev-charging", max_missing=5, max_discharged=0)
    np.testing.assert_allclose(night.use_in_units(night.budgets), [5, 0])
    day = make("low-carbon-compute", max_waiting=40, max_bill=90)
    np.testing.assert_allclose(day.use_in_units(day.budgets), [40, 90])
    legs = make("flight-turnaround", max_crew=30, max_spare=0)
    np.testing.assert_allclose(legs.use_in_units(legs.budgets), [30, 0])
    assert low_carbon_compute.hourly_emissions("PGE").shape == (854, 24)

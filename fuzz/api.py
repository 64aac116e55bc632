"""Everything public, called with what it was not made for: it answers, or refuses in words, soon and in little memory.

python -m fuzz.api --seed 0 --tries 10000

A wrong number of arguments and an unknown keyword stay TypeErrors, as in all of Python, and are not tried.
"""

import datetime
import decimal
import fractions
import itertools
import os
import random
import types
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tightrope as tr
from fuzz import watchdog
from fuzz.around import Case, of_pictures, of_studies, of_theory
from tightrope.checks.worlds import drive, ordinary_world
from tightrope.confidence.rules import CONFIDENCE_RULES
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.learners.needs import NEEDS
from tightrope.learners.registry import options_of
from tightrope.planning.hindsight import HindsightLP, best_policy, slater_slack
from tightrope.problems import PROBLEMS
from tightrope.problems.constraints import NOISES, make_constraints
from tightrope.problems.losses import LOSSES, make_losses


class Hostile:
    """An object whose every method raises."""

    def _raise(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("hostile")

    __repr__ = __str__ = __len__ = __iter__ = __getitem__ = __array__ = __float__ = __int__ = __index__ = _raise
    __bool__ = __contains__ = __fspath__ = _raise


class Endless:
    """Entries without end, of any number, all alike."""

    def __iter__(self) -> Iterator[int]:
        return itertools.repeat(1)

    def __getitem__(self, key: Any) -> int:
        return 1

    def __len__(self) -> int:
        return 2**62


def nested(depth: int) -> Any:
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


def itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@cache
def other_space() -> tr.LayeredSpace:
    return tr.LayeredSpace.dense([1, 3, 1], 2)


@cache
def parts() -> dict[str, Any]:
    """What most callables take."""
    space = tr.LayeredSpace.dense([1, 2, 1], 2)
    problem = tr.make("random", layer_sizes=[1, 2, 1], n_actions=2, n_scenarios=2)
    mdp = problem.mdp
    return {
        "space": space,
        "mdp": mdp,
        "policy": tr.Policy.uniform(space),
        "problem": problem,
        "learner": tr.make_learner("ucpd", problem, episodes=5),
        "box": tr.Box(np.zeros(8), np.ones(8)),
        "ball": tr.L1Ball(mdp.transitions, np.full(6, 0.5)),
        "layout": tr.unroll([(0, 0, 0), (0, 1, 1), (1, 0, 1)], [1.0, 1.0, 1.0], n_steps=3),
        "ties": tr.Ties(space, np.arange(8)),
        "lp": HindsightLP(mdp, np.full((1, 8), 0.1), [1.0]),
        "history": tr.run(problem, "uniform", episodes=3),
    }


#: What plays as many episodes as it is told.
PLAYING = ("run", "compare", "play_live", "theory.check", "theory.measure")

#: Made anew for every try: what is changed by one is no matter to the next.
WRONG: tuple[Callable[[], Any], ...] = (
    *(lambda value=value: value for value in (
        None, True, False, Ellipsis, NotImplemented, int, object, np.float64, tr.Policy, np, len, "", "abc", "ucpd",
        "1",
        "\0", "\ud800", "x" * 100_000, b"", b"abc", 0, 1, -1, 2, 3, 7, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**12,
        10**400, -(10**400), 10**5000, 0.0, -0.0, 0.5, 1.0, 2.5, -0.5, 1e-320, 1e16, 1e200, 1e308, -1e308,
        float("nan"), float("inf"), float("-inf"), 1j, complex("nan"), np.int8(3), np.uint64(2**64 - 1),
        np.float32(0.5),
        np.float16("inf"), np.longdouble("1e4000"), np.bool_(True), np.complex64(1), np.datetime64("2020"),
        np.str_("a"),
        fractions.Fraction(1, 3), decimal.Decimal("0.5"), datetime.date(2020, 1, 1), range(3), range(10**12), slice(3),
        (), (1,), (1, 2, 3), frozenset({1}), Path("nowhere"), types.SimpleNamespace(), lambda *a, **k: None,
    )),
    object, Hostile, Endless, list, dict, set, bytearray, itertools.count,
    lambda: [[]], lambda: [1, 2, 3], lambda: [1, [2]], lambda: [[1, 2], [3]], lambda: [None], lambda: ["a", "b"],
    lambda: [10**400], lambda: [10**30, 1], lambda: [Hostile()], lambda: [float("nan")] * 3, lambda: [[[[1.0]]]],
    lambda: [0.5, 0.5], lambda: [[0.0] * 8], lambda: {"a": 1}, lambda: {0: 1.0}, lambda: {None: None}, lambda: {1, 2},
    lambda: {0: "x"}, lambda: {0: float("nan")}, lambda: {"name": "abc"}, lambda: {"name": ["fixed"]},
    lambda: {"name": "switching", "period": 10**400}, lambda: {"name": "scaled", "spread": "x"}, lambda: {1: 2},
    lambda: (i for i in range(3)), lambda: iter([1, 2]), lambda: map(str, [1]), lambda: memoryview(b"abc"),
    lambda: nested(5), lambda: nested(200), itself, lambda: np.array(3.0), lambda: np.array(None),
    lambda: np.array("a"),
    lambda: np.zeros(0), lambda: np.zeros((0, 3)), lambda: np.zeros(3), lambda: np.zeros((3, 3)),
    lambda: np.zeros((1, 1, 1, 1)),
    lambda: np.zeros(8, dtype=complex), lambda: np.full(8, np.nan), lambda: np.full(8, 1e308), lambda: np.full(8, -1.0),
    lambda: np.array([1, "a", None], dtype=object), lambda: np.array([10**400], dtype=object), lambda: np.array(["a"]),
    lambda: np.zeros(3, dtype="M8[s]"), lambda: np.zeros(3, dtype=[("a", int)]), lambda: np.ma.zeros(3),
    lambda: np.broadcast_to(0.5, (10**12,)), lambda: np.broadcast_to(1, (10**6, 10**6)),
    lambda: np.random.default_rng(0), lambda: np.random.RandomState(0), ordinary_world, lambda: other_space(),
    lambda: tr.Policy.uniform(other_space()), lambda: parts()["mdp"], lambda: parts()["policy"],
    lambda: parts()["problem"],
    lambda: parts()["learner"], lambda: tr.L1Ball([1.0], [np.inf]), lambda: tr.PaperRadius(episodes=3, level=0.1),
)  # fmt: skip


@cache
def cases() -> dict[str, Case]:
    """Everything public by name."""
    runs = of_models() | of_play() | of_problems() | of_environments() | of_registries()
    return runs | of_theory(parts()) | of_pictures(parts()) | of_studies()


def of_models() -> dict[str, Case]:
    """Spaces, models, policies, sets, and what is solved on them."""
    p = parts()
    space, mdp, policy = p["space"], p["mdp"], p["policy"]
    theta = mdp.occupancy(policy)
    return {
        "LayeredSpace": (tr.LayeredSpace, {"layer_sizes": [1, 2, 1], "n_actions": 2, "tuples": space.tuples}),
        "LayeredSpace.dense": (tr.LayeredSpace.dense, {"layer_sizes": [1, 2, 1], "n_actions": 2}),
        "LayeredSpace.from_tuples": (
            tr.LayeredSpace.from_tuples,
            {"layer_sizes": [1, 2, 1], "n_actions": 2, "tuples": space.tuples.tolist()},
        ),
        "space.layer_of": (space.layer_of, {"state": 1}),
        "space.states_of": (space.states_of, {"layer": 1}),
        "space.path": (space.path, {"states": [0, 1, 3], "actions": [0, 1]}),
        "space.sum_over_successors": (space.sum_over_successors, {"values": np.zeros(8)}),
        "space.expand_to_tuples": (space.expand_to_tuples, {"values": np.zeros(6)}),
        "space.__eq__": (space.__eq__, {"other": space}),
        "space.named": (space.named, {"state_names": ["a", "b", "c", "d"], "action_names": ["go", "run"]}),
        "space.state_number": (space.named(["a", "b", "c", "d"]).state_number, {"state": "b"}),
        "LayeredMDP": (tr.LayeredMDP, {"space": space, "transitions": mdp.transitions}),
        "LayeredMDP.from_occupancy": (tr.LayeredMDP.from_occupancy, {"space": space, "theta": theta}),
        "mdp.occupancy": (mdp.occupancy, {"policy": policy}),
        "Policy": (tr.Policy, {"space": space, "probabilities": policy.probabilities}),
        "Policy.uniform": (tr.Policy.uniform, {"space": space}),
        "policy[…]": (policy.__getitem__, {"state": 1}),
        "policy.sample": (policy.sample, {"state": 1, "rng": np.random.default_rng(0)}),
        "Policy.from_occupancy": (tr.Policy.from_occupancy, {"space": space, "theta": theta}),
        "Units": (tr.Units, {"loss_scale": 2.0, "loss_offset": 1.0, "constraint_scales": [1.0, 3.0]}),
        "Units.of_bounds": (tr.Units.of_bounds, {"loss_bounds": (0.0, 3.0), "use_bounds": [1.0], "factor": 1.0}),
        "InUnits": (tr.InUnits, {"learner": p["learner"], "units": tr.Units(constraint_scales=np.array([2.0]))}),
        "Ties": (tr.Ties, {"space": space, "outcome": np.arange(8)}),
        "L1Ball": (tr.L1Ball, {"center": mdp.transitions, "radius": np.ones(6)}),
        "KLBall": (tr.KLBall, {"center": mdp.transitions, "radius": np.ones(6)}),
        "Box": (tr.Box, {"lower": np.zeros(8), "upper": np.ones(8), "ball": None}),
        "L1Ball.check": (p["ball"].check, {"space": space}),
        "BernsteinBox": (tr.BernsteinBox, {"episodes": 5, "level": 0.1, "scale": 1.0}),
        "PaperRadius": (tr.PaperRadius, {"episodes": 5, "level": 0.1, "scale": 1.0}),
        "KnownModel": (tr.KnownModel, {"transitions": mdp.transitions}),
        "KnownModel()": (tr.KnownModel(transitions=mdp.transitions), {"space": space, "N": None, "M": None}),
        "project": (
            tr.project,
            {"space": space, "reference": theta + 0.01, "cost": np.zeros(8), "confidence": p["box"], "tolerance": 1e-9},
        ),
        "project on a ball": (
            tr.project,
            {"space": space, "reference": theta + 0.01, "cost": np.zeros(8), "confidence": p["ball"]},
        ),
        "solve_cmdp": (
            tr.solve_cmdp,
            {"mdp": mdp, "loss": np.zeros(8), "constraints": np.full((1, 8), 0.1), "budgets": [1.0]},
        ),
        "best_policy": (best_policy, {"mdp": mdp, "loss": np.zeros(8)}),
        "slater_slack": (slater_slack, {"mdp": mdp, "constraints": np.full((1, 8), 0.1), "budgets": [1.0]}),
        "HindsightLP.solve": (p["lp"].solve, {"loss": np.zeros(8)}),
    }  # fmt: skip


def of_play() -> dict[str, Case]:
    """Episodes, learners as such, files and runs."""
    p = parts()
    problem, walk = p["problem"], {"states": [0, 1, 3], "actions": [0, 1]}
    full: dict[str, Any] = walk | {"loss": np.zeros(8), "constraints": np.zeros((1, 8))}
    bandit: dict[str, Any] = walk | {"losses": np.zeros(2), "constraints": np.zeros((1, 2))}
    return {
        "Episode": (observing("ucpd", tr.Episode), full),
        "BanditEpisode": (observing("opt-cmdp", tr.BanditEpisode), bandit),
        "observe": (lambda learner, episode: tr.make_learner(learner, problem, episodes=5).observe(episode),
                    {"learner": "ucpd", "episode": tr.Episode(**full)}),
        "make": (tr.make, {"name": "random"}),
        "make_learner": (
            tr.make_learner, {"name": "ucpd", "problem": problem, "episodes": 5, "seed": 0, "ties": False},
        ),
        "load": (lambda path, kind: tr.load(path, kind), {"path": "nowhere", "kind": int}),
        "save": (p["learner"].save, {"path": "saved"}),
        "load_problem": (tr.load_problem, {"folder": "nowhere"}),
        "run": (
            tr.run,
            {"problem": problem, "learner": "uniform", "episodes": 3, "seed": 0, "records": 2, "regret": "last",
             "callback": lambda record: None, "progress": lambda done: None},
        ),
        "Run.play": (lambda until: tr.Run(problem, "uniform", episodes=3).play(until), {"until": 2}),
        "history.table": (p["history"].table, {"problem": problem}),
        "compare": (
            tr.compare,
            {"problem": problem, "learners": ["uniform"], "episodes": 3, "seeds": [0], "n_jobs": 1, "records": 2,
             "regret": "never", "callback": lambda record: None},
        ),
        "History": (tr.History, {"columns": dict(p["history"]), "settings": {"learner": "x"}}),
    }  # fmt: skip


def of_problems() -> dict[str, Case]:
    """Layouts, problems and what they are made of."""
    p = parts()
    mdp, problem, layout = p["mdp"], p["problem"], p["layout"]
    rows = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    return {
        "unroll": (
            tr.unroll,
            {"rows": rows, "probabilities": [1.0] * 3, "n_steps": 3, "start": 0, "steps": None, "terminal": (),
             "ties": [0, 1, 2]},
        ),
        "pad": (tr.pad, {"rows": [(0, 0, 1), (1, 0, 2)], "probabilities": [1.0] * 2, "start": 0, "ties": None}),
        "layout.lay_out": (layout.lay_out, {"values": [1.0, 2.0, 3.0]}),
        "layout.state_names": (layout.state_names, {"names": ["a", "b"]}),
        "Problem": (
            tr.Problem,
            {name: getattr(problem, name) for name in problem.__dataclass_fields__},
        ),
        "Problem.from_units": (
            tr.Problem.from_units,
            {"name": "x", "mdp": mdp, "scenarios": np.zeros((1, 8)), "losses": "fixed", "uses": np.full((1, 8), 0.1),
             "noise": "none", "budgets": [1.0], "constraint_names": ["c"], "loss_bounds": (-1, 1), "use_bounds": [0.5],
             "loss_unit": "", "constraint_units": ("",), "state_names": (), "action_names": (), "ties": None},
        ),
        "problem.state_name": (problem.state_name, {"state": 0}),
        "problem.action_name": (problem.action_name, {"action": 0}),
        "problem.tuple_name": (problem.tuple_name, {"index": 0}),
        "make_losses": (make_losses, {"choice": "fixed", "scenarios": np.zeros((2, 8)), "mdp": mdp}),
        "make_constraints": (make_constraints, {"choice": "none", "mean": np.full((1, 8), 0.1)}),
        "check_problem": (tr.checks.check_problem, {"problem": problem}),
    }  # fmt: skip


def of_environments() -> dict[str, Case]:
    """Problems as environments, and environments as problems."""
    problem = parts()["problem"]
    return {
        "play_live": (
            tr.interop.play_live,
            {"env": Environment(), "learner": "ucpd", "episodes": 2, "state_of": lambda seen, step: 1, "seed": 0},
        ),
        "LiveSpace": (
            tr.interop.LiveSpace,
            {"n_observations": 3, "n_actions": 2, "n_steps": 3, "start": 0, "moves": [(0, 0, 0), (0, 1, 2), (2, 0, 2)]},
        ),
        "LiveSpace.state_of": (
            tr.interop.LiveSpace(n_observations=3, n_actions=2, n_steps=3).state_of,
            {"observation": 1, "step": 1},
        ),
        "problem_from_gym": (
            tr.interop.problem_from_gym,
            {"env": types.SimpleNamespace(P={0: {0: [(1.0, 0, 0.0, False)]}}), "n_steps": 2,
             "cost": {"c": lambda s, a, s_next: 0.5}, "budgets": {"c": 2.0}, "scenarios": (), "losses": "fixed",
             "noise": "none", "start": 0, "loss_bounds": None, "name": "x", "loss_unit": "", "constraint_units": (),
             "state_names": (), "action_names": ()},
        ),
        "ProblemEnv": (tr.interop.ProblemEnv, {"problem": problem, "strict": False, "render_mode": None}),
        "ProblemEnv.reset": (lambda seed: tr.interop.ProblemEnv(problem).reset(seed=seed), {"seed": 0}),
        "ProblemEnv.step": (stepped, {"action": 0}),
    }  # fmt: skip


def of_registries() -> dict[str, Case]:
    """Everything that has a name: rules, problems, losses, noises and learners, with their options."""
    p = parts()
    space, mdp, problem = p["space"], p["mdp"], p["problem"]
    found: dict[str, Case] = {}
    for rule, kind in CONFIDENCE_RULES.items():
        known = {"episodes": 5, "level": 0.1, "scale": 1.0, "laws": 3}
        options: dict[str, Any] = {key: value for key, value in known.items() if key in kind.__dataclass_fields__}
        N, M = np.zeros(6, dtype=np.int64), np.zeros(8, dtype=np.int64)
        found |= {rule: (kind, options), f"{rule}()": (kind(**options), {"space": space, "N": N, "M": M})}
    for name, entry in PROBLEMS.items():
        found[f"make {name}"] = (lambda name=name, **options: tr.make(name, **options), dict(entry.options))
    for name, loss in LOSSES.items():
        options = tr.arguments.options_of(loss)
        found[f"losses {name}"] = (
            lambda name=name, **o: make_losses({"name": name, **o}, np.zeros((2, 8)), mdp),
            options,
        )
    for name, noise in NOISES.items():
        options = {key: default for key, default in tr.arguments.options_of(noise).items() if key != "table"}
        options |= {"table": np.full((2, 1, 8), 0.1)} if name == "replay" else {}
        found[f"noise {name}"] = (
            lambda name=name, **o: make_constraints({"name": name, **o}, np.full((1, 8), 0.05)),
            options,
        )
    for name, learner in LEARNERS.items():
        told: dict[str, Any] = {need: NEEDS[need].answer(problem, 5, 0) for need in learner.needs}
        options = {key: learner.parameter_fields()[key].default for key in options_of(learner)}
        given = {"space": problem.space, "budgets": problem.budgets, "episodes": 5, **told}
        given |= {key: default for key, default in options.items() if default is not None or key == "ties"}
        found[name] = (constructed(learner), given)
    return found


class Environment:
    """An environment that stays in one state."""

    def reset(self, *, seed: int | None = None) -> Any:
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, 0.0, False, False, {"cost": 0.1}


def constructed(learner: type[LearnerBase]) -> Callable[..., Any]:
    """Makes a learner, and lets it play: what was not refused must do."""

    def make(**given: Any) -> Any:
        made = learner(**given)
        world = ordinary_world() if made.space != parts()["space"] else None
        if world is None and len(made.budgets) == 1:
            episode = {
                "full": tr.Episode([0, 1, 3], [0, 1], np.zeros(8), np.zeros((1, 8))),
                "bandit": tr.BanditEpisode([0, 1, 3], [0, 1], np.zeros(2), np.zeros((1, 2))),
            }[made.feedback]
            made.observe(episode)
        elif world is not None and made.space == world.space and len(made.budgets) == len(world.budgets):
            drive(world, made, last=1)
        return made

    return make


def observing(learner: str, kind: Callable[..., Any]) -> Callable[..., Any]:
    def observe(**given: Any) -> None:
        tr.make_learner(learner, parts()["problem"], episodes=5).observe(kind(**given))

    return observe


def stepped(action: Any) -> Any:
    env = tr.interop.ProblemEnv(parts()["problem"])
    env.reset(seed=0)
    return env.step(action)


def prepare() -> set[str]:
    """Compile, and see that everything answers before anything is wrong; the few that cannot, by name."""
    refused = set()
    with TemporaryDirectory() as folder, chdir(folder):
        for name, (call, given) in cases().items():
            try:
                call(**fresh(given))
            except tr.TightropeError:
                assert name in ("load", "load_problem", "StudyFile"), name
                refused.add(name)
    return refused


def fresh(given: dict[str, Any]) -> dict[str, Any]:
    """The same arguments; a learner by name is made again."""
    live = given.get("learner") if "env" in given else None
    problem = parts()["problem"]
    return given | ({"learner": tr.make_learner(live, problem, episodes=5)} if isinstance(live, str) else {})


def attempt(seed: int, number: int, folder: Path) -> str:
    """Call something with something wrong."""
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(list(cases()))
    call, given = cases()[name]
    given = fresh(given)
    wrong = rng.sample(list(given), min(len(given), rng.choice((1, 1, 1, 2)))) if given else []
    values = {argument: rng.choice(WRONG)() for argument in wrong}
    if name in PLAYING and isinstance(values.get("episodes"), int):
        values["episodes"] = min(values["episodes"], 100)  # whoever asks for many has to wait
    os.chdir(folder)
    try:
        answer = call(**given | values)
        repr(answer)
    except tr.TightropeError as error:
        str(error).encode()  # it can be shown
        return "refused"
    except Exception as error:
        if isinstance(error, TypeError) and any(callable(value) for value in values.values()):
            return "an error of the user's own"  # a function that does not take what it is called with
        shown = {key: tr.arguments.shown(value)[:60] for key, value in values.items()}
        error.args = (f"{name}{shown}: {str(error)[:120]}",)
        raise
    return "answered"


if __name__ == "__main__":
    watchdog.main("fuzz.api", __doc__.splitlines()[0])

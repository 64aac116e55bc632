"""Any problem as a Gymnasium environment; importing this module registers the problems of the suite.

    gymnasium.make("tightrope/EdgeCloud-v0", losses="drifting")        # after `import tightrope.interop.gym_env`
    gymnasium.make("tightrope.interop.gym_env:tightrope/EdgeCloud-v0")  # without

An episode of the environment is an episode of the problem. The observation is the number of the state in the layered
space, which includes the step; the action is its number there. With s_t, a_t, s_{t+1} a move of episode n,

    reward          −f^n(s_t, a_t, s_{t+1}), in the problem's own units
    info["cost"]    g^n(s_t, a_t, s_{t+1}), in the units of the budgets: a number, or an array if there are several

An episode ends at the last layer with `terminated`, never `truncated`: the step is part of the state, so a learner must
not bootstrap there.
"""

import re
from numbers import Integral
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import choice, instance, shown, whole
from tightrope.errors import InvalidInputError, missing
from tightrope.model import Policy
from tightrope.problems import PROBLEMS, make
from tightrope.problems.base import Problem
from tightrope.problems.constraints import Regulator
from tightrope.problems.losses import Adversary
from tightrope.space import FloatArray
from tightrope.streams import Streams, streams

try:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec
except ImportError as error:
    raise missing("gymnasium", extra="gymnasium") from error


class ProblemEnv(gymnasium.Env[np.int64, np.int64]):
    """A problem as a Gymnasium environment.

    `reset(seed=…)` starts a new run at episode 1, with the losses and constraints that `tightrope.run` draws from the
    same seed; `reset()` continues with the next episode. States may have different actions: `info["action_mask"]` has
    those of the new state (as in Gymnasium's Taxi, for `action_space.sample(mask)`). An unavailable action is replaced
    by the nearest available number, the lower of two, and `info["action"]` is the action taken; with `strict` it is
    refused.

    An adaptive adversary needs policies, which an environment does not see. It gets the policy that takes the actions
    of the trajectory where it went, and is uniform elsewhere.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  # gymnasium's own annotation

    def __init__(self, problem: Problem, *, strict: bool = False, render_mode: str | None = None) -> None:
        if render_mode is not None:
            choice(render_mode, "render_mode", ("ansi",))
        self.problem = instance(problem, "problem", Problem)
        self.strict = strict
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(problem.space.n_states)
        self.action_space = gymnasium.spaces.Discrete(problem.space.n_actions)
        kwargs = {"problem": problem, "strict": strict}
        self.spec = EnvSpec(env_id(problem.name), entry_point=f"{__name__}:ProblemEnv", kwargs=kwargs)
        self.episode = 0  # of this play; the first is 1
        self._streams: Streams
        self._adversary: Adversary
        self._regulator: Regulator
        self._loss: FloatArray  # f^n, (n_tuples,)
        self._uses: FloatArray  # g^n, (I, n_tuples)
        self._path: list[int] = []  # the pairs of this episode, so far
        self._state = problem.space.n_states - 1

    @property
    def budgets(self) -> FloatArray:
        """(I,) the limits on the average cost of an episode, in the units of `info["cost"]`."""
        return self.problem.use_in_units(self.problem.budgets)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Begin the next episode, or with a seed the first episode of a new run. There are no options."""
        super().reset(seed=None if seed is None else whole(seed, "seed", 0))
        if seed is not None or self.episode == 0:
            self._streams = streams(self._root_seed())
            self._adversary = self.problem.losses.begin(self._streams.adversary)
            self._regulator = self.problem.begin_constraints(self._streams.constraints)
            self.episode = 0
        else:
            policy = self._policy_shown()
            self._adversary.watch(policy)
            self._regulator.watch(policy)
        self.episode += 1
        self._loss = self._adversary.loss(self.episode)
        self._uses = self._regulator.constraints(self.episode)
        self._path, self._state = [], 0
        return np.int64(self._state), {"action_mask": self._action_mask(), "episode": self.episode}

    def step(self, action: np.int64 | int) -> tuple[np.int64, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take `action`; the docstring of the module describes the returned values."""
        problem, space = self.problem, self.problem.space
        last = space.n_states - 1
        if self._state == last:
            raise gymnasium.error.ResetNeeded("the episode has ended, or none has begun: call reset()")
        i = self._pair(action)
        first, end = space.csr.pair_ptr[i : i + 2]
        j = int(core.draw(problem.mdp.transitions, first, end, self._streams.environment.random()))
        self._path.append(i)
        self._state = int(space.csr.successor[j])
        cost = problem.use_in_units(self._uses[:, j])
        info = {
            "cost": float(cost.sum()) if len(cost) < 2 else cost,
            "action": int(space.csr.action[i]),
            "action_mask": self._action_mask(),
            "episode": self.episode,
        }
        reward = -(problem.loss_scale * float(self._loss[j]) + problem.loss_offset)
        return np.int64(self._state), reward, self._state == last, False, info

    def render(self) -> str | None:
        """The state by its name, in the mode "ansi"."""
        return None if self.render_mode is None else self.problem.state_name(self._state)

    def _root_seed(self) -> int:
        seed = self.np_random_seed
        # negative: the environment was given a generator without a seed
        return seed if seed >= 0 else int(self.np_random.integers(2**63))

    def _available(self) -> slice:
        """The pairs of the current state."""
        begin, end = self.problem.space.csr.state_ptr[self._state : self._state + 2]
        return slice(int(begin), int(end))

    def _action_mask(self) -> NDArray[np.int8]:
        mask = np.zeros(self.problem.space.n_actions, dtype=np.int8)
        mask[self.problem.space.csr.action[self._available()]] = 1
        return mask

    def _pair(self, action: Any) -> int:
        """Return the pair of `action` in the current state."""
        problem, pairs = self.problem, self._available()
        actions = problem.space.csr.action[pairs]
        if not isinstance(action, Integral | np.ndarray) or action not in self.action_space:
            raise InvalidInputError(f"action {shown(action)} is not a whole number in 0..{problem.space.n_actions - 1}")
        nearest = int(np.argmin(np.abs(actions - int(action))))
        if self.strict and actions[nearest] != action:
            names = ", ".join(f"{a} ({problem.action_name(a)})" for a in actions.tolist())
            raise InvalidInputError(
                f"action {action} ({problem.action_name(int(action))}) is not available in state {self._state} "
                f"({problem.state_name(self._state)}); available: {names}"
            )
        return int(pairs.start) + nearest

    def _policy_shown(self) -> Policy:
        policy = Policy.uniform(self.problem.space)
        for i in self._path:
            state = self.problem.space.pairs[i, 0]
            begin, end = self.problem.space.csr.state_ptr[state : state + 2]
            policy.probabilities[begin:end] = 0.0
            policy.probabilities[i] = 1.0
        return policy


class SixTuple(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Safety-Gymnasium's step, (observation, reward, cost, terminated, truncated, info), for its agents.

    Wraps any environment that reports `info["cost"]`. It must be the outermost wrapper: others expect five values.
    """

    def step(  # type: ignore[override]
        self, action: Any
    ) -> tuple[Any, SupportsFloat, float | FloatArray, bool, bool, dict[str, Any]]:
        """Take an action; return the cost in third place, and still in `info`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if "cost" not in info:
            raise InvalidInputError(f"{self.env} reports no info['cost']; there is nothing to put in third place")
        return observation, reward, info["cost"], terminated, truncated, info


def env_id(name: str) -> str:
    """The id of the environment for the problem called `name`.

    >>> env_id("edge-cloud")
    'tightrope/EdgeCloud-v0'
    """
    words = re.findall(r"[A-Za-z0-9]+", name) or ["Problem"]
    return f"tightrope/{''.join(word[0].upper() + word[1:] for word in words)}-v0"


def make_env(problem: str, strict: bool = False, render_mode: str | None = None, **options: Any) -> ProblemEnv:
    """The environment for the problem of this name, made with `options` (what `gymnasium.make` calls)."""
    return ProblemEnv(make(problem, **options), strict=strict, render_mode=render_mode)


for _name in PROBLEMS:
    gymnasium.register(env_id(_name), entry_point=f"{__name__}:make_env", kwargs={"problem": _name})

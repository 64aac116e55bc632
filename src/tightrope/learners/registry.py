"""Learners by name: `LEARNERS` lists them, `make_learner` makes one, `load` reads a checkpoint."""

from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike
from typing import Any, Protocol

from tightrope.arguments import file_path, implements, instance, shown, unknown, whole
from tightrope.confidence import RULE_TYPES
from tightrope.errors import InvalidInputError
from tightrope.learners.base import Learner, LearnerBase
from tightrope.learners.needs import NEEDS, Problem
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage import checkpoints
from tightrope.ties import Ties

#: The classes of all learners, as module.class. A new learner needs its module and a line here.
CLASSES = (
    "ucpd_practical.UCPDPractical",
    "ucpd.UCPD",
    "ucpd_inside.UCPDInside",
    "ucpd.UCPDKnown",
    "ucpd_practical_known.UCPDPracticalKnown",
    "ucpd_bandit.UCPDBandit",
    "omdpd.OMDPD",
    "o_reps.OREPS",
    "o_reps.BanditOREPS",
    "dynamic_o_reps.DynamicOREPS",
    "mdp_e.MDPE",
    "online_ssp.OnlineSSP",
    "lazy_fpl.LazyFPL",
    "uc_o_reps.UCOREPS",
    "drift_plus_penalty.DriftPlusPenalty",
    "renewal_drift_plus_penalty.RenewalDriftPlusPenalty",
    "opt_cmdp.OptCMDP",
    "opt_dual_cmdp.OptDualCMDP",
    "opt_primal_dual.OptPrimalDual",
    "opdop.OPDOP",
    "uopt_rpgpd.UOptRPGPD",
    "s_ops.SOPS",
    "dope.DOPE",
    "optpess_lp.OptPessLP",
    "always_safe.AlwaysSafe",
    "c_ucrl.CUCRL",
    "reinforce_lagrangian.ReinforceLagrangian",
    "actor_critic.ActorCritic",
    "npg_lagrangian.NPGLagrangian",
    "pid_lagrangian.PIDLagrangian",
    "triple_q.TripleQ",
    "fpop.FPOP",
    "uob_reps.UOBREPS",
    "opt_pomd.OptPOMD",
    "shifted_bandit_uc_o_reps.ShiftedBanditUCOREPS",
    "politex.Politex",
    "ucrl2.UCRL2",
    "ucbvi.UCBVI",
    "q_learning_ucb.QLearningUCB",
    "psrl.PSRL",
    "fixed.Hindsight",
    "fixed.SafeBaseline",
    "follow_the_leader.FollowTheLeader",
    "fixed.Uniform",
    "ucpd_practical_0_2.UCPDPractical02",
    "ucpd_practical_0_2.UCPDPracticalKnown02",
    "ucpd_bandit_0_2.UCPDBandit02",
)


def _imported(path: str) -> type[LearnerBase]:
    """Import a class of `CLASSES`."""
    module, _, name = path.partition(".")
    found: type[LearnerBase] = getattr(import_module(f"tightrope.learners.{module}"), name)
    return found


#: Learners by name; each class has its `feedback`, `needs`, `reference` and a one-line `summary()`.
LEARNERS: dict[str, type[LearnerBase]] = {learner.name: learner for learner in map(_imported, CLASSES)}


class Maker(Protocol):
    """A function that makes a learner for a problem, a number of episodes and the root seed of a run."""

    def __call__(self, problem: Any, *, episodes: int, seed: int) -> Learner: ...


def learner_called(name: str) -> type[LearnerBase]:
    """Return the class of that name, or raise InvalidInputError."""
    if not isinstance(name, str) or name not in LEARNERS:
        raise unknown("there is no learner", name, LEARNERS)
    return LEARNERS[name]


def options_of(learner: type[LearnerBase]) -> list[str]:
    """Return the names of the parameters that a user chooses: all but those that the problem determines."""
    told = {"space", "budgets", "episodes", *learner.needs}
    return [name for name in learner.parameter_fields() if name not in told]


def make_learner(
    name: str, problem: Problem, *, episodes: int | None = None, seed: int = 0, **options: Any
) -> LearnerBase:
    """Return a new learner for a problem; it is told only what its method needs to know.

    Parameters
    ----------
    name : a key of `LEARNERS`.
    problem : a problem.
    episodes : the number of planned episodes; `ucpd-practical` and `ucpd-bandit` need none.
    seed : the root seed of the run; learners that draw random numbers have a stream of their own.
    options : parameters of the learner; `ties=True` uses the ties of the problem.

    Returns
    -------
    LearnerBase : the learner, before its first episode.

    Raises
    ------
    InvalidInputError : if the name or an option is unknown, or a parameter is out of range.

    Examples
    --------
    >>> import tightrope as tr
    >>> learner = make_learner("ucpd", tr.make("media-streaming"), episodes=1000)
    >>> learner.name, learner.epoch, learner.multipliers
    ('ucpd', 1, array([0.]))
    """
    learner_called(name)
    space = instance(implements(problem, "problem", Problem).mdp, "problem.mdp", LayeredMDP).space
    seed = whole(seed, "seed", 0)
    if episodes is not None:
        episodes = whole(episodes, "episodes", 1)

    def tell(need: str) -> Any:
        return NEEDS[need].answer(problem, episodes or 1, seed)

    return learner_for(name, space, problem.budgets, getattr(problem, "ties", None), tell, episodes, options)


def learner_for(
    name: str,
    space: LayeredSpace,
    budgets: FloatArray,
    ties: Ties | None,
    tell: Callable[[str], Any],
    episodes: int | None,
    options: Mapping[str, Any],
) -> LearnerBase:
    """Return a new learner without a problem; `tell(need)` returns each of its `needs`. See `make_learner`."""
    maker = learner_called(name)
    given = dict(options)
    for option in given:
        if option not in options_of(maker):
            raise unknown(f"{name} has no option", option, options_of(maker))
    if "ties" in options_of(maker):
        choice = given.get("ties", maker.ties_by_default)  # type: ignore[attr-defined]
        if not isinstance(choice, bool | Ties | None):
            raise InvalidInputError(f"ties is {shown(choice)}; expected true (those of the problem), false, or a Ties")
        given["ties"] = ties if choice is True else None if choice is False else choice
    if episodes is None and maker.parameter_fields()["episodes"].default is not None:
        raise InvalidInputError(f"{name} needs the number of episodes; give episodes=N, or --episodes N")
    told = {need: tell(need) for need in maker.needs}
    return maker(space, budgets, episodes=episodes, **told, **given)  # type: ignore[arg-type]


def load(path: str | PathLike[str] | bytes, *classes: type) -> LearnerBase:
    """Load a learner that `learner.save(path)` wrote; it continues with the same bits.

    Parameters
    ----------
    path : the file, or its bytes.
    classes : learners and confidence rules of your own that the file may contain.

    Returns
    -------
    LearnerBase : the learner.

    Raises
    ------
    InvalidInputError : if the file cannot be read, is damaged, or contains an unknown class.

    Examples
    --------
    >>> import tempfile, tightrope as tr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tr.make_learner("ucpd-practical", tr.make("media-streaming")).save(folder + "/mine.learner")
    ...     load(folder + "/mine.learner").name
    'ucpd-practical'
    """
    for kind in classes:
        instance(kind, "classes", type)
    own = {kind.name: kind for kind in classes if issubclass(kind, LearnerBase)}
    source = path if isinstance(path, bytes) else file_path(path, "path")
    return checkpoints.load(source, LEARNERS | own, [*RULE_TYPES, *classes])

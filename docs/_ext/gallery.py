"""One page per problem and per learner, from the docstrings of their modules."""

import importlib
import inspect
from collections.abc import Iterator
from textwrap import indent

from docstrings import escape, plain_to_rst

from tightrope.cli.listings import details, learner_options
from tightrope.learners.registry import LEARNERS
from tightrope.problems import PROBLEMS

PROBLEM = """\
.. _problem-{name}:

{title}

{summary}

.. drawing:: problem-{name}
   :alt: How episodes of {name} flow from step to step: on the left under the best policy without budgets, on the
         right under the best one within them.

*How an episode flows under the best policy, from left to right: on the left without budgets, on the right within them.
The wider a ribbon, the more likely its move. Blue moves use least of the budgets, orange ones most. States of a step
stand one above the other.*

.. code-block:: python

   import tightrope as tr

   problem = tr.make("{name}")
   history = tr.run(problem, learner="ucpd-practical", episodes=100, seed=0)
   print(problem.space, problem.budgets)
   print(history["loss"][-1], history["violation"][-1])

{text}

Options
-------

``tightrope list problems {name}`` prints:

.. code-block:: text

{options}

The module is ``{module}``.
"""

LEARNER = """\
.. _learner-{name}:

{title}

{summary}

Method: {reference}.
Feedback: {feedback}.

.. drawing:: learner-{name}
   :alt: Regret, and moves per episode, of {name} in 500 episodes of machine-cycle.

*500 episodes of machine-cycle under switching losses, seed 0: the regret, and the moves per episode so far with
their budget. What is above the budget is orange. A negative regret is no success where the budget is exceeded.*

.. code-block:: python

   import tightrope as tr

   problem = tr.make("{problem}")
   learner = tr.make_learner("{name}", problem, episodes=50, seed=0)
   history = tr.run(problem, learner=learner, episodes=50, seed=0)
   print(history["loss"][-1], history["violation"][-1])

{text}

Options
-------

Set an option with ``--set learner.OPTION=VALUE``, or by name in ``tr.make_learner``.

{options}

The module is ``{module}``.
"""

OPTIONS = """\
.. list-table::
   :header-rows: 1

   * - option
     - default
     - what it is
{rows}
"""

PROBLEM_INDEX = """\
Problems
========

One page per problem: a picture, the equations, five lines to run, and the reference.
:doc:`../../reference/problems` compares their budgets and optimal values.

A picture shows how an episode flows from left to right under the best policy within the budgets. The wider a ribbon,
the more likely its move. Blue moves use least of the budgets, orange ones most.

.. grid:: 1 2 3 3
   :gutter: 3

{cards}

.. toctree::
   :hidden:

{names}
"""

PROBLEM_CARD = """\
   .. grid-item-card:: {name}
      :link: {name}
      :link-type: doc

      .. drawing:: thumbnail-{name}
         :alt: How episodes of {name} flow under the best policy within the budgets

      {summary}
"""

LEARNER_INDEX = """\
Learners
========

One page per learner: a picture, its steps, five lines to run, and the reference.
:doc:`../../how-to/choosing` says which one to take.

Each picture shows the first 500 episodes of machine-cycle. The upper line is the regret so far, around zero. The lower
line is the number of moves per episode so far, around its budget; what is above the budget is orange. The scales are
the same for all learners; that of regret is logarithmic beyond 10.

Start with these
----------------

.. grid:: 1 2 3 3
   :gutter: 3

{first}

Full feedback
-------------

After each episode these learners see the whole loss and constraint functions.

.. grid:: 1 2 3 3
   :gutter: 3

{full}

Bandit feedback
---------------

These learners see only the losses and uses on the path that was played.

.. grid:: 1 2 3 3
   :gutter: 3

{bandit}

.. toctree::
   :hidden:

{names}
"""

LEARNER_CARD = """\
   .. grid-item-card:: {name}
      :link: {name}
      :link-type: doc

      .. drawing:: thumbnail-of-{name}
         :alt: Regret, and moves per episode, of {name} in 500 episodes of machine-cycle

      {summary}
"""

#: The learners that most people want, in this order.
FIRST = ("ucpd-practical", "ucpd-bandit", "ucpd", "ucpd-inside", "s-ops", "hindsight")
#: Learners that need what only some problems can tell them.
PROBLEM_FOR = {"always-safe": "machine-cycle"}


def heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}"


def sentence(text: str) -> str:
    return escape(text[0].upper() + text[1:].removesuffix(".")) + "."


def problem_page(name: str) -> str:
    entry = PROBLEMS[name]
    module = importlib.import_module(entry.maker.partition(":")[0])
    return PROBLEM.format(
        name=name,
        title=heading(name),
        summary=sentence(entry.summary),
        text=plain_to_rst(inspect.getdoc(module) or ""),
        options=indent("\n".join(details("problems", name)), "   "),
        module=module.__name__,
    )


def learner_page(name: str) -> str:
    kind = LEARNERS[name]
    module = importlib.import_module(kind.__module__)
    return LEARNER.format(
        name=name,
        title=heading(name),
        summary=sentence(kind.summary()),
        reference=escape(kind.reference or "a point of reference of this package"),
        feedback=kind.feedback,
        problem=PROBLEM_FOR.get(name, "media-streaming"),
        text=plain_to_rst(inspect.getdoc(module) or ""),
        options=options_table(learner_options(kind)),
        module=module.__name__,
    )


def options_table(rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return "It has no options."
    cells = [f"   * - {name}\n     - {default}\n     - {sentence(text or name)}" for name, default, text in rows]
    return OPTIONS.format(rows="\n".join(cells))


def gallery_pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every page."""
    for name in PROBLEMS:
        yield f"problems/{name}", problem_page(name)
    for name in LEARNERS:
        yield f"learners/{name}", learner_page(name)
    cards = [PROBLEM_CARD.format(name=name, summary=sentence(entry.summary)) for name, entry in PROBLEMS.items()]
    names = "\n".join(f"   {name}" for name in sorted(PROBLEMS))
    yield "problems/index", PROBLEM_INDEX.format(cards="\n".join(cards), names=names)
    others = [name for name in sorted(LEARNERS) if name not in FIRST]
    groups = {
        "first": FIRST,
        "full": [name for name in others if LEARNERS[name].feedback == "full"],
        "bandit": [name for name in others if LEARNERS[name].feedback == "bandit"],
    }
    shown = {
        group: "\n".join(LEARNER_CARD.format(name=name, summary=sentence(LEARNERS[name].summary())) for name in members)
        for group, members in groups.items()
    }
    names = "\n".join(f"   {name}" for name in sorted(LEARNERS))
    yield "learners/index", LEARNER_INDEX.format(**shown, names=names)

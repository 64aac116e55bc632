"""The example that `tightrope new` writes: a machine that wears out, and a technician with little time."""

import os
from pathlib import Path

from tightrope.errors import InvalidInputError
from tightrope.storage.files import write_bytes

TOML = """\
# A problem for tightrope, in files of your own. Run it with
#
#     tightrope run {folder}
#
# A machine is good, worn or broken. Every morning somebody decides to run it, to service it, or, once it is broken, to
# repair it or to let it stand. Running earns money, what it earns changes from week to week, and the technician has
# little time. States and actions are whatever names the tables use. Every key is explained in
# docs/how-to/your-own-problem.md.

n_steps = 7                       # an episode is a week: seven decisions
start = "good"                    # or by lot: start = {{ good = 0.9, worn = 0.1 }}
transitions = "transitions.csv"   # state, action, next_state, probability: what tightrope's learners have to find out

[loss]                            # what is to be kept small, summed over the week
table = "loss.csv"                # state, action, loss; the column episode tells recorded weeks apart
unit = "euros"
bounds = [-100, 60]               # the least and the largest that a day can ever cost, known beforehand

[constraints.technician]          # what must stay within a budget in the long run; as many of these as you like
table = "technician.csv"          # state, action, hours
column = "hours"
unit = "hours"
budget = 2                        # for a week, on average
"""

TRANSITIONS = """\
state,action,next_state,probability
good,run,good,0.5
good,run,worn,0.5
good,service,good,1
worn,run,worn,0.4
worn,run,broken,0.6
worn,service,good,0.9
worn,service,worn,0.1
broken,stand,broken,1
broken,repair,good,0.8
broken,repair,broken,0.2
"""

LOSS = """\
episode,state,action,loss
1,good,run,-100
1,good,service,20
1,worn,run,-40
1,worn,service,20
1,broken,stand,30
1,broken,repair,60
2,good,run,-30
2,good,service,0
2,worn,run,-20
2,worn,service,0
2,broken,stand,10
2,broken,repair,40
3,good,run,-60
3,good,service,10
3,worn,run,-30
3,worn,service,10
3,broken,stand,20
3,broken,repair,50
"""

TECHNICIAN = """\
state,action,hours
good,run,0
good,service,2
worn,run,0
worn,service,2
broken,stand,0
broken,repair,6
"""


def new_folder(folder: Path) -> None:
    """Make a folder, which must not exist yet."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{os.fsencode(folder)!r} is not UTF-8; choose a name that is") from error
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise InvalidInputError(f"{folder} is there already; choose a name that is not") from error
    except OSError as error:
        raise InvalidInputError(f"cannot make the folder {folder}: {error.strerror or error}") from error


def write_example(folder: Path) -> list[Path]:
    """Write the example to `folder`, which must not exist yet; returns the files."""
    new_folder(folder)
    contents = {
        # a comment is one line, whatever a folder is called
        "problem.toml": TOML.format(folder=folder if str(folder).isprintable() else "FOLDER"),
        "transitions.csv": TRANSITIONS,
        "loss.csv": LOSS,
        "technician.csv": TECHNICIAN,
    }
    for name, text in contents.items():
        write_bytes(folder / name, text.encode())
    return [folder / name for name in contents]

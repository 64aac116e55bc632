"""Files of studies, damaged in every way: each is planned, or refused in words.

python -m fuzz.study_files --seed 0 --count 10000

What is planned is written down as the command does, and reads back as the same study.
"""

import random
import re
from pathlib import Path

from fuzz import folders, watchdog
from fuzz.folders import NUMBERS, VALUES, WORDS, Files
from tightrope import InvalidInputError
from tightrope.lab.runner import folder_name, resolved
from tightrope.lab.study import StudyFile, to_toml

BASES = (
    'problems = ["random"]\n',
    """\
problems = ["river-swim", {name = "random", n_actions = 2}]
learners = ["ucpd-practical", {name = "ucpd", level = 0.05}]
losses = ["switching", "drifting"]
noises = ["scaled"]
episodes = 20_000
seeds = 3

[grid]
learner.radius_scale = [0.1, 0.3]
losses.period = [100, 500]

[records]
count = 60
spacing = "log"
regret = "records"
""",
    """\
problems = ["shop"]
learners = [{name = "uob-reps", exploration = 0.1}, "fpop"]
noises = ["scaled"]
episodes = [10, 1000]
seeds = [3, 5]
[grid.noise]
spread = [0.5, 1]
[contents]
shop = "0123abcd"
""",
)
KEYS = (
    *("problems", "learners", "losses", "noises", "grid", "episodes", "seeds", "records", "contents", "count"),
    *("grid.learner", "grid.learner.V", "grid.problem.n_actions", "records.count", "learner.V", *WORDS),
)
STUDY = "study.toml"


def attempt(seed: int, number: int, folder: Path) -> str:
    """Damage a study and plan it."""
    rng = random.Random(f"{seed} {number}")
    files: Files = {STUDY: rng.choice(BASES).encode()}
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        rng.choice(MUTATIONS)(rng, files)
    shop = folder / "shop"
    shop.mkdir()
    for name, text in folders.BASES[0].items():
        (shop / name).write_text(text, encoding="utf-8")
    for name, content in files.items():
        folders.write(folder, name, content)
    try:
        study = StudyFile(folder / STUDY).study
        study, runs = resolved(study, folder)
    except InvalidInputError as error:
        str(error).encode()  # it can be shown
        return "refused"
    assert len({run.name for run in runs}) == len(runs)
    assert folder_name(study)
    again = folder / "again.toml"
    again.write_text(to_toml(study), encoding="utf-8")
    assert StudyFile(again).study == study
    return "planned"


def keys(rng: random.Random, files: Files) -> None:
    """More of what a study consists of."""
    data = files.get(STUDY)
    if isinstance(data, bytes):
        key, value, depth = rng.choice(KEYS), rng.choice((*VALUES, *NUMBERS)), rng.choice((3, 60, 3000))
        new = rng.choice(
            (
                f"{key} = {value}",
                f"{key} = [{value}, {value}]",
                f"[{key}]",
                f"[[{key}]]",
                "x = " + "[" * depth + "]" * rng.choice((0, depth)),
                "x = " + "{ a = " * depth,
                ".".join(["a"] * depth) + " = 1",
                "learners = [" + "'ucpd', " * depth + "]",
                "seeds = [" + ", ".join(map(str, range(depth))) + "]",
                "[grid.learner]\n" + "\n".join(f"{name} = [1, 2, 3]" for name in ("V", "alpha", "level", "mixing")),
            )
        ).encode()
        i = rng.choice([0, len(data), *(m.end() for m in re.finditer(b"\n", data))])
        files[STUDY] = data[:i] + new + b"\n" + data[i:]


MUTATIONS: tuple[folders.Mutation, ...] = (
    folders.bytes_,
    folders.bytes_,
    folders.lines,
    folders.numbers,
    folders.numbers,
    folders.words,
    folders.values,
    folders.values,
    folders.kinds,
    folders.sizes,
    keys,
    keys,
)


if __name__ == "__main__":
    watchdog.main("fuzz.study_files", __doc__.splitlines()[0])

"""Problem folders, damaged in every way: each is loaded, or refused in words.

python -m fuzz.folders --seed 0 --count 10000
"""

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz import watchdog
from tightrope import InvalidInputError
from tightrope.problems.files import load_problem
from tightrope.problems.files.folder import EXAMPLE, example_text

#: What a file of a folder is: its bytes; or where a link leads, that it is a pipe or a folder, or that it has a hole.
Link = tuple[str, str]
Files = dict[str, bytes | Link]
Mutation = Callable[[random.Random, Files], object]

WALK = """\
name = "walk"
n_steps = 3
start = { a = 0.25, b = 0.75 }
terminal = ["done"]
transitions = "moves.csv"
noise = { name = "scaled", spread = 0.25 }
[loss]
table = "moves.csv"
bounds = [1, 9]
default = 5
sequence = { name = "switching", period = 7 }
[constraints.left]
table = "uses.csv"
bounds = [-1, 1]
budget = 1.5
[constraints.right]
table = "uses.csv"
bounds = [-4, 2]
default = 0
budget = 3
"""
MOVES = "state,action,next_state,step,probability,loss,outcome\n" + "".join(
    f"{s},{go},{t},{k},{p},{1 + k + 5 * (t == 'done')},{'' if go == 'stay' else 'over' if t == 'done' else 'away'}\n"
    for k in range(3)
    for s, other in ("ab", "ba")
    for go, targets in (("go", ((other, 0.6), ("done", 0.4))), ("stay", ((s, 1),)))
    for t, p in targets
)
USES = "state,action,left,right\na,go,1,2\nb,go,-0.5,-4\na,stay,0.5,1\nb,stay,1,0.25\n"
SHOP = {name: example_text(name).replace("FOLDER", "shop") for name in EXAMPLE}
TECHNICIAN = SHOP["technician.csv"]
RECORDED = "episode,state,action,hours\n" + "".join(
    f"{t},{line.rpartition(',')[0]},{t * int(line[-1])}\n" for t in (1, 2) for line in TECHNICIAN.split()[1:]
)
#: Larger files are tried as holes, which take no time to write.
LARGEST = 2_000_000

BASES: tuple[dict[str, str], ...] = (
    SHOP,
    SHOP | {"technician.csv": RECORDED},
    {"problem.toml": WALK, "moves.csv": MOVES, "uses.csv": USES},
)


def _split(text: str, *more: str) -> list[str]:
    return [*text.split(), *more]


NUMBERS = _split(
    """
    0 -0 1 -1 2 7 0.5 0.3333333 1e-5 1e-9 1e-300 1e-320 5e-324 1e16 1e99 -1e99 1e101 1e308 -1.7e308 1e999 nan inf -inf
    9007199254740993 9223372036854775808 1000000 9999 10000 10001 300 1_000 0x10 +5 .5 5. 1e 1,5 ٣ true 1e-1000 --1 1d3
    """,
    *("", " ", "9" * 400, "9" * 5000, "0." + "3" * 1000, "1" + "0" * 309),
)
WORDS = _split(
    """
    good worn broken run service state action next_state step episode probability loss hours budget bounds default table
    technician constraints transitions start terminal noise sequence name replay fixed switching drifting scaled beta
    bernoulli correlated none a b done go stay 每 é NaN None true
    """,
    *("", " ", "'", '"', "\\", "x" * 300, "x" * 200_000, "\u202e", "\ufeff", "\x00", "\x85", "a\nb", "a,b", "#"),
)
TARGETS = _split(
    """
    . .. / /dev/zero /dev/null /dev/full /dev/stdin /dev/tty /proc/self/mem /proc/self/environ /proc/kmsg ~ loss.csv
    ./loss.csv ../loss.csv loss.parquet problem.toml problem.toml/x transitions.csv nowhere/at/all
    """
)
PATHS = [*TARGETS, "", "a\\u0000b", "x" * 300, "y/" * 3000, "\\uD800", "\\n"]
VALUES = _split(
    """
    1 -1 0 1.5 1e999 nan true "text" "" [] [1] [1,2] [1,2,3] [[1],[2]] {} {name="replay"} {name=1} {name="drifting"}
    {name="scaled",spread=9} {name="scaled",spread="x"} {name="replay",table=[[[0.1]]]} {name="switching",period=0}
    {name="switching",period=1e9} 1979-05-27 1979-05-27T07:32:00Z 07:32:00 "good" {good=1} {good=1,worn=0} {good=2}
    {good=-1,worn=2} {a=0.5,b=0.5} ["good"] ["done","done"] ["a","b"] 0b1 0o7 0xff [0,1e-320] [-1e99,1e99] [0,5e-324]
    [1,1] [2,1] [nan,1] 'x'
    """
)


def attempt(seed: int, number: int, folder: Path) -> str:
    """Damage a folder and load it."""
    rng = random.Random(f"{seed} {number}")
    files: Files = {name: text.encode() for name, text in rng.choice(BASES).items()}
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        rng.choice(MUTATIONS)(rng, files)
    place = folder / "shop"
    place.mkdir()
    for name, content in files.items():
        write(place, name, content)
    try:
        problem = load_problem(place)
    except InvalidInputError as error:
        str(error).encode()  # it can be shown
        return "refused"
    draws = np.random.default_rng(0)
    losses, uses = problem.losses.begin(draws).loss(1), problem.constraints.sample(draws)
    assert np.abs(losses).max() <= 1 + 1e-9
    assert np.abs(uses).max(axis=1).sum() <= 1 + 1e-9
    return "loaded"


def write(folder: Path, name: str, content: bytes | Link) -> None:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content[:LARGEST])
        return
    match content:
        case "pipe", _:
            os.mkfifo(path)
        case "folder", _:
            path.mkdir()
        case "link", target:
            path.symlink_to(target)
        case "hole", size:
            path.touch()
            os.truncate(path, int(size))
        case "locked", _:
            path.touch(mode=0)


def _pick(rng: random.Random, files: Files) -> tuple[str, bytes]:
    """A file that still is one, and its bytes."""
    names = [name for name, content in files.items() if isinstance(content, bytes)]
    name = rng.choice(names or ["problem.toml"])
    content = files.get(name)
    return name, content if isinstance(content, bytes) else b""


def _at(rng: random.Random, data: bytes) -> int:
    return rng.randint(0, len(data))


def bytes_(rng: random.Random, files: Files) -> None:
    name, data = _pick(rng, files)
    i, n = _at(rng, data), rng.choice((1, 1, 1, 3, 20))
    noise = rng.choice(
        (rng.randbytes(n), b"\0" * n, b"\xff", b"\n" * n, b"\r", b'"', b",", b"[", b"=", b"\xef\xbb\xbf")
    )
    changed = (
        data[:i] + noise + data[i:],
        data[:i] + noise + data[i + len(noise) :],
        data[:i] + data[i + n :],
        data[:i],
        data[i:],
        data[:i] + data[max(0, i - n) : i] * rng.choice((2, 100)) + data[i:],
        rng.randbytes(rng.choice((0, 1, 100))),
        data.decode("utf-8", "replace").encode("utf-16"),
    )
    files[name] = rng.choice(changed)


def lines(rng: random.Random, files: Files) -> None:
    name, data = _pick(rng, files)
    all_ = data.split(b"\n")
    i, j = rng.randrange(len(all_)), rng.randrange(len(all_))
    match rng.randrange(6):
        case 0:
            del all_[i]
        case 1:
            all_.insert(j, all_[i])
        case 2:
            all_[i], all_[j] = all_[j], all_[i]
        case 3:
            rng.shuffle(all_)
        case 4:
            all_[i:i] = [all_[i]] * min(rng.choice((10, 5000)), LARGEST // (1 + len(all_[i])))
        case 5:
            all_.insert(i, rng.choice(_pick(rng, files)[1].split(b"\n")))
    files[name] = b"\n".join(all_)


def _replace_one(rng: random.Random, files: Files, pattern: bytes, values: list[str]) -> None:
    name, data = _pick(rng, files)
    found = list(re.finditer(pattern, data))
    if found:
        one = rng.choice(found)
        files[name] = data[: one.start()] + rng.choice(values).encode() + data[one.end() :]


def numbers(rng: random.Random, files: Files) -> None:
    _replace_one(rng, files, rb"-?\d+(\.\d+)?", NUMBERS)


def words(rng: random.Random, files: Files) -> None:
    _replace_one(rng, files, rb"[A-Za-z_]+", WORDS)


def paths(rng: random.Random, files: Files) -> None:
    _replace_one(rng, files, rb"\b[a-z]+\.csv", PATHS)


def values(rng: random.Random, files: Files) -> None:
    _replace_one(rng, files, rb"(?<== )[^#\n]+", VALUES)


def keys(rng: random.Random, files: Files) -> None:
    """More of what a declaration consists of."""
    data = files.get("problem.toml")
    if isinstance(data, bytes):
        key = rng.choice((*WORDS, "allow_unreachable", "unit", "column", "n_steps"))
        value, depth = rng.choice(VALUES), rng.choice((3, 60, 3000))
        n = rng.choice((3, 200))
        new = rng.choice(
            (
                f"{key} = {value}",
                f'"{key}" = {value}',
                f"[{key}]",
                f"[[{key}]]",
                f"[constraints.{key}]\ntable = 'technician.csv'\ncolumn = 'hours'\nbudget = {rng.choice(NUMBERS)}",
                "x = " + "[" * depth + "]" * rng.choice((0, depth)),
                "x = " + "{ a = " * depth,
                ".".join(["a"] * depth) + " = 1",
                "start = {" + ", ".join(f"s{i} = 0.001" for i in range(depth)) + "}",
                "\n".join(f"[constraints.c{i}]\ntable='uses.csv'\ncolumn='left'\nbudget=1" for i in range(n)),
            )
        ).encode()
        i = rng.choice([0, len(data), *(m.end() for m in re.finditer(b"\n", data))])
        files["problem.toml"] = data[:i] + new + b"\n" + data[i:]


def columns(rng: random.Random, files: Files) -> None:
    """Cells of a table: dropped, doubled, shuffled, filled, quoted."""
    name, data = _pick(rng, files)
    rows = [line.split(b",") for line in data.split(b"\n")]
    i, what = rng.randrange(max(map(len, rows))), rng.randrange(7)
    cell = rng.choice((*WORDS, *NUMBERS)).encode()
    order = rng.sample(range(9), 9)
    for k, row in enumerate(rows):
        match what:
            case 0:
                del row[i : i + 1]
            case 1:
                row.insert(i, row[i] if i < len(row) else b"")
            case 2:
                rows[k] = [row[j] for j in order if j < len(row)]
            case 3:
                row.append(rng.choice((b"step", b"episode", b"next_state", cell)) if k == 0 else b"%d" % (k % 3))
            case 4 if k:
                row[i : i + 1] = [cell]
            case 5:
                rows[k] = [b'"' + part + b'"' for part in row]
            case 6 if k and i < len(row):
                row[i] = rng.choice((b" ", b"\t", b"")) + row[i] + b" "
    files[name] = rng.choice((b"\n", b"\r\n", b"\r")).join(
        rng.choice((b",", b",", b";", b"\t")).join(row) for row in rows
    )


def kinds(rng: random.Random, files: Files) -> None:
    """Something else in place of a file, or beside it."""
    odd = os.fsdecode(rng.choice((b"caf\xe9", b"new\nline", b"\xff\xfe", b"x" * 255, b" ")))
    name = rng.choice((*files, *files, odd))
    target = rng.choice((*TARGETS, name))
    files[name] = rng.choice(
        (("pipe", ""), ("folder", ""), ("link", target), ("hole", "200000000"), ("hole", "900000"), ("locked", ""), b"")
    )
    if rng.random() < 0.5:
        files.pop(rng.choice(list(files)))


def sizes(rng: random.Random, files: Files) -> None:
    """Insert one piece many times."""
    name, data = _pick(rng, files)
    n, piece = (
        rng.choice((1000, 30_000)),
        rng.choice((b"\n", b",", b'"', b"a", b"[", b"a.", b"\xc3\xa9", data[-40:], b" ")),
    )
    i = _at(rng, data)
    files[name] = data[:i] + piece * n + data[i:]


def episodes(rng: random.Random, files: Files) -> None:
    """Many recorded episodes."""
    n = rng.choice((2, 50, 3000))
    pairs = [line.rpartition(",")[0] for line in TECHNICIAN.split()[1:]]
    for name in ("loss.csv", "technician.csv"):
        if name in files and rng.random() < 0.7:
            column = "loss" if name == "loss.csv" else "hours"
            rows = [f"{t},{pair},{(7 * t + len(pair)) % 50}" for t in range(1, n + 1) for pair in pairs]
            files[name] = "\n".join([f"episode,state,action,{column}", *rows]).encode()


def parquet(rng: random.Random, files: Files) -> None:
    """A table as Parquet, as it is or with damage."""
    import pyarrow
    import pyarrow.parquet

    name, data = _pick(rng, files)
    declaration = files.get("problem.toml")
    rows = [line.split(",") for line in data.decode("utf-8", "replace").split("\n") if line]
    if not (name.endswith(".csv") and rows and isinstance(declaration, bytes)):
        return
    cells = {head: [row[k] if k < len(row) else None for row in rows[1:]] for k, head in enumerate(rows[0])}
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({head: pyarrow.array(column, "string") for head, column in cells.items()})
    compression = rng.choice(("none", "snappy", "gzip"))
    pyarrow.parquet.write_table(table, sink, compression=compression)
    del files[name]
    new = name.replace(".csv", ".parquet")
    files[new] = sink.getvalue().to_pybytes()
    files["problem.toml"] = declaration.replace(name.encode(), new.encode())
    for _ in range(rng.choice((0, 0, 1, 3))):
        alone: Files = {new: files[new]}
        bytes_(rng, alone)
        files |= alone


MUTATIONS: tuple[Mutation, ...] = (
    bytes_,
    bytes_,
    lines,
    lines,
    numbers,
    numbers,
    words,
    paths,
    values,
    values,
    keys,
    columns,
    kinds,
    sizes,
    episodes,
    parquet,
)


if __name__ == "__main__":
    watchdog.main("fuzz.folders", __doc__.splitlines()[0])

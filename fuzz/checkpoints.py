"""Checkpoints, damaged in every way: each is refused in words, or loaded and plays on with a policy that is one.

python -m fuzz.checkpoints --seed 0 --tries 10000
"""

import io
import json
import os
import random
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from fuzz import watchdog
from tightrope.checks.worlds import WORLDS, World, drive, world
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.storage.checkpoints import fingerprint

PLAYED = (0, 1, 5)
PLANNED, PLAYED_ON = 12, 3

#: A checkpoint taken apart: what the JSON says, and the bytes of every other entry by name.
Document = dict[str, Any]
Entries = dict[str, bytes]
Change = Callable[[random.Random, Document, Entries], object]

NUMBERS = (
    np.nan, np.inf, -np.inf, -1.0, -1e-9, 1e-320, 0.5, 1.5, 2.0, 1e9, 1e17, 1e300, -1e300, 1.7e308, 0.0, 1.0,
)  # fmt: skip
DTYPES = ("<f8", ">f8", "<f4", "<i8", "<i4", "|i1", "|b1", "<u8", "<c16", "|O", "<U3", "<f2", "<M8[s]")
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**53, 2**53 + 1, 2**63, 10**30, 10**400, 0.5, 1e300, -1.5, "", "ucpd", "state/theta",
    [], [[]], [1, 2], [0.5] * 3, {}, {"float": "nan"}, {"float": "inf"}, {"float": "x"}, {"float": 1}, {"array": ""},
    {"array": "parameters/budgets"}, {"array": "state/theta"}, {"array": "../../etc/passwd"}, {"space": 0},
    {"space": -1}, {"space": 10**9}, {"policy": {"space": {"space": 0}, "values": {"array": "parameters/budgets"}}},
    {"generator": {}}, {"dict": {}}, {"dict": 1}, {"state": {}}, {"dataclass": {"name": "PaperRadius", "fields": {}}},
    {"dataclass": {"name": "UCPD", "fields": {}}}, {"a": 1, "b": 2}, {"mdp": None},
    {"ties": {"space": {"space": 0}, "values": {"array": "state/theta"}}},
)  # fmt: skip


def attempt(seed: int, number: int, folder: Path) -> str:
    """Damage a checkpoint and load it."""
    rng = random.Random(f"{seed} {number}")
    learner, where, played = rng.choice(list(LEARNERS)), rng.choice(list(WORLDS)), rng.choice(PLAYED)
    data = saved(learner, where, played)
    path = folder / "learner"
    parameters_are_as_they_were = True
    match rng.randrange(8):
        case 0 | 1:
            path.write_bytes(bytes_changed(rng, data))
        case 2 if rng.random() < 0.2:
            something_else(rng, path, data)
        case _:
            document, entries = taken_apart(data)
            before = (json.dumps(document["parameters"]), {k: v for k, v in entries.items() if k[:2] == "pa"})
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                rng.choice(CHANGES)(rng, document, entries)
            after = (json.dumps(document.get("parameters")), {k: v for k, v in entries.items() if k[:2] == "pa"})
            parameters_are_as_they_were = before == after
            path.write_bytes(put_together(rng, document, entries))
    try:
        loaded = tr.load(path)
    except tr.InvalidInputError as error:
        str(error).encode()  # it can be shown
        return "refused"
    try:
        play_on(loaded, WORLDS[where]())
    except tr.ConvergenceError:
        if parameters_are_as_they_were:
            raise
        return "loaded with other parameters, which end in an error of ours"
    return "loaded"


def prepare() -> None:
    """Compile what learners need."""
    for learner in LEARNERS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "learner"
            path.write_bytes(saved(learner, next(iter(WORLDS)), PLAYED[-1]))
            play_on(tr.load(path), WORLDS[next(iter(WORLDS))]())


@cache
def saved(learner: str, where: str, played: int) -> bytes:
    """A learner's checkpoint after so many episodes."""
    at = WORLDS[where]()
    made = tr.make_learner(learner, at, episodes=PLANNED)
    drive(at, made, last=played)
    return fingerprint(made)


def play_on(learner: LearnerBase, at: World) -> None:
    """Three more episodes, each with a policy that is one."""
    if learner.space != at.space or len(learner.budgets) != len(at.budgets):
        at = world(learner.space, len(learner.budgets))
    for t in range(PLAYED_ON + 1):
        try:
            tr.Policy(learner.space, learner.policy.probabilities)
        except tr.InvalidInputError as error:
            raise AssertionError(f"{learner.name} hands out no policy after {t} episodes: {error}") from error
        assert learner.multipliers.shape == learner.budgets.shape
        assert np.isfinite(learner.multipliers).all(), f"{learner.name} has the multipliers {learner.multipliers}"
        if t < PLAYED_ON:
            drive(at, learner, first=t + 1, last=t + 1)


def taken_apart(data: bytes) -> tuple[Document, Entries]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(entries.pop("learner.json")), entries


def put_together(rng: random.Random, document: Document, entries: Entries) -> bytes:
    """A zip with valid checksums, mostly as ours are."""
    buffer = io.BytesIO()
    odd = rng.random() < 0.1
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", rng.choice((0, 8)) if odd else 0) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        archive.writestr("learner.json", json.dumps(document).encode())
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
            if odd and rng.random() < 0.2:
                archive.fp.write(b"between")  # type: ignore[union-attr]
        if odd and archive.infolist():
            member = rng.choice(archive.infolist())  # what the directory says of it
            match rng.randrange(4):
                case 0:
                    archive.filelist.append(member)
                case 1:
                    member.filename = rng.choice(archive.namelist())
                case 2:
                    member.flag_bits = rng.choice((1, 8, 64))
                case 3:
                    field = rng.choice(("file_size", "compress_size", "header_offset", "CRC"))
                    setattr(member, field, rng.choice((0, 1, 10**5, 2**32 - 2)))
    return buffer.getvalue()


def bytes_changed(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 10))):
        i, n = rng.randint(0, max(0, len(data) - 1)), rng.choice((1, 1, 4, 100, 5000))
        data = rng.choice(
            (
                data[:i] + bytes([rng.randrange(256)]) + data[i + 1 :],
                data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1 :] if data else b"",
                data[:i],
                data[i:],
                data[:i] + data[i + n :],
                data[:i] + rng.randbytes(n) + data[i:],
                data[:i] + data[max(0, i - n) : i] * rng.choice((2, 50)) + data[i:],
                data + data,
                data[:i] + b"\0" * n + data[i + n :],
            )
        )
    return data


def something_else(rng: random.Random, path: Path, data: bytes) -> None:
    match rng.randrange(6):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to(rng.choice(("/dev/zero", "/dev/null", "/dev/tty", "learner", "/proc/self/mem", "nowhere")))
        case 3:
            path.touch()
            os.truncate(path, 10**9)
        case 4:
            path.write_bytes(b"")
        case 5:
            path.write_bytes(data)
            path.chmod(0)


def _array(data: bytes) -> Any:
    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception:  # changed before
        return np.zeros(3)


def _npy(array: Any) -> bytes:
    """As NumPy writes it; objects are only claimed in the header, and what follows is no pickle."""
    buffer = io.BytesIO()
    if array.dtype.hasobject:
        header = {"descr": "|O", "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(buffer, header)
        buffer.write(bytes(8 * array.size))
    else:
        np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def numbers(rng: random.Random, document: Document, entries: Entries) -> None:
    """Some numbers of an array, in its own type."""
    name = rng.choice([name for name in entries if name.startswith("state")] or list(entries))
    array = _array(entries[name])
    if array.size:
        with np.errstate(all="ignore"):
            few = rng.sample(range(array.size), rng.randint(1, min(3, array.size)))
            where = few if rng.random() < 0.7 else slice(None)
            if array.dtype.kind == "f":
                array.flat[where] = array.flat[where] * rng.choice((1, 1, -1, 2)) + rng.choice((0.0, 1e-9, *NUMBERS))
            elif array.dtype.kind in "iu":
                info = np.iinfo(array.dtype)
                array.flat[where] = rng.choice((info.min, info.max, 0, 1, 2, 100, info.max // 2))
    entries[name] = _npy(array)


def kinds(rng: random.Random, document: Document, entries: Entries) -> None:
    """Another type of numbers, another shape, another header."""
    name = rng.choice(list(entries))
    array = _array(entries[name])
    match rng.randrange(5):
        case 0:
            try:
                with np.errstate(all="ignore"):
                    entries[name] = _npy(array.astype(rng.choice(DTYPES)))
            except (TypeError, ValueError):
                entries[name] = b""
        case 1:
            n = array.size
            entries[name] = _npy(np.resize(array, rng.choice(((n,), (1, n), (n, 1), (0,), (), (n, 0)))))
        case 2:
            entries[name] = _npy(np.resize(array, rng.choice((0, 1, array.size + 1, 2 * array.size, 10**5))))
        case 3:
            entries[name] = bytes_changed(rng, entries[name])
        case 4:
            header = io.BytesIO()
            shape = rng.choice(((10**12,), (2**31, 2**31), (-5,), (0,), (2**62, 4)))
            np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
            entries[name] = header.getvalue() + bytes(rng.choice((0, 80)))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in ((value, key), *_places(inner))]


def values(rng: random.Random, document: Document, entries: Entries) -> None:
    """A value of the JSON: another one, none, or one that is elsewhere in it."""
    places = _places(document)
    container, key = rng.choice(places)
    match rng.randrange(5):
        case 0 if isinstance(container, dict):
            del container[key]
        case 1:
            other, its = rng.choice(places)
            container[key] = json.loads(json.dumps(other[its]))
        case 2 if isinstance(container, dict):
            container[rng.choice(("x", "array", "float", "dict", "state", "learner", ""))] = rng.choice(VALUES)
        case _:
            container[key] = rng.choice(VALUES)


def references(rng: random.Random, document: Document, entries: Entries) -> None:
    """One array many times, or another one than before."""
    name = rng.choice(list(entries)).removesuffix(".npy")
    n = rng.choice((1, 2, 2000, 10_000))
    container, key = rng.choice(_places(document))
    container[key] = rng.choice(
        ([{"array": name} for _ in range(n)], {"array": name}, [{"space": 0} for _ in range(n)])
    )
    if rng.random() < 0.3:
        entries[f"{name}.npy"] = _npy(np.zeros(10**6))


def extras(rng: random.Random, document: Document, entries: Entries) -> None:
    """Add, remove or exchange entries."""
    one, other = rng.choice(list(entries)), rng.choice(list(entries))
    match rng.randrange(4):
        case 0:
            entries[rng.choice(("x", "x.npy", "../x", "state/", "/etc/x.npy", "learner.json", "x" * 3000))] = b"x" * 9
        case 1 if len(entries) > 1:
            del entries[one]
        case 2:
            entries[one], entries[other] = entries[other], entries[one]
        case _:
            entries |= {f"more/{k}.npy": b"" for k in range(rng.choice((3, 5000)))}


def depths(rng: random.Random, document: Document, entries: Entries) -> None:
    """Much of the same in the JSON."""
    container, key = rng.choice(_places(document))
    deep: Any = 1
    for _ in range(rng.choice((3, 50, 150))):
        deep = rng.choice(([deep], {"dict": {"a": deep}}, {"state": deep}))
    container[key] = rng.choice(
        (deep, [[] for _ in range(10**4)], ["x"] * 10**4, "x" * 10**6, {str(k): k for k in range(10**4)})
    )


CHANGES: tuple[Change, ...] = (numbers, numbers, numbers, numbers, kinds, values, values, references, extras, depths)


if __name__ == "__main__":
    watchdog.main("fuzz.checkpoints", __doc__.splitlines()[0])

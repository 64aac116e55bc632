"""Checkpoints: a learner in one file, from which it continues with the same bits.

A file is an uncompressed zip of `learner.json` (the name of the learner, its parameters and its state) and one `.npy`
for every array that the JSON refers to, once each; `numpy.load` opens it too. Nothing is unpickled, and memory is
bounded by the size of the file. An array whose header does not match its field is not read, and a value outside the
limits of its field is refused. The checksums of the zip protect against damage, not against manipulation: anyone who
can write the file can replace the learner (docs/reference/checkpoints.md).

An object with `state` and `restore`, such as an unfinished run, may be saved beside its learner in the same file:
`load` reads the learner, `restore` the object.

In the JSON, numbers, texts, lists and null stand for themselves. Every other value is an object with one key, its kind:
{"array": …}, {"dict": …}, {"policy": …}.
"""

import dataclasses
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tightrope import __version__
from tightrope.arguments import printable, shown
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.space import LayeredSpace
from tightrope.storage.files import open_regular, replacing
from tightrope.storage.state import check_field, limits_of
from tightrope.ties import Ties

if TYPE_CHECKING:
    from tightrope.learners.base import LearnerBase

DOCUMENT = "learner.json"
BESIDE = "beside"

#: The most bytes of the JSON; large values are arrays.
LARGEST_DOCUMENT = 10_000_000

#: The largest count: larger whole numbers are not exact as floats.
LARGEST_COUNT = 2**53

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64")


class Stateful(Protocol):
    """An object that can be saved beside a learner: `restore` accepts the state of another object of its kind."""

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


def save(learner: "LearnerBase", path: Path, beside: Stateful | None = None) -> None:
    """Write `learner`, and an object beside it, to `path`; an existing file is replaced atomically.

    Raises
    ------
    InvalidInputError : if the file cannot be written, or the learner has a field of a kind that cannot be saved.
    """
    try:
        with replacing(path) as file:
            write(learner, file, beside)
    except OSError as error:
        raise InvalidInputError(f"cannot write {printable(path)}: {error.strerror or error}") from error


def write(learner: "LearnerBase", file: IO[bytes], beside: Stateful | None = None) -> None:
    """Write `learner` to an open file; equal states give equal bytes."""
    encoder = Encoder()
    state = _written_state(learner)
    document = {
        "schema": SCHEMA,
        "tightrope": __version__,
        "learner": learner.name,
        "parameters": encoder.encode_all(learner.parameters, "parameters"),
        "state": encoder.encode_all(state, "state"),
    }
    if beside is not None:
        document[BESIDE] = encoder.encode(beside, BESIDE)
    with _writing(file) as archive:
        with archive.open(_member(DOCUMENT), "w") as member:
            member.write(json.dumps(document, indent=1, allow_nan=False).encode())
        for name, array in encoder.arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


@contextmanager
def _writing(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Yield an archive that is closed if the block succeeds; closing one with an unfinished member would fail."""
    archive = zipfile.ZipFile(file, "w")
    try:
        yield archive
        archive.close()
    except BaseException:
        archive.fp = None  # so that its destructor does not close it
        raise


def fingerprint(learner: "LearnerBase") -> bytes:
    """Return the bytes that `save` would write; learners with equal bytes continue in the same way."""
    buffer = io.BytesIO()
    write(learner, buffer)
    return buffer.getvalue()


def load(source: Path | bytes, learners: Mapping[str, type["LearnerBase"]], types: Iterable[type]) -> "LearnerBase":
    """Return the learner of a checkpoint, created from its parameters and its state.

    Parameters
    ----------
    source : a file, or its bytes.
    learners : the allowed classes of learners, by name.
    types : the dataclasses that parameters may have as values.

    Raises
    ------
    InvalidInputError : if the file cannot be read, is damaged, or is not of a known learner.
    """
    with _opened(source, types) as (document, decoder):
        name = document["learner"]
        if name not in learners:
            raise InvalidInputError(f"there is no learner {name!r}; pass your own class to load, after the path")
        learner = learners[name](**decoder.decode_all(document["parameters"]))
        state = _read_state(learner, document, decoder)
        decoder.refuse_unread(but=BESIDE if BESIDE in document else None)
        learner.offered(state)  # refuses a state without a policy
        learner.state = state
        return learner


def _written_state(learner: "LearnerBase") -> dict[str, Any]:
    """Return the fields of a learner's state by the names that they have in a checkpoint."""
    return {
        limits.written_as or name: getattr(learner.state, name) for name, limits in limits_of(learner.state).items()
    }


def _read_state(learner: "LearnerBase", document: Mapping[str, Any], decoder: "Decoder") -> Any:
    """Return the state in a document, of the type, shapes and limits that the fields of the learner's state declare."""
    fresh, saved = learner.state, document["state"]
    fields = {
        limits.written_as or name: (name, limits)
        for name, limits in limits_of(fresh).items()
        if limits.since <= document["schema"]
    }
    if set(saved) != set(fields):
        there, expected = (", ".join(sorted(names)) for names in (saved, fields))
        raise InvalidInputError(f"its state has {there}; the state of {learner.name} has {expected}")
    values = {}
    for written, (name, limits) in fields.items():
        values[name] = _like(name, getattr(fresh, name), saved[written], decoder)
        check_field(learner.space, name, values[name], limits)
    state = dataclasses.replace(fresh, **values)
    counts = getattr(state, "counts", None)
    if counts is not None and counts.episodes < state.observed:  # counts may include the episodes of a log
        raise InvalidInputError(f"observed is {state.observed}, but its counts have {counts.episodes} episodes")
    return state


def restore(source: Path | bytes, beside: Stateful) -> None:
    """Restore the state of `beside` from what was saved beside the learner."""
    with _opened(source, ()) as (document, decoder):
        if BESIDE not in document:
            raise InvalidInputError("it contains a learner only, without a run")
        _like(BESIDE, beside, document[BESIDE], decoder)


def peek(source: Path | bytes, *keys: str) -> Any:
    """Return the value under these keys in the JSON of a file, without reading arrays."""
    with _opened(source, ()) as (document, _):
        value: Any = document
        for key in keys:
            value = value[key]
        return value


@contextmanager
def _opened(source: Path | bytes, types: Iterable[type]) -> Iterator[tuple[dict[str, Any], "Decoder"]]:
    """Yield the JSON of a file and the decoder of its arrays; any error becomes an InvalidInputError with its name."""
    name = "the checkpoint" if isinstance(source, bytes) else printable(source)
    try:
        with _file(source) as (file, size), zipfile.ZipFile(file) as archive:
            document = _document(archive, size)
            yield document, Decoder(archive, {kind.__name__: kind for kind in types})
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror or error}") from error
    except InvalidInputError as error:
        words = str(error)
        raise InvalidInputError(words if words.startswith(name) else f"{name}: {words}") from error
    except Exception as error:  # a damaged file can raise any error
        raise InvalidInputError(f"{name} is not a checkpoint of tightrope, or is damaged: {error}") from error


@contextmanager
def _file(source: Path | bytes) -> Iterator[tuple[IO[bytes], int]]:
    """Yield an open file, and its size."""
    if isinstance(source, bytes):
        yield io.BytesIO(source), len(source)
        return
    with open_regular(source) as descriptor, open(descriptor, "rb", closefd=False) as file:
        yield file, os.fstat(descriptor).st_size


def _document(archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """Return the JSON, after checking that no member of the archive is larger than the file."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise InvalidInputError("it is compressed, which tightrope's files never are")
    if len({member.filename for member in members}) < len(members):
        raise InvalidInputError("it has two entries of one name")
    if sum(max(member.file_size, member.compress_size) for member in members) > size:
        raise InvalidInputError("its entries claim to be larger than the file")
    if archive.getinfo(DOCUMENT).file_size > LARGEST_DOCUMENT:
        raise InvalidInputError(f"its {DOCUMENT} has more than {LARGEST_DOCUMENT // 10**6} MB")
    return upgraded(json.loads(archive.read(DOCUMENT)))


def _like(what: str, fresh: Any, value: Any, decoder: "Decoder") -> Any:
    """Return the saved value; kind, shape and dtype must be those of the value in a new learner."""
    if hasattr(fresh, "restored") or hasattr(fresh, "restore"):
        saved, parts = value["state"], fresh.state()
        if set(saved) != set(parts):
            raise InvalidInputError(f"the state of {what} has {sorted(saved)}; expected {sorted(parts)}")
        values = {name: _like(f"{what}.{name}", parts[name], saved[name], decoder) for name in parts}
        if hasattr(fresh, "restored"):  # a value: another one is made
            return fresh.restored(values)
        fresh.restore(values)
        return fresh
    match fresh:
        case np.ndarray():
            return decoder.array(value, fresh)
        case Policy():
            return Policy(fresh.space, decoder.array(value["policy"]["values"], fresh.probabilities))
        case np.random.Generator():
            return _generator(fresh, value["generator"])
    plain = decoder.decode(value) if isinstance(fresh, float) else value
    if type(plain) is not type(fresh):
        raise InvalidInputError(f"{what} is {shown(value)}; expected a {type(fresh).__name__}")
    if isinstance(plain, int) and abs(plain) > LARGEST_COUNT:
        raise InvalidInputError(f"{what} is {shown(plain)}; a count is at most {LARGEST_COUNT}")
    return plain


class Encoder:
    """Converts values to JSON, and collects their arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.spaces: list[LayeredSpace] = []

    def encode_all(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the value of each name, converted."""
        return {name: self.encode(value, f"{where}/{name}") for name, value in values.items()}

    def encode(self, value: Any, where: str) -> Any:
        match value:
            case None | bool() | str():
                return value
            case int() | float() | np.number() | np.bool():
                plain = value.item() if isinstance(value, np.generic) else value
                return plain if math.isfinite(plain) else {"float": repr(plain)}
            case np.ndarray():
                if value.dtype.name not in DTYPES:
                    raise InvalidInputError(f"{where} holds {value.dtype}; a learner keeps {', '.join(DTYPES)}")
                self.arrays[where] = value
                return {"array": where}
            case LayeredSpace():
                if value not in self.spaces:
                    self.spaces.append(value)
                    sizes, n_actions = list(value.layer_sizes), value.n_actions
                    tuples = self.encode(value.tuples, f"{where}/tuples")
                    return {"space": {"layer_sizes": sizes, "n_actions": n_actions, "tuples": tuples}}
                return {"space": self.spaces.index(value)}
            case LayeredMDP(space=space, transitions=values):
                return {"mdp": {"space": self.encode(space, where), "values": self.encode(values, where)}}
            case Policy(space=space, probabilities=values):
                return {"policy": {"space": self.encode(space, where), "values": self.encode(values, where)}}
            case Ties(space=space, outcome=values):
                return {"ties": {"space": self.encode(space, where), "values": self.encode(values, where)}}
            case np.random.Generator():
                if not isinstance(value.bit_generator, np.random.PCG64):
                    kind = type(value.bit_generator).__name__
                    raise InvalidInputError(f"{where} draws from {kind}; only numpy.random.default_rng can be saved")
                return {"generator": value.bit_generator.state}
            case dict() if all(isinstance(name, str) for name in value):
                return {"dict": self.encode_all(value, where)}
            case list() | tuple():
                return [self.encode(item, f"{where}/{k}") for k, item in enumerate(value)]
            case _ if hasattr(value, "state") and hasattr(value, "restored"):
                return {"state": self.encode_all(value.state(), where)}
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
                return {"dataclass": {"name": type(value).__name__, "fields": self.encode_all(fields, where)}}
            case _ if hasattr(value, "state") and hasattr(value, "restore"):
                return {"state": self.encode_all(value.state(), where)}
        raise InvalidInputError(f"{where} is a {type(value).__name__}, which cannot be saved; make it a dataclass")


class Decoder:
    """Converts JSON and arrays to values."""

    def __init__(self, archive: zipfile.ZipFile, types: Mapping[str, type]) -> None:
        self.archive = archive
        self.types = types
        self.spaces: list[LayeredSpace] = []
        self.unread = set(archive.namelist()) - {DOCUMENT}

    def decode_all(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each name, converted."""
        return {name: self.decode(value) for name, value in values.items()}

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        [(kind, content)] = value.items()
        match kind, content:
            case "float", str():
                return float(content)
            case "array", _:
                return self.array(value)
            case "space", int(index):
                return self.spaces[index]
            case "space", {"layer_sizes": sizes, "n_actions": n_actions, "tuples": tuples}:
                moves = self.decode(tuples)
                self.spaces.append(LayeredSpace.from_tuples(sizes, n_actions, moves))
                return self.spaces[-1]
            case "mdp", {"space": space, "values": values}:
                return LayeredMDP(self.decode(space), self.decode(values))
            case "policy", {"space": space, "values": values}:
                return Policy(self.decode(space), self.decode(values))
            case "ties", {"space": space, "values": values}:
                return Ties(self.decode(space), self.decode(values))
            case "generator", state:
                return _generator(np.random.default_rng(0), state)
            case "dataclass", {"name": name, "fields": fields}:
                if name not in self.types:
                    raise InvalidInputError(f"there is no {name!r}; pass your own class to load, after the path")
                return self.types[name](**self.decode_all(fields))
            case "dict", dict():
                return self.decode_all(content)
        raise InvalidInputError(f"there is no kind of value {kind!r}")

    def refuse_unread(self, but: str | None = None) -> None:
        """Refuse members that the JSON does not refer to, except those in the folder `but`."""
        unread = sorted(name for name in self.unread if but is None or not name.startswith(f"{but}/"))
        if unread:
            raise InvalidInputError(f"it contains {unread[0]!r}, to which nothing refers")

    def array(self, value: Mapping[str, str], like: Any = None) -> Any:
        """Return the array that `value` refers to, after checking that its header has the shape and dtype of `like`."""
        member = self.archive.getinfo(f"{value['array']}.npy")
        if member.filename not in self.unread:  # otherwise a small file could use any amount of memory
            raise InvalidInputError(f"{value['array']} is referred to twice")
        self.unread.remove(member.filename)
        with self.archive.open(member) as file:
            version = npy.read_magic(file)
            if version != (1, 0):
                raise InvalidInputError(f"{value['array']} is in version {version} of npy; expected (1, 0)")
            shape, _, dtype = npy.read_array_header_1_0(file)
            size = math.prod(shape) * dtype.itemsize
            if dtype.name not in DTYPES or size != member.file_size - file.tell():
                raise InvalidInputError(f"{value['array']} is not {dtype} of shape {shape}, as its header says")
            if like is not None and (shape != np.shape(like) or dtype != np.asarray(like).dtype):
                raise InvalidInputError(
                    f"{value['array']} is {dtype} of shape {shape}; "
                    f"expected {np.asarray(like).dtype} of shape {np.shape(like)}"
                )
            file.seek(0)
            return npy.read_array(file, allow_pickle=False)


def _generator(rng: np.random.Generator, state: Mapping[str, Any]) -> np.random.Generator:
    """Return `rng` in that state, after checking it, which numpy does not."""
    number, increment = state["state"]["state"], state["state"]["inc"]
    if not (0 <= number < 2**128 and 0 <= increment < 2**128 and increment % 2 and state["has_uint32"] in (0, 1)):
        raise InvalidInputError("the state of its random generator is invalid")
    rng.bit_generator.state = state
    return rng


def _member(name: str) -> zipfile.ZipInfo:
    """Return a member without the time of writing, for equal bytes."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


# --------------------------------------------------------------------------------------------- older schemas
#
# Conversion of checkpoints with older schemas to the present one:
#
#   5   as 4, but `ucpd-practical`, `ucpd-practical-known` and `ucpd-bandit` are new learners; the old ones are
#       called -0.2
#   4   as 3; the fields of a state declare the schema that introduced them (`storage.state.numbers`)
#   3   state by attribute, nested objects inside; values other than numbers, texts and lists under a key for their kind
#   2   state by dotted name ("counts.N"); dictionaries without a key for their kind
#
# Schema 1 had counts of 64 bits inside an epoch and is refused.

#: The schema that is written; a change of the format that older readers cannot read increases it.
SCHEMA = 5

#: The keys for kinds of values in schema 2.
TAGS = ("float", "array", "space", "mdp", "policy", "generator", "state")


#: Learners that are renamed in schema 5.
RENAMED = {
    "ucpd-practical": "ucpd-practical-0.2",
    "ucpd-practical-known": "ucpd-practical-known-0.2",
    "ucpd-bandit": "ucpd-bandit-0.2",
}


def upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document in the present schema; fields that are new since then are missing."""
    if document["schema"] in (2, 3, 4):
        learner = document["learner"]
        document = _with_state(document) | {"learner": RENAMED.get(learner, learner)}
    elif document["schema"] != SCHEMA:
        raise InvalidInputError(
            f"written by tightrope {document['tightrope']} in schema {document['schema']}; "
            f"this is tightrope {__version__}, which reads schemas 2 to {SCHEMA}"
        )
    return document


def _with_state(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of schema 2, 3 or 4 with its parameters and its state in the form of 4."""
    if document["schema"] == 2:
        return document | {
            "parameters": {name: _tagged(value) for name, value in document["parameters"].items()},
            "state": _by_attribute(document["state"]),
        }
    if document["schema"] == 3 and document["learner"] == "ucpd-practical":  # this learner took a step in every episode
        return document | {"state": document["state"] | {"steps": document["state"]["observed"]}}
    return document


def _tagged(value: Any) -> Any:
    match value:
        case {"dataclass": name, "fields": fields}:
            return {"dataclass": {"name": name, "fields": {key: _tagged(item) for key, item in fields.items()}}}
        case dict() if len(value) == 1 and next(iter(value)) in TAGS:
            return value
        case dict():
            return {"dict": {key: _tagged(item) for key, item in value.items()}}
        case list():
            return [_tagged(item) for item in value]
    return value


def _by_attribute(state: dict[str, Any]) -> dict[str, Any]:
    grouped: dict[str, Any] = {}
    for name, value in state.items():
        owner, _, part = name.partition(".")
        if part:
            grouped.setdefault(owner, {"state": {}})["state"][part] = value
        elif name != "_rng":  # of FPOP, which never drew again
            grouped[name] = value
    return grouped

"""The state of a learner on disk, and back: one file, no code in it.

A file is an uncompressed zip of `learner.json` (who the learner is, what it was made with, what it carries) and one
`.npy` for every array that the JSON refers to; `numpy.load` opens it too. Nothing is unpickled. Nothing in it can be
larger than the file itself, and no array is read whose header disagrees with the learner it is meant for.
"""

import dataclasses
import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tightrope import __version__
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.space import LayeredSpace
from tightrope.storage.files import replacing

if TYPE_CHECKING:
    from tightrope.learners.base import LearnerBase

#: Raised whenever a file written before can no longer be read.
SCHEMA = 2
DOCUMENT = "learner.json"
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64")


def save(learner: "LearnerBase", path: Path) -> None:
    """Write `learner` to `path`; a file that is there is replaced only by a whole one."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        write(learner, file)


def write(learner: "LearnerBase", file: IO[bytes]) -> None:
    """Write `learner` to an open file; the same learner in the same state gives the same bytes."""
    encoder = Encoder()
    document = {
        "schema": SCHEMA,
        "tightrope": __version__,
        "learner": learner.name,
        "parameters": encoder.encode(learner.parameters, "parameters"),
        "state": {name: encoder.encode(attrgetter(name)(learner), f"state/{name}") for name in learner.carries},
    }
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open(_member(DOCUMENT), "w") as member:
            member.write(json.dumps(document, indent=1, allow_nan=False).encode())
        for name, array in encoder.arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def fingerprint(learner: "LearnerBase") -> bytes:
    """The bytes that `save` would write: equal for learners that will go on alike."""
    buffer = io.BytesIO()
    write(learner, buffer)
    return buffer.getvalue()


def load(path: Path, learners: Mapping[str, type["LearnerBase"]], types: Iterable[type]) -> "LearnerBase":
    """The learner saved at `path`: made anew from its parameters, then given its state.

    `learners` are the classes it may be, by name; `types` the dataclasses that may be among its parameters.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            document = _document(archive)
            decoder = Decoder(archive, {kind.__name__: kind for kind in types})
            name = document["learner"]
            if name not in learners:
                raise InvalidInputError(
                    f"there is no learner {name!r}; a class of your own is given to load beside the path"
                )
            learner = learners[name](**decoder.decode(document["parameters"]))
            if set(document["state"]) != set(learner.carries):
                raise InvalidInputError(
                    f"it carries {', '.join(sorted(document['state']))}; "
                    f"this {name} carries {', '.join(sorted(learner.carries))}"
                )
            for attribute in learner.carries:
                _restore(learner, attribute, document["state"][attribute], decoder)
            learner._restored()
            return learner
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from error
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    except Exception as error:  # whatever is in the file, it is the file that is wrong
        raise InvalidInputError(f"{path} is no learner saved by tightrope, or damaged: {error}") from error


def _document(archive: zipfile.ZipFile) -> dict[str, Any]:
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise InvalidInputError("it is compressed, which tightrope's files never are")
    document = json.loads(archive.read(DOCUMENT))
    if document["schema"] != SCHEMA:
        raise InvalidInputError(
            f"written by tightrope {document['tightrope']} in schema {document['schema']}; "
            f"this is tightrope {__version__}, which reads schema {SCHEMA}"
        )
    return dict(document)


def _restore(learner: "LearnerBase", attribute: str, value: Any, decoder: "Decoder") -> None:
    """Give one attribute of a fresh learner its saved value: of the same type, shape and dtype as it has now."""
    current = attrgetter(attribute)(learner)
    owner, _, last = attribute.rpartition(".")
    holder = attrgetter(owner)(learner) if owner else learner
    if isinstance(current, np.ndarray):
        setattr(holder, last, decoder.array(value, current))
    elif isinstance(current, Policy):
        probabilities = decoder.array(value["policy"]["values"], current.probabilities)
        setattr(holder, last, Policy(current.space, probabilities))
    elif isinstance(current, np.random.Generator):
        current.bit_generator.state = value["generator"]
    elif hasattr(current, "restore"):
        fresh = current.state()
        if set(value["state"]) != set(fresh):
            raise InvalidInputError(f"the state of {attribute} has {sorted(value['state'])}; expected {sorted(fresh)}")
        current.restore({name: decoder.array(value["state"][name], fresh[name]) for name in fresh})
    else:
        if type(value) is not type(current):
            raise InvalidInputError(f"{attribute} is {value!r}; expected a {type(current).__name__}")
        setattr(holder, last, value)


class Encoder:
    """Values as JSON; arrays are put aside by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.spaces: list[LayeredSpace] = []

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
            case np.random.Generator():
                return {"generator": value.bit_generator.state}
            case dict():
                return {name: self.encode(item, f"{where}/{name}") for name, item in value.items()}
            case list() | tuple():
                return [self.encode(item, f"{where}/{k}") for k, item in enumerate(value)]
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
                return {"dataclass": type(value).__name__, "fields": self.encode(fields, where)}
            case _ if hasattr(value, "state") and hasattr(value, "restore"):
                return {"state": self.encode(value.state(), where)}
        raise InvalidInputError(f"{where} is a {type(value).__name__}, which cannot be saved; make it a dataclass")


class Decoder:
    """The other way round."""

    def __init__(self, archive: zipfile.ZipFile, types: Mapping[str, type]) -> None:
        self.archive = archive
        self.types = types
        self.spaces: list[LayeredSpace] = []

    def decode(self, value: Any) -> Any:
        match value:
            case {"float": text, **rest} if not rest:
                return float(text)
            case {"array": _, **rest} if not rest:
                return self.array(value)
            case {"space": int(index), **rest} if not rest:
                return self.spaces[index]
            case {"space": {"layer_sizes": sizes, "n_actions": n_actions, "tuples": tuples}, **rest} if not rest:
                moves = self.decode(tuples)
                if sum(sizes) > len(moves) + 1:  # before anything of that size is made
                    raise InvalidInputError(f"a space of {sum(sizes)} states cannot have {len(moves)} tuples")
                self.spaces.append(LayeredSpace.from_tuples(sizes, n_actions, moves))
                return self.spaces[-1]
            case {"mdp": {"space": space, "values": values}, **rest} if not rest:
                return LayeredMDP(self.decode(space), self.decode(values))
            case {"policy": {"space": space, "values": values}, **rest} if not rest:
                return Policy(self.decode(space), self.decode(values))
            case {"generator": state, **rest} if not rest:
                rng = np.random.default_rng(0)
                rng.bit_generator.state = state
                return rng
            case {"dataclass": name, "fields": fields}:
                if name not in self.types:
                    raise InvalidInputError(
                        f"there is no {name!r}; a class of your own is given to load beside the path"
                    )
                return self.types[name](**self.decode(fields))
            case dict():
                return {name: self.decode(item) for name, item in value.items()}
            case list():
                return [self.decode(item) for item in value]
        return value

    def array(self, value: Mapping[str, str], like: Any = None) -> Any:
        """The array that `value` refers to, refused unread if it is not `like` this one."""
        member = self.archive.getinfo(f"{value['array']}.npy")
        with self.archive.open(member) as file:
            version = npy.read_magic(file)
            if version != (1, 0):
                raise InvalidInputError(f"{value['array']} is in version {version} of npy; expected (1, 0)")
            shape, _, dtype = npy.read_array_header_1_0(file)
            size = math.prod(shape) * dtype.itemsize
            if dtype.name not in DTYPES or size != member.file_size - file.tell():
                raise InvalidInputError(f"{value['array']} claims to be {dtype} of shape {shape}, and is not")
            if like is not None and (shape != np.shape(like) or dtype != np.asarray(like).dtype):
                raise InvalidInputError(
                    f"{value['array']} is {dtype} of shape {shape}; "
                    f"expected {np.asarray(like).dtype} of shape {np.shape(like)}"
                )
            file.seek(0)
            return npy.read_array(file, allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    """Without the time of writing."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))

"""What changed from one study to the next, in words."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tightrope.lab.studies.toml import dotted
from tightrope.lab.study import Named, Study


def differences(before: Study, now: Study) -> list[str]:
    """What changed from one study to the next, in words."""
    words = []
    for name in ("problems", "losses", "noises", "learners"):
        old, new = ([str(Named.of(choice)) for choice in getattr(study, name)] for study in (before, now))
        gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
        if gone or come:
            words.append(
                f"{name}: " + ", ".join([*(f"without {one}" for one in gone), *(f"with {one}" for one in come)])
            )
    words += _changed(_by_key(before), _by_key(now))
    edited = [name for name, digest in now.contents.items() if before.contents.get(name, digest) != digest]
    return [*words, *(f"the files of {name} were edited" for name in edited)]


def _by_key(study: Study) -> dict[str, Any]:
    plain = msgspec.to_builtins(study)
    records = {f"records.{name}": value for name, value in plain["records"].items()}
    return {"episodes": study.horizons, "seeds": study.all_seeds} | dotted(plain["grid"]) | records


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [f"{name} {_shown(before.get(name, 'none'))}, now {_shown(now.get(name, 'none'))}" for name in names]


def _shown(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3 and value == list(range(value[0], value[-1] + 1)):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

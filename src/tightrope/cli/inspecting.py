"""`tightrope inspect`: print the state of a durable learner, write its policy."""

import json
from pathlib import Path

from tightrope.cli.standard import note, show
from tightrope.durable.export import write_policy
from tightrope.durable.inspection import as_json, inspect
from tightrope.durable.page import page


def inspect_directory(folder: Path, in_json: bool, policy: Path | None) -> bool:
    """Print the state of a directory; return whether it is undamaged."""
    found = inspect(folder)
    show(json.dumps(as_json(found), indent=2, ensure_ascii=False) if in_json else "\n".join(page(found)))
    if policy is not None and found.status is not None:
        write_policy(found.status.policy, policy, found.facts.get("states", ()), found.facts.get("actions", ()))
        note(f"policy  {policy}")
    return not found.damage

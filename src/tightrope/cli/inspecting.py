"""`tightrope inspect`: what a durable learner holds, as a page or as numbers, and its policy as a table."""

import json
from pathlib import Path

from tightrope.cli.standard import note, show
from tightrope.ops.inspection import as_json, inspect, page, write_policy


def inspect_directory(folder: Path, in_json: bool, policy: Path | None) -> bool:
    """Show a directory; return whether it is whole."""
    found = inspect(folder)
    show(json.dumps(as_json(found), indent=2, ensure_ascii=False) if in_json else "\n".join(page(found)))
    if policy is not None and found.status is not None:
        write_policy(found.status.policy, policy, found.facts.get("states", ()), found.facts.get("actions", ()))
        note(f"policy  {policy}")
    return not found.damage

"""A policy as a table that anybody can read: one line for every state and action."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.storage.files import write_csv


def policy_table(policy: Policy, states: Sequence[str] = (), actions: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Its columns: layer, state and action, by number and by name, and the probability of the action."""
    space = policy.space
    of_state, of_action = space.pairs[:, 0].tolist(), space.pairs[:, 1].tolist()
    columns: dict[str, list[Any]] = {"layer": [space.layer_of(s) for s in of_state], "state": of_state}
    if states:
        columns["state_name"] = [states[s] for s in of_state]
    columns["action"] = of_action
    if actions:
        columns["action_name"] = [actions[a] for a in of_action]
    return columns | {"probability": policy.probabilities.tolist()}


def write_policy(policy: Policy, path: Path, states: Sequence[str] = (), actions: Sequence[str] = ()) -> None:
    """The table as a CSV file; every probability reads back to the same bits."""
    if path.suffix != ".csv":
        raise InvalidInputError(f"{path} ends in {path.suffix or 'nothing'}; a policy is written as .csv")
    write_csv(path, policy_table(policy, states, actions))

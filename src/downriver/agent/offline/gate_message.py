"""A change request with labels: `Entity: …`, `Change type: …`, `Proposed change: …`."""

from __future__ import annotations

import re
from typing import NamedTuple

_LABEL = re.compile(
    r"^\s*(?P<label>proposed change|change description|description|entity(?: id)?|change type|type|"
    r"change)\s*:[ \t]*(?P<value>.*?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


class GateMessage(NamedTuple):
    """What a request says of a change."""

    entity: str
    change_type: str
    description: str


def parse_gate_message(text: str) -> GateMessage | None:
    """Return what a labelled request says; None where it names no entity."""
    said: dict[str, str] = {}
    for found in _LABEL.finditer(text):
        said.setdefault(_meaning(found["label"].lower()), found["value"].strip("`\"' "))
    if not said.get("entity"):
        return None
    return GateMessage(said["entity"], said.get("type", ""), said.get("description", ""))


def _meaning(label: str) -> str:
    if label.startswith("entity"):
        return "entity"
    return "type" if label.endswith("type") else "description"

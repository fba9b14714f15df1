"""What a message asks for. The first intent whose signs are there decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.agent.grammar import parse_description
from downriver.agent.offline import signs

if TYPE_CHECKING:
    from collections.abc import Callable

_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s", re.MULTILINE)
Kind = Literal[
    "help", "gate", "sql", "register", "diagram", "kpis", "incident", "fix", "diagnose", "impact",
    "paths", "column", "trace", "search", "entity", "unknown",
]  # fmt: skip


class Intent(NamedTuple):
    """What is asked, and the parts of the question that are not names.

    `decide`: the asker wants to be told whether to go on.
    """

    kind: Kind
    direction: str = "both"
    depth: int | None = None
    decide: bool = False


def read_intent(text: str) -> Intent:
    """Return what a message asks for."""
    for kind, is_meant in INTENTS:
        if is_meant(text):
            decide = bool(signs.DECIDE.search(text))
            return Intent(kind, direction_of(text), depth_of(text), decide)
    return Intent("unknown")


def direction_of(text: str) -> str:
    """Return which way a question looks; both when it says neither or both."""
    stated = {word.lower() for word in re.findall(r"\b(?:up|down)stream\b", text, re.IGNORECASE)}
    if signs.BOTH.search(text) or len(stated) > 1:
        return "both"
    if stated:
        return "upstream" if "upstream" in stated else "downstream"
    up, down = signs.UPSTREAM.search(text), signs.DOWNSTREAM.search(text)
    if bool(up) == bool(down):
        return "both"
    return "upstream" if up else "downstream"


def depth_of(text: str) -> int | None:
    """Return how many steps a question is about, None when it is about all."""
    found = signs.DEPTH.search(text)
    if found:
        return int(found[1] or found[2])
    return 1 if signs.DIRECT.search(text) else None


def _is_registration(text: str) -> bool:
    if signs.REGISTER.search(text):
        return True
    if "?" in text:
        return False
    found = parse_description(text)
    # A message that is mostly flows, or a list with one, describes a pipeline all the same.
    listed = len(_ITEM.findall(text)) > 1
    return bool(found.flows) and (listed or len(found.flows) >= len(found.not_understood))


def _is_trace(text: str) -> bool:
    patterns = (signs.UPSTREAM, signs.DOWNSTREAM, signs.BOTH, signs.LINEAGE)
    return any(pattern.search(text) for pattern in patterns)


def _has(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


INTENTS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("help", _has(signs.HELP)),
    ("gate", _has(signs.GATE)),
    ("sql", _has(signs.SQL)),
    ("register", _is_registration),
    ("diagram", _has(signs.DIAGRAM)),
    ("kpis", _has(signs.KPIS)),
    ("incident", _has(signs.INCIDENT)),
    ("fix", _has(signs.FIX)),
    ("impact", _has(signs.IMPACT)),
    ("diagnose", _has(signs.DIAGNOSE)),
    ("column", _has(signs.COLUMN)),
    ("paths", _has(signs.PATHS)),
    ("trace", _is_trace),
    ("search", _has(signs.SEARCH)),
    ("entity", _has(signs.ENTITY)),
)

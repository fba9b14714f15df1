"""The intent of a message. The first intent whose pattern matches is chosen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.agent.grammar import parse_description
from downriver.agent.offline import intent_patterns

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
            decide = bool(intent_patterns.DECIDE.search(text))
            return Intent(kind, direction_of(text), depth_of(text), decide)
    return Intent("unknown")


def direction_of(text: str) -> str:
    """Return which way a question looks; both when it says neither or both."""
    stated = {word.lower() for word in re.findall(r"\b(?:up|down)stream\b", text, re.IGNORECASE)}
    if intent_patterns.BOTH.search(text) or len(stated) > 1:
        return "both"
    if stated:
        return "upstream" if "upstream" in stated else "downstream"
    up, down = intent_patterns.UPSTREAM.search(text), intent_patterns.DOWNSTREAM.search(text)
    if bool(up) == bool(down):
        return "both"
    return "upstream" if up else "downstream"


def depth_of(text: str) -> int | None:
    """Return how many steps a question is about, None when it is about all."""
    found = intent_patterns.DEPTH.search(text)
    if found:
        return int(found[1] or found[2])
    return 1 if intent_patterns.DIRECT.search(text) else None


def _is_registration(text: str) -> bool:
    if intent_patterns.REGISTER.search(text):
        return True
    if "?" in text:
        return False
    found = parse_description(text)
    # A message that is mostly flows, or a list with one, describes a pipeline all the same.
    listed = len(_ITEM.findall(text)) > 1
    return bool(found.flows) and (listed or len(found.flows) >= len(found.not_understood))


def _is_trace(text: str) -> bool:
    patterns = (
        intent_patterns.UPSTREAM,
        intent_patterns.DOWNSTREAM,
        intent_patterns.BOTH,
        intent_patterns.LINEAGE,
    )
    return any(pattern.search(text) for pattern in patterns)


def _has(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


INTENTS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("help", _has(intent_patterns.HELP)),
    ("gate", _has(intent_patterns.GATE)),
    ("sql", _has(intent_patterns.SQL)),
    ("register", _is_registration),
    ("diagram", _has(intent_patterns.DIAGRAM)),
    ("kpis", _has(intent_patterns.KPIS)),
    ("incident", _has(intent_patterns.INCIDENT)),
    ("fix", _has(intent_patterns.FIX)),
    ("impact", _has(intent_patterns.IMPACT)),
    ("diagnose", _has(intent_patterns.DIAGNOSE)),
    ("column", _has(intent_patterns.COLUMN)),
    ("paths", _has(intent_patterns.PATHS)),
    ("trace", _is_trace),
    ("search", _has(intent_patterns.SEARCH)),
    ("entity", _has(intent_patterns.ENTITY)),
)

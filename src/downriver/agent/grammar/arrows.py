"""Flows drawn with arrows: `a -> b -> c`, `a, b → c`, `c <- a`, `a -[cleaned]-> b`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.agent.grammar.clause import Clause, UnclearError
from downriver.agent.grammar.mentions import parse_mentions
from downriver.agent.grammar.words import QUOTE_MARK

if TYPE_CHECKING:
    from downriver.agent.grammar.mentions import Mention

_RIGHT = (
    r"(?:-+\s*\[(?P<label>[^\]]*)\]\s*-*>|[-=]+\|?(?P<word>[A-Za-z ]+?)\|?[-=]+>"
    r"|[-=~|]+>+|→|⟶|➜|⇒|»|>>?)"
)
_LEFT = r"(?:<[-=~]+|←|⟵)"
_EQUALS = re.compile(r"\s+:?=\s+")
_ARROW = re.compile(rf"\s*(?:(?P<left>{_LEFT})|{_RIGHT})\s*")
_NOTE = re.compile(
    r"\s*(?:\((?P<note>[^()]*)\)|\[(?P<bracket>[^\[\]]*)\]|(?::|\s#|//)\s+(?P<after>.+))\s*$"
)
_STAGE = re.compile(r"(?:[-=]+>|→)\s*[(\[](?P<label>[^()\[\]]+)[)\]]\s*(?:[-=]+>|→)")
_SURE = 0.98


def parse_arrows(text: str) -> list[Clause] | None:
    """Return the steps of a chain of arrows; None when there is no arrow."""
    text = _STAGE.sub(r"-[\g<label>]->", text)  # `a -> (dedupe) -> b`
    arrows = list(_ARROW.finditer(text))
    if not arrows:
        return _parse_equation(text)
    if len({arrow["left"] is None for arrow in arrows}) > 1:
        raise UnclearError("its arrows point both ways")
    text, note = _without_note(text)
    stops = [_stop(part) for part in _parts(text)]
    labels = [(a["label"] or a["word"] or note or "").strip() for a in arrows]
    steps = [
        _step(left, right, label)
        for left, right, label in zip(stops, stops[1:], labels, strict=False)
    ]
    return [_turned(step) for step in steps] if arrows[0]["left"] else steps


def _parse_equation(text: str) -> list[Clause] | None:
    """`c = a + b`, and `a + b = c`: what stands alone is what is made."""
    sides = _EQUALS.split(text)
    if len(sides) != 2:
        return None
    left, right = (_stop(side) for side in sides)
    if len(left) > 1 and len(right) > 1:
        raise UnclearError("both sides of its equals sign are several things")
    sources, targets = (left, right) if len(left) > 1 else (right, left)
    return [_step(sources, targets, "")]


def _without_note(text: str) -> tuple[str, str]:
    found = _NOTE.search(text)
    if found is None:
        return text, ""
    return text[: found.start()], found["note"] or found["bracket"] or found["after"] or ""


def _parts(text: str) -> list[str]:
    parts, at = [], 0
    for arrow in _ARROW.finditer(text):
        parts.append(text[at : arrow.start()])
        at = arrow.end()
    return [*parts, text[at:]]


def _stop(part: str) -> list[Mention]:
    part = part.strip(" []#/")
    # Between arrows `a` alone is a name, not an article.
    found = parse_mentions(re.sub(r"(?<!\S)([aA])(?=\s*(?:[,+&]|$))", QUOTE_MARK + r"\1", part))
    if not found:
        raise UnclearError(
            f"{part.strip()!r} is no name" if part.strip() else "an arrow ends in nothing"
        )
    return found


def _step(sources: list[Mention], targets: list[Mention], label: str) -> Clause:
    return Clause(sources, targets, label, _SURE, None, tuple(targets))


def _turned(step: Clause) -> Clause:
    return step._replace(sources=step.targets, targets=step.sources)

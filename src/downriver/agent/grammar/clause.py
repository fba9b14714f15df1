"""`Clause`: sources, targets and transformation of one statement, and helpers of all patterns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.mentions import Mention, parse_made, parse_mention, parse_mentions
from downriver.agent.grammar.vocabulary import GERUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator


class UnclearError(Exception):
    """A clause that is ambiguous or lacks a part; the text is the reason."""


class Clause(NamedTuple):
    """Data flows from each source to each target, through `via` if given.

    `confidence` is the confidence of the pattern; mentions have their own. `last` are the mentions
    at the end of the clause, which a following `which` refers to.
    """

    sources: list[Mention]
    targets: list[Mention]
    how: str
    confidence: float
    via: Mention | None = None
    last: tuple[Mention, ...] = ()


ON = re.compile(r"\s+(?:on|by|per|over|for|every|grouped|where|at)\s+\S.*$", re.IGNORECASE)
BY = re.compile(r"\s+(?:by|using|via|with|through)\s+(?P<who>[^,]+)$", re.IGNORECASE)
# Words that start another clause.
_MORE = re.compile(r"\b(?:which|that|into|then)\b", re.IGNORECASE)


def make_clause(
    sources: list[Mention],
    targets: list[Mention],
    how: str,
    sure: float,
    via: Mention | None = None,
    last: list[Mention] | None = None,
) -> Clause | None:
    """Return the clause; None if `how` contains another clause."""
    how = re.sub(r"(?:,|\s+and|\s+then)\s*$", "", re.sub(r"\s+", " ", how)).strip(" ,")
    if _MORE.search(how):
        return None
    return Clause(sources, targets, how, sure, via, tuple(last or targets))


def splits(text: str, words: str) -> Iterator[tuple[str, str]]:
    """Yield the text before and after each occurrence of the words, in the order of the words."""
    for word in words.split():
        for found in re.finditer(rf"(?:^|(?<=\s)){word}\s+", text, re.IGNORECASE):
            yield text[: found.start()].strip(" ,"), text[found.end() :].strip()


def made_in(text: str) -> list[Mention] | None:
    """Return the mentions of outputs. Here `events` is a name; as an input it is not."""
    found = data_in(text)
    bare = parse_made(text) if found is None else None
    return [bare] if bare is not None else found


def data_in(text: str) -> list[Mention] | None:
    """Return the mentions of data; None if one is a tool that only moves data."""
    found = parse_mentions(text)
    if found is None or any(m.actor for m in found):
        return None
    return found


def model_in(actor: str) -> Mention | None:
    """Return the model, if the actor is a machine-learning model."""
    found = parse_mention(actor.strip(" ,")) if actor.strip(" ,") else None
    return found if found is not None and found.kind == "model" else None


def without_actor(text: str) -> tuple[str, str]:
    """Split off the actor: `B by dbt`, `B via the sync job`."""
    found = BY.search(text)
    who = parse_mention(found["who"]) if found else None
    if found is None or who is None or not (who.actor or who.kind == "model"):
        return text, ""
    return text[: found.start()], found["who"]


def how_made(verb: str, rest: str) -> tuple[str, str]:
    """Split `joining A and C` into the transformation and its inputs."""
    first, _, others = rest.partition(" ")
    if first.casefold() in GERUNDS:
        return f"{verb} {rest}", others
    return verb, rest

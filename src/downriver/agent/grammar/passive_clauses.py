"""Patterns of passive clauses: `A is cleaned into B`, `B is built from A`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.agent.grammar.mentions import (
    ON,
    Clause,
    data_in,
    how_made,
    made_in,
    make_clause,
    model_in,
    splits,
    without_actor,
)
from downriver.agent.grammar.vocabulary import BASES, FEED_BASES, JOINED, is_participle, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.agent.grammar.mentions import Mention

_BE = r"(?:is|are|was|were|gets?|get|will be|has been|have been|is being|are being)"
_ADVERBS = (
    r"(?:(?:then|also|first|next|finally|subsequently|later|in turn|itself|periodically|left|inner|"
    r"outer|automatically|incrementally)\s+)*"
)
_PASSIVE = re.compile(rf"(?P<subject>.+?)\s+{_BE}\s+{_ADVERBS}(?P<how>\S.*)", re.IGNORECASE)
_TELEGRAPHIC = re.compile(r"(?P<subject>\S+(?:\s+\S+){0,3}?),?\s+(?P<how>[a-z-]+ed\b.*)")


def is_made_into(text: str) -> Clause | None:
    """A is cleaned into B; A is joined with C and D into B; A is used to build B."""
    for before, after in splits(text, "into onto to in as"):
        match = _PASSIVE.fullmatch(before)
        if match is None or not is_participle(match["how"].split()[0].strip(",")):
            continue
        clause = _passive(match["subject"], match["how"], after, 0.97)
        if clause is not None:
            return clause
    return None


def made_into(text: str) -> Clause | None:
    """A cleaned and deduplicated into B."""
    for before, after in splits(text, "into onto"):
        match = _TELEGRAPHIC.fullmatch(before)
        clause = match and _passive(match["subject"], match["how"], after, 0.85)
        if clause:
            return clause
    return None


def _passive(subject: str, how: str, after: str, sure: float) -> Clause | None:
    joined, scorer = _join_inputs(how), _scored_by(how)
    how, after = _purpose(how, after)
    after, by = without_actor(after)
    targets, sources = made_in(after), _sources(subject, how)
    if not targets or not sources or joined is None:
        return None
    via = model_in(by) or scorer
    return make_clause([*sources, *joined], targets, how, sure, via)


_FROM = re.compile(r"\bfrom\s+(?P<names>.+?)(?:,?\s+and\s+[a-z]+ed\b.*)?", re.IGNORECASE)


def _sources(subject: str, how: str) -> list[Mention] | None:
    """Return the inputs: for `features are computed from A and stored in B` that is A."""
    at = how.casefold().find("from ")
    if at < 0:
        return data_in(subject)
    match = _FROM.fullmatch(how[at:])
    return data_in(match["names"]) if match else None


def _purpose(how: str, after: str) -> tuple[str, str]:
    """Split `used to build B`: the object of the second verb is the output."""
    first, _, rest = after.partition(" ")
    used = how.split()[0].casefold() in ("used", "needed")
    if first.casefold() in (BASES if used else FEED_BASES):
        return f"{how} to {first}", rest
    return how, after


_DONE_BY = re.compile(
    r"\b(?:by|using|via|with|through)\s+(?P<who>.+?)(?=\s+and\s|\s+to\s|,|$)", re.IGNORECASE
)


def _scored_by(how: str) -> Mention | None:
    """Return the model of a clause: `scored by model:m and saved`."""
    models = (model_in(by["who"]) for by in _DONE_BY.finditer(how))
    return next((model for model in models if model is not None), None)


_JOINED_WITH = re.compile(
    rf"(?:.*\b)?(?:{'|'.join(sorted(JOINED))})\s+(?:together\s+)?(?:with|to|against|and)\s+(?P<others>.+)",
    re.IGNORECASE,
)


# `joined with A and written to B`: the second verb is not a name.
_AND_DONE = re.compile(r",?\s+and\s+(?:[a-z]+ed|written|sent|put|fed|built)\b.*$", re.IGNORECASE)


def _join_inputs(how: str) -> list[Mention] | None:
    """Return the inputs of a join; None if they cannot be read."""
    match = _JOINED_WITH.fullmatch(how)
    if match is None or is_participle(match["others"].split()[0]):
        return []
    others = _AND_DONE.sub("", match["others"])
    return data_in(others) or data_in(ON.sub("", others))


def is_used_by(text: str) -> Clause | None:
    """A is read by B; A is shown in B."""
    match = _USED_BY.fullmatch(text)
    if match is None:
        return None
    sources, targets = made_in(match["sources"]), data_in(match["targets"])
    if not sources or not targets:
        return None
    return make_clause(sources, targets, match["how"], 0.95)


_USED_BY = re.compile(
    rf"(?P<sources>.+?)\s+{_BE}\s+{_ADVERBS}(?P<how>(?:used|consumed|read|queried|picked up|shown|"
    r"displayed|visuali[sz]ed|surfaced|exposed|reported)\s+(?:by|in|on)|"
    r"the (?:source|basis) (?:of|for)|an? (?:input|source) (?:of|to|for))\s+(?P<targets>.+)",
    re.IGNORECASE,
)


def is_made_from(text: str) -> Clause | None:
    """B is built from A and C; B is created by joining A and C; B is fed by A."""
    match = _PASSIVE.fullmatch(text)
    if match is None:
        return None
    for verb, rest in _origins(match["how"]):
        targets = made_in(match["subject"])
        how, rest = how_made(verb, rest)
        sources = data_in(rest) or data_in(ON.sub("", rest))
        if targets and sources:
            return make_clause(sources, targets, how, 0.95, last=sources)
    return None


_ORIGIN = re.compile(
    r"(?P<verb>(?:[a-z-]+(?:\s+(?:up|and\s+\w+))?))"
    r"(?:\s+by\s+(?:the\s+|a\s+|our\s+)?[\w ]+?)??"
    r"\s+(?:directly\s+)?(?P<by>from|out of|on top of|off of|off|using|by|on|of|with|via)\s+"
    r"(?P<rest>.+)",
    re.IGNORECASE,
)
_NOUN_OF = re.compile(
    r"(?P<verb>(?:an?|the)\s+(?:\w+\s+)?(?:join|union|merge|copy|aggregate|aggregation|rollup|"
    r"summary|view|snapshot|subset|mirror|replica|combination)\s+(?:of|over|between|on|from))\s+(?P<rest>.+)",
    re.IGNORECASE,
)
_MADE_BY = word_set(
    "fed populated produced generated supplied powered driven filled backed created built updated "
    "refreshed computed calculated derived made formed obtained rebuilt assembled"
)


def _origins(how: str) -> Iterator[tuple[str, str]]:
    noun = _NOUN_OF.fullmatch(how)
    if noun is not None:
        yield noun["verb"], noun["rest"]
    match = _ORIGIN.fullmatch(how)
    if match is None or not is_participle(match["verb"].split()[0]):
        return
    verb, by = match["verb"].split()[0].casefold(), match["by"].casefold()
    fits = by in ("from", "out of", "on top of", "off of", "off", "using")
    fits = fits or (by in ("by", "with", "via") and verb in _MADE_BY)
    fits = (
        fits
        or (by == "on" and verb in ("based", "built", "trained"))
        or (by == "of" and verb != "used")
    )
    if fits:
        yield how[: match.start("rest")].strip(), match["rest"]

"""A sentence: what people put around a clause, and clauses that follow from one another."""

from __future__ import annotations

import re
from typing import NamedTuple

from downriver.agent.grammar.arrows import parse_arrows
from downriver.agent.grammar.clause import Clause, UnclearError
from downriver.agent.grammar.clauses import parse_clause
from downriver.agent.grammar.mentions import Mention, parse_mention
from downriver.agent.grammar.schedule import take_schedule
from downriver.agent.grammar.verbs import is_participle
from downriver.agent.grammar.words import QUOTE_MARK, QUOTED_SPACE, unquoted


class Said(NamedTuple):
    """What a sentence says: clauses, when they run, or why it could not be read."""

    clauses: list[Clause]
    schedule: str = ""
    problem: str = ""


_LONGEST = 400  # what patterns cost grows with the cube of it
_QUOTED = re.compile(r"`([^`\n]+)`|\"([\w .$#/:-]+)\"|'([\w.$#/:-]+)'|\*\*([\w.$#/:-]+)\*\*")
_STEP = re.compile(
    r"^(?:(?:step\s+\d+\s*[:.)-]|first(?:ly)?|second(?:ly)?|third(?:ly)?|then|next|after that|"
    r"afterwards|finally|lastly|also|additionally|and|in turn|meanwhile|from there)\s*,?\s+)+",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"^(?:(?:please|can you|could you|i want to|i'd like to|we want to|we need to|let's|now)\s+)*"
    r"(?:(?:register|add|record|declare|note|track|create|document|log)\s+(?:that\s+|this:?\s+|"
    r"(?:the\s+following|these)(?:\s+\w+)?:?\s+|(?=(?:an?|the|this)?\s*(?:new\s+)?(?:flow|edge|lineage|dependency)\b)))",
    re.IGNORECASE,
)
_COLON_FRAME = re.compile(
    r"^(?:[^:]*\b(?:flows?|pipelines?|steps?|lineage|following)|(?:please\s+)?(?:add|register|record))"
    r"\s*:\s+(?=\S)",
    re.IGNORECASE,
)
_FLOW_THAT = re.compile(
    r"^(?:an?|the|this)\s+(?:new\s+)?(?:flow|job|pipeline|step)\s+(?:that|which)\s+", re.IGNORECASE
)
# What is denied, supposed or over is no flow.
_DOUBT = re.compile(
    r"\b(?:not|never|no longer|no|if|unless|maybe|perhaps|might|could|should|would|may|probably|"
    r"possibly|instead|stop(?:s|ped)?|instead of|or)\b|n't\b|(?<!is )(?<!are )\bused to\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\s*,\s*(?:in turn|then|finally|later|also|of course)\s*,\s*", re.IGNORECASE)
_NAME_COLON = re.compile(r"^(?P<name>\S*[\w)]):\s+(?P<rest>(?P<verb>[a-z]+)\b.*)$")
_PRONOUN = re.compile(
    r"^(?:it|this|these|those|they|them|that|the (?:results?|output)|(?:this|that) table)\s+"
    r"(?=(?:is|are|was|gets?|then|also|feeds?|goes|flows?|lands?|[a-z]+s)\b)",
    re.IGNORECASE,
)
_CHAIN = re.compile(
    r"\s*,?\s+(?:which|that)\s+(?:then\s+|in turn\s+|finally\s+)?"
    r"|\s*,?\s+and\s+(?:then|finally|from there|lastly)\s*,?\s+"
    r"|\s*,\s*(?:then|finally|before being|after which it is)\s+|\s+then\s+"
    r"|\s*,\s+and\s+(?=(?:is|are|gets|feeds)\b)",
    re.IGNORECASE,
)
_ALSO = re.compile(r"\s*;\s*|\s*,?\s+(?:and|while|whereas)\s+|\s*,\s+", re.IGNORECASE)
_VERB_FIRST = re.compile(r"^(?:is|are|gets?|was|were)\b", re.IGNORECASE)


def parse_sentence(text: str, before: tuple[str, ...] = ()) -> Said:
    """Return what a sentence says; `before` is what the last one was about, for `it`."""
    if len(text) > _LONGEST:
        return Said([], "", f"it is longer than {_LONGEST} characters; say it in several sentences")
    timed = take_schedule(_mark_quotes(text))
    bare = _without_frame(timed.text)
    doubt = _DOUBT.search(bare)
    if doubt:
        return Said([], timed.schedule, f"with {doubt[0]!r} it does not say what happens")
    bare, refers = _replace_pronoun(bare, before)
    try:
        clauses = _parse(bare)
    except UnclearError as unclear:
        return Said([], timed.schedule, str(unclear))
    if not clauses:
        return Said([], timed.schedule, "no flow from one thing to another was found in it")
    if refers:
        clauses = [c._replace(confidence=c.confidence * 0.95) for c in clauses]
    return Said(clauses, timed.schedule)


def _mark_quotes(text: str) -> str:
    """Keep what was quoted in one piece, and remember that it was."""

    def mark(found: re.Match[str]) -> str:
        inner = next(group for group in found.groups() if group)
        return QUOTE_MARK + inner.strip().replace(" ", QUOTED_SPACE)

    return _QUOTED.sub(mark, unquoted(text))


def _without_frame(text: str) -> str:
    text = _STEP.sub("", text.strip())
    text = _COLON_FRAME.sub("", text)
    text = _FRAME.sub("", text)
    text = _ASIDE.sub(" ", _FLOW_THAT.sub("", text))
    found = _NAME_COLON.match(text)
    if found and is_participle(found["verb"]):
        return f"{found['name']} is {found['rest']}"  # `orders: built from raw_orders`
    return text


def _replace_pronoun(text: str, before: tuple[str, ...]) -> tuple[str, bool]:
    found = _PRONOUN.match(text)
    if found is None or not before:
        return text, False
    return f"{' and '.join(before)} {text[found.end() :]}", True


def _parse(text: str) -> list[Clause]:
    arrows = parse_arrows(text)
    if arrows is not None:
        return arrows
    together = re.sub(r"\band then\b", "and", text)  # `masked and then published to B`
    return parse_clause(text) or _parse_chain(text) or parse_clause(together) or _parse_parts(text)


def _parse_chain(text: str) -> list[Clause]:
    """A is cleaned into B, which feeds C: each clause goes on from the one before."""
    cuts = list(_CHAIN.finditer(text))
    for cut in cuts:
        first = parse_clause(text[: cut.start()])
        if not first:
            continue
        subject = " and ".join(_referred(mention) for mention in first[-1].last)
        alone = text[cut.end() :]
        rest = _go_on(subject, alone)
        following = _whole(alone) or _whole(rest)
        if following:
            return first + following
    return []


def _referred(mention: Mention) -> str:
    """Return words that mean the same thing again: those that were used, else its id."""
    return mention.text if parse_mention(mention.text) else mention.id


def _go_on(subject: str, rest: str) -> str:
    """Give a clause without a subject the one it means."""
    first = rest.split()[0].casefold() if rest.split() else ""
    if first in ("into", "to", "onto"):
        return f"{subject} goes {rest}"
    if _VERB_FIRST.match(rest) or not is_participle(first):
        return f"{subject} {rest}"
    return f"{subject} is {rest}"


def _parse_parts(text: str) -> list[Clause]:
    """A feeds B and C feeds D: two clauses that each stand alone."""
    for cut in _ALSO.finditer(text):
        first, second = text[: cut.start()], text[cut.end() :]
        left = _whole(first)
        right = left and (_whole(second) or _parse_parts(second))
        if left and right:
            return left + right
    return []


def _whole(text: str) -> list[Clause]:
    return parse_clause(text) or _parse_chain(text)

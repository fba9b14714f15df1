"""Parse one sentence into clauses: arrows (`a -> b -> c`), single clauses, and chains of clauses.

The first pattern that matches a clause is used. A pattern with two readings raises
`UnclearError` instead of choosing one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.active_clauses import (
    builds_from,
    changes_into,
    comes_from,
    draws,
    feeds,
    from_and_to,
    into,
    moves_into,
    reads_and_writes,
    trains_on,
)
from downriver.agent.grammar.mentions import (
    Clause,
    Mention,
    UnclearError,
    parse_mention,
    parse_mentions,
)
from downriver.agent.grammar.passive_clauses import (
    is_made_from,
    is_made_into,
    is_used_by,
    made_into,
)
from downriver.agent.grammar.typing_errors import (
    CLOSED_WORDS,
    VOCABULARY,
    Correction,
    correct,
    meant_word,
)
from downriver.agent.grammar.vocabulary import (
    GERUNDS,
    QUOTE_MARK,
    QUOTED_SPACE,
    is_marked,
    is_participle,
    plain_names,
    take_schedule,
    third_person,
    unquoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_RIGHT = (
    r"(?:-+\s*\[(?P<label>[^\]]*)\]\s*-*>|[-=]+\|?(?P<word>[A-Za-z ]+?)\|?[-=]+>"
    r"|[-=~|]+>+|→|⟶|➜|⇒|»|>>?)"
)
_LEFT = r"(?:<[-=~]+|←|⟵)"
_COMMA = re.compile(r"\s*[,;]\s*(?:and\s+)?")
_EQUALS = re.compile(r"\s+:?=\s+")
_ARROW = re.compile(rf"\s*(?:(?P<left>{_LEFT})|{_RIGHT})\s*")
_NOTE = re.compile(
    r"\s*(?:\((?P<note>[^()]*)\)|\[(?P<bracket>[^\[\]]*)\]|(?::|\s#|//)\s+(?P<after>.+))\s*$"
)
_STAGE = re.compile(r"(?:[-=]+>|→)\s*[(\[](?P<label>[^()\[\]]+)[)\]]\s*(?:[-=]+>|→)")
_SURE = 0.98


def parse_arrows(text: str) -> list[Clause] | None:
    """Return the steps of a chain of arrows; None if there is no arrow."""
    text = _STAGE.sub(r"-[\g<label>]->", text)  # `a -> (dedupe) -> b`
    arrows = list(_ARROW.finditer(text))
    if not arrows:
        return _parse_equation(text)
    chains = _COMMA.split(text)
    if len(chains) > 1 and all(map(_ARROW.search, chains)):  # `a -> b, c -> d`
        return [step for chain in chains for step in parse_arrows(chain) or ()]
    if len({arrow["left"] is None for arrow in arrows}) > 1:
        raise UnclearError("arrows point in both directions")
    text, note = _without_note(text)
    stops = [_stop(part) for part in _parts(text)]
    labels = [(a["label"] or a["word"] or note or "").strip() for a in arrows]
    steps = [
        _step(left, right, label)
        for left, right, label in zip(stops, stops[1:], labels, strict=False)
    ]
    return [_turned(step) for step in steps] if arrows[0]["left"] else steps


def _parse_equation(text: str) -> list[Clause] | None:
    """Parse `c = a + b` or `a + b = c`: the single name is the output."""
    sides = _EQUALS.split(text)
    if len(sides) != 2:
        return None
    left, right = (_stop(side) for side in sides)
    if len(left) > 1 and len(right) > 1:
        raise UnclearError("both sides of the equals sign have several names")
    sources, targets = (left, right) if len(left) > 1 else (right, left)
    return [_step(sources, targets, "")]


def _without_note(text: str) -> tuple[str, str]:
    match = _NOTE.search(text)
    if match is None:
        return text, ""
    return text[: match.start()], match["note"] or match["bracket"] or match["after"] or ""


def _parts(text: str) -> list[str]:
    parts, at = [], 0
    for arrow in _ARROW.finditer(text):
        parts.append(text[at : arrow.start()])
        at = arrow.end()
    return [*parts, text[at:]]


def _stop(part: str) -> list[Mention]:
    part = part.strip(" []#/")
    # Between arrows a single `a` is a name, not an article.
    mentions = parse_mentions(re.sub(r"(?<!\S)([aA])(?=\s*(?:[,+&]|$))", QUOTE_MARK + r"\1", part))
    if not mentions:
        raise UnclearError(
            f"{part.strip()!r} is not a name" if part.strip() else "an arrow has no name at one end"
        )
    return mentions


def _step(sources: list[Mention], targets: list[Mention], label: str) -> Clause:
    return Clause(sources, targets, label, _SURE, None, tuple(targets))


def _turned(step: Clause) -> Clause:
    return step._replace(sources=step.targets, targets=step.sources)


PATTERNS: tuple[Callable[[str], Clause | None], ...] = (
    reads_and_writes,
    from_and_to,
    is_made_into,
    is_used_by,
    is_made_from,
    comes_from,
    trains_on,
    builds_from,
    feeds,
    changes_into,
    moves_into,
    made_into,
    draws,
    into,
)


def parse_clause(text: str) -> list[Clause]:
    """Return the clause of the first pattern that matches; an empty list if none does."""
    text = re.sub(r"\s+", " ", text).strip(" ,;.")
    for pattern in PATTERNS:
        clause = pattern(text)
        if clause is not None and not _missed_names(text, clause):
            return [clause]
    return []


_BESIDE = re.compile(r"\b(?:on|by|per|over|for|where|using|via|at)\s+\S+", re.IGNORECASE)


_JOINED_NAME = re.compile(r"(?:\b(?:with|and|plus|from|to)|,)\s+(?P<name>\S+)", re.IGNORECASE)


def _missed_names(text: str, clause: Clause) -> list[str]:
    """Return names in the text that are not in the clause.

    If there are any, the pattern misread the text.
    """
    ends = " ".join(m.text for m in (*clause.sources, *clause.targets, *filter(None, [clause.via])))
    joined = {match["name"].strip(",;.()") for match in _JOINED_NAME.finditer(clause.how)}
    names = [word.strip(",;.()") for word in _BESIDE.sub("", text).split()]
    return [
        name
        for name in names
        if is_marked(name)
        and name not in ends
        and (name in joined or name not in clause.how)
        and not _is_actor(name)
    ]


def _is_actor(name: str) -> bool:
    mention = parse_mention(name)
    return mention is not None and mention.actor


NO_FLOW = "no flow found"


class ParsedSentence(NamedTuple):
    """The clauses and schedule of a sentence, or the reason why it could not be read.

    `corrections` are the misspelt words that were read as others.
    """

    clauses: list[Clause]
    schedule: str = ""
    problem: str = ""
    corrections: tuple[Correction, ...] = ()

    @property
    def edges(self) -> set[tuple[str, str]]:
        """The ids of the sources and targets."""
        return {
            (source.id, target.id)
            for clause in self.clauses
            for source in clause.sources
            for target in clause.targets
        }


_MAX_LENGTH = 400  # the cost of the patterns is cubic
_QUOTED = re.compile(r"`([^`\n]+)`|\"([\w .$#/:-]+)\"|'([\w.$#/:-]+)'|\*\*([\w.$#/:-]+)\*\*")
_STEP = re.compile(
    r"^(?:(?:step\s+\d+\s*[:.)-]|first(?:ly)?|second(?:ly)?|third(?:ly)?|then|next|after that|"
    r"afterwards|finally|lastly|also|additionally|and|in turn|meanwhile|from there|hey|hi|hello|"
    r"fyi|btw|so|ok|okay|well|just|for the record|(?:please|pls) note|note)"
    r"(?:\s+that)?\s*[,:]?\s+)+",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"^(?:(?:please|can you|could you|i want to|i'd like to|we want to|we need to|let's|now)\s+)*"
    r"(?:(?:register|add|record|declare|note|track|create|document|log)\s+(?:that\s+|this:?\s+|"
    r"(?:the\s+following|these)(?:\s+\w+)?:?\s+|(?=\S+\s*(?:[-=]+>|→))|(?=(?:an?|the|this)?\s*(?:new\s+)?(?:flow|edge|lineage|dependency)\b)))",
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
# Negated, hypothetical and past statements are not flows, nor is a request to remove one.
_DOUBT = re.compile(
    r"\b(?:remove|delete|drop|cut|undo|unregister|disconnect|detach|retire|rename|revert)s?\s+"
    r"(?:(?:the|this|that|our|an?)\s+)?(?:\w+\s+)?"
    r"(?:flow|edge|link|connection|dependency|lineage|relation)s?\b|"
    r"\b(?:nothing|nobody|none|nowhere|no one)\b|"
    r"\b(?:not|never|no longer|no|if|unless|maybe|perhaps|might|could|should|would|may|probably|"
    r"possibly|instead|stop(?:s|ped)?|instead of|or)\b|n't\b|(?<!is )(?<!are )\bused to\b",
    re.IGNORECASE,
)
_ADD = re.compile(
    r",?\s+and\s+(?:also\s+)?(?:add|register|include)\s+(?!that\b|the\b|an?\b)(?=\S+)",
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
    r"\s{0,4},?\s{1,4}(?:which|that)\s{1,4}(?:(?:then|in turn|finally)\s{1,4})?"
    r"|\s{0,4},?\s{1,4}and\s{1,4}(?:then|finally|from there|lastly)\s{0,4},?\s{1,4}"
    r"|\s{0,4},\s{0,4}(?:then|finally|before being|after which it is)\s{1,4}"
    r"|\s{1,4}then\s{1,4}|\s{0,4},\s{1,4}and\s{1,4}(?=(?:is|are|gets|feeds)\b)",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"\s{0,4};\s{0,4}|\s{0,4},?\s{1,4}(?:and|while|whereas)\s{1,4}|\s{0,4},\s{1,4}", re.IGNORECASE
)
_VERB_FIRST = re.compile(r"^(?:is|are|gets?|was|were)\b", re.IGNORECASE)


def parse_sentence(
    text: str, before: tuple[str, ...] = (), known: frozenset[str] = frozenset()
) -> ParsedSentence:
    """Parse a sentence; `before` are the names that `it` refers to.

    If a sentence has no flow as written, its misspelt words are corrected, except the `known`
    names. If a name in it is close to a word such as `what`, the sentence is not read.
    """
    text = _ADD.sub(" and ", _AS_WELL.sub(" and ", plain_names(text)))
    parsed = _parse_as_written(text, before)
    closed = CLOSED_WORDS if parsed.clauses else VOCABULARY
    corrected = correct(
        text, lambda word: word in known or meant_word(word.casefold()) not in {*closed, None}
    )
    if not corrected.corrections:
        return parsed
    reparsed = _parse_as_written(corrected.text, before)
    if parsed.edges == reparsed.edges:
        return parsed
    written, meant = corrected.corrections[0]
    lost = {name for edge in parsed.edges - reparsed.edges for name in edge}
    if reparsed.edges and (not lost or f"table:{written.casefold()}" in lost):
        return reparsed._replace(corrections=tuple(corrected.corrections))
    return ParsedSentence(
        [], parsed.schedule, f"is {written!r} a name, or {meant!r}? Quote it if it is a name"
    )


def _parse_as_written(text: str, before: tuple[str, ...]) -> ParsedSentence:
    if len(text) > _MAX_LENGTH:
        return ParsedSentence(
            [], "", f"longer than {_MAX_LENGTH} characters; split it into several sentences"
        )
    timed = take_schedule(_mark_quotes(text))
    bare = _THANKS.sub("", _without_frame(timed.text))
    doubt = _DOUBT.search(bare)
    if doubt:
        return ParsedSentence([], timed.schedule, f"{doubt[0]!r} makes the statement uncertain")
    bare, refers = _replace_pronoun(bare, before)
    try:
        clauses = _parse(bare)
    except UnclearError as unclear:
        return ParsedSentence([], timed.schedule, str(unclear))
    if not clauses:
        return ParsedSentence([], timed.schedule, NO_FLOW)
    if refers:
        clauses = [c._replace(confidence=c.confidence * 0.95) for c in clauses]
    return ParsedSentence(clauses, timed.schedule)


def _mark_quotes(text: str) -> str:
    """Mark quoted text, so that it stays one name."""

    def mark(match: re.Match[str]) -> str:
        inner = next(group for group in match.groups() if group)
        return QUOTE_MARK + inner.strip().replace(" ", QUOTED_SPACE)

    return _QUOTED.sub(mark, unquoted(text))


_NOW = re.compile(r"\b(?:is|are)\s+(?:(?:now|also|currently)\s+)*(?P<verb>[a-z]+ing)\b")
_ALL = re.compile(
    r"\s+(?:all|both|each|now|currently)\s+(?=(?:are|comes?|consumes?|depends?|ends?|feeds?|flows?|"
    r"go(?:es)?|joins?|lands?|loads?|pulls?|reads?|uses?|writes?)\b)"
)
_AS_WELL = re.compile(r"\s+as\s+well\s+as\s+|\s+and\s+from\s+", re.IGNORECASE)
_THANKS = re.compile(r"\s*,\s*(?:thanks?|thx|cheers|please|pls)[.! ]*$", re.IGNORECASE)


def _present(match: re.Match[str]) -> str:
    """`is now feeding` → feeds."""
    base = GERUNDS.get(match["verb"])
    return third_person(base) if base else match[0]


def _without_frame(text: str) -> str:
    text = _STEP.sub("", _ALL.sub(" ", _NOW.sub(_present, text.strip())))
    text = _COLON_FRAME.sub("", text)
    text = _FRAME.sub("", text)
    text = _ASIDE.sub(" ", _FLOW_THAT.sub("", text))
    match = _NAME_COLON.match(text)
    if match and is_participle(match["verb"]):
        return f"{match['name']} is {match['rest']}"  # `orders: built from raw_orders`
    return text


def _replace_pronoun(text: str, before: tuple[str, ...]) -> tuple[str, bool]:
    match = _PRONOUN.match(text)
    if match is None or not before:
        return text, False
    return f"{' and '.join(before)} {text[match.end() :]}", True


def _parse(text: str) -> list[Clause]:
    arrows = parse_arrows(text)
    if arrows is not None:
        return arrows
    together = re.sub(r"\band then\b", "and", text)  # `masked and then published to B`
    return parse_clause(text) or _parse_chain(text) or parse_clause(together) or _parse_parts(text)


def _parse_chain(text: str) -> list[Clause]:
    """Parse `A is cleaned into B, which feeds C`: each clause continues the previous one."""
    cuts = list(_CHAIN.finditer(text))
    for cut in cuts:
        first = parse_clause(text[: cut.start()])
        if not first:
            continue
        subject = " and ".join(_mention_text(mention) for mention in first[-1].last)
        alone = text[cut.end() :]
        rest = _with_subject(subject, alone)
        following = _whole(alone) or _whole(rest)
        if following:
            return first + following
    return []


def _mention_text(mention: Mention) -> str:
    """Return text that parses to the same mention: its own text, else its id."""
    return mention.text if parse_mention(mention.text) else mention.id


def _with_subject(subject: str, rest: str) -> str:
    """Add the subject to a clause that lacks it."""
    first = rest.split()[0].casefold() if rest.split() else ""
    if first in ("into", "to", "onto"):
        return f"{subject} goes {rest}"
    if _VERB_FIRST.match(rest) or not is_participle(first):
        return f"{subject} {rest}"
    return f"{subject} is {rest}"


def _parse_parts(text: str) -> list[Clause]:
    """Parse `A feeds B and C feeds D`: independent clauses."""
    for cut in _ALSO.finditer(text):
        first, second = text[: cut.start()], text[cut.end() :]
        left = _whole(first)
        right = left and (_whole(second) or _parse_parts(second))
        if left and right:
            return left + right
    return []


def _whole(text: str) -> list[Clause]:
    return parse_clause(text) or _parse_chain(text)

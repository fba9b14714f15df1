"""Mentions of entities in a sentence (`raw_orders`, `the CRM API`), and clauses of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.vocabulary import (
    BASES,
    CONTENTS,
    DETERMINERS,
    FILE_ENDINGS,
    FUNCTION_WORDS,
    GERUNDS,
    IDENTIFIER,
    JOB_TYPES,
    KINDS,
    KNOWN_PARTICIPLES,
    PLACES,
    QUOTE_MARK,
    SYSTEMS,
    TOOL_NOUNS,
    TOOLS,
    TYPED,
    URL,
    is_marked,
    third_person,
    unquoted,
    word_set,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_WORDS = 5
_SURE, _NAMED, _SYSTEM, _PLAIN, _PHRASE = 1.0, 0.97, 0.9, 0.8, 0.65
_NO_NAMES = CONTENTS | DETERMINERS | PLACES | frozenset(KINDS)
# `orders feeds demand` is not a name. A verb as the last word may be a noun: `NPS scores`.
_ACTS = frozenset(third_person(base) for base in BASES)
_JOB_NAME = re.compile(r"_(?:job|dag|task|script|etl)$|\.(?:py|sql|sh|ipynb)$")
_MADE = word_set("events logs messages metrics snapshots updates changes files exports extracts")
_AND = re.compile(
    r"\s*,\s*(?:and\s+|plus\s+)?|\s+(?:and|plus|as well as|along with|together with|with)\s+"
    r"|\s*[&+]\s*"
)


class Mention(NamedTuple):
    """An entity in a text: its short id, and the confidence.

    `marked`: the text can only be a name. `actor`: it moves data and does not store it.
    """

    text: str
    id: str
    confidence: float
    marked: bool = False
    actor: bool = False

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return self.id.partition(":")[0]


def parse_mentions(text: str) -> list[Mention] | None:
    """Parse a list of names; None if a part is not a name."""
    text = re.sub(r"^both\s+", "", text.strip(" ,;."), flags=re.IGNORECASE)
    if not text:
        return None
    mentions = [parse_mention(part.removeprefix("by ")) for part in _AND.split(text) if part]
    return [m for m in mentions if m is not None] if mentions and all(mentions) else None


def parse_mention(text: str) -> Mention | None:
    """Parse one phrase; None if it is not a name."""
    words = _bare_words(text)
    if not words:
        return None
    if len(words) == 1 and (explicit := _explicit(words[0], text)):
        return explicit
    inner = _content_of(words)
    if inner is not None:
        return parse_mention(inner)
    if len(words) > _MOST_WORDS or any(w.casefold() in FUNCTION_WORDS for w in words):
        return None
    if not all(_is_word(word) for word in words):
        return None
    for rule in _RULES:
        mention = rule(words, text)
        if mention is not None:
            return mention
    return None


def parse_made(text: str) -> Mention | None:
    """Parse the output of `into events`: a generic noun that is a name only as an output."""
    words = _bare_words(text)
    if len(words) != 1 or words[0].casefold() not in _MADE:
        return None
    return Mention(text, f"table:{slug(words)}", _PLAIN)


def slug(words: list[str]) -> str:
    """Return words as one name: `NPS scores` → nps_scores."""
    joined = unquoted("_".join(words)).replace("'s", "")
    return re.sub(r"[^\w.$#/*-]+", "_", joined).strip("_-").lower()


def _bare_words(text: str) -> list[str]:
    words = re.sub(r"\s*\([^()]*\)", "", text).strip(" ,;.:!").split()
    while words and words[0].casefold() in DETERMINERS and len(words) > 1:
        words = words[1:]
    return words


def _is_word(word: str) -> bool:
    return word.startswith(QUOTE_MARK) or bool(re.fullmatch(r"[\w$#][\w$#./'*-]*", word))


def _explicit(word: str, text: str) -> Mention | None:
    """Parse a name with an explicit type: `model:churn_v3`, `s3://lake/raw/orders`."""
    plain = unquoted(word)
    if TYPED.fullmatch(plain):
        actor = plain.partition(":")[0].lower() in JOB_TYPES
        return Mention(text, plain, _SURE, marked=True, actor=actor)
    if URL.fullmatch(plain):
        return Mention(text, plain, _SURE, marked=True)
    return None


def _content_of(words: list[str]) -> str | None:
    """Return the last part of `payment events from Stripe` or `the data in orders`."""
    lowered = [word.casefold() for word in words]
    for at, word in enumerate(lowered):
        if word in ("from", "in", "of") and 0 < at < len(words) - 1:
            contents = word == "from" or any(w in CONTENTS for w in lowered[:at])
            if contents and not any(map(is_marked, words[:at])):
                return " ".join(words[at + 1 :])
            # `the orders table in Postgres`: the place is not part of the name
            if word in ("in", "of") and lowered[-1] in SYSTEMS | set(KINDS):
                return " ".join(words[:at])
    return None


def _tool(words: list[str], text: str) -> Mention | None:
    lowered = [word.casefold() for word in words]
    if len(words) == 1 and _JOB_NAME.search(lowered[0]):
        return Mention(text, f"job:{unquoted(words[0])}", _NAMED, marked=True, actor=True)
    if any(map(is_marked, words)) and lowered[-1] not in TOOL_NOUNS:
        return None
    if (lowered[0] in TOOLS and lowered[:2] != ["dbt", "model"]) or lowered[-1] in TOOL_NOUNS:
        name = slug(words)
        return Mention(text, f"job:{name}", _NAMED, actor=True)
    return None


def _by_kind(words: list[str], text: str) -> Mention | None:
    """Parse a name with a kind: `the revenue dashboard`, `table orders`, `Kafka topic clicks`."""
    lowered = [word.casefold() for word in words]
    if lowered[:2] == ["dbt", "model"]:
        return _kinded("table", words[2:], text) if words[2:] else None
    if len(words) > 1 and lowered[-1] in KINDS:
        return _kinded(KINDS[lowered[-1]], words[:-1], text)
    for at, word in enumerate(lowered[:-1]):
        if word in KINDS and at < len(words) - 1:
            return _kinded(KINDS[word], words[at + 1 :], text)
    return None


def _kinded(kind: str, name: list[str], text: str) -> Mention | None:
    marked = len(name) == 1 and is_marked(name[0])
    if all(word.casefold() in CONTENTS for word in name):
        return None
    return Mention(text, f"{kind}:{slug(name)}", _NAMED, marked or kind == "api")


def _marked(words: list[str], text: str) -> Mention | None:
    """Parse a phrase with one word that can only be a name: `cleaned raw_orders rows`."""
    named = [word for word in words if is_marked(word)]
    if len(named) != 1:
        return None
    others = [w.casefold() for w in words if w is not named[0]]
    if not all(w in CONTENTS or w.endswith("ed") for w in others):
        return None
    name = unquoted(named[0])
    kind = "file" if name.lower().endswith(FILE_ENDINGS) else "table"
    return Mention(text, f"{kind}:{name}", _NAMED if not others else _SYSTEM, marked=True)


def _system(words: list[str], text: str) -> Mention | None:
    """Parse the name of a known system: `Stripe`, `Salesforce accounts`."""
    name = words[0].casefold().removesuffix("'s")
    if name not in SYSTEMS or any(map(is_marked, words)):
        return None
    more = [w for w in words[1:] if w[0].isupper() and w.casefold() not in CONTENTS]
    return Mention(text, f"api:{slug([name, *more])}", _SYSTEM)


def _plain_word(words: list[str], text: str) -> Mention | None:
    """Parse a single plain word such as `orders`; generic words for data are not names."""
    lowered = words[0].casefold()
    if len(words) != 1 or lowered in _NO_NAMES or not IDENTIFIER.fullmatch(words[0]):
        return None
    if lowered in KNOWN_PARTICIPLES:
        return None
    return Mention(text, f"table:{slug(words)}", _PLAIN)


def _phrase(words: list[str], text: str) -> Mention | None:
    """Parse several plain words as one name with low confidence: `order history`."""
    if len(words) < 2 or any(map(is_marked, words)):
        return None
    lowered = [word.casefold() for word in words]
    if all(word in _NO_NAMES for word in lowered) or any(w in _ACTS for w in lowered[1:-1]):
        return None
    return Mention(text, f"table:{slug(words)}", _PHRASE)


_RULES = (_tool, _by_kind, _marked, _system, _plain_word, _phrase)


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
        for match in re.finditer(rf"(?:^|(?<=\s)){word}\s+", text, re.IGNORECASE):
            yield text[: match.start()].strip(" ,"), text[match.end() :].strip()


def made_in(text: str) -> list[Mention] | None:
    """Return the mentions of outputs. Here `events` is a name; as an input it is not."""
    mentions = data_in(text)
    bare = parse_made(text) if mentions is None else None
    return [bare] if bare is not None else mentions


def data_in(text: str) -> list[Mention] | None:
    """Return the mentions of data; None if one is a tool that only moves data."""
    mentions = parse_mentions(text)
    if mentions is None or any(m.actor for m in mentions):
        return None
    return mentions


def model_in(actor: str) -> Mention | None:
    """Return the model, if the actor is a machine-learning model."""
    mention = parse_mention(actor.strip(" ,")) if actor.strip(" ,") else None
    return mention if mention is not None and mention.kind == "model" else None


def without_actor(text: str) -> tuple[str, str]:
    """Split off the actor: `B by dbt`, `B via the sync job`."""
    match = BY.search(text)
    who = parse_mention(match["who"]) if match else None
    if match is None or who is None or not (who.actor or who.kind == "model"):
        return text, ""
    return text[: match.start()], match["who"]


def how_made(verb: str, rest: str) -> tuple[str, str]:
    """Split `joining A and C` into the transformation and its inputs."""
    first, _, others = rest.partition(" ")
    if first.casefold() in GERUNDS:
        return f"{verb} {rest}", others
    return verb, rest

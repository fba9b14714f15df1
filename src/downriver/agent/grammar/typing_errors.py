"""Typing errors: the distance between two words, and the correction of a misspelt word."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.vocabulary import (
    CHANGE,
    CONTENTS,
    DETERMINERS,
    DRAW,
    FEED,
    FUNCTION_WORDS,
    GERUNDS,
    JOINED,
    KINDS,
    KNOWN_PARTICIPLES,
    MOVE,
    PLACES,
    QUESTION_WORDS,
    SCHEDULE_WORDS,
    SYSTEMS,
    TOOL_NOUNS,
    TOOLS,
    word_set,
)

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = (
    CHANGE | CONTENTS | DETERMINERS | DRAW | FEED | FUNCTION_WORDS | frozenset(GERUNDS)
    | frozenset(KINDS) | KNOWN_PARTICIPLES | MOVE | PLACES | QUESTION_WORDS | SCHEDULE_WORDS
    | SYSTEMS | TOOL_NOUNS | TOOLS
)  # fmt: skip
# Words that are never a name: a name that is close to one of them may be misspelt.
CLOSED_WORDS = FUNCTION_WORDS | JOINED | word_set("whose please register what's anyone")
# A word of three letters is corrected only if one letter of these is missing.
_SHORT = word_set(
    "what that this from into with when path does drop feed uses used owns join goes tell both "
    "then back data"
)
# Correct words that are close to a word of the vocabulary.
_RIGHT = word_set(
    """
    bigint boolean brand carts char charge charges chat chats claims codes core costs date
    deals decimal detail details double float form forms geos goals hotel hotels hours house
    integer intro item items json leads line lines lists loads loans mail mails maps mart
    marts master mean means menu menus month mouth notes pages parts plans plants points
    posts prices ranks rates region regions roles rooms sales scores seats sites sizes skus
    stage staging states steps stock stops stores string taxes teams terms tests text texts
    theft theme themes times timestamp touch trades trips units users varchar views visits
    width wish years zones"""
)
_WORD = re.compile(r"(?<![\w.:/`\"'#$\[\]-])[A-Za-z]{3,}(?![\w.:/`\"#$\[\]-]*[\w/`\"#$\[\]])")


# `loaded form raw_orders`; `joined to form orders` is right.
_FORM = re.compile(r"(?<!\bto )\bform(?= \S*[_.:/`\"\[])")


class Correction(NamedTuple):
    """A misspelt word and its correction."""

    written: str
    meant: str


class CorrectedText(NamedTuple):
    """A text with its typing errors corrected."""

    text: str
    corrections: list[Correction]


def correct(text: str, is_name: Callable[[str], bool] = lambda _word: False) -> CorrectedText:
    """Correct the plain words of a text that are close to a known word and are not a name."""
    corrections: list[Correction] = []

    def replace(match: re.Match[str]) -> str:
        word = match[0]
        meant = meant_word(word.casefold()) if _may_be_misspelt(word, match.start()) else None
        if meant is None or is_name(word):
            return word
        corrections.append(Correction(word, meant))
        return meant.capitalize() if word[0].isupper() else meant

    corrected = _WORD.sub(replace, text)
    if _FORM.search(corrected) and not is_name("form"):
        corrections.append(Correction("form", "from"))
        corrected = _FORM.sub("from", corrected)
    return CorrectedText(corrected, corrections)


def _may_be_misspelt(word: str, at: int) -> bool:
    """Return whether a word may be misspelt. A capital letter inside a sentence starts a name."""
    return word.islower() or (at == 0 and word[1:].islower())


@lru_cache(maxsize=4096)
def meant_word(word: str) -> str | None:
    """Return the correction of a misspelt word; None if it is known or similar to none."""
    if word in VOCABULARY or word in _RIGHT or len(word) > _LONGEST:
        return None
    if len(word) < 4:
        close = [known for known in _SHORT if len(known) == 4 and distance(word, known) == 1]
        return min(close) if len(close) == 1 else None
    most = 1 if len(word) < _LONG else 2
    similar = {known for part in _shortened(word) for known in _words_by_part().get(part, ())}
    near = [
        (steps, sorted(word) != sorted(known), known[0] != word[0], -len(known), known)
        for known in similar
        if (steps := distance(word, known)) <= most
    ]
    return min(near)[-1] if near else None


_LONG = 8  # letters of a word that may have two errors
_LONGEST = max(map(len, VOCABULARY)) + 2  # a longer word is not close to any


@lru_cache(maxsize=1)
def _words_by_part() -> dict[str, list[str]]:
    """Return the known words by their spelling without one or two letters."""
    words: dict[str, list[str]] = {}
    for word in VOCABULARY:
        for part in _shortened(word):
            words.setdefault(part, []).append(word)
    return words


def _shortened(word: str) -> set[str]:
    parts = {word} | {word[:i] + word[i + 1 :] for i in range(len(word))}
    if len(word) >= _LONG - 1:
        parts |= {part[:i] + part[i + 1 :] for part in parts for i in range(len(part))}
    return parts


def distance(a: str, b: str) -> int:
    """Return the number of inserted, deleted, replaced and swapped letters between two words."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        following = [i]
        for j, other in enumerate(b, 1):
            steps = min(row[j] + 1, following[-1] + 1, row[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                steps = min(steps, before[j - 2] + 1)
            following.append(steps)
        before, row = row, following
    return row[-1]

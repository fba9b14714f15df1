"""The entities that a question is about, looked up in the graph."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.vocabulary import CONTENTS, KINDS, TYPED, URL, is_marked, word_set
from downriver.agent.tools.entity_names import NamedEntity, resolve_entity
from downriver.errors import EntityNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.agent.tools import ToolContext

# Words of questions that are not names unless they are quoted.
_QUESTION_WORDS = word_set(
    """
    a about affected after against all and any are as ask assess at back be been before behind
    between blast both break breaks but by calculated can change changed changing column columns
    com come comes coming computed connected connection consumers could data dataset datasets
    debug delete depend dependencies dependent depends deprecate deprecated derived describe
    diagnose diagram did direction directions directly do does downstream draw drop dropped
    dropping end every everything export feed feeds field find fix flow flows for from full
    generate get give go goes happen happens has have high hops how i if impact in incident into
    investigate is it its job jobs last level levels lineage link list look low made many me
    mermaid most much my new of off on only or origin original our out outage owner owners owns
    path paths picture please populated proceed produced radius reach read reads relies rely
    remove removing rename renamed report required risk risky root route routes run runs safe
    safely schema search she should show showing source sources stale steps suggest system
    systems table tables team tell that the their them then there they this to trace true
    ultimately up upstream us use used uses using visualize want wants was way we were what when
    where which who whose why will with within would write wrong you your
    """
)
_TOKEN = re.compile(
    rf"`([^`]+)`|\"([^\"]+)\"|({TYPED.pattern})|({URL.pattern})"
    r"|([A-Za-z_$#][\w$#]*(?:[./-][\w$#]+)*)",
    re.IGNORECASE,
)
_LONGEST_PHRASE = 3


class _Candidate(NamedTuple):
    text: str
    sure: bool


async def find_names(text: str, context: ToolContext, most: int = 1) -> list[NamedEntity]:
    """Return the entities that a question names, in order.

    A word that can only be a name but is unknown raises an error with similar names.
    """
    found: list[NamedEntity] = []
    missing: EntityNotFoundError | None = None
    for candidate in _candidates(text):
        try:
            named = await resolve_entity(candidate.text, context)
        except EntityNotFoundError as error:
            missing = missing or (error if candidate.sure else None)
            continue
        if named not in found:
            found.append(named)
        if len(found) == most:
            return found
    if missing is not None and len(found) < most:
        raise missing
    return found


def plain_words(text: str) -> list[str]:
    """Return the words of a question that may be part of a name."""
    tokens = [_token(found) for found in _TOKEN.finditer(text)]
    return [
        t.text for t in tokens if t.text.casefold() not in _QUESTION_WORDS | set(KINDS) | CONTENTS
    ]


def _candidates(text: str) -> Iterator[_Candidate]:
    """Yield possible names: first those that can only be names, then words and phrases."""
    tokens = [_token(found) for found in _TOKEN.finditer(text)]
    yield from (token for token in tokens if token.sure)
    plain = [t.text for t in tokens if not t.sure]
    for size in range(_LONGEST_PHRASE, 0, -1):
        for at in range(len(plain) - size + 1):
            words = plain[at : at + size]
            if not any(word.casefold() in _QUESTION_WORDS for word in (words[0], words[-1])):
                yield _Candidate("_".join(words).lower(), False)
    kinds = ("api", "model", "dashboard", "topic", "report")
    for kind in kinds:
        for word in plain:
            if word.casefold() not in _QUESTION_WORDS:
                yield _Candidate(f"{kind}:{word.lower()}", False)


def _token(found: re.Match[str]) -> _Candidate:
    quoted = found[1] or found[2]
    if quoted or found[3] or found[4]:
        return _Candidate(quoted or found[3] or found[4], True)
    return _Candidate(found[5], is_marked(found[5]))

"""The entities and columns that a question names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.typing_errors import VOCABULARY
from downriver.agent.grammar.vocabulary import (
    CONTENTS,
    KINDS,
    QUESTION_WORDS,
    TYPED,
    URL,
    is_marked,
    plain_names,
)
from downriver.agent.tools.entity_names import NamedEntity, known_column, resolve_entity
from downriver.errors import DownriverError, EntityNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.agent.tools import ToolContext

_TOKEN = re.compile(
    rf"`([^`]+)`|\"([^\"]+)\"|({TYPED.pattern})|({URL.pattern})"
    r"|([A-Za-z_$#][\w$#]*(?:[./-][\w$#]+)*)",
    re.IGNORECASE,
)
_LONGEST_PHRASE = 3
_MOST = 6
_MOST_WORDS = 40  # that are looked up as parts of names
_NAME = r"[`\"]?([\w$#]+)[`\"]?"
_COLUMN_NOUN = re.compile(
    rf"\b(?:columns?|fields?|attributes?)\s+(?:called\s+|named\s+)?{_NAME}"
    rf"|{_NAME}\s+(?:columns?|fields?|attributes?)\b",
    re.IGNORECASE,
)
_PART_OF = r"\s+(?:in|of|from|on)\s+(?:the\s+|our\s+|table\s+)*"


class _Candidate(NamedTuple):
    text: str
    sure: bool


class NamesInText(NamedTuple):
    """The entities of a question in order, and the explicit names that no entity has."""

    entities: list[NamedEntity]
    unknown: list[EntityNotFoundError]


async def find_names(text: str, context: ToolContext) -> NamesInText:
    """Return the entities that a question names; a column replaces its dataset."""
    text = plain_names(text)
    candidates = list(_candidates(text))
    entities: list[NamedEntity] = []
    unknown: dict[str, EntityNotFoundError] = {}
    for candidate in candidates:
        if not candidate.sure and entities:
            break  # plain words are names only in a question without an explicit name
        try:
            named = await resolve_entity(candidate.text, context)
        except EntityNotFoundError as error:
            if candidate.sure:
                unknown[candidate.text] = error
            continue
        if named not in entities:
            entities.append(named)
        if len(entities) == _MOST or not candidate.sure:
            break
    return await _with_columns(text, entities, unknown, context)


async def _with_columns(
    text: str,
    entities: list[NamedEntity],
    unknown: dict[str, EntityNotFoundError],
    context: ToolContext,
) -> NamesInText:
    """Attach columns: `column c of t`, `the c column`, `c in t`."""
    if len(entities) != 1 or entities[0].column is not None:
        return NamesInText(entities, [*unknown.values()])
    (entity,) = entities
    stated = _stated_columns(text, entity)
    words = [*stated, *_placed_words(text, entity), *unknown]
    if not words:
        return NamesInText(entities, [*unknown.values()])
    owner = await context.tracker.get_entity(entity.entity_id)
    schema = {column.name.casefold(): column.name for column in owner.columns}
    column = next((schema[word.casefold()] for word in words if word.casefold() in schema), None)
    if column is None and not schema:
        column = await _column_with_edges(words, entity, context)
    if column is None:
        stated = [word for word in stated if word.casefold() not in VOCABULARY]
        if not stated:
            return NamesInText(entities, [*unknown.values()])
        column = known_column(owner, stated[0])
    rest = [error for word, error in unknown.items() if word.casefold() != column.casefold()]
    return NamesInText([entity._replace(column=column)], rest)


async def _column_with_edges(
    words: list[str], entity: NamedEntity, context: ToolContext
) -> str | None:
    """Return the first word that is a column in the lineage of a dataset without a schema."""
    for word in words:
        try:
            await context.tracker.get_column_lineage(entity.entity_id, word)
        except DownriverError:
            continue
        return word
    return None


def _stated_columns(text: str, entity: NamedEntity) -> list[str]:
    """Return the words beside `column`, without the dataset."""
    columns = [match[1] or match[2] for match in _COLUMN_NOUN.finditer(text)]
    return [word for word in columns if word.casefold() != _short(entity)]


def _placed_words(text: str, entity: NamedEntity) -> list[str]:
    """Return the word before `in t` or `of t`."""
    place = rf"{_NAME}{_PART_OF}\S*{re.escape(_short(entity))}\b"
    match = re.search(place, text, re.IGNORECASE)
    return [match[1]] if match else []


def _short(entity: NamedEntity) -> str:
    return re.split(r"[:./]", entity.entity_id)[-1].casefold()


def mask_names(text: str) -> str:
    """Return a text without explicit names, so that their words are not read as anything else."""
    return _TOKEN.sub(lambda found: _MASK if _token(found).sure else found[0], plain_names(text))


_MASK = "name_1"


def plain_words(text: str) -> list[str]:
    """Return the words of a question that may be part of a name."""
    tokens = [_token(match) for match in _TOKEN.finditer(plain_names(text))]
    return [
        t.text for t in tokens if t.text.casefold() not in QUESTION_WORDS | set(KINDS) | CONTENTS
    ]


def _candidates(text: str) -> Iterator[_Candidate]:
    """Yield possible names: first those that can only be names, then words and phrases."""
    tokens = [_token(match) for match in _TOKEN.finditer(text)]
    yield from [token for token in tokens if token.sure][:_MOST_WORDS]
    plain = [t.text for t in tokens if not t.sure][:_MOST_WORDS]
    for size in range(_LONGEST_PHRASE, 0, -1):
        for at in range(len(plain) - size + 1):
            words = plain[at : at + size]
            if not any(word.casefold() in QUESTION_WORDS for word in (words[0], words[-1])):
                yield _Candidate("_".join(words).lower(), False)
                if size > 1:
                    yield _Candidate(" ".join(words), False)
    kinds = ("api", "model", "dashboard", "topic", "report")
    for kind in kinds:
        for word in plain:
            if word.casefold() not in QUESTION_WORDS:
                yield _Candidate(f"{kind}:{word.lower()}", False)


def _token(match: re.Match[str]) -> _Candidate:
    quoted = match[1] or match[2]
    if quoted or match[3] or match[4]:
        return _Candidate(quoted or match[3] or match[4], True)
    return _Candidate(match[5], is_marked(match[5]))

"""Statements no parser gives a tree for, recognised by their words.

Each shape is a line of SQL: words stand for themselves, `<a>` is a table's name, `'f'` a string,
`(…)` anything in brackets or nothing, and `…` anything at all.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.effects import Effect, Written
from downriver.capture.sql.relations import Star
from downriver.capture.sql.tokens import closing, is_string, name_at, word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.deps import TableName

Found: TypeAlias = "dict[str, tuple[str, ...]]"


class Shape(NamedTuple):
    """How a statement looks, and what it does with the names found in it."""

    pattern: str
    effect: Callable[[Found], Effect]


def find_effect(tokens: Sequence[Token], dialect: Dialect) -> Effect | None:
    """Return what a statement does when it has one of the known shapes."""
    first = word(tokens[0]) if tokens else ""
    for shape in _by_first_word().get(first, ()):
        found = _match(shape.pattern.split(), tokens, dialect)
        if found is not None:
            return shape.effect(found)
    return None


def _match(pattern: Sequence[str], tokens: Sequence[Token], dialect: Dialect) -> Found | None:
    found: Found = {}
    at = 0
    for place, part in enumerate(pattern):
        if part == "…":
            rest = pattern[place + 1] if place + 1 < len(pattern) else ""
            at = _skip_to(rest, tokens, at)
            continue
        after = _match_part(part, tokens, at, dialect, found)
        if after is None:
            return None
        at = after
    return found


def _skip_to(part: str, tokens: Sequence[Token], at: int) -> int:
    while at < len(tokens) and part:
        if is_string(tokens[at]) if part.startswith("'") else word(tokens[at]) == part:
            break
        at += 1
    return at if part else len(tokens)


def _match_part(
    part: str, tokens: Sequence[Token], at: int, dialect: Dialect, found: Found
) -> int | None:
    if part == "(…)":
        opens = at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN
        return closing(tokens, at) + 1 if opens else at
    if at >= len(tokens):
        return None
    if part.startswith("<"):
        name, after = name_at(tokens, at, dialect)
        found[part[1:-1]] = name
        return after if name else None
    if part.startswith("'"):
        found[part[1:-1]] = (str(tokens[at].text),)
        return at + 1 if is_string(tokens[at]) else None
    return at + 1 if word(tokens[at]) == part else None


# What shapes do


def _copied(kind: str, source: str, target: str, columns: str = "*") -> Callable[[Found], Effect]:
    """All columns of one go into the other."""

    def effect(found: Found) -> Effect:
        items = [Star(found[source])] if columns == "*" else []
        return Effect(kind, [found[source]], [Written(found[target], [*items], {})])

    return effect


def _swapped(found: Found) -> Effect:
    a, b = found["a"], found["b"]
    written = [Written(a, [Star(b)], {}), Written(b, [Star(a)], {})]
    return Effect("SWAP", [a, b], written, lifecycle="SWAP")


def _renamed(found: Found) -> Effect:
    pairs = [(found["a"], found["b"])]
    if "c" in found:
        pairs.append((found["c"], found["d"]))
    return rename(pairs)


def rename(pairs: Sequence[tuple[TableName, TableName]]) -> Effect:
    """Return the effect of renaming tables: a new name without a schema keeps the old one's."""
    written: list[Written] = []
    for old, new in pairs:
        full = (*old[: len(old) - len(new)], *new) if len(new) < len(old) else new
        written.append(Written(full, [Star(old)], {}))
    return Effect("RENAME", [], written, lifecycle="RENAME")


def _sp_rename(found: Found) -> Effect:
    old = tuple(part.strip("[]").lower() for part in found["a"][0].split("."))
    return rename([(old, (found["b"][0].strip("[]").lower(),))])


def _altered(found: Found) -> Effect:
    return Effect("ALTER", [], [Written(found["a"], [], {})], lifecycle="ALTER")


def _restored(found: Found) -> Effect:
    return Effect("UNDROP", [], [Written(found["a"], [], {})], lifecycle="UNDROP")


def _filled_by_procedure(found: Found) -> Effect:
    hidden = (("procedure_call", "the rows come from a procedure"),)
    return Effect("INSERT", [], [Written(found["a"], [], {})], hidden=hidden)


_SHAPES = (
    Shape("ALTER TABLE <a> EXCHANGE PARTITION (…) WITH TABLE <b>", _copied("EXCHANGE", "b", "a")),
    Shape("ALTER TABLE <a> EXCHANGE PARTITION <p> WITH TABLE <b>", _swapped),
    Shape("ALTER TABLE <a> SWITCH … TO <b>", _copied("SWITCH", "a", "b")),
    Shape("ALTER TABLE <a> APPEND FROM <b>", _copied("APPEND", "b", "a")),
    Shape("ALTER TABLE <a> ATTACH PARTITION <b>", _copied("ATTACH", "b", "a")),
    Shape("ALTER TABLE <a> DETACH PARTITION", _altered),
    Shape("RENAME TABLE <a> TO <b> , <c> TO <d>", _renamed),
    Shape("RENAME TABLE <a> TO <b>", _renamed),
    Shape("EXCHANGE TABLES <a> AND <b>", _swapped),
    Shape("EXEC SP_RENAME 'a' , 'b' , 'c'", lambda found: Effect("ALTER", [], [])),
    Shape("EXEC SP_RENAME 'a' , 'b'", _sp_rename),
    Shape("EXECUTE SP_RENAME 'a' , 'b'", _sp_rename),
    Shape("UNDROP TABLE <a>", _restored),
    Shape("EXPORT TABLE <a> … TO 'f'", _copied("EXPORT", "a", "f")),
    Shape("IMPORT TABLE <a> … FROM 'f'", _copied("IMPORT", "f", "a")),
    Shape("IMPORT EXTERNAL TABLE <a> … FROM 'f'", _copied("IMPORT", "f", "a")),
    Shape("LOAD DATA … INFILE 'f' … INTO TABLE <a>", _copied("LOAD", "f", "a")),
    Shape("BULK INSERT <a> FROM 'f'", _copied("BULK INSERT", "f", "a")),
    Shape("INSERT INTO <a> (…) EXEC", _filled_by_procedure),
    Shape("INSERT INTO <a> (…) EXECUTE", _filled_by_procedure),
    Shape("INSERT <a> (…) EXEC", _filled_by_procedure),
    Shape("CREATE … STREAM <a> … ON TABLE <b>", _copied("CREATE STREAM", "b", "a")),
    Shape("CREATE … STREAM <a> … ON VIEW <b>", _copied("CREATE STREAM", "b", "a")),
    Shape("APPLY CHANGES INTO <a> FROM STREAM ( <b> )", _copied("APPLY CHANGES", "b", "a")),
    Shape("APPLY CHANGES INTO <a> FROM STREAM <b>", _copied("APPLY CHANGES", "b", "a")),
    Shape("APPLY CHANGES INTO <a> FROM <b>", _copied("APPLY CHANGES", "b", "a")),
    Shape("CREATE FLOW … AUTO CDC INTO <a> FROM STREAM ( <b> )", _copied("AUTO CDC", "b", "a")),
    Shape("CREATE FLOW … AUTO CDC INTO <a> FROM STREAM <b>", _copied("AUTO CDC", "b", "a")),
)


@cache
def _by_first_word() -> dict[str, list[Shape]]:
    found: dict[str, list[Shape]] = {}
    for shape in _SHAPES:
        found.setdefault(shape.pattern.split(maxsplit=1)[0], []).append(shape)
    return found

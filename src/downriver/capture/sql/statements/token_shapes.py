"""Statements that sqlglot has no tree for, recognized by their tokens.

A shape is a line of SQL. A word matches itself, `<a>` a table name, `'f'` a string, `(…)` optional
brackets with any content, and `…` any tokens.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.statements.context import StatementEffect, TableWrite
from downriver.capture.sql.text.parse import ScriptStatement
from downriver.capture.sql.text.tokens import (
    find_closing,
    is_string,
    name_at,
    source_text,
    tokenize_leniently,
    word,
    words_of,
)
from downriver.columns import Star

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.text.parse import StatementParser
    from downriver.columns import TableName

MatchedNames: TypeAlias = "dict[str, tuple[str, ...]]"


class TokenShape(NamedTuple):
    """The pattern of a statement, and the effect it has on the names it contains."""

    pattern: str
    effect: Callable[[MatchedNames], StatementEffect]


def find_effect(tokens: Sequence[Token], dialect: Dialect) -> StatementEffect | None:
    """Return the effect of a statement that has one of the known shapes."""
    shapes = _by_first_word().get(word(tokens[0]), ()) if tokens else ()
    words = words_of(tokens) if shapes else []
    for shape in shapes:
        names = _match(shape.pattern.split(), tokens, words, dialect)
        if names is not None:
            return shape.effect(names)
    return None


def _match(
    pattern: Sequence[str], tokens: Sequence[Token], words: list[str], dialect: Dialect
) -> MatchedNames | None:
    names: MatchedNames = {}
    at = 0
    for index, part in enumerate(pattern):
        if part == "…":
            following = pattern[index + 1] if index + 1 < len(pattern) else ""
            at = _skip_to(following, tokens, words, at)
            continue
        after = _match_part(part, tokens, at, dialect, names)
        if after is None:
            return None
        at = after
    return names


def _skip_to(part: str, tokens: Sequence[Token], words: list[str], at: int) -> int:
    """Return the position of the next string or word that fits a part, or the end."""
    if part.startswith("'"):
        return next((n for n in range(at, len(tokens)) if is_string(tokens[n])), len(tokens))
    return words.index(part, at) if part in words[at:] else len(tokens)


def _match_part(
    part: str, tokens: Sequence[Token], at: int, dialect: Dialect, names: MatchedNames
) -> int | None:
    if part == "(…)":
        opens = at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN
        return find_closing(tokens, at) + 1 if opens else at
    if at >= len(tokens):
        return None
    if part.startswith("<"):
        name, after = name_at(tokens, at, dialect)
        names[part[1:-1]] = name
        return after if name else None
    if part.startswith("'"):
        names[part[1:-1]] = (str(tokens[at].text),)
        return at + 1 if is_string(tokens[at]) else None
    return at + 1 if word(tokens[at]) == part else None


# Effects of shapes


def _copied(kind: str, source: str, target: str) -> Callable[[MatchedNames], StatementEffect]:
    """Return the effect of copying all columns of one table to another."""

    def effect(names: MatchedNames) -> StatementEffect:
        written = TableWrite(names[target], [Star(names[source])])
        return StatementEffect(kind, [names[source]], [written])

    return effect


def _swapped(names: MatchedNames) -> StatementEffect:
    a, b = names["a"], names["b"]
    written = [TableWrite(a, [Star(b)]), TableWrite(b, [Star(a)])]
    return StatementEffect("SWAP", [a, b], written, lifecycle="SWAP")


def _renamed(names: MatchedNames) -> StatementEffect:
    pairs = [(names["a"], names["b"])]
    if "c" in names:
        pairs.append((names["c"], names["d"]))
    return rename_tables(pairs)


def rename_tables(pairs: Sequence[tuple[TableName, TableName]]) -> StatementEffect:
    """Return the effect of renaming tables; a new name without a schema keeps the old schema."""
    written: list[TableWrite] = []
    for old, new in pairs:
        full = (*old[: len(old) - len(new)], *new) if len(new) < len(old) else new
        written.append(TableWrite(full, [Star(old)]))
    return StatementEffect("RENAME", [], written, lifecycle="RENAME")


def _sp_rename(names: MatchedNames) -> StatementEffect:
    old = tuple(part.strip("[]").lower() for part in names["a"][0].split("."))
    return rename_tables([(old, (names["b"][0].strip("[]").lower(),))])


def _altered(names: MatchedNames) -> StatementEffect:
    return StatementEffect("ALTER", [], [TableWrite(names["a"])], lifecycle="ALTER")


def _restored(names: MatchedNames) -> StatementEffect:
    return StatementEffect("UNDROP", [], [TableWrite(names["a"])], lifecycle="UNDROP")


def _filled_by_procedure(names: MatchedNames) -> StatementEffect:
    blind_spots = (("procedure_call", "the rows come from a procedure"),)
    return StatementEffect("INSERT", [], [TableWrite(names["a"])], blind_spots=blind_spots)


_SHAPES = (
    TokenShape(
        "ALTER TABLE <a> EXCHANGE PARTITION (…) WITH TABLE <b>", _copied("EXCHANGE", "b", "a")
    ),
    TokenShape("ALTER TABLE <a> EXCHANGE PARTITION <p> WITH TABLE <b>", _swapped),
    TokenShape("ALTER TABLE <a> SWITCH … TO <b>", _copied("SWITCH", "a", "b")),
    TokenShape("ALTER TABLE <a> APPEND FROM <b>", _copied("APPEND", "b", "a")),
    TokenShape("ALTER TABLE <a> ATTACH PARTITION <b>", _copied("ATTACH", "b", "a")),
    TokenShape("ALTER TABLE <a> DETACH PARTITION", _altered),
    TokenShape("RENAME TABLE <a> TO <b> , <c> TO <d>", _renamed),
    TokenShape("RENAME TABLE <a> TO <b>", _renamed),
    TokenShape("EXCHANGE TABLES <a> AND <b>", _swapped),
    TokenShape("EXEC SP_RENAME 'a' , 'b' , 'c'", lambda found: StatementEffect("ALTER", [], [])),
    TokenShape("EXEC SP_RENAME 'a' , 'b'", _sp_rename),
    TokenShape("EXECUTE SP_RENAME 'a' , 'b'", _sp_rename),
    TokenShape("UNDROP TABLE <a>", _restored),
    TokenShape("EXPORT TABLE <a> … TO 'f'", _copied("EXPORT", "a", "f")),
    TokenShape("IMPORT TABLE <a> … FROM 'f'", _copied("IMPORT", "f", "a")),
    TokenShape("IMPORT EXTERNAL TABLE <a> … FROM 'f'", _copied("IMPORT", "f", "a")),
    TokenShape("LOAD DATA … INFILE 'f' … INTO TABLE <a>", _copied("LOAD", "f", "a")),
    TokenShape("BULK INSERT <a> FROM 'f'", _copied("BULK INSERT", "f", "a")),
    TokenShape("INSERT INTO <a> (…) EXEC", _filled_by_procedure),
    TokenShape("INSERT INTO <a> (…) EXECUTE", _filled_by_procedure),
    TokenShape("INSERT <a> (…) EXEC", _filled_by_procedure),
    TokenShape("CREATE … STREAM <a> … ON TABLE <b>", _copied("CREATE STREAM", "b", "a")),
    TokenShape("CREATE … STREAM <a> … ON VIEW <b>", _copied("CREATE STREAM", "b", "a")),
    TokenShape("APPLY CHANGES INTO <a> FROM STREAM ( <b> )", _copied("APPLY CHANGES", "b", "a")),
    TokenShape("APPLY CHANGES INTO <a> FROM STREAM <b>", _copied("APPLY CHANGES", "b", "a")),
    TokenShape("APPLY CHANGES INTO <a> FROM <b>", _copied("APPLY CHANGES", "b", "a")),
    TokenShape(
        "CREATE FLOW … AUTO CDC INTO <a> FROM STREAM ( <b> )", _copied("AUTO CDC", "b", "a")
    ),
    TokenShape("CREATE FLOW … AUTO CDC INTO <a> FROM STREAM <b>", _copied("AUTO CDC", "b", "a")),
)


@cache
def _by_first_word() -> dict[str, list[TokenShape]]:
    token_shapes: dict[str, list[TokenShape]] = {}
    for shape in _SHAPES:
        token_shapes.setdefault(shape.pattern.split(maxsplit=1)[0], []).append(shape)
    return token_shapes


def find_export(
    tokens: list[Token], sql: str, parser: StatementParser, dialect: Dialect
) -> ScriptStatement | None:
    """Return `UNLOAD (query) TO 'file'` and `SELECT … INTO OUTFILE 'file' …`."""
    if not tokens or word(tokens[0]) not in ("UNLOAD", "SELECT", "WITH"):
        return None
    words = words_of(tokens)
    if words[0] == "UNLOAD" and words[1:2] == ["("]:
        end = find_closing(tokens, 1)
        query, target = tokens[2:end], _first_string(tokens[end:])
        text = sql
        if len(query) == 1 and is_string(query[0]):
            text = str(query[0].text)
            query, _ = tokenize_leniently(text, dialect)
        return _query_to(parser, query, text, target, "UNLOAD", source_text(tokens, sql))
    if words[0] in ("SELECT", "WITH") and "OUTFILE" in words:
        at = words.index("OUTFILE")
        after = words.index("FROM", at) if "FROM" in words[at:] else len(words)
        query = [*tokens[: at - 1], *tokens[after:]]
        target = _first_string(tokens[at:])
        return _query_to(
            parser, query, sql, target, "SELECT INTO OUTFILE", source_text(tokens, sql)
        )
    return None


def _query_to(
    parser: StatementParser, query: list[Token], text: str, target: str | None, kind: str, sql: str
) -> ScriptStatement | None:
    parsed = parser.parse(query, text) if query and target else None
    if not isinstance(parsed, ScriptStatement) or not isinstance(parsed.tree, exp.Query):
        return None
    return parsed._replace(sql=sql, kind=kind, target=(target or "",))


def _first_string(tokens: Sequence[Token]) -> str | None:
    return next((str(token.text) for token in tokens if is_string(token)), None)

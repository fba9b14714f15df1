"""Small changes to a statement's tokens that let the parser read it, each a rule of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.output_clause import plain_output
from downriver.capture.sql.splitting import VIEW_ATTRIBUTES
from downriver.capture.sql.tokens import closing, depths, is_string, name_at, word

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.dialects.dialect import Dialect

# Where `SELECT … INTO x` makes a table. Elsewhere, and in the body of a routine, x is a variable.
_SELECT_INTO_TABLE = frozenset({"", "dialect", "postgres", "redshift", "tsql", "fabric", "sqlite"})
_ROUTINES_WITH_SELECT_INTO_TABLE = frozenset({"tsql", "fabric"})


class Place(NamedTuple):
    """Where a statement stands."""

    dialect: Dialect
    in_routine: bool

    @property
    def dialect_name(self) -> str:
        """The dialect's name in lower case."""
        return type(self.dialect).__name__.lower()


def rewrite(tokens: list[Token], place: Place) -> list[Token]:
    """Return a statement's tokens as the parser likes them."""
    words = [word(token) for token in tokens]
    for rule in _RULES:
        changed = rule(tokens, words, place)
        if changed is not None:
            tokens, words = changed, [word(token) for token in changed]
    return tokens


def _replace_is_insert(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`REPLACE INTO t …` fills t as an INSERT does."""
    if words[0] != "REPLACE" or len(tokens) < 2 or words[1] == "(":
        return None
    return [_as(tokens[0], TokenType.INSERT, "INSERT"), *tokens[1:]]


def _snapshot_is_clone(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`CREATE SNAPSHOT TABLE a CLONE b` is a clone."""
    if words[:3] != ["CREATE", "SNAPSHOT", "TABLE"]:
        return None
    return [tokens[0], *tokens[2:]]


def _clone_of_now(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`CLONE b VERSION AS OF 3` and `CLONE b AT (…)` are clones of b, of whatever age."""
    if words[0] != "CREATE" or "CLONE" not in words:
        return None
    clone = words.index("CLONE")
    _, end = name_at(tokens, clone + 1, place.dialect)
    start = clone - 1 if words[clone - 1] in ("DEEP", "SHALLOW") else clone
    return [*tokens[:start], *tokens[clone:end]]


def _view_with_data(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`CREATE MATERIALIZED VIEW v AS … WITH [NO] DATA`: sooner or later it is filled."""
    if words[0] != "CREATE" or "MATERIALIZED" not in words[:5] or words[-1] != "DATA":
        return None
    at = len(words) - 3 if words[-2] == "NO" else len(words) - 2
    return tokens[:at] if words[at] == "WITH" else None


def _refresh_is_replace(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`CREATE OR REFRESH [LIVE|STREAMING] TABLE t AS …` of Databricks pipelines."""
    if words[0] != "CREATE" or not {"REFRESH", "LIVE"}.intersection(words[1:4]):
        return None
    header = [t for t, w in zip(tokens[:6], words[:6], strict=True) if w not in _PIPELINE_WORDS]
    return [*header, *tokens[6:]] if len(tokens) > 6 else None


_PIPELINE_WORDS = frozenset({"OR", "REFRESH", "LIVE", "STREAMING", "TEMPORARY"})


def _live_schema(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`LIVE.t` is t of the same Databricks pipeline."""
    if place.dialect_name != "databricks" or "LIVE" not in words:
        return None
    found: list[Token] = []
    for at, token in enumerate(tokens):
        dotted = words[at] == "LIVE" and words[at + 1 : at + 2] == ["."]
        after_live = at > 0 and words[at] == "." and words[at - 1] == "LIVE"
        if not (dotted or after_live):
            found.append(token)
    return found


def _stream_is_table(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`FROM STREAM(t)` and `FROM STREAM t` of Databricks read t as it grows."""
    if place.dialect_name != "databricks" or "STREAM" not in words:
        return None
    found: list[Token] = []
    closes: set[int] = set()
    at = 0
    while at < len(tokens):
        if words[at] == "STREAM" and at and words[at - 1] in _BEFORE_TABLE:
            if words[at + 1 : at + 2] == ["("]:
                closes.add(closing(tokens, at + 1))
                at += 1
        elif at not in closes:
            found.append(tokens[at])
        at += 1
    return found


_BEFORE_TABLE = frozenset({"FROM", "JOIN", ","})


def _bulk_is_read(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`OPENROWSET(BULK 'file', …)` reads a file."""
    if "BULK" not in words:
        return None
    return [
        token
        for at, token in enumerate(tokens)
        if not (words[at] == "BULK" and at > 1 and words[at - 2] == "OPENROWSET")
    ]


def _into_variables(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`SELECT a INTO v FROM t` in a routine sets variables: it makes no table."""
    allowed = _ROUTINES_WITH_SELECT_INTO_TABLE if place.in_routine else _SELECT_INTO_TABLE
    if words[0] not in ("SELECT", "WITH") or "INTO" not in words or place.dialect_name in allowed:
        return _returning_into(tokens, words)
    return _without_into(tokens, words, 0)


def _returning_into(tokens: list[Token], words: list[str]) -> list[Token] | None:
    """`… RETURNING id INTO v`."""
    if "RETURNING" not in words or words[0] not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
        return None
    return _without_into(tokens, words, words.index("RETURNING"))


def _without_into(tokens: list[Token], words: list[str], start: int) -> list[Token] | None:
    levels = depths(tokens)
    for at in range(start, len(tokens)):
        if words[at] == "INTO" and levels[at] == 0:
            end = _variables_end(tokens, words, at + 1)
            return [*tokens[:at], *tokens[end:]]
    return None


def _variables_end(tokens: list[Token], words: list[str], at: int) -> int:
    while at < len(tokens) and (
        words[at] in ("STRICT", ",", ".", "@", ":") or _is_variable(tokens, words, at)
    ):
        at += 1
    return at


def _is_variable(tokens: list[Token], words: list[str], at: int) -> bool:
    follows = words[at - 1] in ("INTO", "STRICT", ",", ".", "@", ":")
    return (
        follows and not is_string(tokens[at]) and words[at] not in ("FROM", "OUTFILE", "DUMPFILE")
    )


def _directory_in_format(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`INSERT OVERWRITE DIRECTORY 'x' USING parquet OPTIONS (…) SELECT …` of Spark."""
    if words[:2] != ["INSERT", "OVERWRITE"] or "DIRECTORY" not in words[2:4]:
        return None
    path = words.index("DIRECTORY") + 1
    if words[path + 1 : path + 2] != ["USING"]:
        return None
    query = next((at for at in range(path, len(words)) if words[at] in ("SELECT", "WITH")), path)
    return [*tokens[: path + 1], *tokens[query:]] if query > path else None


def _output_clause(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`OUTPUT inserted.a INTO dbo.t (x)` of T-SQL, wherever it stands."""
    if place.dialect_name not in _WITH_OUTPUT or "OUTPUT" not in words:
        return None
    return plain_output(tokens, words, place.dialect)


_WITH_OUTPUT = frozenset({"tsql", "fabric"})


def _bound_view(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`CREATE VIEW v WITH SCHEMABINDING, VIEW_METADATA AS …` of T-SQL."""
    if words[0] != "CREATE" or "VIEW" not in words[:5] or "AS" not in words:
        return None
    body = words.index("AS")
    at = next((n for n in range(body) if words[n : n + 1] == ["WITH"]), None)
    if at is None or words[at + 1] not in VIEW_ATTRIBUTES:
        return None
    return [*tokens[:at], *tokens[body:]]


def _checked_view(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`CREATE VIEW … WITH [LOCAL|CASCADED] CHECK OPTION` limits what can be inserted, no more."""
    if words[0] != "CREATE" or words[-2:] != ["CHECK", "OPTION"]:
        return None
    at = len(words) - (4 if words[-3] in ("LOCAL", "CASCADED") else 3)
    return tokens[:at] if words[at] == "WITH" else None


def _changed_rows(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """`:NEW.id` in a trigger of Oracle's is a column of the new row."""
    if place.dialect_name != "oracle" or ":" not in words:
        return None
    return [
        token
        for at, token in enumerate(tokens)
        if not (words[at] == ":" and words[at + 1 : at + 2] in (["NEW"], ["OLD"]))
    ]


def _merge_that_deletes(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """Oracle's `UPDATE SET … WHERE a DELETE WHERE b`: which rows stay depends on both."""
    if words[0] != "MERGE" or place.dialect_name != "oracle":
        return None
    levels = depths(tokens)
    found: list[Token] = []
    filtered = False
    for at, token in enumerate(tokens):
        if not levels[at] and words[at] == "DELETE" and words[at + 1 : at + 2] == ["WHERE"]:
            continue
        if not levels[at] and words[at] == "WHERE":
            token = _as(token, TokenType.AND, "AND") if filtered else token
            filtered = True
        filtered = filtered and words[at] != "WHEN"
        found.append(token)
    return found


def _remove_duplicates(tokens: list[Token], words: list[str], place: Place) -> list[Token] | None:
    """Redshift's `MERGE … REMOVE DUPLICATES` puts whole rows in the place of others."""
    if words[0] != "MERGE" or words[-2:] != ["REMOVE", "DUPLICATES"]:
        return None
    last = tokens[-1]
    return [
        *tokens[:-2],
        *(_as(last, kind, text) for kind, text in _REPLACE_ROWS),
    ]


_REPLACE_ROWS = (
    (TokenType.WHEN, "WHEN"),
    (TokenType.VAR, "MATCHED"),
    (TokenType.THEN, "THEN"),
    (TokenType.UPDATE, "UPDATE"),
    (TokenType.SET, "SET"),
    (TokenType.STAR, "*"),
    (TokenType.WHEN, "WHEN"),
    (TokenType.NOT, "NOT"),
    (TokenType.VAR, "MATCHED"),
    (TokenType.THEN, "THEN"),
    (TokenType.INSERT, "INSERT"),
    (TokenType.STAR, "*"),
)


def _as(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


_RULES: tuple[Callable[[list[Token], list[str], Place], list[Token] | None], ...] = (
    _replace_is_insert,
    _snapshot_is_clone,
    _clone_of_now,
    _view_with_data,
    _refresh_is_replace,
    _live_schema,
    _stream_is_table,
    _bulk_is_read,
    _into_variables,
    _changed_rows,
    _merge_that_deletes,
    _remove_duplicates,
    _directory_in_format,
    _output_clause,
    _bound_view,
    _checked_view,
)

"""Rewrites a statement's tokens into a form that sqlglot parses. Each rule is one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.text.split import VIEW_ATTRIBUTES
from downriver.capture.sql.text.stream_statements import STREAM_RULES
from downriver.capture.sql.text.tokens import (
    CHANGES,
    bracket_depths,
    copy_token,
    find_closing,
    is_string,
    name_at,
    words_of,
)
from downriver.capture.sql.text.tsql_clauses import normalize_output_clause, without_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.dialects.dialect import Dialect

# Dialects in which `SELECT … INTO x` creates a table. In others, and in routines, x is a variable.
_SELECT_INTO_TABLE = frozenset({"", "dialect", "postgres", "redshift", "tsql", "fabric", "sqlite"})
_ROUTINES_WITH_SELECT_INTO_TABLE = frozenset({"tsql", "fabric"})


class RewriteContext(NamedTuple):
    """The dialect of a statement, and whether it is in the body of a routine."""

    dialect: Dialect
    in_routine: bool

    @property
    def dialect_name(self) -> str:
        """The dialect's name in lower case."""
        return type(self.dialect).__name__.lower()


def rewrite_tokens(tokens: list[Token], place: RewriteContext) -> list[Token]:
    """Apply every rule to a statement's tokens."""
    words = words_of(tokens)
    for rule in _RULES:
        changed = rule(tokens, words, place)
        if changed is not None:
            tokens, words = changed, words_of(changed)
    return tokens


def dot_legacy_names(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """Read `project:dataset.t`, also in brackets, as `project.dataset.t`: BigQuery's legacy SQL."""
    kinds = [token.token_type for token in tokens]
    if type(dialect).__name__ not in ("BigQuery", "Dialect") or TokenType.COLON not in kinds:
        return tokens
    words = words_of(tokens)
    changed = list(tokens)
    for at in range(len(tokens) - 3, 0, -1):
        if kinds[at] != TokenType.COLON or kinds[at + 2] != TokenType.DOT:
            continue
        start = at - 1
        while start > 1 and kinds[start - 1] == TokenType.DASH:  # of the name of a project
            start -= 2
        in_brackets = start > 0 and kinds[start - 1] == TokenType.L_BRACKET
        before = start - 1 - in_brackets
        if before < 0 or words[before] not in ("FROM", "JOIN", ",", "INTO"):
            continue
        changed[at] = copy_token(tokens[at], TokenType.DOT, ".")
        if in_brackets and TokenType.R_BRACKET in kinds[at:]:
            del changed[kinds.index(TokenType.R_BRACKET, at)], changed[start - 1]
    return changed


def _replace_is_insert(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `REPLACE INTO t …` as INSERT."""
    if words[0] != "REPLACE" or len(tokens) < 2 or words[1] in ("(", "VIEW", "RECURSIVE"):
        return None
    return [copy_token(tokens[0], TokenType.INSERT, "INSERT"), *tokens[1:]]


def _queue_is_read(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `RECEIVE … FROM queue`, also inside `WAITFOR (…)`, as a SELECT from the queue."""
    if place.dialect_name not in _WITH_QUEUES:
        return None
    if words[:2] == ["WAITFOR", "("]:
        tokens = tokens[2 : find_closing(tokens, 1)]
        words = words_of(tokens)
    if words[:3] == ["GET", "CONVERSATION", "GROUP"]:
        tokens = [tokens[0], *tokens[3:]]
    elif words[:1] != ["RECEIVE"]:
        return None
    query = [copy_token(tokens[0], TokenType.SELECT, "SELECT"), *tokens[1:]]
    return _without_into(query, words_of(query), 0) or query


_WITH_QUEUES = frozenset({"tsql", "fabric"})


def _with_before_insert(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `WITH c AS (…) INSERT INTO t SELECT …` as `INSERT INTO t WITH c AS (…) SELECT …`."""
    if words[0] != "WITH" or "INSERT" not in words:
        return None
    levels = bracket_depths(tokens)
    outside = [at for at in range(len(tokens)) if levels[at] == 0]
    insert = next((at for at in outside if words[at] in CHANGES), None)
    if insert is None or words[insert] != "INSERT" or "FROM" in _at(words, outside, insert):
        return None  # Hive: WITH c AS (…) FROM c INSERT … SELECT …
    query = next((at for at in outside if at > insert and _begins_query(words, at)), None)
    if query is None:
        return None
    return [*tokens[insert:query], *tokens[:insert], *tokens[query:]]


def _at(words: list[str], positions: list[int], end: int) -> list[str]:
    return [words[at] for at in positions if at < end]


def _begins_query(words: list[str], at: int) -> bool:
    return words[at] in ("SELECT", "FROM") or words[at : at + 2] == ["(", "SELECT"]


def _altered_view(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `ALTER VIEW v AS SELECT …`, and Teradata's `REPLACE VIEW v AS …`, as CREATE VIEW."""
    if words[0] not in ("ALTER", "REPLACE"):
        return None
    create = copy_token(tokens[0], TokenType.CREATE, "CREATE")
    if "MODIFY" in words and words[words.index("MODIFY") + 1 :][:1] == ["QUERY"]:
        _, end = name_at(tokens, 2, place.dialect)  # ClickHouse: ALTER TABLE v MODIFY QUERY …
        query = tokens[words.index("MODIFY") + 2 :]
        view, alias = (
            copy_token(tokens[0], TokenType.VIEW, "VIEW"),
            copy_token(tokens[0], TokenType.ALIAS, "AS"),
        )
        return [create, view, *tokens[2:end], alias, *query]
    if "VIEW" not in words or "AS" not in words:
        return None
    view, body = words.index("VIEW"), words.index("AS")
    if (
        body < view
        or words[body + 1 : body + 2] == ["OF"]
        or words[view + 2 : view + 3] == ["RENAME"]
    ):
        return None
    if words[0] == "ALTER" and not _is_body(words, body + 1):
        return None
    return [create, *tokens[view:]]


def _is_body(words: list[str], at: int) -> bool:
    while at < len(words) and words[at] == "(":
        at += 1
    return at < len(words) and words[at] in ("SELECT", "WITH", "SEL", "LOCKING", "VALUES", "FROM")


def _delete_from_table(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `DELETE FROM TABLE t` of Hive as `DELETE FROM t`."""
    if words[:3] != ["DELETE", "FROM", "TABLE"] or len(words) < 4 or words[3] in ("WHERE", "("):
        return None
    return [*tokens[:2], *tokens[3:]]


def _snapshot_is_clone(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `CREATE SNAPSHOT TABLE a CLONE b` as a clone."""
    if words[:3] != ["CREATE", "SNAPSHOT", "TABLE"]:
        return None
    return [tokens[0], *tokens[2:]]


def _clone_of_now(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `CLONE b VERSION AS OF 3` and `CLONE b AT (…)` as a clone of b."""
    if words[0] != "CREATE" or "CLONE" not in words:
        return None
    clone = words.index("CLONE")
    _, end = name_at(tokens, clone + 1, place.dialect)
    start = clone - 1 if words[clone - 1] in ("DEEP", "SHALLOW") else clone
    return [*tokens[:start], *tokens[clone:end]]


def _view_with_data(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove `WITH [NO] DATA` of a materialized view: a view without data is filled later."""
    if words[0] != "CREATE" or "MATERIALIZED" not in words[:5] or words[-1] != "DATA":
        return None
    at = len(words) - 3 if words[-2] == "NO" else len(words) - 2
    return tokens[:at] if words[at] == "WITH" else None


def _refresh_is_replace(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `CREATE OR REFRESH [LIVE|STREAMING] TABLE t AS …` of Databricks as CREATE TABLE."""
    if words[0] != "CREATE" or not {"REFRESH", "LIVE"}.intersection(words[1:4]):
        return None
    header = [t for t, w in zip(tokens[:6], words[:6], strict=True) if w not in _PIPELINE_WORDS]
    return [*header, *tokens[6:]] if len(tokens) > 6 else None


_PIPELINE_WORDS = frozenset({"OR", "REFRESH", "LIVE", "STREAMING", "TEMPORARY"})


def _live_schema(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `LIVE.t` as t, a table of the same Databricks pipeline."""
    if place.dialect_name != "databricks" or "LIVE" not in words:
        return None
    rewritten: list[Token] = []
    for at, token in enumerate(tokens):
        dotted = words[at] == "LIVE" and words[at + 1 : at + 2] == ["."]
        after_live = at > 0 and words[at] == "." and words[at - 1] == "LIVE"
        if not (dotted or after_live):
            rewritten.append(token)
    return rewritten


def _stream_is_table(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read `FROM STREAM(t)` and `FROM STREAM t` of Databricks as `FROM t`."""
    if place.dialect_name != "databricks" or "STREAM" not in words:
        return None
    rewritten: list[Token] = []
    closes: set[int] = set()
    at = 0
    while at < len(tokens):
        if words[at] == "STREAM" and at and words[at - 1] in _BEFORE_TABLE:
            if words[at + 1 : at + 2] == ["("]:
                closes.add(find_closing(tokens, at + 1))
                at += 1
        elif at not in closes:
            rewritten.append(tokens[at])
        at += 1
    return rewritten


_BEFORE_TABLE = frozenset({"FROM", "JOIN", ","})


def _bulk_is_read(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove BULK from `OPENROWSET(BULK 'file', …)`, which reads a file."""
    if "BULK" not in words:
        return None
    return [
        token
        for at, token in enumerate(tokens)
        if not (words[at] == "BULK" and at > 1 and words[at - 2] == "OPENROWSET")
    ]


def _into_variables(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove `INTO v` where it sets variables and creates no table."""
    allowed = _ROUTINES_WITH_SELECT_INTO_TABLE if place.in_routine else _SELECT_INTO_TABLE
    if words[0] not in ("SELECT", "WITH") or "INTO" not in words or place.dialect_name in allowed:
        return _returning_into(tokens, words)
    if words[words.index("INTO") - 1] in ("MERGE", "INSERT", "REPLACE"):  # WITH … MERGE INTO t
        return None
    return _without_into(tokens, words, 0)


def _returning_into(tokens: list[Token], words: list[str]) -> list[Token] | None:
    """Remove `INTO v` from `… RETURNING id INTO v`."""
    if "RETURNING" not in words or words[0] not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
        return None
    return _without_into(tokens, words, words.index("RETURNING"))


def _without_into(tokens: list[Token], words: list[str], start: int) -> list[Token] | None:
    levels = bracket_depths(tokens)
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


def _directory_in_format(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove the format of Spark's `INSERT OVERWRITE DIRECTORY 'x' USING parquet … SELECT …`."""
    if words[:2] != ["INSERT", "OVERWRITE"] or "DIRECTORY" not in words[2:4]:
        return None
    path = words.index("DIRECTORY") + 1
    if words[path + 1 : path + 2] != ["USING"]:
        return None
    query = next((at for at in range(path, len(words)) if words[at] in ("SELECT", "WITH")), path)
    return [*tokens[: path + 1], *tokens[query:]] if query > path else None


def _output_clause(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Bring T-SQL's `OUTPUT inserted.a INTO dbo.t (x)` into the form that sqlglot parses."""
    if place.dialect_name not in _WITH_OUTPUT or "OUTPUT" not in words:
        return None
    return normalize_output_clause(tokens, words, place.dialect)


_WITH_OUTPUT = frozenset({"tsql", "fabric"})


def _bound_view(tokens: list[Token], words: list[str], place: RewriteContext) -> list[Token] | None:
    """Remove `WITH SCHEMABINDING, VIEW_METADATA` from a view of T-SQL."""
    if words[0] != "CREATE" or "VIEW" not in words[:5] or "AS" not in words:
        return None
    body = words.index("AS")
    at = next((n for n in range(body) if words[n : n + 1] == ["WITH"]), None)
    if at is None or words[at + 1] not in VIEW_ATTRIBUTES:
        return None
    return [*tokens[:at], *tokens[body:]]


def _checked_view(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove `WITH [LOCAL|CASCADED] CHECK OPTION` from a view: it only limits inserts."""
    if words[0] != "CREATE" or words[-2:] != ["CHECK", "OPTION"]:
        return None
    at = len(words) - (4 if words[-3] in ("LOCAL", "CASCADED") else 3)
    return tokens[:at] if words[at] == "WITH" else None


def _changed_rows(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read Oracle's `:NEW.id` in a trigger as `NEW.id`."""
    if place.dialect_name != "oracle" or ":" not in words:
        return None
    return [
        token
        for at, token in enumerate(tokens)
        if not (words[at] == ":" and words[at + 1 : at + 2] in (["NEW"], ["OLD"]))
    ]


def _merge_that_deletes(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Combine Oracle's `UPDATE SET … WHERE a DELETE WHERE b`: both decide which rows remain."""
    if words[0] != "MERGE" or place.dialect_name != "oracle":
        return None
    levels = bracket_depths(tokens)
    rewritten: list[Token] = []
    filtered = False
    for at, token in enumerate(tokens):
        if not levels[at] and words[at] == "DELETE" and words[at + 1 : at + 2] == ["WHERE"]:
            continue
        if not levels[at] and words[at] == "WHERE":
            token = copy_token(token, TokenType.AND, "AND") if filtered else token
            filtered = True
        filtered = filtered and words[at] != "WHEN"
        rewritten.append(token)
    return rewritten


def _remove_duplicates(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read Redshift's `MERGE … REMOVE DUPLICATES` as branches that replace and insert rows."""
    if words[0] != "MERGE" or words[-2:] != ["REMOVE", "DUPLICATES"]:
        return None
    last = tokens[-1]
    return [
        *tokens[:-2],
        *(copy_token(last, kind, text) for kind, text in _REPLACE_ROWS),
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


_RULES: tuple[Callable[[list[Token], list[str], RewriteContext], list[Token] | None], ...] = (
    without_namespaces,
    _queue_is_read,
    _replace_is_insert,
    _altered_view,
    _with_before_insert,
    _delete_from_table,
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
    *STREAM_RULES,
)

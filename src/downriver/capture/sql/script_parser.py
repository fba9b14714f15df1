"""Splits a script into statements and parses each; falls back when sqlglot cannot parse one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType
from typing_extensions import assert_never

from downriver.capture.sql.procedures.control_flow import list_pieces
from downriver.capture.sql.procedures.pieces import CodePiece, PieceRole, find_word, word_at
from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.statements.token_shapes import find_effect, find_export
from downriver.capture.sql.text.client_commands import split_client_commands
from downriver.capture.sql.text.mentions import list_tables, scan_tables
from downriver.capture.sql.text.name_tokens import join_name_tokens
from downriver.capture.sql.text.parse import ScriptStatement, StatementParser, is_statement
from downriver.capture.sql.text.rewrite import RewriteContext, dot_legacy_names, rewrite_tokens
from downriver.capture.sql.text.split import replace_delimiters, split_by_keyword, split_statements
from downriver.capture.sql.text.tokens import (
    find_closing,
    name_at,
    source_text,
    tokenize_leniently,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.sql.limits import Budget
    from downriver.columns import TableName

# Tried in this order on a statement that the given dialect cannot parse.
_OTHER_DIALECTS = ("", "databricks", "postgres", "snowflake", "tsql", "bigquery", "oracle", "mysql")
# Dialects that combine two others: queries of the first, definitions of the second.
_COMBINED = {"athena": ("trino", "hive")}
INCLUDE = "INCLUDE"  # the kind of a statement that runs another file
_WITHOUT_SEMICOLONS = frozenset({"tsql", "fabric"})
_MAX_NESTED_SCRIPTS = 5
_MAX_TOKENS_TO_RETRY = 20_000

_MOVES_NO_DATA = frozenset(
    {
        "ADD", "ANALYZE", "ATTACH", "BACKUP", "BREAK", "CHECKPOINT", "CLOSE", "CLUSTER", "COLLECT",
        "COMMENT", "COMMIT", "CONTINUE", "DBCC", "DEALLOCATE", "DENY", "DESC", "DESCRIBE", "DETACH",
        "DISCARD", "EXIT", "EXPLAIN", "FETCH", "GET", "GOTO", "GRANT", "HELP", "INSTALL",
        "INVALIDATE", "ITERATE", "KILL", "LEAVE", "LIST", "LISTEN", "LOCK", "LS", "MSCK", "NOTIFY",
        "NULL", "OPTIMIZE", "PRAGMA", "PRINT", "PUT", "RAISE", "RAISERROR", "REFRESH", "REINDEX",
        "REMOVE", "REPAIR", "RESET", "RESIGNAL", "REVOKE", "RM", "ROLLBACK", "SAVE", "SAVEPOINT",
        "SET", "SHOW", "SIGNAL", "START", "STATISTICS", "SUMMARIZE", "SUSPEND", "RESUME", "SYSTEM",
        "THROW", "UNCACHE", "UNLOCK", "UNSET", "USE", "VACUUM", "WAITFOR",
    }
)  # fmt: skip
_BEFORE_TRIGGER = frozenset({"CREATE", "REPLACE", "CONSTRAINT"})
_ROUTINE_WORDS = frozenset({"FUNCTION", "PROCEDURE"})
_BLOCKS = frozenset({"BEGIN", "DECLARE", "IF", "WHILE", "FOR", "LOOP", "REPEAT", "LET"})
_TABLE_OBJECTS = frozenset({"TABLE", "VIEW"})


class ScriptParser:
    """Parses the scripts of one dialect, statement by statement.

    A statement that does not parse is tried in other dialects, unless `retries` is false.
    """

    def __init__(self, dialect: Dialect, budget: Budget, *, retries: bool = True) -> None:
        name = type(dialect).__name__.lower()
        self._dialect, *self._definition_dialects = map(
            Dialect.get_or_raise, _COMBINED.get(name, (dialect,))
        )
        self._budget = budget
        self._retries = retries
        self._parser = StatementParser(self._dialect, budget)
        self._keyword_ends_statement = name in _WITHOUT_SEMICOLONS
        self._depth = 0
        self._stopped = False  # at the time limit
        self._procedural = False  # after the first block, declarations may be anywhere
        self._routines: set[str] = set()
        self._triggered: dict[str, TableName] = {}  # by function of a trigger: the table
        self.variables: set[str] = set()  # declared so far, in lower case

    def read(self, sql: str) -> Iterator[ScriptStatement]:
        """Yield the statements of a script. A fault in one does not affect the others."""
        text, included = split_client_commands(replace_delimiters(sql))
        for file in included:
            message = f"the script runs {file.path}, which is not read with it"
            spot = SqlBlindSpot("included_file", message, file.line, 1)
            yield ScriptStatement(file.command, file.line, kind=INCLUDE, blind_spots=(spot,))
        text = _SEPARATOR_LINE.sub(lambda line: " " * len(line.group()), text)
        tokens, problem = tokenize_leniently(text, self._dialect)
        tokens = join_name_tokens(tokens, self._dialect)
        self._triggered.update(self._find_triggers(tokens))
        self._routines.update(self._find_tasks(tokens))
        for chunk in split_statements(dot_legacy_names(tokens, self._dialect)):
            for parsed in self._chunk(chunk, text):
                if problem is not None:
                    yield parsed._replace(blind_spots=(problem, *parsed.blind_spots))
                    problem = None
                else:
                    yield parsed
        if problem is not None:
            yield ScriptStatement(sql, 1, blind_spots=(problem,))

    def _chunk(self, chunk: list[Token], sql: str) -> Iterator[ScriptStatement]:
        routine = ""
        parts = split_by_keyword(chunk) if self._keyword_ends_statement else [chunk]
        for part in parts:
            if self._budget.out_of_time:
                message = "the time limit was reached: this and later statements were not read"
                unread = self._unread(part, sql, "too_large", message)
                yield unread._replace(blind_spots=()) if self._stopped else unread
                self._stopped = True
                continue
            found_any = False
            for piece in list_pieces(part, routine):
                routine = piece.routine
                self._routines.add(routine.casefold())
                self.variables.update(piece.variables)
                self._procedural |= bool(routine) or word(part[0]) in _BLOCKS
                table = self._triggered.get(routine.casefold())
                if table is not None and piece.role is PieceRole.SCRIPT:
                    text, line = source_text(part[:1], sql), part[0].line
                    yield ScriptStatement(text, line, kind="CREATE", trigger=table, part=part)
                for parsed in self._piece(piece, sql):
                    found_any = True
                    yield parsed._replace(
                        routine=parsed.routine or routine, part=parsed.part or part
                    )
            if not found_any and list_tables(part, self._dialect):
                # The text has only control flow, but it names tables.
                message = "no statement was found in text that names tables"
                unread = self._unread(part, sql, "unparsed", message)
                yield unread._replace(routine=routine, part=part)

    def _find_triggers(self, tokens: Sequence[Token]) -> Iterator[tuple[str, TableName]]:
        """Yield functions that triggers of PostgreSQL run, each with the table of the trigger."""
        table: TableName | None = None
        for at, token in enumerate(tokens):
            if token.token_type == TokenType.SEMICOLON:
                table = None
            elif word(token) == "TRIGGER" and word_at(tokens, at - 1) in _BEFORE_TRIGGER:
                place = find_word(tokens, at, {"ON"})
                table = name_at(tokens, place + 1, self._dialect)[0]
            elif table and word(token) == "EXECUTE" and word_at(tokens, at + 1) in _ROUTINE_WORDS:
                yield ".".join(name_at(tokens, at + 2, self._dialect)[0]).casefold(), table

    def _find_tasks(self, tokens: Sequence[Token]) -> Iterator[str]:
        """Yield the tasks of Snowflake that a script creates: EXECUTE TASK runs their statement."""
        for at, token in enumerate(tokens):
            if word(token) == "TASK" and word_at(tokens, at - 1) in _BEFORE_TRIGGER:
                while word_at(tokens, at + 1) in ("IF", "NOT", "EXISTS"):
                    at += 1
                yield ".".join(name_at(tokens, at + 1, self._dialect)[0]).casefold()

    def _piece(self, piece: CodePiece, sql: str) -> Iterator[ScriptStatement]:
        tokens = list(piece.tokens)
        if not tokens:
            return
        match piece.role:
            case PieceRole.STATEMENT:
                for parsed in self._statement(tokens, sql, piece.routine):
                    yield parsed._replace(row=piece.row)
            case PieceRole.TRIGGER:
                name, _ = name_at(tokens, 0, self._dialect)
                yield ScriptStatement(
                    sql[: tokens[0].end + 1], tokens[0].line, kind="CREATE", trigger=name
                )
            case PieceRole.CONDITION:
                yield from self._queries_in(tokens, sql)
            case PieceRole.VALUE:
                yield from self._value(tokens, sql)
            case PieceRole.SCRIPT:
                yield from self._script(tokens, sql)
            case PieceRole.DYNAMIC:
                yield self._hidden(tokens, sql, "dynamic_sql", "the statement is built at run time")
            case PieceRole.CALL:
                yield from self._call(tokens, sql)
            case PieceRole.FOREIGN:
                yield self._hidden(tokens, sql, "foreign_code", "the body is not SQL")
            case _:
                assert_never(piece.role)

    # Statements

    def _statement(self, tokens: list[Token], sql: str, routine: str) -> Iterator[ScriptStatement]:
        effect = find_effect(tokens, self._dialect)
        if effect is not None:
            yield ScriptStatement(
                source_text(tokens, sql), tokens[0].line, kind=effect.kind, effect=effect
            )
            return
        to_file = find_export(tokens, sql, self._parser, self._dialect)
        if to_file is not None:
            yield to_file
            return
        place = RewriteContext(self._dialect, bool(routine) or self._depth > 0)
        rewritten = rewrite_tokens(tokens, place)
        parsed = self._parser.parse(rewritten, sql)
        if isinstance(parsed, ScriptStatement) and is_statement(parsed.tree):
            yield parsed._replace(sql=source_text(tokens, sql), tokens=tokens)
        else:
            yield from self._without_tree(rewritten, sql, parsed)

    def _without_tree(
        self, tokens: list[Token], sql: str, parsed: ScriptStatement | SqlBlindSpot
    ) -> Iterator[ScriptStatement]:
        """Yield the tables in text that is not a statement, or does not parse."""
        first = word(tokens[0])
        if first in _MOVES_NO_DATA or _names_no_table(tokens):
            yield ScriptStatement(source_text(tokens, sql), tokens[0].line, kind=first)
        elif self._is_value(tokens):
            self.variables.add(str(tokens[0].text).casefold())
            yield from self._value(tokens, sql)
        elif isinstance(parsed, SqlBlindSpot):
            yield from self._retry(tokens, sql, parsed)
        elif isinstance(parsed.tree, (exp.Anonymous, exp.Dot, exp.Func)) and self._procedural:
            yield from self._call(tokens, sql)
        else:
            yield self._unread(tokens, sql, "unparsed", "unknown statement")

    def _is_value(self, tokens: list[Token]) -> bool:
        """Return whether this text is an assignment, or a declaration in procedural code."""
        if any(token.token_type == TokenType.COLON_EQ for token in tokens[:6]):
            return True
        return self._procedural and word(tokens[0]) not in _STARTS

    def _retry(
        self, tokens: list[Token], sql: str, problem: SqlBlindSpot
    ) -> Iterator[ScriptStatement]:
        parts = split_by_keyword(tokens)
        if len(parts) > 1 and not self._keyword_ends_statement:
            attempts = [self._parser.parse(part, sql) for part in parts]
            if all(isinstance(a, ScriptStatement) and is_statement(a.tree) for a in attempts):
                yield from (attempt for attempt in attempts if isinstance(attempt, ScriptStatement))
                return
        heading = _find_end_of_heading(tokens)
        if heading:
            text = self._hidden(tokens[:heading], sql, "unparsed", "the text is not SQL")
            yield text._replace(part=tokens[:1])  # its words name no tables
            yield from self._chunk(tokens[heading:], sql)
            return
        for dialect in self._definition_dialects:
            attempt = self._parser.parse_text(source_text(tokens, sql), dialect)
            if attempt is not None:
                yield attempt._replace(line=tokens[0].line)
                return
        is_small = len(tokens) <= _MAX_TOKENS_TO_RETRY
        if self._retries and problem.kind == "unparsed" and is_small:
            attempt = self._in_other_dialect(source_text(tokens, sql), tokens[0].line, problem)
            if attempt is not None:
                yield attempt
                return
        yield self._unread(tokens, sql, problem.kind, problem.message, problem)

    def _in_other_dialect(
        self, text: str, line: int, problem: SqlBlindSpot
    ) -> ScriptStatement | None:
        for other in map(Dialect.get_or_raise, _OTHER_DIALECTS):
            if type(other) is type(self._dialect) or self._budget.out_of_time:
                continue
            attempt = self._parser.parse_text(text, other)
            if attempt is not None:
                note = f"{problem.message}; read as {type(other).__name__.lower()}"
                spot = SqlBlindSpot("other_dialect", note, problem.line, problem.column)
                spots = (spot, *attempt.blind_spots)
                return attempt._replace(line=line, blind_spots=spots)
        return None

    # Pieces of procedural code

    def _value(self, tokens: list[Token], sql: str) -> Iterator[ScriptStatement]:
        if word(tokens[0]) == "DECLARE":
            parsed = self._parser.parse(tokens, sql)
            if isinstance(parsed, ScriptStatement) and isinstance(parsed.tree, exp.Declare):
                yield parsed._replace(kind="DECLARE")
                return
        words = [word(token) for token in tokens]
        if "IMMEDIATE" in words and "EXECUTE" in words:
            yield self._hidden(tokens, sql, "dynamic_sql", "the statement is built at run time")
            return
        yield from self._queries_in(tokens, sql)

    def _queries_in(self, tokens: list[Token], sql: str) -> Iterator[ScriptStatement]:
        """Yield the queries in brackets, or after FOR or `:=`."""
        at = 0
        while at < len(tokens):
            if word(tokens[at]) not in ("SELECT", "WITH") or word_at(tokens, at + 1) in _OF_TYPE:
                at += 1
                continue
            opened = at > 0 and tokens[at - 1].token_type == TokenType.L_PAREN
            end = find_closing(tokens, at - 1) if opened else len(tokens)
            parsed = self._parser.parse(tokens[at:end], sql)
            if isinstance(parsed, ScriptStatement) and isinstance(parsed.tree, exp.Query):
                yield parsed
            else:
                message = parsed.message if isinstance(parsed, SqlBlindSpot) else "not a query"
                yield self._unread(tokens[at:end], sql, "unparsed", message)
            at = end

    def _script(self, tokens: list[Token], sql: str) -> Iterator[ScriptStatement]:
        """Yield the statements of a quoted script: a body, or an executed constant."""
        quoted = tokens[-1]
        if self._depth >= _MAX_NESTED_SCRIPTS:
            yield self._hidden(tokens, sql, "too_deep", "scripts are nested too deeply")
            return
        lines_before = sql.count("\n", 0, quoted.start)
        self._depth += 1
        try:
            for parsed in self.read(str(quoted.text)):
                yield _shifted(parsed, lines_before)
        finally:
            self._depth -= 1

    def _call(self, tokens: list[Token], sql: str) -> Iterator[ScriptStatement]:
        at = 1 if word(tokens[0]) in ("CALL", "EXEC", "EXECUTE") else 0
        if word_at(tokens, at) in _CALLED and at + 1 < len(tokens):
            at += 1
        if at < len(tokens) and tokens[at].token_type == TokenType.PARAMETER:  # EXEC @rc = p
            at = min(at + 3, len(tokens) - 1)
        name = ".".join(name_at(tokens, at, self._dialect)[0])
        if name.casefold() in self._routines:
            yield ScriptStatement(source_text(tokens, sql), tokens[0].line, kind="CALL")
            return
        message = f"{name or 'the procedure'} is not defined in this script"
        yield self._hidden(tokens, sql, "procedure_call", message)

    # Statements that cannot be read

    def _hidden(self, tokens: list[Token], sql: str, kind: str, message: str) -> ScriptStatement:
        spot = SqlBlindSpot(kind, message, tokens[0].line, tokens[0].col)
        first = word(tokens[0])
        return ScriptStatement(
            source_text(tokens, sql), tokens[0].line, kind=first, blind_spots=(spot,)
        )

    def _unread(
        self,
        tokens: list[Token],
        sql: str,
        kind: str,
        message: str,
        place: SqlBlindSpot | None = None,
    ) -> ScriptStatement:
        scanned_tables = scan_tables(tokens, self._dialect)
        line = place.line if place is not None else tokens[0].line
        column = place.column if place is not None else tokens[0].col
        return ScriptStatement(
            source_text(tokens, sql),
            tokens[0].line,
            kind=word(tokens[0]) or "UNKNOWN",
            inputs=scanned_tables.inputs,
            outputs=scanned_tables.outputs,
            blind_spots=(SqlBlindSpot(kind, message, line, column),),
        )


_CALLED = ("FUNCTION", "PROCEDURE", "TASK")  # of a trigger; of Snowflake
_SEPARATOR_LINE = re.compile(r"^[ \t]*[=*#~+_]{5,}[ \t]*$", re.MULTILINE)
_AFTER_HEADING = frozenset(
    {"CREATE", "INSERT", "SELECT", "WITH", "MERGE", "UPDATE", "DELETE", "DROP", "ALTER", "TRUNCATE"}
)


def _find_end_of_heading(tokens: Sequence[Token]) -> int:
    """Return where a statement begins after a heading of plain text; 0 if there is no heading."""
    if tokens[0].token_type != TokenType.VAR:
        return 0
    depth = 0
    for at in range(1, len(tokens)):
        depth += tokens[at - 1].token_type == TokenType.L_PAREN
        depth -= tokens[at - 1].token_type == TokenType.R_PAREN
        begins_line = tokens[at].line > tokens[at - 1].line
        if begins_line and depth == 0 and word(tokens[at]) in _AFTER_HEADING:
            return at
    return 0


_OF_TYPE = ("TIME", "LOCAL")  # TIMESTAMP WITH TIME ZONE
_STARTS = frozenset(
    {
        "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "CREATE", "DROP", "ALTER", "COPY",
        "REPLACE", "TRUNCATE", "LOAD", "UNLOAD", "EXPORT", "IMPORT", "FROM", "VALUES", "TABLE", "(",
        "CACHE", "PIVOT", "UNPIVOT", "UPSERT",
    }
)  # fmt: skip


def _shifted(parsed: ScriptStatement, lines: int) -> ScriptStatement:
    spots = tuple(
        SqlBlindSpot(spot.kind, spot.message, spot.line + lines, spot.column)
        for spot in parsed.blind_spots
    )
    return parsed._replace(
        line=parsed.line + lines, blind_spots=spots, lines_before=parsed.lines_before + lines
    )


def _names_no_table(tokens: Sequence[Token]) -> bool:
    """Return whether this defines an object without rows: a warehouse, a role, a stage."""
    if [word(token) for token in tokens[:2]] == ["IMPORT", "FOREIGN"]:
        return True
    if word(tokens[0]) not in ("CREATE", "ALTER", "DROP"):
        return False
    return not _TABLE_OBJECTS.intersection(word(token) for token in tokens[:8])

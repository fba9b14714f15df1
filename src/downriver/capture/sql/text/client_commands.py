"""Removes the commands of SQL clients from a script: SQL*Plus, psql, sqlcmd, bteq, sqlite3."""

from __future__ import annotations

import re
from typing import NamedTuple

# Commands of SQL*Plus, each with the text that may follow. Other words may begin a statement.
_SQL_PLUS = re.compile(
    r"""(?:
      (?P<text>  # the rest of the line is any text; `rem := 1` assigns to a variable
        (?:REM(?:ARK)?|PRO(?:MPT)?|SPO(?:OL)?|PAU(?:SE)?|HO(?:ST)?|[TB]TI(?:TLE)?
          |ACC(?:EPT)? \s+ \w+)
        (?=\s|$) (?! \s* :?= \s* [\w('])
      )
    | (?:UN)? DEF(?:INE)? (?=\s*$ | \s+\w+\s*(?:=|$))
    | COL(?:UMN)? \s+ \S+ \s+
      (?:FORMAT|FOR|HEADING|HEA|NEW_VALUE?|NEW_V|NOPRINT|NOPRI|PRINT|JUSTIFY|ALIAS|CLEAR|LIKE
         |WORD_WRAPPED|WOR|WRAPPED|TRUNCATED|TRU|ON|OFF|OLD_VALUE?|OLD_V|A\d+) \b
    | SET \s+
      (?:APPINFO|ARRAY(?:SIZE)?|AUTO\w*|CMDSEP|COLSEP|CONCAT|DEF(?:INE)?|ECHO|EMB(?:EDDED)?
         |ERRORL\w*|ESC(?:APE|CHAR)?|FEED(?:BACK)?|FLU(?:SH)?|HEA(?:DING|DS|DSEP)?|LIN(?:ESIZE|E)?
         |LOBOF\w*|LONG(?:CHUNKSIZE)?|MARK(?:UP)?|NEWP(?:AGE)?|NULL|NUM(?:FORMAT|WIDTH|F)?
         |PAGES(?:IZE)?|PAU(?:SE)?|RECSEP\w*|SCAN|SERVEROUT(?:PUT)?|SHIFT\w*|SHOW\w*|SQL(?:BLANK
         |CASE|CO|N|P|T)\w*|SUF(?:FIX)?|TAB|TERM(?:OUT)?|TI(?:ME)?(?!\s+ZONE\b)|TIMI(?:NG)?|TRIM(?:OUT|SPOOL|S)?
         |UND(?:ERLINE)?|VER(?:IFY)?|WRA(?:P)?|XQUERY) (?:\s+[^\s=].*)? $
    | SHO(?:W)? \s+ (?:ERR(?:ORS)?|ALL|PARAMETERS?|SGA|USER|REL\w*|CON_\w+|PDBS) \b
    | WHENEVER \s+ (?:SQLERROR|OSERROR) \b
    | (?:EXIT|QUIT)
      (?=\s*;?\s*$ | \s+ (?:SUCCESS|FAILURE|WARNING|ROLLBACK|COMMIT|SQL\.SQLCODE|\d+) \b)
    | CONN(?:ECT)? \s+ \S+ (?:/|\s+AS\s+SYS) \S* \s* $
    | DISC(?:ONNECT)? \s* $
    | BRE(?:AK)? \s+ ON \b
    | COMP(?:UTE)? \s+ \w+ \s+ (?:OF|LABEL) \b
    | CL(?:EAR)? \s+ (?:SCR|COL|BRE|BUFF|COMP|SQL|TIMI)\w*
    | VAR(?:IABLE)? \s+ \w+ \s+ (?:NUMBER|VARCHAR2|CHAR|CLOB|REFCURSOR|BINARY_\w+) \b
    | PRINT \s+ :? \w+ \s* $
    | STA(?:RT)? \s+ [\w./\\-]+ \.sql \b
    | @@? \s* [\w./\\&$-]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_SQLCMD = re.compile(
    r":(?:setvar|r|on\s+error|connect|out|error|listvar|exit|quit|xml|help|serverlist|reset)\b",
    re.IGNORECASE,
)
_DOT = re.compile(  # of bteq, sqlite3 and duckdb
    r"""\.(?:LOGON|LOGOFF|LOGMECH|LOGDATA|QUIT|EXIT|SET|IF|GOTO|LABEL|REMARK|OS|RUN|SHOW|SESSIONS
      |REPEAT|ERRORLEVEL|COMPILE|WIDTH|HEADERS?|MODE|SEPARATOR|READ|OPEN|TIMER|BAIL|ECHO|NULLVALUE
      |NULL|PRINT|TABLES|SCHEMA|DATABASES|HELP|OUTPUT|ONCE|CD|SHELL|SYSTEM|PROMPT|EXPLAIN|STATS
      |CHANGES|LOAD|PRAGMA|MAXROWS|TRACE|PARAMETER|LOG)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_DOT_IMPORT = re.compile(
    r"\.import(?P<options>(?:\s+-\S+(?:\s+\d+)?)*)\s+(?P<file>'[^']+'|\"[^\"]+\"|\S+)\s+(?P<table>[\w.\"]+)\s*$",
    re.IGNORECASE,
)
_DOT_FILE = re.compile(r"\.(?:IMPORT|EXPORT)\b", re.IGNORECASE)  # of bteq: the data is not known
_PSQL = re.compile(r"\\(?:[a-zA-Z]\w*\+?|!|\?|\.(?:\s|$))")  # `\.` of MySQL runs a file
_PSQL_COPY = re.compile(r"\\copy\b", re.IGNORECASE)
_PSQL_END = re.compile(r"\\(?:g|gx|gset|gdesc|gexec|crosstabview|watch)\b")
_BANG = re.compile(
    r"!(?:abort|connect|define|edit|exit|load|options|print|quit|run|set|sh|source)\b",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"source\s+[\w./\\:$&{}()~-]+\.\w+\s*(?:;\s*)?$", re.IGNORECASE
)  # MySQL, Hive, Impala
_FIRST = frozenset("rRpPsSaAuUdDcCwWeEqQtTbBvVhH@:.\\!")
# Also words of other dialects: they do not show that a script is one of SQL*Plus.
_NOT_ONLY_SQL_PLUS = re.compile(
    r"(?:SET\s+(?:AUTO|NULL|SHOW|TI|SCAN)|SHO|EXIT|QUIT|PRINT|CONN|DISC|CL|VAR|STA|@)",
    re.IGNORECASE,
)
_FIRST_STATEMENT = re.compile(r"(?:[^;'\"]|'[^']*'|\"[^\"]*\")*;")
_SIGN = re.compile(
    r"^[ \t]*(?:[@\\.:/!]|source\s"
    r"|(?:REM|PRO|SPO|PAU|ACC|DEF|UNDEF|COL|SET|SHO|WHEN|EXIT|QUIT|CONN|TTI|BTI|HO|STA)\w*(?:\s|$))"
    r"|\\g",
    re.IGNORECASE | re.MULTILINE,
)
# A command that runs another file, by its client.
_RUNS_FILE = re.compile(
    r"""(?:
      @@? \s* | STA(?:RT)? \s+               # SQL*Plus
    | \\i(?:r|nclude|nclude_relative)? \s+   # psql
    | source \s+ | \\\. \s*                 # MySQL, Hive, Impala
    | :r \s+                                # sqlcmd
    | \.read \s+                           # sqlite3, DuckDB
    | \.run \s+ file \s* =? \s*             # bteq
    | !(?:source|load|run) \s+              # snowsql, beeline
    )
    (?P<quote>['"]?) (?P<path>[^\n'";]*[^\s\n'";]) (?P=quote)""",
    re.IGNORECASE | re.VERBOSE,
)
_OPENING = re.compile(r"/\*|--|'|\"|\$(?:[A-Za-z_]\w*)?\$")


class IncludedFile(NamedTuple):
    """A file that a command of a script runs."""

    path: str
    line: int
    command: str


def find_included_file(command: str, line: int = 1) -> IncludedFile | None:
    """Return the file that a command of a client runs: `@file`, `\\i file`, `:r file`."""
    match = _RUNS_FILE.match(command)
    if match is None:
        return None
    path = match["path"] if match["quote"] else match["path"].split()[0]
    return IncludedFile(path.replace("\\", "/"), line, command)


def remove_client_commands(sql: str) -> str:
    """Replace the commands of SQL clients by spaces.

    These commands end with their line, not with a semicolon, so each would make the next statement
    invalid. Lines keep their numbers. psql's `\\copy` and sqlite's `.import` become COPY. A `/` of
    its own line becomes a semicolon.
    """
    return split_client_commands(sql)[0]


def split_client_commands(sql: str) -> tuple[str, list[IncludedFile]]:
    """Return a script without the commands of clients, and the files that these commands run."""
    included: list[IncludedFile] = []
    if _SIGN.search(sql) is None:
        return sql, included
    lines = sql.split("\n")
    begins, quote = True, ""  # whether a statement may begin here; the quotation that is open
    continues = False  # whether a hyphen ends a line that continues, as in SQL*Plus
    for at, line in enumerate(lines):
        if not quote:
            bare = line.strip()
            changed = None
            if bare and bare[0] in _FIRST and begins:
                changed = _without_command(line, bare)
                file = find_included_file(bare, at + 1) if changed is not None else None
                included += [file] if file is not None else []
                if changed is not None and _SQL_PLUS.match(bare):
                    continues = continues or not _NOT_ONLY_SQL_PLUS.match(bare)
            elif bare == "/" and _ends_statement(line, lines, at, begins=begins):
                changed = line.replace("/", ";")
            elif "\\g" in line and (end := _find_end(line)) is not None:
                kept = line[end:] if line.startswith("\\gexec", end) else ""
                changed = f"{line[:end]}{kept};"
            if changed is not None:
                lines[at] = line = changed
                begins = True
                if _SQL_PLUS.match(bare) is None or not changed:
                    continue
        quote, code = _scan(line, quote)
        if continues and not quote and code.endswith("-"):
            lines[at] = f"{line.rstrip()[:-1]} "
        if code or quote not in ("", "*/"):
            begins = not quote and (code.endswith(";") or code.upper() == "GO")
    return "\n".join(lines), included


def _without_command(line: str, bare: str) -> str | None:
    """Return the replacement of a line that is a command, None for a line of SQL."""
    first = bare[0]
    if first == "\\":
        if _PSQL_COPY.match(bare):
            text = line.replace("\\", "", 1)
            return f"{text} " if bare.endswith(";") else f"{text};"
        return "" if _PSQL.match(bare) else None
    if first == ":":
        return "" if _SQLCMD.match(bare) else None
    if first == ".":
        loaded = _DOT_IMPORT.match(bare)
        if loaded is not None:
            file = loaded["file"].strip("'\"")
            return f"COPY {loaded['table']} FROM '{file}';"
        if _DOT_FILE.match(bare):
            return line if bare.endswith(";") else f"{line};"
        return "" if _DOT.match(bare) else None
    if _SOURCE.match(bare) or _BANG.match(bare):
        return ""
    return _without_sql_plus(bare)


def _without_sql_plus(text: str) -> str | None:
    """Return the text after the commands of SQL*Plus in a line; None if there is no command."""
    rest: str | None = None
    while (command := _SQL_PLUS.match(text)) is not None:
        ended = None if command["text"] else _FIRST_STATEMENT.match(text)
        rest = text = text[ended.end() :].lstrip() if ended else ""
    return rest


def _find_end(line: str) -> int | None:
    """Return the place of psql's `\\g` at the end of a statement. In a string it is a text."""
    quote, at = "", 0
    for match in _PSQL_END.finditer(line):
        quote = _scan(line[at : match.start()], quote)[0]
        at = match.start()
        if not quote:
            return at
    return None


def _ends_statement(line: str, lines: list[str], at: int, *, begins: bool) -> bool:
    """Return whether a line with `/` alone ends a statement, and is not a division."""
    return begins or line.startswith("/") or not any(map(str.strip, lines[at + 1 :]))


def _scan(line: str, quote: str) -> tuple[str, str]:
    """Return the quotation that is open after a line, and the code of the line without comments."""
    code: list[str] = []
    at = 0
    while True:
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return quote, "".join(code).strip()
            at, quote = end + len(quote), ""
            continue
        match = _OPENING.search(line, at)
        if match is None:
            code.append(line[at:])
            return "", "".join(code).strip()
        code.append(line[at : match.start()])
        if match.group() == "--":
            return "", "".join(code).strip()
        quote = "*/" if match.group() == "/*" else match.group()
        if quote != "*/":
            code.append("'")
        at = match.end()

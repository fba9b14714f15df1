"""Names in I/O positions of SQL text, with or without Jinja.

Excluded are: comments and text in quotes, names of CTEs and aliases of the same statement,
temporary tables of the same file, tables that the file drops again after it created them, table
functions (a name before a parenthesis), variables, the catalogs of the database, and branches of
templates that need a variable whose default is false.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from bench.crude.references import HOLE, KNOWN_HOLE, Lines, Reference, blank

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART = rf'(?:"[^"\n]+"|`[^`\n]+`|\[[^\]\n]+\]|[@#:$]?[\w$#{HOLE}{KNOWN_HOLE}]+(?:-[\w*]+)*\*?)'
NAME = rf"(?:{_PART}(?:\s*\.{{1,2}}\s*{_PART})*)"
_F = re.IGNORECASE
_CREATE = r"\b(?:CREATE|REPLACE)\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?"

_READS = (
    ("FROM", re.compile(rf"\bFROM\s+(?:ONLY\s+)?(?P<name>{NAME})(?P<after>\s*\(?)", _F)),
    ("JOIN", re.compile(rf"\bJOIN\s+(?P<name>{NAME})(?P<after>\s*\(?)", _F)),
    ("USING", re.compile(rf"\bUSING\s+(?P<name>{NAME})(?P<after>\s*\(?)", _F)),
)
_WRITES = (
    ("INTO", re.compile(
        rf"\b(?:INSERT|REPLACE|UPSERT)\s+(?:IGNORE\s+|ALL\s+|FIRST\s+)?(?:INTO|OVERWRITE)"
        rf"\s+(?:TABLE\s+)?(?P<name>{NAME})", _F)),
    ("INTO", re.compile(
        rf"\bINSERT\s+(?P<name>{NAME})\s*(?:\(|SELECT\b|VALUES\b|EXEC\b|DEFAULT\b)", _F)),
    ("MERGE", re.compile(rf"\bMERGE\s+(?:INTO\s+)?(?P<name>{NAME})", _F)),
    ("UPDATE", re.compile(
        rf"\bUPDATE\s+(?:TOP\s*\([^()]*\)\s*)?(?:ONLY\s+)?(?P<name>{NAME})"
        r"(?:\s+(?:AS\s+)?\w+)?(?:\s+WITH\s*\(\w+\))?\s+SET\b", _F)),
    ("COPY", re.compile(
        rf"(?:\bCOPY\s+(?:INTO\s+)?|\bBULK\s+INSERT\s+)(?P<name>{NAME})\s*(?:\([^()]*\)\s*)?"
        r"FROM\b", _F)),
    ("LOAD DATA", re.compile(
        rf"\bLOAD\s+DATA\b[^;]{0,2000}?\b(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?(?P<name>{NAME})", _F)),
    ("TABLE", re.compile(
        rf"{_CREATE}(?:\w+\s+){{0,2}}?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>{NAME})", _F)),
    ("VIEW", re.compile(
        rf"(?:{_CREATE}|\bALTER\s+)(?:\w+\s+){{0,3}}?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?"
        rf"(?P<name>{NAME})", _F)),
)  # fmt: skip
_SQLMESH = re.compile(rf"^\s*MODEL\s*\([^()]*?\bname\s+(?P<name>{NAME})", _F)
_SELECT_INTO = re.compile(rf"\bSELECT\b[^;]{0, 4000}?\bINTO\s+(?P<name>{NAME})(?=\s+FROM\b)", _F)
_MORE = re.compile(
    rf"\s*(?:(?:AS\s+)?(?!(?:WHERE|JOIN|LEFT|INNER|ON|SET)\b)\w+\s*)?"
    rf"(?:WITH\s*\([\w\s,]+\)\s*)?,\s*(?P<name>{NAME})(?P<after>\s*\(?)", _F)  # fmt: skip
_ALIAS = re.compile(
    rf"\b(?:FROM|JOIN|USING|UPDATE|(?:MERGE\s+)?INTO|MERGE)\s+(?P<name>{NAME})\s+(?:AS\s+)?"
    r"(?P<alias>[\w$]+)", _F)  # fmt: skip
_CTE = re.compile(
    r"(?:\bWITH\s+(?:RECURSIVE\s+)?|,\s*|^\s*)(?P<name>\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|[\w$]+)"
    r"\s*(?:\([^()]*\)\s*)?\s+AS\s*(?:NOT\s+)?(?:MATERIALIZED\s*)?\(",
    _F | re.MULTILINE)  # fmt: skip
_TEMPORARY = re.compile(
    rf"{_CREATE}(?:GLOBAL\s+|LOCAL\s+|PRIVATE\s+)*(?:TEMP|TEMPORARY|VOLATILE)\s+"
    rf"(?:RECURSIVE\s+)?(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>{NAME})"
    rf"|\bDECLARE\s+(?P<variable>@?\w+)\s+(?:AS\s+)?(?:TABLE|CURSOR)\b"
    r"|\bCURSOR\s+(?P<cursor>\w+)\s+IS\b", _F)  # fmt: skip
_DROP = re.compile(rf"\bDROP\s+(?:\w+\s+)?(?:TABLE|VIEW)\s+(?:IF\s+EXISTS\s+)?(?P<name>{NAME})", _F)
_REF = re.compile(
    r"\bref\s*\(\s*(?:(['\"])(?P<one>[^'\"]+)\1(?:\s*,\s*(['\"])(?P<two>[^'\"]+)\3)?)?"
)
_SOURCE = re.compile(
    r"\bsource\s*\(\s*(?:(['\"])(?P<one>[^'\"]+)\1\s*,\s*(['\"])(?P<two>[^'\"]+)\3)?"
)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\$\{[^{}]*\}", re.DOTALL)
_COMMENTS = re.compile(
    r"(?P<string>'(?:[^'\\\n]|''|\\.)*')"  # which may contain --
    r"|\{#.*?#\}|--[^\n]*|/\*.*?\*/"
    r"|^[ \t]*(?:#[ \t!]|#standardSQL|#legacySQL|\\echo|(?i:REM(?:ARK)?\b|PROMPT\b))"
    r"[^\n]*", re.DOTALL | re.MULTILINE)  # fmt: skip
# A branch or a loop that dbt leaves out unless the project sets its variable.
_OFF = re.compile(
    r"(?P<opening>\{%-?\s*(?:if\s+var\(\s*['\"]\w+['\"]\s*,\s*(?:false|none)\s*\)"
    r"|for\s+\w+\s+in\s+var\(\s*['\"]\w+['\"]\s*,\s*\[\s*\]\s*\))\s*-?%\})"
    r".*?(?=\{%-?\s*(?:elif|else|endif|endfor))", re.IGNORECASE | re.DOTALL)  # fmt: skip
_FOREIGN_BODY = re.compile(
    r"(?<=LANGUAGE )\s*(?:js|javascript|python|plpython3?u|java|scala|plperlu?|plv8|r)\b.*?"
    r"(\$\w*\$|\"\"\"|''').*?\1", _F | re.DOTALL)  # fmt: skip
_TRIPLE = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_QUOTED_PLAIN = re.compile(r"'(?:[^']|'')*'", re.DOTALL)
_DOUBLE_QUOTED = re.compile(r'"[^"\n]*"')
_TSQL = re.compile(r"^\s*GO\s*;?\s*$|\[dbo\]|\bNVARCHAR\b", _F | re.MULTILINE)
_END = re.compile(r";|^[ \t]*GO[ \t]*$|^[ \t]*/[ \t]*$", _F | re.MULTILINE)
_NO_QUERY = re.compile(
    r"\s*(?:GRANT|REVOKE|DENY|RESTORE|BACKUP|SHOW|FETCH|COMMENT|EXPLAIN|DESCRIBE|USE)\b", _F
)
_NOT_NAMES = re.compile(
    r"select|values|lateral|unnest|table|dual|set|where|on|as|with|inserted|deleted|new|old|external"
    r"|stdin|stdout|program|disk|url|provider|all|any|some|not|exists|null|only|into|from|openrowset"
    r"|opendatasource|overwrite|or|and|by|each|row|statement|statistics|of|instead|for|if|when|case"
    r"|begin|end|login|certificate|file|user|windows|asymmetric|sysdate|flatten|current_date"
    r"|current_timestamp|now|day|month|year|directory|local|inpath"
)
_CATALOGS = re.compile(
    r"(?:.*\.)?(?:information_schema|sys|pg_catalog)\..*|pg_.*|sysobjects|dba_.*|v\$.*|all_tab.*"
    r"|user_tab.*|svv_.*|stl_.*|stv_.*|sqlite_.*|pragma_.*"
)
_REACH = 4000  # characters before a keyword that decide what it means


class SqlText(msgspec.Struct):
    """SQL with its comments and quoted texts blanked, and templates replaced. Offsets are kept."""

    original: str
    uncommented: str
    masked: str


def mask(text: str) -> SqlText:
    """Blank comments and quoted texts, and replace template expressions by one character."""
    plain = _OFF.sub(
        lambda match: match["opening"] + blank(match[0][len(match["opening"]) :]), text
    )
    plain = _FOREIGN_BODY.sub(lambda match: blank(match[0]), plain)
    plain = _COMMENTS.sub(lambda match: match["string"] or blank(match[0]), plain)
    set_by_code = re.search(r"\{%[^%]*\b(?:ref|source)\s*\(", plain)
    masked = _JINJA.sub(_template, plain)
    if set_by_code:  # a variable that holds these names, which are counted by themselves
        masked = masked.replace(HOLE, KNOWN_HOLE)
    masked = _TRIPLE.sub(lambda match: blank(match[0]), masked)
    quoted = _QUOTED_PLAIN if _TSQL.search(masked) else _QUOTED
    masked = quoted.sub(lambda match: "'" + blank(match[0][1:-1]) + "'", masked)
    masked = _DOUBLE_QUOTED.sub(_identifier_or_blank, masked)
    return SqlText(text, plain, masked)


def _identifier_or_blank(match: re.Match[str]) -> str:
    inner = match[0][1:-1]
    is_identifier = re.fullmatch(rf"[\w .$#@*{HOLE}{KNOWN_HOLE}-]+", inner)
    return match[0] if is_identifier else '"' + blank(inner) + '"'


def _template(match: re.Match[str]) -> str:
    code = match[0]
    if code.startswith("{%"):
        return blank(code)
    counted = re.search(r"\b(?:ref|source)\s*\(|\{\{-?\s*this\b", code)
    return (KNOWN_HOLE if counted else HOLE) * len(code)


def find_sql_names(path: str, text: str, first: int = 1) -> list[Reference]:
    """Return the names in I/O positions of a SQL text whose first line is `first`."""
    sql, lines = mask(text), Lines(text, first)
    found = list(_template_names(path, sql.uncommented, lines))
    local = _local_names(sql.masked)
    for start, stop in _statements(sql.masked):
        found += _statement_names(path, sql, (start, stop), lines, local)
    return sorted(set(found))


def _template_names(path: str, text: str, lines: Lines) -> Iterator[Reference]:
    stop = lines.at(len(text))
    for block in _JINJA.finditer(text):
        for position, pattern in (("ref()", _REF), ("source()", _SOURCE)):
            for match in pattern.finditer(block[0]):
                line = lines.at(block.start() + match.start())
                name = match["two"] or match["one"] or ""
                if position == "source()" and name:
                    name = f"{match['one']}.{name}"
                yield Reference(
                    path=path, line=line, position=position, name=name, start=line, stop=stop,
                    expression="" if name else block[0],
                )  # fmt: skip


def _statements(masked: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(masked):
        yield start, match.end()
        start = match.end()
    yield start, len(masked)


def _local_names(masked: str) -> set[str]:
    local = {
        last_part(match["name"] or match["variable"] or match["cursor"])
        for match in _TEMPORARY.finditer(masked)
    }
    created = {
        last_part(match["name"]): match.start()
        for _, pattern in _WRITES[-2:]
        for match in pattern.finditer(masked)
    }
    for match in _DROP.finditer(masked):
        name = last_part(match["name"])
        if match.start() > created.get(name, len(masked)):
            local.add(name)
    return local


def _statement_names(
    path: str, sql: SqlText, span: tuple[int, int], lines: Lines, local: set[str]
) -> Iterator[Reference]:
    masked = sql.masked[span[0] : span[1]]
    if _NO_QUERY.match(masked):
        return
    original = sql.original[span[0] : span[1]]
    body = len(original) - len(original.lstrip())
    start, stop = lines.at(span[0] + body), lines.at(span[1])
    excluded = local | {last_part(match["name"]) for match in _CTE.finditer(masked)}
    aliases = set(_aliases(masked))
    for position, written, name, offset in _positions(masked):
        parts = split_name(name)
        if not _is_table(name, parts, excluded, aliases):
            continue
        yield Reference(
            path=path, line=lines.at(span[0] + offset), position=position, written=written,
            name=_written_name(parts), start=start, stop=stop,
            expression=original[offset : offset + len(name)],
        )  # fmt: skip


def _positions(masked: str) -> Iterator[tuple[str, bool, str, int]]:
    for position, pattern in _WRITES:
        for match in pattern.finditer(masked):
            yield position, True, match["name"], match.start("name")
    model = _SQLMESH.match(masked)
    if model:
        yield "MODEL", True, model["name"], model.start("name")
    for match in _SELECT_INTO.finditer(masked):
        if "." in match["name"]:
            yield "INTO", True, match["name"], match.start("name")
    for position, pattern in _READS:
        for match in pattern.finditer(masked):
            if not _reads_table(position, masked, match):
                continue
            found: re.Match[str] | None = match
            while found is not None:
                if not found["after"].endswith("("):
                    yield position, False, found["name"], found.start("name")
                is_list = position == "FROM" and "(" not in found["after"]
                found = _MORE.match(masked, found.end("name")) if is_list else None


def _reads_table(position: str, masked: str, match: re.Match[str]) -> bool:
    before = masked[max(0, match.start() - _REACH) : match.start()]
    if position == "USING":
        return bool(re.search(r"\b(?:MERGE|DELETE)\b", before, _F))
    if position == "JOIN":
        return True
    if re.search(
        r"\bDISTINCT\s*$|\bFETCH\s+(?:\w+\s+)?$|\bCOPY\b[^;]*$|\bBULK\s+INSERT\b[^;]*$", before, _F
    ):
        return False
    return _is_clause(before)


def _is_clause(before: str) -> bool:
    """Return whether FROM is that of a query, not of a function as in EXTRACT(YEAR FROM x)."""
    depth = 0
    for match in re.finditer(r"[()]", before[::-1]):
        depth += 1 if match[0] == ")" else -1
        if depth < 0:
            inside = before[len(before) - match.start() :]
            return bool(re.search(r"\b(?:SELECT|DELETE|WITH)\b", inside, _F)) or not inside.strip()
    return True


def _aliases(masked: str) -> Iterator[str]:
    for match in _ALIAS.finditer(masked):
        alias = match["alias"].casefold()
        if last_part(match["name"]) != alias:
            yield alias


def _is_table(name: str, parts: list[str], excluded: set[str], aliases: set[str]) -> bool:
    whole = ".".join(parts).casefold()
    first, last = parts[0].casefold(), parts[-1].casefold()
    if KNOWN_HOLE in whole or _NOT_NAMES.fullmatch(whole) or _CATALOGS.fullmatch(whole):
        return False
    if last.isdigit():
        return False
    if last.startswith(("#", "@", ":", "$")) or (
        len(parts) == 1 and (last in excluded or last in aliases)
    ):
        return False
    is_quoted = name[0] in '"`['
    return is_quoted or len(parts) == 1 or first not in aliases | excluded


def _written_name(parts: list[str]) -> str:
    """Return the parts of a name that are text; an empty name if the last part is not."""
    if HOLE in parts[-1]:
        return ""
    kept: list[str] = []
    for part in reversed(parts):
        if HOLE in part or part.startswith(("@", ":", "$")) or not part:
            break
        kept.insert(0, part)
    return ".".join(kept)


def split_name(name: str) -> list[str]:
    """Return the parts of a name without quotes."""
    bare = re.sub(r"\s*\.\s*", ".", name)
    bare = re.sub(r"\[([^\]]*)\]", lambda match: f'"{match[1]}"', bare)
    parts = re.findall(r'"([^"]*)"|`([^`]*)`|([^."`]+)', bare)
    return [
        piece
        for quoted, ticked, plain in parts
        for piece in (ticked.split(".") if ticked else [quoted or plain])
    ]


def text_of_name(name: str) -> str:
    """Return the last parts of a name that are not computed; empty if the last part is."""
    parts = split_name(name)
    return _written_name(parts) if parts else ""


def last_part(name: str) -> str:
    """Return the last part of a name, in lower case."""
    return split_name(name)[-1].casefold()

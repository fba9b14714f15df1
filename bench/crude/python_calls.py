"""Paths, tables and SQL in calls that read or write, in Python files and notebooks.

A call counts by its name. Its argument counts as a name if it is text, an f-string, or a variable
that the file sets to one text. Otherwise the call counts without a name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from bench.crude.references import HOLE, Lines, Reference, blank, closing
from bench.crude.sql import find_sql_names, text_of_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHAIN = r"(?:[^\n]|\n\s*(?=\.))*?"  # a chain of calls, one or several lines


class _Call(msgspec.Struct):
    position: str
    pattern: re.Pattern[str]
    arguments: tuple[str | int, ...]
    written: bool = False
    is_path: bool = True
    is_sql: bool = False


def _call(position: str, pattern: str, *arguments: str | int) -> _Call:
    return _Call(position, re.compile(rf"{pattern}\s*(?P<open>\()"), arguments)


_PATHS = (0, "path", "filepath_or_buffer", "path_or_buf", "io", "source", "fname", "excel_writer")
_FILES = (
    "csv|parquet|json|excel|feather|orc|pickle|hdf|xml|html|fwf|stata|sas|avro|delta|ndjson|ipc"
)

_PANDAS = r"\b(?:pd|pandas|pl|polars|dd|wr\.s3|gpd|geopandas|ps|ks|cudf|mpd)"
_SPARK = r"\b(?:spark|sqlContext|sc|session|spark_session|sqlCtx|hiveContext|hc|sparkSession)"
_CLIENT = r"\b(?:client|bq|bq_client|bigquery_client|conn|con|connection|duckdb|db)"
_SPARK_READ = rf"\.read(?:Stream)?\b(?!\s*\(){_CHAIN}"
_SPARK_WRITE = rf"\.write(?:Stream)?\b(?!\s*\(){_CHAIN}"
_SPARK_FILES = "parquet|csv|json|orc|text|avro|delta|xml"
_BEAM_FILES = "Text|Parquet|Avro|TFRecord|Csv|Json|PubSub|Kafka|MongoDB|Jdbc|Files"
_FETCHES = "get_pandas_df|get_records|get_first"

_READ_PATHS = (
    _call("pandas read", rf"{_PANDAS}\.(?:read|scan)_(?:{_FILES}|file)", *_PATHS),
    _call("Spark read", rf"{_SPARK_READ}\.(?:{_SPARK_FILES}|load)", 0, "path", "paths"),
    _call("Spark read", r"\b(?:textFile|wholeTextFiles|sequenceFile|binaryFiles)", 0, "path"),
    _call("Spark read", r"\bDeltaTable\.forPath", 1, "path"),
    _call(
        "Glue read",
        r"\bcreate_(?:dynamic|data)_frame(?:\.|_)from_options",
        "connection_options",
        1,
    ),
    _call(
        "boto3 read",
        r"\.(?:get_object|download_file|download_fileobj|select_object_content)",
        "Key",
        "key",
        1,
    ),
    _call(
        "Beam read",
        rf"\bRead(?:All)?From(?:{_BEAM_FILES})\w*",
        0,
        *("file_pattern", "topic", "subscription", "topics", "table_name"),
    ),
)
_WRITE_PATHS = (
    _call("pandas write", rf"\.(?:to|write|sink)_(?:{_FILES}|file)", *_PATHS),
    _call("Spark write", rf"{_SPARK_WRITE}\.(?:{_SPARK_FILES}|save|start)", 0, "path"),
    _call("Spark write", r"\.saveAs(?:Text|Pickle|Sequence|Hadoop|NewAPIHadoop)File", 0, "path"),
    _call("Glue write", r"\bwrite_dynamic_frame(?:\.|_)from_options", "connection_options"),
    _call("Glue write", r"\bgetSink", "path"),
    _call(
        "boto3 write",
        r"\.(?:put_object|upload_file|upload_fileobj|load_string|load_file|load_bytes)",
        *("Key", "key", 2),
    ),
    _call(
        "Beam write",
        rf"\bWriteTo(?:{_BEAM_FILES})\w*",
        *(0, "file_path_prefix", "path", "topic", "table_name"),
    ),
)
_READ_TABLES = (
    _call("pandas read_sql_table", r"\bread_sql_table", 0, "table_name"),
    _call("Spark table", rf"(?:{_SPARK}|{_SPARK_READ})\.table", 0),
    _call("Spark table", r"\bDeltaTable\.forName", 1, "tableOrViewName"),
    _call("Glue read", r"\bcreate_dynamic_frame(?:\.|_)from_catalog", "table_name", 1),
)
_WRITE_TABLES = (
    _call("pandas to_sql", r"(?<!ibis)\.to_(?:sql|gbq)", 0, "name", "destination_table"),
    _call("pandas to_sql", r"\bwrite_(?:database|pandas)", "table_name", 1),
    _call("Spark write table", r"\.(?:saveAsTable|insertInto|writeTo|toTable)", 0, "tableName"),
    _call("Glue write", r"\bwrite_dynamic_frame(?:\.|_)from_catalog", "table_name", 2),
    _call(
        "BigQuery load",
        r"\.(?:load_table_from_\w+|insert_rows_json)",
        *("destination", "table", 1),
    ),
    _call("Beam write", r"\bWriteToBigQuery\w*", 0, "table"),
)
_QUERIES = (
    _call("pandas read_sql", r"\bread_(?:sql|sql_query|gbq|database)", 0, "sql", "query"),
    _call("Spark sql", rf"{_SPARK}\.sql", 0, "sqlQuery"),
    _call(
        "execute",
        rf"\.(?:execute|executemany|executescript|execute_query|{_FETCHES})",
        *(0, "sql", "query", "operation"),
    ),
    _call("query", rf"{_CLIENT}\.(?:query|sql)", 0, "query"),
    _call("Beam read", r"\bReadFromBigQuery\w*", "table", "query", 0),
)
CALLS = (
    *_READ_PATHS,
    *(msgspec.structs.replace(call, written=True) for call in _WRITE_PATHS),
    *(msgspec.structs.replace(call, is_path=False) for call in _READ_TABLES),
    *(msgspec.structs.replace(call, is_path=False, written=True) for call in _WRITE_TABLES),
    *(msgspec.structs.replace(call, is_path=False, is_sql=True) for call in _QUERIES),
)

_TEMPORARY_VIEW = re.compile(
    r"\b(?:create(?:OrReplace)?(?:Global)?TempView|registerTempTable)\s*(?P<open>\()"
)
_OPERATOR = re.compile(r"\b(?P<name>\w+(?:Operator|Sensor))\s*(?P<open>\()")
_OPERATOR_ARGUMENTS = {
    "query": "sql bql hql query",
    "read table": "source_project_dataset_table source_project_dataset_tables table table_name",
    "written table": "destination_project_dataset_table hive_table mysql_table snowflake_table "
    "destination_table",
    "read path": "source_object source_objects object object_name s3_key bucket_key "
    "source_bucket_key",
    "written path": "destination_object dst dest_key dest_s3_key filename dest_bucket_key",
}
_STRING = (
    r"[rRbBuUfF]{0,2}(?:\"\"\"(?:\\.|(?!\"\"\")[^\\])*\"\"\"|'''(?:\\.|(?!''')[^\\])*'''"
    r"|\"\"(?!\")|\"(?:\\.|[^\"\\\n])+\"|''(?!')|'(?:\\.|[^'\\\n])+')"
)
_STRINGS = re.compile(_STRING, re.DOTALL)
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<comment>#[^\n]*)", re.DOTALL)
_CONCATENATION = (
    rf"[\w.]*\s*\+?\s*(?:{_STRING})(?:[\s\\]*\+?[\s\\]*(?:{_STRING}|[\w.]+))*\s*\)?"
    r"(?:\s*(?:%|\.format\().*)?"
)
_SET = (
    r"^[ \t]*{name}(?:\s*:\s*[\w\[\], .]+)?\s*=\s*\(?\s*(?P<value>(?:{string}\s*)+)\)?"
    r"\s*(?:#[^\n]*)?$"
)
_LOOKS_LIKE_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CREATE|COPY|UNLOAD|DROP|ALTER|TRUNCATE|REPLACE|BEGIN|"
    r"LOAD|CALL|EXEC|SET|USE|SHOW|GRANT|VACUUM|ANALYZE|EXPLAIN|DECLARE|REFRESH|MSCK|DESCRIBE|COMMIT|ROLLBACK|PRAGMA)\b",
    re.IGNORECASE,
)


def find_call_names(path: str, text: str) -> list[Reference]:
    """Return the names in I/O positions of a Python text."""
    code = _PythonText(path, text)
    views = "|".join(code.temporary_views()) or "(?!)"
    return sorted(
        name for name in set(code.names()) if not re.fullmatch(views, name.name, re.IGNORECASE)
    )


def find_notebook_names(path: str, text: str) -> list[Reference]:
    """Return the names of a notebook. Lines are those of the JSON file."""
    code = "\n".join(map(_code_line, _code_cells(text)))
    return find_call_names(path, code)


def _code_cells(text: str) -> Iterator[str]:
    """Yield the lines of a notebook; those outside of code cells are empty."""
    is_code = is_source = False
    for line in text.split("\n"):
        kind = re.match(r'\s*"cell_type":\s*"(\w+)"', line)
        if kind:
            is_code = kind[1] == "code"
        if re.match(r'\s*"source":', line):
            is_source = True
        elif re.match(r"\s*\],?\s*$", line):
            is_source = False
        yield line if is_code and is_source else ""


def _code_line(line: str) -> str:
    match = re.match(r'\s*"((?:\\.|[^"\\])*)",?\s*$', line)
    if not match:
        return ""
    code = re.sub(r"\\n$", "", match[1])
    code = re.sub(r"\\(.)", lambda escaped: {"n": " ", "t": "\t"}.get(escaped[1], escaped[1]), code)
    return "" if code.lstrip().startswith(("!", "%")) else code


def _mask(text: str) -> str:
    """Blank comments and docstrings."""

    def masked(match: re.Match[str]) -> str:
        return blank(match[0]) if match["comment"] or _is_docstring(match) else match[0]

    return _TOKEN.sub(masked, text)


def _is_docstring(match: re.Match[str]) -> bool:
    """Return whether a string is a statement by itself."""
    text = match.string
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    after = re.match(r"[ \t]*(?:#|\n|$)", text[match.end() : match.end() + 200])
    return not before.strip() and after is not None and not _is_argument(text, match.start())


def _is_argument(text: str, offset: int) -> bool:
    before = text[max(0, offset - 300) : offset].rstrip()
    return before[-1:] in ("(", ",", "=", "+", "[", "{", "\\", '"', "'", "%")


def _is_definition(source: str, offset: int) -> bool:
    start = source.rfind("\n", 0, offset) + 1
    return bool(
        re.match(r"\s*(?:async\s+)?(?:def|class|from|import)\b", source[start:offset] + " ")
    )


def _first_line(source: str, line: int) -> int:
    """Return the first line of the expression that continues at a line."""
    content = source.split("\n")
    while line > 1 and (
        content[line - 1].lstrip().startswith((".", ")"))
        or content[line - 2].rstrip().endswith(("(", "\\", "="))
    ):
        line -= 1
    return line


class _Argument(msgspec.Struct):
    key: str | int
    text: str
    offset: int


def _arguments(source: str, opened: int) -> list[_Argument]:
    end = closing(source, opened)
    found: list[_Argument] = []
    start, number, depth = opened + 1, 0, 0
    for match in re.finditer(rf"{_STRING}|[()\[\]{{}},]", source[opened + 1 : end], re.DOTALL):
        token, at = match[0], opened + 1 + match.start()
        if token in "([{":
            depth += 1
        elif token in ")]}" and depth:
            depth -= 1
        elif (token == "," and depth == 0) or (token == ")" and at == end - 1):
            argument = _argument(source[start:at], start, number)
            if argument is not None:
                found.append(argument)
                number += isinstance(argument.key, int)
            start = at + 1
    return found


def _argument(text: str, offset: int, number: int) -> _Argument | None:
    named = re.match(r"\s*(\w+)\s*=(?!=)\s*", text)
    if named:
        return _Argument(named[1], text[named.end() :], offset + named.end())
    spaces = len(text) - len(text.lstrip())
    return _Argument(number, text.strip(), offset + spaces) if text.strip() else None


class _PythonText:
    """A Python text whose comments and docstrings are blanked."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._source = _mask(text)
        self._lines = Lines(self._source)
        self._strings = [match.span() for match in _STRINGS.finditer(self._source)]

    def _is_code(self, offset: int) -> bool:
        """Return whether an offset is outside of strings."""
        at = bisect_right(self._strings, (offset, len(self._source)))
        return at == 0 or self._strings[at - 1][1] <= offset

    def _calls(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        for match in pattern.finditer(self._source):
            is_call = self._is_code(match.start("open"))
            if is_call and not _is_definition(self._source, match.start()):
                yield match

    def names(self) -> Iterator[Reference]:
        """Yield the names in the arguments of calls."""
        taken: set[int] = set()
        for call in CALLS:
            for match in self._calls(call.pattern):
                opened = match.start("open")
                if opened not in taken:
                    taken.add(opened)
                    yield from self._of_call(call, match.start(), opened)
        for match in self._calls(_OPERATOR):
            yield from self._of_operator(match.start("open"))

    def temporary_views(self) -> Iterator[str]:
        """Yield a pattern of the name of each view that exists only in the session."""
        for match in _TEMPORARY_VIEW.finditer(self._source):
            for argument in _arguments(self._source, match.start("open"))[:1]:
                for text, _ in self._texts_of(argument):
                    yield re.escape(text).replace(HOLE, ".*") if text else "(?!)"

    def _of_call(self, call: _Call, start: int, opened: int) -> Iterator[Reference]:
        by_key = {argument.key: argument for argument in _arguments(self._source, opened)}
        argument = next((by_key[key] for key in call.arguments if key in by_key), None)
        first = _first_line(self._source, self._lines.at(start))
        span = (first, self._lines.at(closing(self._source, opened) - 1))
        if argument is not None:
            yield from self._of_argument(call, argument, span)
        elif by_key and not call.is_sql and call.position != "Spark write":
            yield self._reference(call, "", span)  # `save()` takes its name from an option

    def _of_operator(self, opened: int) -> Iterator[Reference]:
        span = (self._lines.at(opened), self._lines.at(closing(self._source, opened) - 1))
        by_key = {argument.key: argument for argument in _arguments(self._source, opened)}
        for role, keys in _OPERATOR_ARGUMENTS.items():
            for key in keys.split():
                if key in by_key:
                    call = _Call(
                        f"Airflow {key}", _OPERATOR, (), is_sql=role == "query",
                        written=role.startswith("written"), is_path=role.endswith("path"),
                    )  # fmt: skip
                    yield from self._of_argument(call, by_key[key], span)

    def _of_argument(
        self, call: _Call, argument: _Argument, span: tuple[int, int]
    ) -> Iterator[Reference]:
        if argument.text.strip() in ("context", "self", "None"):
            return  # the `execute` method of an Airflow operator
        for text, line in self._texts_of(argument):
            if text is None or not call.is_sql:
                yield self._reference(call, (text or "").strip(), span, argument.text.strip())
            elif _LOOKS_LIKE_SQL.match(text):
                yield from self._of_sql(call, text, line, span)
            elif text.strip() and " " not in text and not text.endswith((".sql", ".hql")):
                yield self._reference(call, text.strip(), span)

    def _of_sql(
        self, call: _Call, text: str, line: int, span: tuple[int, int]
    ) -> Iterator[Reference]:
        for inner in find_sql_names(self._path, text, line):
            yield msgspec.structs.replace(
                inner,
                position=f"{call.position} {inner.position}",
                start=min(span[0], inner.start),
                stop=max(span[1], inner.stop),
            )

    def _reference(
        self, call: _Call, name: str, span: tuple[int, int], expression: str = ""
    ) -> Reference:
        if not call.is_path:
            name = text_of_name(name)
        has_text = re.sub(rf"[{HOLE}./*\s]", "", name)
        return Reference(
            path=self._path, line=span[0], position=call.position, name=name if has_text else "",
            start=span[0], stop=span[1], written=call.written, is_path=call.is_path,
            expression=expression, is_query=call.is_sql,
        )  # fmt: skip

    def _texts_of(self, argument: _Argument) -> list[tuple[str | None, int]]:
        """Return the texts of an argument and their lines. Values of f-strings are holes."""
        value = argument.text.strip().rstrip(",")
        line = self._lines.at(argument.offset)
        option = re.search(r"^\{.*?[\"'](?:paths?|dbtable)[\"']\s*:\s*(.*)", value, re.DOTALL)
        if option:
            value = re.match(rf"\[?\s*(?:{_STRING})?|", option[1], re.DOTALL)[0].lstrip("[ ")  # type: ignore[index]
        if re.fullmatch(rf"\[(?:\s*{_STRING}\s*,?)+\s*\]", value, re.DOTALL):
            return [(self._literal(match[0]), line) for match in _STRINGS.finditer(value)]
        if re.fullmatch(rf"(?:\(\s*)?{_CONCATENATION}", value, re.DOTALL):
            return [(self._literal(value), line)]
        if re.fullmatch(r"[A-Za-z_]\w*", value):
            nearest = self._nearest_value(value, argument.offset)
            if nearest is not None:
                return [(self._literal(nearest["value"]), self._lines.at(nearest.start("value")))]
        return [(None, line)]

    def _nearest_value(self, name: str, offset: int) -> re.Match[str] | None:
        """Return the last assignment of a text to a variable before an offset."""
        pattern = re.compile(_SET.format(name=name, string=_STRING), re.DOTALL | re.MULTILINE)
        values = list(pattern.finditer(self._source))
        before = [match for match in values if match.start() < offset]
        return before[-1] if before else values[0] if len(values) == 1 else None

    def _literal(self, value: str) -> str:
        """Return the text of an expression: strings, and variables with one value, joined."""
        pieces = []
        around = _STRINGS.sub("", value)
        is_formatted = re.search(r"%|\.format\(", around) is not None
        for match in re.finditer(rf"(?P<string>{_STRING})|(?P<name>[\w.]+)", value, re.DOTALL):
            if match["string"] is None:
                pieces.append("" if is_formatted else self._fill(match["name"]))
                continue
            prefix, body = re.match(r"([a-zA-Z]*)(.*)", match[0], re.DOTALL).groups()  # type: ignore[union-attr]
            quote = 3 if body.startswith(('"""', "'''")) else 1
            inner = body[quote:-quote]
            if "f" in prefix.lower():
                inner = re.sub(r"\{([^{}]*)\}", lambda hole: self._fill(hole[1]), inner)
            elif is_formatted:
                inner = re.sub(r"\{[^{}]*\}|%\(\w+\)s|%s", HOLE, inner)
            pieces.append(inner)
            if is_formatted:
                break
        return "".join(pieces)

    def _fill(self, expression: str) -> str:
        """Return the value of a variable that the file sets once, else a hole."""
        if re.fullmatch(r"[A-Za-z_]\w*", expression):
            value = self._nearest_value(expression, 0)
            inner = _STRINGS.fullmatch(value["value"].strip()) if value is not None else None
            if inner is not None and not inner[0].lower().startswith("f"):
                return inner[0].lstrip("rRbBuU").strip("\"'")
        return HOLE

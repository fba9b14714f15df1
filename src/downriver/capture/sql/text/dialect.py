"""Guesses the dialect of a script from words that only some dialects have."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from sqlglot.dialects.dialect import Dialect

from downriver.errors import InvalidRequestError

# Tried in this order if there is no sign and the generic dialect cannot read the script.
FALLBACKS = (
    "postgres",
    "snowflake",
    "bigquery",
    "databricks",
    "tsql",
    "mysql",
    "duckdb",
    "trino",
    "oracle",
    "clickhouse",
)
_READ_FIRST = 100_000  # characters
_ENOUGH = 2  # a single weak sign is not enough

_NOT_CODE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


class _Sign(NamedTuple):
    """A pattern that is a sign of some dialects, with a weight for each."""

    pattern: str
    weights: dict[str, int]


def _for(pattern: str, **weights: int) -> _Sign:
    return _Sign(pattern, weights)


_SIGNS = (
    # T-SQL
    _for(r"^\s*GO\s*$", tsql=4),
    _for(r"\bDECLARE\s+@", tsql=4),
    _for(r"\b(?:FROM|INTO|JOIN|TABLE|EXISTS)\s+#{1,2}\w", tsql=4),
    _for(r"\bWITH\s*\(\s*(?:NOLOCK|TABLOCK|READPAST|HOLDLOCK|UPDLOCK)", tsql=4),
    _for(r"\b(?:CROSS|OUTER)\s+APPLY\b", tsql=3),
    _for(r"\bSELECT\s+(?:DISTINCT\s+)?TOP\s*[(\d]", tsql=3),
    _for(r"(?<![\w\])\"`])\[[A-Za-z_][\w $]*\]", tsql=2),
    _for(r"\bOUTPUT\s+(?:inserted|deleted)\.", tsql=4),
    _for(r"\bEXEC(?:UTE)?\s*\(?\s*(?:@|sp_)", tsql=4),
    _for(r"(?<![@\w])@@?[A-Za-z_]\w*", tsql=1, mysql=1, bigquery=1),
    _for(r"\bdbo\.", tsql=2),
    _for(r"\b(?:GETDATE|ISNULL|DATEFROMPARTS|CHARINDEX)\s*\(", tsql=1, redshift=1),
    _for(r"\bN''", tsql=1),
    # BigQuery
    _for(r"`[\w-]+\.[\w-]+(?:\.[\w*-]+)?`", bigquery=3),
    _for(r"\b(?:INT64|FLOAT64|BIGNUMERIC)\b", bigquery=3),
    _for(r"\b(?:SAFE_CAST|SAFE_DIVIDE|FARM_FINGERPRINT)\s*\(", bigquery=3),
    _for(r"\b(?:TIMESTAMP_TRUNC|GENERATE_UUID)\s*\(", bigquery=3),
    _for(r"\b(?:_TABLE_SUFFIX|_PARTITIONTIME|_PARTITIONDATE)\b", bigquery=4),
    _for(r"\bSELECT\s+AS\s+(?:STRUCT|VALUE)\b|\bWITH\s+OFFSET\b|\|>|\bEXPORT\s+DATA\b", bigquery=4),
    _for(r"\*\s*EXCEPT\s*\(", bigquery=2, databricks=1),
    _for(r"\bUNNEST\s*\(", bigquery=1, trino=1, postgres=1, duckdb=1),
    _for(r"\bFOR\s+SYSTEM_TIME\s+AS\s+OF\b", bigquery=2),
    # Snowflake
    _for(r"\bFLATTEN\s*\(", snowflake=3),
    _for(r"\b(?:FROM|INTO)\s+@[\w~%.]", snowflake=4),
    _for(r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:TRANSIENT|DYNAMIC)\s+TABLE\b", snowflake=4),
    _for(r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:STREAM|TASK|PIPE|STAGE|WAREHOUSE)\b", snowflake=4),
    _for(r"(?<![:\w{])[A-Za-z_]\w*:[A-Za-z_\"]", snowflake=2, databricks=1),
    _for(r"\b(?:OBJECT_CONSTRUCT|ARRAY_CONSTRUCT)\s*\(", snowflake=2),
    _for(r"\b(?:PARSE_JSON|TRY_TO_\w+|IFF|ZEROIFNULL)\s*\(", snowflake=2),
    _for(r"\b(?:AT|BEFORE)\s*\(\s*(?:TIMESTAMP|OFFSET|STATEMENT|STREAM)\s*=>", snowflake=4),
    _for(r"\bINSERT\s+OVERWRITE\s+INTO\b", snowflake=3),
    _for(r"\bEXECUTE\s+IMMEDIATE\s+\$\$|\bLET\s+\w+|\bRESULTSET\b", snowflake=3),
    _for(r"\bQUALIFY\b", snowflake=2, bigquery=1, databricks=1, teradata=1),
    _for(r"\*\s*(?:EXCLUDE|RENAME)\b", snowflake=2, duckdb=1),
    _for(r"\bCLONE\b|\bSWAP\s+WITH\b", snowflake=2),
    _for(r"\bLANGUAGE\s+(?:JAVASCRIPT|PYTHON)\b", snowflake=2, bigquery=1),
    # Spark, Databricks, Hive
    _for(r"\bLATERAL\s+VIEW\b", spark=3, hive=3, databricks=3),
    _for(r"\bINSERT\s+OVERWRITE\s+(?:TABLE|DIRECTORY|LOCAL)\b", spark=3, hive=3),
    _for(r"\bUSING\s+(?:PARQUET|DELTA|ORC|CSV|ICEBERG|JSON)\b", spark=3, databricks=3),
    _for(r"\b(?:DISTRIBUTE|SORT)\s+BY\b", spark=2, hive=2),
    _for(r"(?:\A|;)\s*FROM\s+[\w.`]+(?:\s+\w+)?\s+INSERT\b", hive=4),
    _for(r"\b(?:ROW\s+FORMAT|STORED\s+AS|SERDE|INPATH|TBLPROPERTIES)\b", hive=3, spark=2),
    _for(r"\b(?:POSEXPLODE|EXPLODE|COLLECT_LIST|COLLECT_SET)\s*\(", spark=2, databricks=1, hive=1),
    _for(r"\bCREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\b", spark=1),
    _for(r"\b(?:DEEP|SHALLOW)\s+CLONE\b|\bSTREAMING\s+TABLE\b|\bAPPLY\s+CHANGES\b", databricks=5),
    _for(r"\$\{(?:hiveconf|hivevar|system|env):", hive=4, spark=3),
    _for(r"\b(?:parquet|orc|csv|json|avro|text|binaryFile)\.`", spark=4, databricks=4),
    _for(r"\bdelta\.`|\bLIVE\.\w|\bZORDER\s+BY\b|\bFILEFORMAT\s*=", databricks=4),
    _for(r"\b(?:VERSION|TIMESTAMP)\s+AS\s+OF\b", databricks=3, spark=2),
    _for(r"\bUPDATE\s+SET\s+\*|\bINSERT\s+\*", databricks=3, spark=2),
    _for(r"\bCACHE\s+TABLE\b", spark=3),
    # MySQL
    _for(r"\bON\s+DUPLICATE\s+KEY\b|\bAUTO_INCREMENT\b|\bSTRAIGHT_JOIN\b", mysql=4),
    _for(r"\bENGINE\s*=\s*(?:InnoDB|MyISAM)\b", mysql=4),
    _for(r"\bINTO\s+OUTFILE\b|\bLOAD\s+DATA\b.{0,80}\bINFILE\b|^\s*DELIMITER\s", mysql=4),
    _for(r"\bLIMIT\s+\d+\s*,\s*\d+", mysql=2),
    _for(r"\bREPLACE\s+INTO\b|\bINSERT\s+IGNORE\b", mysql=3),
    _for(r"`\w+`", spark=2, databricks=2, mysql=2, bigquery=1, hive=1),
    # Postgres and Redshift
    _for(r"\bLANGUAGE\s+plpgsql\b|\bDO\s+\$\w*\$|\bRETURNS\s+(?:void|trigger|SETOF)\b", postgres=5),
    _for(r"\$\$", postgres=2, snowflake=2),
    _for(r"\bON\s+CONFLICT\b", postgres=3, duckdb=1, sqlite=1),
    _for(r"->>|#>>", postgres=2, duckdb=1, mysql=1),
    _for(r"\bDISTINCT\s+ON\s*\(", postgres=2, duckdb=1),
    _for(r"\b(?:JSONB|BYTEA|BIGSERIAL|SERIAL|TIMESTAMPTZ)\b|\bGENERATE_SERIES\s*\(", postgres=2),
    _for(r"\bRETURNING\b|\bILIKE\b|::", postgres=1, redshift=1, snowflake=1, duckdb=1),
    _for(r"\b(?:DISTKEY|SORTKEY|DISTSTYLE|IAM_ROLE)\b|\bUNLOAD\s*\(|\bAPPEND\s+FROM\b", redshift=5),
    # DuckDB
    _for(r"\bread_(?:parquet|csv|csv_auto|json|json_auto)\s*\(", duckdb=4),
    _for(r"(?:\A|;)\s*(?:UN)?PIVOT\s+[\w.\"]+\s+ON\b|(?:\A|;)\s*SUMMARIZE\b", duckdb=4),
    _for(r"\bCOLUMNS\s*\(\s*(?:['*\[]|\w+\s*->)", duckdb=4),
    _for(r"(?:\A|;)\s*FROM\s+[\w.\"]+\s*(?:;|$|\bSELECT\b|\bWHERE\b)", duckdb=3),
    _for(r"\bFROM\s+''(?!\s*\))|\bPOSITIONAL\s+JOIN\b", duckdb=3),
    # Trino
    _for(r"\bCROSS\s+JOIN\s+UNNEST\b|\bWITH\s+ORDINALITY\b", trino=2, bigquery=1, postgres=1),
    _for(r"\b(?:APPROX_DISTINCT|ELEMENT_AT|DATE_PARSE|ARBITRARY|MAP_AGG)\s*\(", trino=2),
    _for(r"\bWITH\s*\(\s*(?:format|partitioned_by|external_location)\s*=", trino=4),
    # Oracle, ClickHouse, Teradata, SQLite
    _for(r"\(\+\)|\bCONNECT\s+BY\b|\bROWNUM\b|\bFROM\s+DUAL\b|\bVARCHAR2\b", oracle=4),
    _for(r"\bSYSDATE\b|\bNVL2?\s*\(", oracle=1),
    _for(r"\bMergeTree\b|\bARRAY\s+JOIN\b|\bPREWHERE\b|\bEXCHANGE\s+TABLES\b", clickhouse=5),
    _for(r"\b(?:toDate|toDateTime|uniqExact|arrayMap|argMax)\(", clickhouse=2),
    _for(r"(?:\A|;)\s*SEL\s", teradata=5),
    _for(r"\bMULTISET\b|\bVOLATILE\s+TABLE\b|(?:\A|;)\s*LOCKING\b", teradata=5),
    _for(r"\bAUTOINCREMENT\b|(?:\A|;)\s*PRAGMA\s", sqlite=4),
)  # fmt: skip


class _CompiledSign(NamedTuple):
    """A sign with its compiled pattern.

    A text that has none of the `words` and none of the `marks` cannot match it. A sign without
    both may match any text.
    """

    pattern: re.Pattern[str]
    weights: dict[str, int]
    words: tuple[str, ...]
    marks: tuple[str, ...]

    def may_match(self, text: str, vocabulary: str) -> bool:
        """Return whether a text with this vocabulary may match the pattern."""
        return (
            not (self.words or self.marks)
            or any(word in vocabulary for word in self.words)
            or any(mark in text for mark in self.marks)
        )


@cache
def _compiled() -> tuple[_CompiledSign, ...]:
    flags = re.IGNORECASE | re.MULTILINE
    return tuple(
        _CompiledSign(re.compile(sign.pattern, flags), sign.weights, *_needed(sign.pattern))
        for sign in _SIGNS
    )


_WORD = re.compile(r"[A-Za-z_]{3,}")
_RUN = re.compile(r"\w{3,}")
_ANCHOR = r"(?:\A|;)"
_CLASS = r"(?<!\\)\[(?:\\.|[^]\\]){1,200}\]"
_NOT_LITERAL = re.compile(
    r"\(\?[<!=]+(?:\\.|\[(?:\\.|[^]\\]){1,200}\]|[^])[\\]){0,200}\)"
    rf"|{_CLASS}|\\[A-Za-z]|\{{[\d,]+\}}"
    r"|\([^()]{0,200}\)\?|[^()\\]\?"
)
_MARK = re.compile(r"(?:\\[^\w\s]|[:@>'#`-])+")
_FREQUENT = frozenset({"CREATE", "FROM", "INSERT", "INTO", "SELECT", "TABLE", "WITH"})


def _needed(pattern: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return words and marks such as `::`, of which each match contains at least one.

    Of each alternative, also of one in brackets, one word is enough: a long and rare one.
    """
    words: set[str] = set()
    marks: set[str] = set()
    literal = _NOT_LITERAL.sub(" ", pattern.replace(_ANCHOR, " ").replace("(?:", "("))
    for alternative in re.split(r"(?<!\\)\|", literal):
        found = [word.upper() for word in _WORD.findall(alternative)]
        punctuation = _MARK.findall(alternative)
        if found:
            words.add(max(found, key=lambda word: (word not in _FREQUENT, len(word))))
        elif punctuation:
            marks.add(max(punctuation, key=len).replace("\\", ""))
        else:
            return (), ()
    return tuple(words), tuple(marks)


def vocabulary_of(text: str) -> str:
    """Return the words of a text, each once. It is much shorter than code, which repeats words."""
    return " ".join(set(_RUN.findall(text.upper())))


def guess_dialect(sql: str) -> str:
    """Return the dialect that a script's words suggest, "" for generic SQL."""
    code = _NOT_CODE.sub(_keep_shape, sql[:_READ_FIRST])
    scores: dict[str, int] = {}
    vocabulary = vocabulary_of(code)
    for sign in _compiled():
        if sign.may_match(code, vocabulary) and sign.pattern.search(code):
            for dialect, weight in sign.weights.items():
                scores[dialect] = scores.get(dialect, 0) + weight
    if not scores:
        return ""
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= _ENOUGH else ""


def _keep_shape(match: re.Match[str]) -> str:
    """Return a placeholder for a string or a comment that does not look like code."""
    return "''" if match.group().startswith("'") else " "


def get_dialect(name: str) -> Dialect:
    """Return a dialect by name; raise `InvalidRequestError` for an unknown one."""
    try:
        return Dialect.get_or_raise(name or None)
    except ValueError as exc:
        raise InvalidRequestError("dialect", str(exc)) from exc

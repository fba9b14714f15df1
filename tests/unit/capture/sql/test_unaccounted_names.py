"""A name that the lineage of a statement does not contain is a blind spot; all others are not."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect

from downriver.capture.sql import SqlLineage, parse_sql_lineage
from downriver.capture.sql.text.mentions import list_tables, scan_tables
from downriver.capture.sql.text.tokens import tokenize
from downriver.capture.sql.unaccounted_names import (
    ReadStatement,
    find_lost_columns,
    find_lost_tables,
)


def named_tables(sql: str, dialect: str = "postgres") -> list[str]:
    parsed = Dialect.get_or_raise(dialect)
    return [mention.key for mention in list_tables(tokenize(sql, parsed), parsed)]


def unaccounted(lineage: SqlLineage) -> list[tuple[str, int, int]]:
    return [(s.kind, s.line, s.column) for s in lineage.blind_spots if "unaccounted" in s.kind]


@pytest.mark.parametrize(
    ("dialect", "sql", "names"),
    [
        ("postgres", "SELECT a FROM x, y AS z, LATERAL f(a) JOIN s.w ON true", ["x", "y", "s.w"]),
        ("postgres", "SELECT a FROM x JOIN (SELECT b FROM y) q USING (b), z", ["x", "y", "z"]),
        ("postgres", "INSERT INTO t (a) SELECT a FROM x ORDER BY a, b", ["t", "x"]),
        ("postgres", "DELETE FROM t USING x, y WHERE t.a = x.a", ["t", "x", "y"]),
        ("postgres", "MERGE INTO t USING x ON true WHEN MATCHED THEN UPDATE SET a = 1", ["t", "x"]),
        ("postgres", "COPY t (a, b) FROM 'f.csv'", ["t", "f.csv"]),
        ("mysql", "UPDATE t, x SET t.a = x.a", ["t", "x"]),
        ("tsql", "INSERT dbo.t SELECT a FROM srv.db..x WITH (NOLOCK)", ["dbo.t", "srv.db.x"]),
        ("tsql", "DELETE dbo.t WHERE a = 1", ["dbo.t"]),
        ("hive", "INSERT OVERWRITE TABLE t PARTITION (d) SELECT a FROM x", ["t", "x"]),
        ("bigquery", "SELECT a FROM my-project.d.t, `p.d.u`", ["my-project.d.t", "p.d.u"]),
        ("snowflake", "CREATE TABLE t CLONE x", ["t", "x"]),
        ("", "SELECT a FROM TABLE(TUMBLE(TABLE x, DESCRIPTOR(ts), INTERVAL '1' HOUR))", ["x"]),
        ("duckdb", "FROM x SELECT a", ["x"]),
        ("duckdb", "FROM q: x SELECT a", ["x"]),
        ("clickhouse", "SELECT a FROM x ARRAY JOIN xs AS y, zs AS w", ["x"]),
        ("spark", "SELECT a FROM x LATERAL VIEW posexplode(y) z AS p, q", ["x"]),
    ],
)  # fmt: skip
def test_names_in_the_positions_of_tables_are_listed(
    dialect: str, sql: str, names: list[str]
) -> None:
    assert named_tables(sql, dialect) == names


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT EXTRACT(day FROM b), TRIM(BOTH ' ' FROM a), TRIM(FROM a) FROM x"),
        ("postgres", "SELECT SUBSTRING(a FROM b FOR 3), OVERLAY(a PLACING c FROM d) FROM x"),
        ("postgres", "SELECT a IS DISTINCT FROM b, c IS NOT DISTINCT FROM d FROM x"),
        ("postgres", "SELECT 'FROM y', \"FROM y\" FROM x -- FROM y"),
        ("postgres", "SELECT a FROM x FOR UPDATE OF x"),
        ("postgres", "SELECT a FROM x WHERE b = 'INSERT INTO y' /* JOIN y */"),
        ("postgres", "SELECT a FROM x CROSS JOIN generate_series(1, 2) AS g, unnest(x.b) AS u"),
        ("snowflake", "SELECT a FROM x, LATERAL FLATTEN(input => x.b) f"),
        ("snowflake", "SELECT CONVERT(a USING utf8) FROM x"),
        ("tsql", "SELECT a FROM x FOR XML PATH(''), TYPE"),
        ("mysql", "SELECT a FROM x LOCK IN SHARE MODE"),
    ],
)
def test_other_words_are_not_tables(dialect: str, sql: str) -> None:
    assert [name.lower() for name in named_tables(sql, dialect)] == ["x"]


@pytest.mark.parametrize(
    "sql",
    [
        "GRANT SELECT ON TABLE x TO someone",
        "COMMENT ON TABLE x IS 'from y'",
        "CREATE INDEX i ON x USING btree (a)",
        "CREATE ROLE someone",
        "DROP FUNCTION f",
        "ANALYZE x",
        "CREATE TABLE t (a INT REFERENCES x (a) ON DELETE CASCADE ON UPDATE CASCADE)",
        "EXPLAIN SELECT a FROM x",
        "PREPARE p AS SELECT a FROM x",
    ],
)
def test_statements_that_move_no_data_give_no_blind_spot(sql: str) -> None:
    assert unaccounted(parse_sql_lineage(sql, dialect="postgres")) == []


@pytest.mark.parametrize(
    ("dialect", "sql", "place"),
    [
        # Statements that the parser does not know at all.
        ("postgres", "CREATE WIDGET w AS\n  READING FROM orders", (2, 16)),
        ("snowflake", "ALTER GADGET g SET\nTARGET = (SELECT a FROM orders)", (2, 25)),
        # A block that no semicolon ends.
        ("snowflake", "BEGIN TRANSACTION READ WRITE\nTHEN x; SELECT 1", None),
    ],
)
def test_a_lost_table_is_a_blind_spot(
    dialect: str, sql: str, place: tuple[int, int] | None
) -> None:
    expected = [] if place is None else [("unaccounted_table", *place)]
    assert unaccounted(parse_sql_lineage(sql, dialect=dialect)) == expected


def test_a_table_that_the_walker_leaves_out_is_noticed() -> None:
    dialect = Dialect.get_or_raise("postgres")
    tokens = tokenize("WITH c AS (SELECT a FROM x)\nSELECT a FROM c JOIN\n  s.y ON true", dialect)
    lost = list(find_lost_tables(tokens, dialect, {"x"}, frozenset()))
    assert [(spot.kind, spot.line, spot.column) for spot in lost] == [("unaccounted_table", 3, 3)]
    assert "s.y" in lost[0].message
    assert list(find_lost_tables(tokens, dialect, {"x", "s.y"}, frozenset())) == []


def lost_columns(sql: str, accounted: set[str], tree: exp.Expression | None = None) -> list[str]:
    dialect = Dialect.get_or_raise("postgres")
    read = ReadStatement(tree or parse_one(sql, dialect=dialect), accounted, set())
    spots = find_lost_columns(tokenize(sql, dialect), read, dialect)
    return [spot.message.split()[2] for spot in spots]  # the column NAME is …


def test_a_column_that_the_walker_leaves_out_is_noticed() -> None:
    sql = "SELECT x.a, SUM(b) FILTER (WHERE c > 1) AS n FROM x ORDER BY d"
    assert lost_columns(sql, {"x", "a", "b"}) == ["c", "d"]
    assert lost_columns(sql, {"x", "a", "b", "c", "d"}) == []


def test_a_column_that_the_parser_leaves_out_is_noticed() -> None:
    sql = "SELECT a, b, c FROM x"
    assert lost_columns(sql, {"x", "a", "c"}, parse_one("SELECT a, c FROM x")) == ["b"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a + interval '1' day, CAST(a AS my_type), a::other FROM x",
        "SELECT SUM(a) OVER w FROM x WINDOW w AS (ORDER BY a ROWS UNBOUNDED PRECEDING)",
        "SELECT SUM(a) OVER (RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM x",
        "SELECT a AT TIME ZONE 'UTC' FROM x ORDER BY a NULLS LAST FETCH FIRST 3 ROWS WITH TIES",
        "SELECT a AS b, a c FROM x WHERE a > $1 FOR UPDATE SKIP LOCKED",
        "SELECT f(n => a), listagg(a) WITHIN GROUP (ORDER BY a) FROM x",
        "SELECT a FROM x TABLESAMPLE BERNOULLI (1)",
    ],
)  # fmt: skip
def test_other_words_are_not_columns(sql: str) -> None:
    assert lost_columns(sql, {"x", "a"}) == []


def test_a_column_that_a_subquery_does_not_have_is_a_blind_spot() -> None:
    sql = "SELECT q.a,\n  q.missing FROM (SELECT a FROM x) q"
    assert unaccounted(parse_sql_lineage(sql, dialect="postgres")) == [("unaccounted_column", 2, 5)]
    assert (
        unaccounted(parse_sql_lineage(sql.replace("a FROM x", "* FROM x"), dialect="postgres"))
        == []
    )


def test_the_line_of_a_name_in_a_quoted_body_counts_from_the_beginning_of_the_script() -> None:
    body = "\nSELECT q.b\nFROM (SELECT a FROM x) q\n"
    sql = f"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$\n{body}$$"
    assert unaccounted(parse_sql_lineage(sql, dialect="postgres")) == [
        ("unaccounted_column", 3, 10)
    ]


def test_tables_of_a_statement_that_does_not_parse_are_all_found() -> None:
    dialect = Dialect.get_or_raise("postgres")
    sql = "INSERT INTO t ! WITH c AS (SELECT a FROM x) SELECT a FROM c, y JOIN z ON !!"
    assert scan_tables(tokenize(sql, dialect), dialect) == ((("x",), ("y",), ("z",)), (("t",),))
    lineage = parse_sql_lineage(sql, dialect="postgres")
    assert (lineage.inputs, lineage.outputs) == (["x", "y", "z"], ["t"])
    assert [spot.kind for spot in lineage.blind_spots] == ["unparsed"]


@pytest.mark.parametrize(
    "sql",
    [
        "RECEIVE TOP (1) conversation_handle, message_body FROM dbo.orders_queue",
        "RECEIVE * FROM dbo.orders_queue INTO @messages WHERE conversation_handle = @h",
        "WAITFOR (RECEIVE TOP (1) @h = conversation_handle FROM dbo.orders_queue), TIMEOUT 500",
        "GET CONVERSATION GROUP @g FROM dbo.orders_queue",
        "CREATE PROCEDURE p AS BEGIN\n  RECEIVE a FROM dbo.orders_queue;\n  SELECT 1\nEND",
    ],
)
def test_a_queue_of_tsql_is_read(sql: str) -> None:
    lineage = parse_sql_lineage(sql, dialect="tsql")
    assert lineage.inputs == ["dbo.orders_queue"]
    assert lineage.blind_spots == []

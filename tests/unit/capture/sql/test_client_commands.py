"""Commands of SQL clients are not read as part of the statements after them."""

from __future__ import annotations

import pytest

from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.text.client_commands import remove_client_commands


def read(sql: str, dialect: str) -> tuple[set[str], set[str], list[str]]:
    lineage = parse_sql_lineage(sql, dialect=dialect)
    spots = [f"{spot.kind}: {spot.message}" for spot in lineage.blind_spots]
    return (
        set(lineage.inputs),
        set(lineage.outputs),
        spots,
    )


@pytest.mark.parametrize(
    ("dialect", "before"),
    [
        ("oracle", "rem Copies the orders\nREMARK done\n"),
        ("oracle", "SET FEEDBACK 1\nset define off\nSPOOL out.log\nPROMPT Copies orders...\n"),
        ("oracle", "WHENEVER SQLERROR EXIT\nCOLUMN x FORMAT a20\nDEFINE pass = x\n"),
        ("oracle", "/* a\n   header */\nACCEPT pass PROMPT 'Password'\nCONNECT a/b\n"),
        ("postgres", "\\set ON_ERROR_STOP on\n\\echo 'loads'\n\\timing\n"),
        ("tsql", ':setvar DatabaseName "X"\n:on error exit\nGO\n'),
        ("sqlite", ".mode csv\n.headers on\n"),
        ("teradata", ".LOGON host/user,pass;\n.IF ERRORCODE <> 0 THEN .QUIT 1;\n.SET WIDTH 200\n"),
    ],
)
def test_commands_before_a_statement_are_no_part_of_it(dialect: str, before: str) -> None:
    sql = f"{before}INSERT INTO copied SELECT a FROM orders;\n"
    inputs, outputs, spots = read(sql, dialect)
    assert ({name.lower() for name in inputs}, {name.lower() for name in outputs}, spots) == (
        {"orders"},
        {"copied"},
        [],
    )


def test_a_slash_of_its_own_line_ends_a_statement() -> None:
    sql = (
        "INSERT INTO a SELECT x FROM b\n/\nINSERT INTO c SELECT x FROM d\n/\nSELECT x\n / y FROM e;"
    )
    inputs, outputs, spots = read(sql, "oracle")
    assert (inputs, outputs, spots) == ({"B", "D", "E"}, {"A", "C"}, [])


def test_copy_of_psql_and_import_of_sqlite_read_files() -> None:
    psql = "\\copy public.a FROM 'data/a.csv' csv\n\\copy (select x from b) TO 'out.csv' csv\n"
    assert read(psql, "postgres") == ({"data/a.csv", "b"}, {"public.a", "out.csv"}, [])
    assert read(".import data/c.csv cities\n", "sqlite") == ({"data/c.csv"}, {"cities"}, [])


def test_a_hyphen_continues_a_line_in_scripts_of_sql_plus_only() -> None:
    copied = "INSERT INTO c SELECT a-\n, b -\nFROM t;"
    assert read(f"set define off\n{copied}", "oracle") == ({"T"}, {"C"}, [])
    assert remove_client_commands("SELECT a -\nb FROM t;") == "SELECT a -\nb FROM t;"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t\nSET echo = 1,\nprompt = 2;",
        "SELECT a\n, '\nREM not a comment\n' FROM t;",
        "SELECT *\nFROM t\nWHERE a = 1 /\n2;",
        "CREATE FUNCTION f() AS $$\nBEGIN\nx;\nPRINT y\n$$;",
        "SET tab = (SELECT 1);",
    ],
)
def test_sql_that_looks_like_a_command_is_kept(sql: str) -> None:
    assert remove_client_commands(sql) == sql


def test_substitution_variables_are_parts_of_names() -> None:
    sql = (
        "CREATE VIEW &schema..v AS SELECT a FROM &&schema..t WHERE b = &1;\n"
        "INSERT INTO stage_&suffix SELECT a FROM &schema..v;"
    )
    inputs, outputs, spots = read(sql, "oracle")
    assert inputs == {"&SCHEMA.T", "&SCHEMA.V"}
    assert (outputs, spots) == ({"&SCHEMA.V", "STAGE_&SUFFIX"}, [])


def test_a_global_temporary_table_is_not_the_local_one_of_the_name() -> None:
    sql = (
        "SELECT a INTO #r FROM dbo.t1\nSELECT b AS a INTO ##r FROM dbo.t2\n"
        "INSERT INTO dbo.out SELECT a FROM ##r"
    )
    lineage = parse_sql_lineage(sql, dialect="tsql")
    sources = {edge.source.table for edge in lineage.column_edges}
    assert sources == {"dbo.t2"}
    assert lineage.blind_spots == []


def test_namespaces_of_xml_are_not_queries() -> None:
    sql = (
        "WITH XMLNAMESPACES('http://x' AS p), c AS (SELECT a FROM dbo.t1)\n"
        "INSERT INTO dbo.t2 SELECT a FROM c"
    )
    assert read(sql, "tsql") == ({"dbo.t1"}, {"dbo.t2"}, [])


def test_a_routine_refreshes_a_view_and_declares_times() -> None:
    sql = (
        "CREATE FUNCTION f() RETURNS trigger AS $$\nDECLARE\n"
        "  t TIMESTAMP WITH TIME ZONE := clock_timestamp();\nBEGIN\n"
        "  REFRESH MATERIALIZED VIEW CONCURRENTLY mv;\n  DELETE FROM u;\n  RETURN NULL;\n"
        "END $$ LANGUAGE plpgsql;"
    )
    assert read(sql, "postgres")[1:] == ({"u"}, [])


def test_a_nested_procedure_of_oracle_selects_into_its_variable() -> None:
    sql = (
        "declare\n  procedure p(a varchar2) is\n    n integer;\n  begin\n"
        "    select count(1) into n from t where owner = a;\n  end;\n"
        "begin\n  insert into x select b from y;\nend;\n/\n"
    )
    assert read(sql, "oracle") == ({"T", "Y"}, {"X"}, [])


@pytest.mark.parametrize(
    "before",
    ["SET AUTOCOMMIT ON;", "SET TIME ZONE LOCAL;", "set echo off; set feed off;", "EXIT 0;"],
)
def test_a_statement_after_a_command_on_its_line_is_read(before: str) -> None:
    sql = f"{before} INSERT INTO copied SELECT a FROM orders;\nINSERT INTO c SELECT a FROM d;\n"
    assert read(sql, "postgres") == ({"orders", "d"}, {"copied", "c"}, [])


def test_what_follows_a_semicolon_in_the_text_of_a_command_is_no_statement() -> None:
    sql = "PROMPT done; insert into x select * from y\nSET COLSEP ';'\nHOST ls; rm x\n"
    assert remove_client_commands(sql).strip() == ""


@pytest.mark.parametrize("pattern", [r"'(\w)\g', 'b'", r"'D:\g\x'"])
def test_a_backslash_in_a_string_ends_no_statement(pattern: str) -> None:
    sql = f"INSERT INTO a SELECT f(x, {pattern}) FROM b;\nINSERT INTO c SELECT x FROM d \\g\n"
    assert remove_client_commands(sql).startswith(sql.partition("\n")[0])
    on_one_line = f"INSERT INTO a SELECT f(x, {pattern}) FROM b \\g\n"
    assert remove_client_commands(on_one_line) == on_one_line.replace(" \\g\n", " ;\n")
    assert read(sql, "postgres") == ({"b", "d"}, {"a", "c"}, [])


def test_a_variable_may_have_the_name_of_a_command() -> None:
    sql = "BEGIN\n  x := 1;\n  rem := mod(a, b);\n  pause := (SELECT max(n) FROM t);\nEND;"
    assert remove_client_commands(sql) == sql


@pytest.mark.parametrize("before", ["SET TIME ZONE LOCAL;", "EXIT;", "SET AUTOCOMMIT ON", "@x"])
def test_a_word_of_other_dialects_does_not_make_a_minus_a_continuation(before: str) -> None:
    assert "a -\nb" in remove_client_commands(f"{before}\nSELECT a -\nb FROM t;\n\\echo\n")


@pytest.mark.parametrize(
    ("dialect", "command", "path"),
    [
        ("oracle", "@other.sql", "other.sql"),
        ("oracle", "@@load/other a b", "load/other"),
        ("oracle", "@&folder/other.sql", "&folder/other.sql"),
        ("oracle", "START other.sql", "other.sql"),
        ("postgres", "\\i other.sql", "other.sql"),
        ("postgres", "\\ir 'a folder/other.sql'", "a folder/other.sql"),
        ("postgres", "\\include_relative other.sql", "other.sql"),
        ("tsql", ":r .\\load\\other.sql", "./load/other.sql"),
        ("tsql", ':r "a folder\\other.sql"', "a folder/other.sql"),
        ("mysql", "source load/other.sql;", "load/other.sql"),
        ("mysql", "\\. other.sql", "other.sql"),
        ("hive", "SOURCE /load/other.hql;", "/load/other.hql"),
        ("hive", "!run other.hql", "other.hql"),
        ("snowflake", "!source other.sql", "other.sql"),
        ("sqlite", ".read other.sql", "other.sql"),
        ("duckdb", ".read 'other.sql'", "other.sql"),
        ("teradata", ".RUN FILE = other.bteq;", "other.bteq"),
    ],
)
def test_a_command_that_runs_another_file_is_a_gap(dialect: str, command: str, path: str) -> None:
    before, after = (
        "INSERT INTO done SELECT a FROM first;",
        "INSERT INTO copied SELECT a FROM orders;",
    )
    sql = f"{before}\n{command}\n{after}"
    lineage = parse_sql_lineage(sql, dialect=dialect)
    (spot,) = lineage.blind_spots
    assert (spot.kind, spot.line) == ("included_file", 2)
    assert spot.message == f"the script runs {path}, which is not read with it"
    assert {name.lower() for name in lineage.inputs} == {"first", "orders"}


@pytest.mark.parametrize(
    "sql",
    [
        "/*\n@author someone\n@file orders.sql\n*/\nSELECT a FROM orders;",
        "SELECT '\n@other.sql\n' AS a FROM orders;",
        "SELECT a\nFROM orders\nWHERE b =\n@b;",
    ],
)
def test_a_text_that_looks_like_a_command_runs_no_file(sql: str) -> None:
    assert read(sql, "tsql") == ({"orders"}, set(), [])

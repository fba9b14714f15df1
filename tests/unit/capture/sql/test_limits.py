"""No text makes the parser raise, hang or exhaust memory: what exceeds a limit is reported."""

from __future__ import annotations

import time

import pytest

from downriver.capture.sql import SqlLimits, SqlLineage, parse_sql_lineage

GENEROUS = 20.0  # seconds of CPU; each takes less than three, and must not take minutes


def kinds(lineage: SqlLineage) -> set[str]:
    return {spot.kind for spot in lineage.blind_spots}


def doubling_ctes(count: int) -> str:
    ctes = ["c0 AS (SELECT x, y FROM t)"]
    ctes += [
        f"c{n} AS (SELECT * FROM c{n - 1} AS a JOIN c{n - 1} AS b ON a.x = b.x)"
        for n in range(1, count)
    ]
    return f"WITH {', '.join(ctes)} SELECT * FROM c{count - 1}"


def repeated_ctes(count: int) -> str:
    """Each CTE uses the one before twice: followed each time, it would take 2 ** count steps."""
    ctes = ["c0 AS (SELECT x FROM t)"]
    ctes += [
        f"c{n} AS (SELECT a.x + b.x AS x FROM c{n - 1} AS a JOIN c{n - 1} AS b ON a.x = b.x)"
        for n in range(1, count)
    ]
    return f"WITH {', '.join(ctes)} SELECT x FROM c{count - 1}"


FOLLOWED = {
    "terms of a sum": "SELECT " + "+".join(["t.a"] * 5_000) + " AS n FROM t",
    "terms of a condition": "SELECT t.a FROM t WHERE " + " AND ".join(["t.b = 1"] * 5_000),
    "queries of a union": " UNION ALL ".join(["SELECT t.a FROM t"] * 2_000),
    "rows of values": "INSERT INTO t (a) VALUES " + ",".join(["(1)"] * 5_000),
    "columns": "SELECT " + ", ".join(f"t.c{n}" for n in range(5_000)) + " FROM t",
    "joins": "SELECT t.a FROM t" + "".join(f" JOIN j{n} ON j{n}.a = t.a" for n in range(1_000)),
    "branches of a case": f"SELECT CASE {'WHEN t.a = 1 THEN t.b ' * 3_000} END AS x FROM t",
    "casts": "SELECT t.a" + "::int" * 200 + " AS x FROM t",
    "ctes used twice": repeated_ctes(40),
    "statements": "INSERT INTO t SELECT * FROM s;" * 2_000,
    "lateral views": "SELECT t.a FROM t" + " LATERAL VIEW EXPLODE(t.b) x AS y" * 1_000,
    "semicolons": ";" * 100_000,
}

TOO_MUCH = {
    "brackets": ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "too_deep"),
    "brackets left open": ("SELECT " + "(" * 10_000, "too_deep"),
    "brackets around a table": ("SELECT * FROM " + "(" * 5_000 + "t" + ")" * 5_000, "too_deep"),
    "subqueries": ("SELECT * FROM " + "(SELECT * FROM " * 500 + "t" + ") x" * 500, "too_deep"),
    "functions": ("SELECT " + "f(" * 5_000 + "1" + ")" * 5_000, "too_deep"),
    "cases": ("SELECT " + "CASE WHEN " * 5_000 + "1" + " THEN 1 END" * 5_000, "too_deep"),
    "arrays": ("SELECT " + "[" * 5_000 + "1" + "]" * 5_000, "too_deep"),
    "structs": ("SELECT " + "STRUCT(" * 30 + "1" + ")" * 30, "too_deep"),
    "types": ("SELECT CAST(a AS " + "ARRAY<" * 999 + "INT" + ">" * 999 + ")", "too_deep"),
    "negations": ("SELECT " + "NOT " * 5_000 + "a FROM t", "too_deep"),
    "subscripts": ("SELECT a" + "[0]" * 5_000 + " FROM t", "too_deep"),
    "joins that wait for their ON": (
        "SELECT * FROM t" + " JOIN t" * 5_000 + " ON 1" * 5_000,
        "too_deep",
    ),
    "joins without an ON": ("SELECT * FROM t" + " JOIN t" * 40, "too_large"),
    "columns that double": (doubling_ctes(40), "too_large"),
    "pivots": ("SELECT * FROM t" + " PIVOT (SUM(a) FOR b IN (1, 2))" * 3_000, "too_large"),
    "text": ("INSERT INTO t SELECT * FROM s; " + "-- x\n" * 500_000, "too_large"),
}  # fmt: skip

JUNK = {
    "nothing": "",
    "blanks": " \n\t ",
    "a comment": "-- SELECT 1",
    "bytes": "".join(map(chr, range(256))) * 20,
    "a null": "SELECT \x00 FROM \x00",
    "surrogates": "SELECT '\ud800' FROM t",
    "an open string": "SELECT 'abc FROM t",
    "open quotes": '"' * 5_001,
    "open comments": "/*" * 5_000,
    "open dollars": "$$ $x$ " * 1_001,
    "open braces": "{{ {% {# " * 1_000,
    "emoji": "SELECT 😀 FROM 🚀 JOIN 😀 USING (🎉)",
    "only keywords": "SELECT FROM WHERE JOIN ON GROUP BY HAVING ORDER BY INSERT UPDATE MERGE WHEN",
    "a file of another kind": "\x89PNG\r\n\x1a\n" + "\x00" * 100,
    "keywords by the thousand": "INSERT INTO t " * 2_000,
    "blocks that never end": "BEGIN IF a THEN LOOP " * 2_000,
    "procedures in procedures": "CREATE PROCEDURE p() AS BEGIN " * 2_000,
}


def in_time(sql: str, **options: object) -> SqlLineage:
    begun = time.process_time()
    lineage = parse_sql_lineage(sql, **options)  # type: ignore[arg-type]
    assert time.process_time() - begun < GENEROUS
    return lineage


@pytest.mark.parametrize("name", FOLLOWED)
def test_long_statements_are_read(name: str) -> None:
    lineage = in_time(FOLLOWED[name], dialect="")
    assert not lineage.blind_spots


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_statement_over_a_limit_has_a_blind_spot(name: str) -> None:
    sql, kind = TOO_MUCH[name]
    assert kinds(in_time(sql, dialect="")) == {kind}


@pytest.mark.parametrize("name", JUNK)
@pytest.mark.parametrize("dialect", [None, "", "tsql", "bigquery", "snowflake"])
def test_invalid_text_raises_nothing(name: str, dialect: str | None) -> None:
    assert "failed" not in kinds(in_time(JUNK[name], dialect=dialect))


def test_tables_are_found_where_columns_cannot_be() -> None:
    deep = "INSERT INTO t SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM s"
    lineage = parse_sql_lineage(deep, dialect="")
    assert (lineage.inputs, lineage.outputs) == (["s"], ["t"])


@pytest.mark.parametrize("dialect", ["", "spark", "snowflake", "tsql"])
@pytest.mark.parametrize("casts", [150, 250, 350])
def test_an_expression_that_cannot_be_printed_is_read(dialect: str, casts: int) -> None:
    lineage = parse_sql_lineage("SELECT t.a" + "::int" * casts + " FROM t", dialect=dialect)
    assert [edge.source.column.lower() for edge in lineage.column_edges] == ["a"]


def test_repeated_dependencies_are_merged() -> None:
    lineage = parse_sql_lineage(repeated_ctes(40), dialect="")
    assert len(lineage.column_edges) == 1


def test_a_wide_star_over_joins_is_expanded() -> None:
    schema = {f"t{n}": [f"c{n}_{m}" for m in range(5_000)] for n in range(5)}
    joins = "".join(f" CROSS JOIN t{n}" for n in range(1, 5))
    lineage = in_time(f"CREATE TABLE t AS SELECT * FROM t0{joins}", dialect="", schema=schema)
    assert len(lineage.column_edges) == 25_000
    assert lineage.complete


def test_the_beginning_of_a_script_that_is_too_long_is_scanned() -> None:
    lineage = parse_sql_lineage(
        "INSERT INTO t SELECT a FROM s;" + " " * 100, limits=SqlLimits(characters=40), dialect=""
    )
    assert (lineage.inputs, lineage.outputs, kinds(lineage)) == (["s"], ["t"], {"too_large"})


def test_statements_after_the_time_limit_are_scanned() -> None:
    sql = "INSERT INTO t SELECT s.a FROM s; INSERT INTO u SELECT r.a FROM r"
    lineage = parse_sql_lineage(sql, dialect="", limits=SqlLimits(seconds=-1))
    assert (lineage.inputs, lineage.outputs) == (["s", "r"], ["t", "u"])
    assert kinds(lineage) == {"too_large"}


def test_a_statement_with_too_many_edges_keeps_its_tables() -> None:
    columns = ", ".join(f"s.a + s.b AS c{n}" for n in range(50))
    lineage = parse_sql_lineage(
        f"INSERT INTO t SELECT {columns} FROM s", dialect="", limits=SqlLimits(edges=99)
    )
    assert (lineage.inputs, lineage.outputs, lineage.column_edges) == (["s"], ["t"], [])
    assert kinds(lineage) == {"too_large"}


def test_a_caller_with_little_stack_left_gets_a_result() -> None:
    def dig(depth: int) -> SqlLineage:
        return dig(depth - 1) if depth else parse_sql_lineage("SELECT a FROM s", dialect="")

    lineage = None
    for depth in range(940, 600, -20):
        try:
            lineage = dig(depth)
        except RecursionError:
            continue  # not even the call fits
        break
    assert lineage is not None
    assert kinds(lineage) <= {"too_deep"}


WIDE_FORMATS = ["'%99999d' % 1", "'{:>99999}'.format(1)", "'{:{}99999}'.format(1, 2)"]
PLAIN_FORMATS = ["'%-20.5s' % 1", "'{:>20}'.format(1)", "'12345 {}'.format(1)", "'%s 12345' % 1"]


@pytest.mark.parametrize("expression", WIDE_FORMATS)
def test_a_template_cannot_print_a_very_wide_value(expression: str) -> None:
    lineage = parse_sql_lineage(f"SELECT {{{{ {expression} }}}} AS a FROM t", dialect="")
    assert lineage.blind_spots


@pytest.mark.parametrize("expression", PLAIN_FORMATS)
def test_a_template_may_format_values(expression: str) -> None:
    lineage = parse_sql_lineage(f"SELECT '{{{{ {expression} }}}}' AS a FROM t", dialect="")
    assert not lineage.blind_spots


@pytest.mark.parametrize("text", ["1 ", "1234.", "% ", "{", "{1", "9"])
def test_looking_for_wide_values_takes_linear_time(text: str) -> None:
    value = "%" + text * 200_000
    in_time("{% set a = '" + value[:400_000] + "' %}SELECT {{ a|upper|length }} AS n FROM t")


GROWING = {
    "sum of lists": "{% set q = ([[1]*1000]*100000)|sum(start=[]) %}{{ q|length }}",
    "sum of small lists": "{% set q = ([[1]]*100000)|sum(start=[]) %}{{ q|length }}",
    "translate": "{% set q = ('a' * 900000).translate({97: 'b' * 900000}) %}{{ q }}",
    "replace": "{{ ('a' * 90000).replace('a', 'b' * 90000) }}",
    "replace of nothing": "{{ ('a' * 90000).replace('', 'b' * 90000) }}",
    "replace filter": "{{ ('a' * 90000)|replace('a', 'b' * 90000) }}",
    "join": "{{ ('a' * 90000).join('b' * 90000) }}",
    "join filter of a text": "{{ ('b' * 90000)|join('a' * 90000) }}",
    "join of a generator": "{{ ('a' * 90000).join((['b'] * 90000)|map('upper')) }}",
    "join of a list": "{{ ('a' * 90000).join(['b'] * 90000) }}",
    "join filter": "{{ (['b'] * 90000)|join('a' * 90000) }}",
    "expandtabs": "{{ ('\\t' * 90000).expandtabs(90000) }}",
    "indent": "{{ ('\\n' * 90000)|indent(90000) }}",
    "nested lists": "{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}",
    "compared lists": (
        "{% set a = [1] %}{% set b = [1] %}"
        + "{% set a = [a, a] %}{% set b = [b, b] %}" * 60
        + "{{ a == b }}"
    ),
    "a list in itself": "{% set a = [1] %}{% do a.append(a) %}{{ a|string }}",
    "appended lists": (
        "{% set a = [1] %}{% for i in range(60) %}{% set b = a %}{% do a.append([b, b]) %}"
        "{% endfor %}{{ a|string }}"
    ),
    "nested blocks": "{% set a %}xxxxxxxxxx{% endset %}"
    + "{% set a %}{{ a }}{{ a }}{% endset %}" * 60
    + "{{ a|length }}",
    "dictionaries": "{% set a = {1: 1} %}" + "{% set a = {1: a, 2: a} %}" * 60 + "{{ a|tojson }}",
    "namespace": "{% set n = namespace(a=[1]) %}" + "{% set n.a = [n.a, n.a] %}" * 60 + "{{ n.a }}",
    "regular expression": "{{ ('<' * 400000)|striptags }}",
}


@pytest.mark.parametrize("template", GROWING.values(), ids=GROWING)
def test_a_template_cannot_build_a_large_value(template: str) -> None:
    lineage = in_time(f"SELECT '{template}' AS a FROM t")
    assert lineage.blind_spots


USUAL = {
    "sum": "{{ [1, 2, 3]|sum }} {{ [{'a': 1}, {'a': 2}]|sum(attribute='a') }}",
    "join": "{{ ['a', 'b']|join(', ') }} {{ ', '.join(['a', 'b']) }}",
    "replace": "{{ 'a-b'.replace('-', '_') }} {{ 'a-b'|replace('-', '_') }}",
    "lists": "{% set a = [] %}{% for i in range(300) %}{% do a.append(i) %}{% endfor %}{{ a }}",
    "dictionaries": "{% set d = {'a': [1, {'b': 2}]} %}{% do d.update({'c': 3}) %}{{ d.items() }}",
    "generators": "{{ ', '.join(['a']|map('upper')) }} {{ ['a']|map('upper')|join(', ') }}",
    "filters": "{{ ['b', 'a']|map('upper')|sort|unique|list|first|lower|trim|indent(2) }}",
    "selection": "{{ [1, 2, 3]|select('odd')|list }} {{ [{'a': 1}]|map(attribute='a')|list }}",
}


@pytest.mark.parametrize("template", USUAL.values(), ids=USUAL)
def test_usual_templates_are_rendered(template: str) -> None:
    lineage = parse_sql_lineage(f"{{% set text %}}{template}{{% endset %}}SELECT x AS a FROM t")
    assert not lineage.blind_spots

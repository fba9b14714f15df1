"""A script reports its statements, its faults and the names it looks up to a listener."""

from __future__ import annotations

from sqlglot.dialects.dialect import Dialect

from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.catalog import KnownColumns
from downriver.capture.sql.limits import Budget, SqlLimits
from downriver.capture.sql.listener import ScriptFault, ScriptListener, StatementReading
from downriver.capture.sql.query.names import DialectNames
from downriver.capture.sql.script import RESULT, Script
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.text.parse import ScriptStatement


class Recorder(ScriptListener):
    def __init__(self) -> None:
        self.readings: list[StatementReading] = []
        self.faults: list[tuple[int, str]] = []
        self.columns: list[str] = []

    def statement(self, reading: StatementReading) -> None:
        self.readings.append(reading)

    def fault(self, statement: ScriptStatement, fault: ScriptFault) -> None:
        self.faults.append((statement.line, fault.kind))

    def column(self, node, scope, found) -> None:
        self.columns.append(node.sql())


def read(sql: str, limits: SqlLimits | None = None) -> Recorder:
    dialect = Dialect.get_or_raise("postgres")
    budget = Budget(limits or SqlLimits())
    parser = ScriptParser(dialect, budget)
    recorder = Recorder()
    names = DialectNames(dialect)
    script = Script(names, KnownColumns({}), budget, recorder, variables=parser.variables)
    script.read(parser.read(sql))
    return recorder


def test_each_statement_is_reported_with_what_it_reads_and_writes():
    (reading,) = read("insert into b (x) select y from a where z > 1").readings
    assert reading.effect is not None
    assert list(reading.inputs) == [("a",)]
    assert [write.table for write in reading.lasting_writes] == [("b",)]


def test_the_result_of_a_query_is_a_write_to_no_table():
    (reading,) = read("select y from a").readings
    assert [write.table for write in reading.writes] == [RESULT]


def test_writes_to_temporary_tables_do_not_last():
    first, second = read(
        "create temp table t as select x from a; insert into b select x from t"
    ).readings
    assert [write.table for write in first.writes] == [("t",)]
    assert first.lasting_writes == []
    assert [write.table for write in second.lasting_writes] == [("b",)]
    assert list(second.inputs) == [("a",)]


def test_a_statement_that_moves_no_data_has_no_effect():
    (reading,) = read("vacuum a").readings
    assert reading.effect is None


def test_a_statement_over_its_limits_is_a_fault_and_the_next_one_is_read():
    recorder = read("select a + b + c from t;\nselect 1", SqlLimits(edges=2))
    assert recorder.faults == [(1, "too_large")]
    assert [reading.statement.line for reading in recorder.readings] == [2]


def test_every_column_reference_is_reported():
    assert read("select a.x from a where a.y = 1").columns == ["a.x", "a.y"]


def test_one_set_of_statements_can_be_read_under_several_schemas():
    dialect = Dialect.get_or_raise("postgres")
    budget = Budget(SqlLimits())
    statements = list(ScriptParser(dialect, budget).read("insert into b select * from a"))
    names = DialectNames(dialect)
    counts = []
    for columns in (["x"], ["x", "y"]):
        recorder = Recorder()
        Script(names, KnownColumns({"a": columns}), budget, recorder).read(statements)
        counts.append(len(recorder.readings[0].lasting_writes[0].columns))
    assert counts == [1, 2]


def test_a_guessed_script_keeps_what_only_another_dialect_reads() -> None:
    """No dialect reads both statements, so each is read in one that can."""
    lineage = parse_sql_lineage(
        "select a from x where b::int > 1 qualify row_number() over (order by a) = 1;\n"
        "select top 5 [a b] from [my db].dbo.[y z] option (recompile);\n"
        "create table t engine = MergeTree order by tuple() as select * from z final;\n"
    )
    assert {"x", "my db.dbo.y z", "z"} <= set(lineage.inputs)

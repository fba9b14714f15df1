"""Every golden statement has exactly the expected lineage."""

from __future__ import annotations

import pytest
from tests.unit.capture.sql.golden import Case, answer, expected, given, load_cases

CASES = load_cases()
PROMISED = (
    "bigquery",
    "databricks",
    "duckdb",
    "hive",
    "mysql",
    "postgres",
    "redshift",
    "snowflake",
    "spark",
    "trino",
    "tsql",
)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_statement_has_the_expected_lineage(case: Case) -> None:
    assert given(answer(case)) == expected(case)


@pytest.mark.parametrize("dialect", PROMISED)
def test_supported_dialects_have_enough_cases(dialect: str) -> None:
    assert sum(case.dialect == dialect for case in CASES.values()) >= 20

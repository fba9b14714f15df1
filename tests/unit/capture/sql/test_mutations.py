"""A mutated statement never raises an error."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.capture.sql.golden import load_cases

from downriver.capture.sql import parse_sql_lineage

CASES = load_cases()
TOKENS = re.compile(r"\s+|\w+|[^\w\s]")

statements = st.sampled_from(sorted(CASES))
seeds = st.integers(0, 2**32)


def mangled(sql: str, chance: random.Random) -> str:
    """Return a statement with some tokens deleted, repeated, swapped, or from elsewhere."""
    tokens = TOKENS.findall(sql)
    for _ in range(chance.randint(1, 4)):
        if not tokens:
            break
        at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[other])
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                del tokens[min(at, other) : max(at, other)]
            case _:
                elsewhere = TOKENS.findall(CASES[chance.choice(sorted(CASES))].sql)
                tokens[at] = chance.choice(elsewhere)
    return "".join(tokens)


@settings(max_examples=400, deadline=None)
@given(statements, seeds)
def test_a_mutated_statement_raises_nothing(name: str, seed: int) -> None:
    case = CASES[name]
    sql = mangled(case.sql, random.Random(seed))
    lineage = parse_sql_lineage(sql, dialect=case.dialect, schema=case.schema)
    assert "failed" not in {spot.kind for spot in lineage.blind_spots}
    assert lineage.end_to_end() is not None


@pytest.mark.parametrize(
    "dialect", ["", "tsql", "bigquery", "snowflake", "mysql", "spark", "oracle"]
)
def test_a_statement_in_another_dialect_raises_nothing(dialect: str) -> None:
    for name, case in CASES.items():
        lineage = parse_sql_lineage(case.sql, dialect=dialect, schema=case.schema)
        assert "failed" not in {spot.kind for spot in lineage.blind_spots}, name

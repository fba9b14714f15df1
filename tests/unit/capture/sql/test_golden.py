"""Every golden statement has exactly the lineage that was written down for it."""

from __future__ import annotations

import pytest
from tests.unit.capture.sql.golden import Case, answer, expected, given, load_cases

CASES = load_cases()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_statement_has_the_lineage_written_down(case: Case) -> None:
    assert given(answer(case)) == expected(case)

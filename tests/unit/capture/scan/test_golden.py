"""The jobs read from code match the golden cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.capture.scan.golden import UPDATE, load_cases, read_case, update

if TYPE_CHECKING:
    from pathlib import Path

CASES = load_cases()


@pytest.mark.parametrize("name", CASES)
def test_jobs_match_the_golden_case(name: str, tmp_path: Path) -> None:
    found = read_case(CASES[name], tmp_path)
    if UPDATE:
        update(name, found)
    else:
        assert found == CASES[name].expected


def test_every_topic_has_cases() -> None:
    topics = {name.partition("/")[0] for name in CASES}
    assert topics >= {"airflow", "constants", "dbt", "feast", "notebooks", "pandas", "spark", "sql"}
    assert len(CASES) >= 30

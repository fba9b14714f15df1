"""The jobs and events of target directories match the golden cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.capture.dbt.golden import FOLDER, UPDATE, load, read_case, update

if TYPE_CHECKING:
    from pathlib import Path

CASES = sorted(FOLDER.glob("*.yml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_jobs_and_events_match_the_golden_case(path: Path, tmp_path: Path) -> None:
    case = load(path)
    found = read_case(case, tmp_path)
    if UPDATE:
        update(path, found)
    else:
        assert found == case["expected"]


def test_the_cases_cover_the_manifest_versions() -> None:
    versions = {path.stem.split("_")[0] for path in CASES}
    assert {"v7", "v8", "v9", "v10", "v11", "v12"} <= versions

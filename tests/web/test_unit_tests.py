"""The UI's own unit tests (Vitest) pass."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "web" / "build.py"


@pytest.mark.slow
def test_the_unit_tests_of_the_ui_pass() -> None:
    script = runpy.run_path(str(BUILD))
    script["install"]()
    script["npm"]("test")  # raises with the output of Vitest if a test fails

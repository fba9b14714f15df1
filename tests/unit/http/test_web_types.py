"""The types of the web UI are those of the server's OpenAPI document."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[3] / "web"


def test_the_types_of_the_web_ui_are_generated_from_the_present_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(WEB))
    generator = importlib.import_module("generate_types")
    assert generator.is_current(), "the API changed: run `python web/generate_types.py`"

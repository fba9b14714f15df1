"""Sources of truth and protected columns have badges in drawings and on the terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, output, run, schema, tagged

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [
    dataset_event("raw", {**schema(mail="text"), **tagged(mail="pii")}),
    *run("load", 0, reads=["raw"], writes=[output("mart", derives(mail="raw.mail"))]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    return tmp_path


@pytest.mark.parametrize("tag", ["certified", "canonical", "golden"])
def test_traces_and_paths_show_the_tag_of_a_source_of_truth(folder: Path, tag: str) -> None:
    downriver("tag", "set", "mart", tag, "team=sales", cwd=folder)
    assert f"    └── mart ({tag})\n" in downriver("trace", "raw", cwd=folder).stdout
    assert f"→ mart ({tag})\n" in downriver("paths", "raw", "mart", cwd=folder).stdout


@pytest.mark.parametrize("tag", ["certified", "canonical", "golden"])
@pytest.mark.parametrize("picture", ["mermaid", "dot", "svg"])
def test_drawings_show_every_source_of_truth_in_words(folder: Path, tag: str, picture: str) -> None:
    downriver("tag", "set", "mart", tag, cwd=folder)
    drawn = downriver("graph", "mart", "--format", picture, cwd=folder).stdout
    text = ">certified" if picture == "svg" else "mart · certified"
    assert text in drawn


def test_a_column_shows_its_own_tag_and_declared_ones_that_propagate(folder: Path) -> None:
    assert "raw.mail (pii)\n" in downriver("trace", "raw.mail", cwd=folder).stdout
    downriver("tag", "set", "raw.mail", "gdpr", "note", cwd=folder)
    downriver("tags", "propagate", "gdpr", cwd=folder)
    assert "raw.mail (gdpr, pii)\n" in downriver("trace", "raw.mail", cwd=folder).stdout
    assert "(" not in downriver("trace", "mart", cwd=folder).stdout

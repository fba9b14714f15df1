"""`downriver demo`, run for real: Spark, files, a database, a model, twice.

DOWNRIVER_UPDATE_DOCS=1 writes the picture of it that the README shows.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.text import Text

from downriver.cli.demo.command import check_installed, run_pipeline
from downriver.errors import DownriverError, MissingDependencyError
from downriver.service import Lineage

pytestmark = pytest.mark.slow

PICTURE = Path(__file__).parents[2] / "docs" / "img" / "demo.svg"
UPDATE = os.environ.get("DOWNRIVER_UPDATE_DOCS") == "1"
STORE = Path(".downriver", "demo")
SECONDS = 300


class Ran(NamedTuple):
    folder: Path
    shown: str
    counts: dict[str, int]

    def lineage(self) -> Lineage:
        return Lineage.open(str(self.folder / STORE), create=False)

    def section(self, number: int) -> str:
        """What is shown between two rules, with its colours."""
        lines = self.shown.splitlines(keepends=True)
        starts = [at for at, line in enumerate(lines) if "──────" in line]
        return "".join(lines[starts[number - 1] : starts[number]])


def run_demo(folder: Path) -> Ran:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DOWNRIVER", "OPENLINEAGE"))}
    done = subprocess.run(
        [sys.executable, "-m", "downriver", "demo"],
        cwd=folder,
        env={**env, "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "115"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with Lineage.open(str(folder / STORE), create=False) as lineage:
        counts = lineage.admin.status().counts
    nodes = {name: getattr(counts, name) for name in COUNTED}
    return Ran(folder, done.stdout, nodes)


COUNTED = ("datasets", "jobs", "edges", "columns", "column_edges")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run_demo(tmp_path_factory.mktemp("a demo"))


@pytest.fixture(scope="module")
def second(first: Ran) -> Ran:
    return run_demo(first.folder)


def test_a_prediction_is_traced_to_all_four_sources(first: Ran) -> None:
    with first.lineage() as lineage:
        answer = lineage.trace("churn_predictions.churn_probability", "upstream")
    assert answer.complete
    carrying = [node for node in answer.nodes if node.derivation == "DIRECT"]
    found = {f"{node.name.rpartition('/')[2]}.{node.field}" for node in carrying}
    assert {
        "customers.signup_date",
        "usage_logs.last_login",
        "support_tickets.ticket_id",
        "INVOICES.amount",
        "churn_model.prediction",
    } <= found


def test_a_rename_is_followed_to_the_model_and_the_revenue(first: Ran) -> None:
    with first.lineage() as lineage:
        answer = lineage.trace("usage_logs.last_login")
    found = {f"{node.name.rpartition('/')[2]}.{node.field}" for node in answer.nodes}
    assert {
        "churn_features.days_since_last_login",
        "churn_model.prediction",
        "churn_predictions.churn_probability",
        "daily_revenue.revenue_at_risk",
    } <= found
    assert "daily_revenue.revenue" not in found


def test_the_second_run_adds_no_node(first: Ran, second: Ran) -> None:
    assert second.counts == first.counts


def test_the_second_run_prints_the_same(first: Ran, second: Ran) -> None:
    assert [second.section(number) for number in (2, 3, 4)] == [
        first.section(number) for number in (2, 3, 4)
    ]


@pytest.mark.parametrize("number", [2, 3, 4])
def test_each_part_fits_one_screen(first: Ran, number: int) -> None:
    assert 4 < len(first.section(number).splitlines()) <= 24


def test_the_diagram_and_the_report_are_written(first: Ran) -> None:
    diagram = (first.folder / STORE / "lineage.mmd").read_text("utf-8")
    assert diagram.startswith("flowchart LR\n")
    assert '("churn_features")' in diagram
    assert str(first.folder) not in diagram
    report = json.loads((first.folder / STORE / "report.json").read_text("utf-8"))
    assert report["origins"]["root"]["field"] == "churn_probability"
    assert report["breakage"]["complete"] is True


def test_nothing_is_left_outside_its_folder(first: Ran) -> None:
    assert [path.name for path in first.folder.iterdir()] == [".downriver"]
    assert [path.name for path in (first.folder / ".downriver").iterdir()] == ["demo"]


def test_the_picture_in_the_readme_is_what_it_shows(first: Ran) -> None:
    shown = render_picture("".join(first.section(number) for number in (2, 3, 4)))
    if UPDATE:
        PICTURE.write_text(shown, "utf-8")
    assert PICTURE.read_text("utf-8") == shown


def render_picture(ansi: str) -> str:
    text = Text.from_ansi(ansi)
    width = max(line.cell_len for line in text.split())
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(text, soft_wrap=True)
    drawn = console.export_svg(title="downriver demo", unique_id="demo")
    return re.sub(
        r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL
    )  # a page loads nothing from other hosts


def test_a_failed_pipeline_is_an_error_that_names_the_stage(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    stack = "\\tat java.lang.Thread.run\\n" * 9
    example.write_text(
        f"print('clean', flush=True)\nraise SystemExit('no such column: plan\\n{stack}')\n"
    )
    with pytest.raises(DownriverError, match=r"failed in stage 'clean'(.|\n)*no such column: plan"):
        run_pipeline(example, tmp_path / "lake", str(tmp_path), tmp_path / "log" / "pipeline.log")


def test_a_package_that_is_missing_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"no-such-package .*downriver\[demo\]"):
        check_installed(["no-such-package"])

"""`downriver demo`: run a churn pipeline on Spark and show its lineage."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver import settings
from downriver.capture.spark.local_session import find_java
from downriver.cli.demo.screens import (
    RelativeNames,
    join_traces,
    show_breakage,
    show_flows,
    show_origins,
    show_verdict,
)
from downriver.cli.output import escape, out, render_json
from downriver.errors import DownriverError, MissingDependencyError
from downriver.export.pictures import render_mermaid
from downriver.model.answers import Direction, Trace
from downriver.model.changes import ColumnRename
from downriver.model.verdicts import Verdict
from downriver.service import Lineage
from downriver.store.location import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.model.changes import Change

_STORE = f"{FOLDER}/demo"
_NEEDS = ("pyspark", "pandas", "pyarrow", "scikit-learn")
_SOURCES = ("raw/customers", "raw/usage_logs", "raw/support_tickets", "billing:INVOICES")
_PREDICTION = "churn_predictions.churn_probability"
_RENAMED = "raw/usage_logs.last_login"
_NEW_NAME = "last_seen_at"
_LAST_LINES = 5


class DemoReport(msgspec.Struct, kw_only=True):
    """The answers of the demo, as it writes them to report.json."""

    graph: Trace
    origins: Trace
    breakage: Trace
    verdict: Verdict


def demo(
    location: Annotated[
        str,
        typer.Option(
            "--store", metavar="STORE", help="Store the lineage in this directory or database."
        ),
    ] = _STORE,
) -> None:
    """Run a churn pipeline on local Spark and show its lineage.

    A second run gives the same graph."""
    check_installed(_NEEDS)
    find_java(importlib.metadata.version("pyspark"))
    folder = _folder(location)
    lake = folder / "lake"
    _title("1 · run a churn pipeline on Spark")
    run_pipeline(_find_example("churn"), lake, location, folder / "pipeline.log")
    with Lineage.open(location, create=False) as lineage:
        names = RelativeNames(lake)
        report = _ask(lineage, names)
        _show(report, names)
        _write(report, names, folder)
        checked = lineage.admin.verify()
    chain = "[green]chain intact[/]" if checked.ok else "[red]chain BROKEN[/]"
    out.print(f"log      {checked.entries} events, {chain}")
    _show_next(location)


def run_pipeline(example: Path, lake: Path, location: str, log: Path) -> None:
    """Run an example in a process of its own, show its stages, and raise if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if k != settings.URL.name}
    environment[settings.STORE.name] = _absolute(location)
    command = [sys.executable, str(example), str(lake)]
    with log.open("w", encoding="utf-8") as errors:
        process = Popen(command, stdout=PIPE, stderr=errors, text=True, env=environment)  # noqa: S603
        with process:
            assert process.stdout is not None  # noqa: S101
            stage = _show_stages(process.stdout)
    if process.returncode:
        raise DownriverError(
            f"the pipeline failed in stage {stage!r}; the end of {log}:\n{_last_lines(log)}"
        )


def _last_lines(log: Path) -> str:
    """Return the end of a log, without Java stack frames."""
    lines = [line for line in log.read_text("utf-8").splitlines() if line.strip()]
    return "\n".join([line for line in lines if not line.startswith("\tat ")][-_LAST_LINES:])


def _show_stages(lines: Iterable[str] | IO[str]) -> str:
    """Show each stage while it runs and its result afterwards. Return the last stage."""
    stage, begun = "start", time.monotonic()
    with out.status("") as status:
        for line in lines:
            text = line.rstrip()
            if text.startswith(" "):
                took = f"{time.monotonic() - begun:5.1f} s"
                out.print(f"[green]✓[/] {stage:22} [dim]{took}[/]  {escape(text.strip())}")
            else:
                stage, begun = text, time.monotonic()
                status.update(f"{escape(stage)} …")
    return stage


def _ask(lineage: Lineage, names: RelativeNames) -> DemoReport:
    return DemoReport(
        graph=join_traces([lineage.trace(names.full(source)) for source in _SOURCES]),
        origins=lineage.trace(names.full(_PREDICTION), Direction.UPSTREAM),
        breakage=lineage.trace(names.full(_RENAMED)),
        verdict=lineage.impact.gate(lineage.impact([_rename(names)])),
    )


def _rename(names: RelativeNames) -> Change:
    dataset, _, column = names.full(_RENAMED).rpartition(".")
    return ColumnRename(dataset=dataset, column=column, to=_NEW_NAME)


def _show(report: DemoReport, names: RelativeNames) -> None:
    _title("2 · the captured lineage")
    show_flows(report.graph, names)
    _title("3 · where does churn_probability come from?")
    show_origins(report.origins, names)
    _title(f"4 · what breaks if {_RENAMED.removeprefix('raw/')} is renamed?")
    show_breakage(report.breakage, names)
    show_verdict(report.verdict)


def _write(report: DemoReport, names: RelativeNames, folder: Path) -> None:
    _title("5 · files")
    diagram, answers = folder / "lineage.mmd", folder / "report.json"
    diagram.write_text(render_mermaid(names.shortened(report.graph)), "utf-8")
    answers.write_text(render_json(report), "utf-8")
    out.print(
        f"diagram  [cyan]{escape(str(diagram))}[/]  Mermaid diagram for a README or a pull request"
    )
    out.print(f"report   [cyan]{escape(str(answers))}[/]  these answers as JSON, with evidence")


def _title(text: str) -> None:
    out.print()
    out.rule(f"[bold]{escape(text)}[/]")


def _show_next(location: str) -> None:
    _title("next")
    where = f"--store {escape(location)}"
    out.print(f"[cyan]downriver serve --open {where}[/]  [dim]# see it in the browser[/]")
    out.print(f"[cyan]downriver trace daily_revenue --upstream {where}[/]")


def check_installed(packages: Iterable[str]) -> None:
    """Raise an error that names the missing package, before anything starts."""
    for package in packages:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError as exc:
            raise MissingDependencyError(package, "demo") from exc


def _find_example(name: str) -> Path:
    """Return the folder of an example: in a checkout, or the copy in an installed package."""
    package = Path(__file__).parents[2]
    checkout = package.parents[1] / "examples" / name
    return checkout if checkout.is_dir() else package / "examples" / name


def _folder(location: str) -> Path:
    """Return the folder of the demo's files: next to its store if the store is on this machine."""
    path = Path(_STORE if "://" in location else location).expanduser()
    return path.parent if path.suffix == ".db" else path


def _absolute(location: str) -> str:
    return location if "://" in location else str(Path(location).expanduser().resolve())

"""Tables of results, for the terminal and for a document."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sqlite3
import statistics
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from tests.postgres import PostgresUnavailableError, find_binaries

if TYPE_CHECKING:
    from collections.abc import Iterable


class Table(msgspec.Struct):
    """A table of results; `notes` explain its columns."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile of values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]


def render_ratio(ratio: float, target: float | None = None) -> str:
    """Return a ratio, and whether it reaches the target."""
    text = f"{ratio:.1f}×"
    if target is None:
        return text
    return f"{text} (≥ {target:g}: {'yes' if ratio >= target else 'NO'})"


def render_ms(seconds: float) -> str:
    """Return a time in milliseconds with two or three significant digits."""
    ms = seconds * 1000
    return f"{ms:.3f}" if ms < 0.1 else f"{ms:.2f}" if ms < 10 else f"{ms:,.0f}"


def print_table(table: Table, console: Console) -> None:
    """Show a table in the terminal."""
    drawn = RichTable(
        title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for at, heading in enumerate(table.headings):
        drawn.add_column(heading, justify="left" if at == 0 else "right")
    for row in table.rows:
        drawn.add_row(*row)
    console.print(drawn)
    for note in table.notes:
        console.print(f"  {note}", highlight=False, markup=False)
    console.print()


def render_markdown(tables: Sequence[Table]) -> str:
    """Return tables as a document that states where and when they were measured."""
    return "\n".join([*_environment(), *(_render_section(table) for table in tables)])


def _environment() -> list[str]:
    return [
        "# Benchmarks",
        "",
        f"Measured {dt.date.today().isoformat()} on {os.cpu_count()} CPUs ({platform.machine()}), "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{_postgres_version()}, with `python -m bench`. Both sides of a ratio were measured "
        "in the same run. Ratios vary less between machines than times.",
        "",
    ]


def _postgres_version() -> str:
    try:
        command = [str(find_binaries() / "postgres"), "--version"]
    except PostgresUnavailableError:
        return "no PostgreSQL"
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return f"PostgreSQL {words[2]}"


def _render_section(table: Table) -> str:
    lines = [
        f"## {table.title}",
        "",
        _render_row(table.headings),
        _render_row(["---", *("---:" for _ in table.headings[1:])]),
        *map(_render_row, table.rows),
        "",
    ]
    for note in table.notes:
        lines += [note, ""]
    return "\n".join(lines)


def _render_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""`downriver capture`: lineage from what a team already has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.markup import escape

from downriver.cli.capture_dbt import dbt
from downriver.cli.capture_scan import scan
from downriver.cli.output import JsonOption, StoreOption, err, out, print_json, progress_bar
from downriver.errors import InvalidRequestError
from downriver.service import DEFAULT_NAMESPACE, Lineage, SqlCapture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql import ColumnEdge, SqlLineage

app = typer.Typer(help="Read lineage from what you already have.", no_args_is_help=True)
app.command("dbt")(dbt)
app.command("scan")(scan)


@app.callback()
def _root() -> None:
    """Read lineage from what you already have."""


@app.command("sql")
def sql(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="SQL files or directories of them; - is stdin."),
    ],
    dialect: Annotated[
        str | None, typer.Option("--dialect", help="Its dialect; guessed if left out.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help='A JSON file of schemas: {"table": ["column", …]}.'),
    ] = None,
    job: Annotated[
        str | None, typer.Option("--job", help="The job's name; default the file's.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", help="Where tables live that the catalog does not know.")
    ] = DEFAULT_NAMESPACE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show, register nothing.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read table and column lineage from SQL, show it, and register it as declared by the file."""
    scripts = list(_scripts(files))
    known = _read_schema(schema) if schema is not None else None
    captures: list[tuple[str, SqlCapture]] = []
    with Lineage.open(store) as lineage, progress_bar("files") as bar:
        task = bar.add_task("Reading", total=len(scripts))
        for name, text in scripts:
            capture = lineage.capture_sql(
                text,
                dialect=dialect,
                schema=known,
                job=job or (Path(name).stem if name != "-" else None),
                namespace=namespace,
                path="" if name == "-" else name,
                dry_run=dry_run,
            )
            captures.append((name, capture))
            bar.advance(task)
    if json:
        print_json([{"file": name, **msgspec.to_builtins(c)} for name, c in captures])
        return
    for name, capture in captures:
        _show(name, capture)


def _scripts(names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name == "-":
            yield "-", sys.stdin.read()
            continue
        path = Path(name)
        if not path.exists():
            raise InvalidRequestError("FILE", f"{name}: no such file or directory")
        for file in sorted(path.rglob("*.sql")) if path.is_dir() else [path]:
            yield str(file), file.read_text("utf-8", errors="replace")


def _read_schema(path: Path) -> dict[str, list[str]]:
    try:
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, list[str] | dict[str, str]])
    except OSError as exc:
        raise InvalidRequestError("--schema", f"{path}: {exc.strerror}") from exc
    except msgspec.DecodeError as exc:
        raise InvalidRequestError("--schema", f"{path}: {exc}") from exc
    return {table: list(columns) for table, columns in content.items()}


def _show(name: str, capture: SqlCapture) -> None:
    found = capture.lineage
    guessed = " (guessed)" if found.dialect_guessed else ""
    dialect = f"{found.dialect or 'generic'}{guessed}"
    out.print(f"[bold]{escape(name)}[/] [dim]{len(found.statements)} statements · {dialect}[/]")
    if found.column_edges or found.dataset_edges:
        out.print("\n".join(_edge_lines(found)))
    for spot in found.blind_spots:
        err.print(f"  [yellow]?[/] line {spot.line}: {escape(spot.kind)}: {escape(spot.message)}")
    written = ", ".join(found.outputs) or "nothing"
    done = "registered as" if capture.registered else "not registered:"
    out.print(f"  writes {escape(written)} · {done} {escape(capture.job)}")


def _edge_lines(found: SqlLineage) -> Iterator[str]:
    """Yield the edges in aligned columns; names are never cut, whatever the width."""
    rows = [
        (_target(edge), str(edge.source), _how(edge))
        for edge in [*found.column_edges, *found.dataset_edges]
    ]
    widths = [max(len(row[at]) for row in rows) for at in (0, 1)]
    for target, source, how in sorted(rows):
        left, right = escape(target.ljust(widths[0])), escape(source.ljust(widths[1]))
        yield f"  {left} [dim]←[/] {right} {how}"


def _target(edge: ColumnEdge) -> str:
    return edge.target.column if not edge.target.table else str(edge.target)


def _how(edge: ColumnEdge) -> str:
    words = [f"[magenta]{edge.subtype}[/]" if edge.type == "DIRECT" else f"[dim]{edge.subtype}[/]"]
    if edge.masking:
        words.append("masked")
    if edge.resolution != "exact":
        words.append(f"[yellow]{edge.resolution}[/]")
    return " ".join(words)

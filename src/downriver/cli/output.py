"""How commands print: names, colour for people, JSON for programs.

Rich is loaded at its first use.
"""

from __future__ import annotations

import sys
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from downriver.model.control_characters import escape_json, escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress
    from rich.status import Status

    from downriver.errors import DownriverError

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="The store: a directory or a postgresql:// URL. By default DOWNRIVER_STORE, or the "
        "nearest .downriver/ directory.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to this file. Default: standard output."
    ),
]
ChangesDryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would change.")
]
ENTITY = typer.Argument(
    metavar="ENTITY",
    help="A dataset, job or column: orders, orders.amount, dag:daily, or a full id.",
)

EXIT_FAILED = 2  # the command could not run


class Terminal:
    """Standard output or standard error, with rich's markup. The console is made when used."""

    def __init__(self, *, stderr: bool) -> None:
        self._stderr = stderr

    @cached_property
    def console(self) -> Console:
        """The rich console."""
        return _make_console(stderr=self._stderr)

    def print(self, *objects: Any, end: str = "\n") -> None:
        """Print text with rich's markup, or anything that rich can render."""
        shown = [escape_text(item) if isinstance(item, str) else item for item in objects]
        self.console.print(*shown, end=end)

    def rule(self, title: str) -> None:
        """Print a line across the terminal with a title at its left."""
        self.console.rule(title, align="left")

    def status(self, text: str) -> Status:
        """Return a spinner that shows a text while a task runs."""
        return self.console.status(text)


def _make_console(*, stderr: bool) -> Console:
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        """Escapes control characters in tables and trees, too, but not rich's own codes."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(escape_text(segment.text), segment.style)

    # No emoji: `dataset:snowflake:…` is an id. Soft wrap: a long name is never cut.
    return SafeConsole(stderr=stderr, highlight=False, soft_wrap=True, emoji=False)


out = Terminal(stderr=False)
err = Terminal(stderr=True)


def escape(text: str) -> str:
    """Return text that rich prints in one line, brackets included, control characters escaped."""
    from rich.markup import escape as escape_markup

    return escape_markup(escape_line(text))


def write(text: str) -> None:
    """Print text without markup. Control characters are escaped."""
    sys.stdout.write(escape_text(text))


def write_exactly(text: str) -> None:
    """Print text for programs, such as a patch: unchanged, but escaped on a terminal."""
    sys.stdout.write(escape_text(text) if sys.stdout.isatty() else text)


def counted(number: int, noun: str) -> str:
    """Return a count in words: `1 event`, `2,000 events`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print pairs in two aligned columns, as plain text."""
    width = max((len(label) for label, _ in rows), default=0)
    for label, value in rows:
        write(f"{label:<{width}} {escape_line(value)}\n")


def render_json(value: Any) -> str:
    """Return a value as indented JSON."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return escape_json(text) + "\n"


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    sys.stdout.write(render_json(value))


def fail(error: DownriverError, *, as_json: bool) -> NoReturn:
    """Print an error and end the process."""
    if as_json:
        import msgspec

        body = {"error": type(error).__name__.removesuffix("Error"), "detail": error.message}
        for name in ("field", "near", "candidates"):
            if value := getattr(error, name, None):
                body[name] = value
        sys.stderr.write(escape_json(msgspec.json.encode(body).decode()) + "\n")
    else:
        lines = "\n".join(map(escape, error.message.splitlines()))
        err.print(f"[bold red]error:[/] {lines}")
    sys.exit(EXIT_FAILED)


def progress_bar(unit: str) -> Progress:
    """Return a progress bar on standard error. It prints nothing if that is not a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    count = MofNCompleteColumn() if unit != "bytes" else TaskProgressColumn()
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        count,
        TextColumn(unit if unit != "bytes" else ""),
        TimeRemainingColumn(),
        console=err.console,
        transient=True,
        disable=not err.console.is_terminal,
    )


_NAMESPACES_SHOWN = 6

FullNamesOption = Annotated[
    bool,
    typer.Option(
        "--full-names", help="Show full ids with their namespaces instead of short names."
    ),
]


class DisplayNames:
    """The names of the entities of one answer, from their ids: `names["dataset:db:sales.orders"]`.

    `texts` are messages that contain ids, `badges` are tags by id. Names and messages are returned
    escaped for rich.
    """

    def __init__(
        self,
        ids: Iterable[str],
        *,
        full: bool,
        texts: Iterable[str] = (),
        badges: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        from downriver.graph.names.short_names import ShortNames, find_full_ids

        self._badges = badges or {}
        in_texts = (full_id for text in texts for full_id in find_full_ids(text))
        self.short = None if full else ShortNames.of_ids(chain(ids, in_texts))

    def __getitem__(self, full_id: str) -> str:
        return escape(full_id if self.short is None else self.short[full_id])

    def label(self, full_id: str) -> str:
        """Return the name of an entity, followed by `job` if it is a job and the name is short."""
        is_job = self.short is not None and full_id.startswith("job:")
        return f"{self[full_id]} [dim]job[/]" if is_job else f"{self[full_id]}{self.badge(full_id)}"

    def badge(self, full_id: str) -> str:
        """Return the badges of an entity with a space before: `certified`, or nothing."""
        tags = self._badges.get(full_id, ())
        return f" [magenta]({escape(', '.join(tags))})[/]" if tags else ""

    def replace_in(self, text: str) -> str:
        """Return a message in which full ids are replaced by names."""
        return escape(text if self.short is None else self.short.replace_in(text))

    def print_heading(self) -> None:
        """Print the namespaces of the answer once, above it."""
        if self.short is None or not self.short.namespaces:
            return
        namespaces = self.short.namespaces
        shown = ", ".join(namespaces[:_NAMESPACES_SHOWN])
        more = len(namespaces) - _NAMESPACES_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        label = "namespace" if len(namespaces) == 1 else "namespaces"
        out.print(f"[dim]{label}: {escape(shown)}{rest}[/]")

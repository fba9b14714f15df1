"""How commands name entities: as short as possible, or by full id with `--full-names`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import escape, out
from downriver.graph.names.short_names import ShortNames, find_full_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMESPACES_SHOWN = 6

FullNamesOption = Annotated[
    bool,
    typer.Option(
        "--full-names", help="Show full ids with their namespaces instead of short names."
    ),
]


class DisplayNames:
    """The names of the entities of one answer, from their ids: `names["dataset:db:sales.orders"]`.

    `texts` are messages that contain ids. Names and messages are returned escaped for rich.
    """

    def __init__(self, ids: Iterable[str], *, full: bool, texts: Iterable[str] = ()) -> None:
        in_texts = (full_id for text in texts for full_id in find_full_ids(text))
        self._short = None if full else ShortNames.of_ids(chain(ids, in_texts))

    def __getitem__(self, full_id: str) -> str:
        return escape(full_id if self._short is None else self._short[full_id])

    def label(self, full_id: str) -> str:
        """Return the name of an entity, followed by `job` if it is a job and the name is short."""
        is_job = self._short is not None and full_id.startswith("job:")
        return f"{self[full_id]} [dim]job[/]" if is_job else self[full_id]

    def replace_in(self, text: str) -> str:
        """Return a message in which full ids are replaced by names."""
        return escape(text if self._short is None else self._short.replace_in(text))

    def print_heading(self) -> None:
        """Print the namespaces of the answer once, above it."""
        if self._short is None or not self._short.namespaces:
            return
        namespaces = self._short.namespaces
        shown = ", ".join(namespaces[:_NAMESPACES_SHOWN])
        more = len(namespaces) - _NAMESPACES_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        label = "namespace" if len(namespaces) == 1 else "namespaces"
        out.print(f"[dim]{label}: {escape(shown)}{rest}[/]")

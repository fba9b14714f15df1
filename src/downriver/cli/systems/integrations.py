"""`downriver integrations`: the systems that lineage can come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.views.integrations import IntegrationList, IntegrationStatus


def integrations(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the integrations: the package of each, and the last job received from it."""
    with Lineage.open(store) as lineage:
        listing = lineage.integrations()
    if json:
        print_json(listing)
    else:
        _show(listing)


def _show(listing: IntegrationList) -> None:
    width = max(len(entry.name) for entry in listing.integrations)
    for entry in listing.integrations:
        out.print(
            f"[bold]{escape(entry.name.ljust(width))}[/]  {escape(_package(entry))} · "
            f"{escape(_received(entry))}"
        )
        out.print(f"{' ' * width}  [dim]{escape(entry.setup)}[/]")
    if listing.others:
        out.print(f"also received: {escape(', '.join(listing.others))}")


def _package(entry: IntegrationStatus) -> str:
    if entry.installed is None:
        return "no package needed"
    if entry.installed:
        return f"{entry.package} {entry.version or ''}".rstrip()
    install = f"downriver[{entry.extra}]" if entry.extra else entry.package
    return f"{entry.package} is not installed (pip install '{install}')"


def _received(entry: IntegrationStatus) -> str:
    if entry.last_received is None:
        return "nothing received"
    jobs = "1 job" if entry.jobs == 1 else f"{entry.jobs} jobs"
    return f"{jobs}, last {entry.last_job} at {entry.last_received}"

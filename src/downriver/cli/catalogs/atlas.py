"""`downriver export atlas`: lineage into a server of Apache Atlas."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from downriver.capture.rest import RestApi
from downriver.cli.output import JsonOption, StoreOption, counted, err, escape, print_json
from downriver.export import batch_entities
from downriver.service import Lineage
from downriver.service.limits import MOST_EXPORTED

_PATH = "/api/atlas/v2/entity/bulk"


class SentEntities(msgspec.Struct):
    """How many datasets and jobs were sent, and whether the graph was complete."""

    target: str
    datasets: int
    jobs: int
    complete: bool


def atlas(
    url: Annotated[str, typer.Argument(metavar="URL", help="Atlas: http://atlas:21000.")],
    select: Annotated[
        str,
        typer.Option(
            "--select", metavar="SELECTOR", help="Send what a selector matches. Default: all."
        ),
    ] = "*",
    api_key: Annotated[
        str,
        typer.Option(
            "--api-key",
            metavar="KEY",
            envvar="DOWNRIVER_EXPORT_KEY",
            help="USER:PASSWORD of Atlas, or a bearer token.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Send datasets, and jobs as processes, to Apache Atlas.

    An entity that Atlas has is updated. Lineage between columns is not sent.
    """
    api = RestApi(url, api_key)
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.export.selection(select, "atlas", limit=MOST_EXPORTED)
    datasets: set[str] = set()
    jobs = 0
    for entities in batch_entities(answer.diagram):
        api.post(_PATH, {"entities": entities})
        datasets |= {one["guid"] for one in entities if one["typeName"] == "DataSet"}
        jobs += sum(one["typeName"] == "Process" for one in entities)
    sent = SentEntities(api.url, len(datasets), jobs, answer.complete)
    if json:
        print_json(sent)
        return
    counts = f"{counted(sent.datasets, 'dataset')}, {counted(sent.jobs, 'job')}"
    err.print(f"sent {counts} to {escape(sent.target)}")
    for spot in answer.blind_spots[:5]:
        err.print(f"  [yellow]?[/] {escape(str(spot.message))}")

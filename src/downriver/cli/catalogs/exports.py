"""`downriver export datahub` and `atlas`: lineage into the server of another catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from downriver.capture.rest import RestApi
from downriver.cli.output import JsonOption, StoreOption, counted, err, escape, print_json
from downriver.export import batch_entities
from downriver.service import Lineage
from downriver.service.limits import MOST_EXPORTED

if TYPE_CHECKING:
    from downriver.model.answers import BlindSpot
    from downriver.model.flows import ExportAnswer

_ATLAS_PATH = "/api/atlas/v2/entity/bulk"
_DATAHUB_PATH = "/aspects?action=ingestProposal"
_SPOTS_SHOWN = 5

SelectOption = Annotated[
    str,
    typer.Option(
        "--select", metavar="SELECTOR", help="Send what a selector matches. Default: all."
    ),
]


class SentProposals(msgspec.Struct):
    """How many datasets got their upstream lineage, and whether the graph was complete."""

    target: str
    datasets: int
    complete: bool


class SentEntities(msgspec.Struct):
    """How many datasets and jobs were sent, and whether the graph was complete."""

    target: str
    datasets: int
    jobs: int
    complete: bool


def datahub(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="DataHub's metadata service: http://gms:8080.")
    ],
    select: SelectOption = "*",
    token: Annotated[
        str,
        typer.Option(
            "--token",
            metavar="TOKEN",
            envvar="DATAHUB_GMS_TOKEN",
            help="The access token of DataHub.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Send the upstream lineage of datasets, with columns, to DataHub.

    A dataset gets the lineage that Downriver has, instead of the lineage that DataHub had.
    """
    api = RestApi(url, token)
    answer = _render(store, select, "datahub")
    proposals = msgspec.json.decode(answer.diagram, type=list[dict[str, Any]])
    for proposal in proposals:
        aspect = msgspec.json.encode(proposal["aspect"]["json"]).decode()
        body = {**proposal, "aspect": {"contentType": "application/json", "value": aspect}}
        api.post(_DATAHUB_PATH, {"proposal": body}, **{"X-RestLi-Protocol-Version": "2.0.0"})
    if json:
        print_json(SentProposals(api.url, len(proposals), answer.complete))
    else:
        counts = f"the lineage of {counted(len(proposals), 'dataset')}"
        _show(counts, api.url, answer.blind_spots)


def atlas(
    url: Annotated[str, typer.Argument(metavar="URL", help="Atlas: http://atlas:21000.")],
    select: SelectOption = "*",
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
    answer = _render(store, select, "atlas")
    datasets: set[str] = set()
    jobs = 0
    for entities in batch_entities(answer.diagram):
        api.post(_ATLAS_PATH, {"entities": entities})
        datasets |= {entity["guid"] for entity in entities if entity["typeName"] == "DataSet"}
        jobs += sum(entity["typeName"] == "Process" for entity in entities)
    if json:
        print_json(SentEntities(api.url, len(datasets), jobs, answer.complete))
    else:
        counts = f"{counted(len(datasets), 'dataset')}, {counted(jobs, 'job')}"
        _show(counts, api.url, answer.blind_spots)


def _render(store: str | None, selector: str, catalog: str) -> ExportAnswer:
    with Lineage.open(store, create=False) as lineage:
        return lineage.export.selection(selector, catalog, limit=MOST_EXPORTED)


def _show(counts: str, target: str, spots: list[BlindSpot]) -> None:
    err.print(f"sent {counts} to {escape(target)}")
    for spot in spots[:_SPOTS_SHOWN]:
        err.print(f"  [yellow]?[/] {escape(spot.message)}")

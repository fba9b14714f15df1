"""`downriver export datahub`: lineage into a DataHub server."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from downriver.capture.rest import RestApi
from downriver.cli.output import JsonOption, StoreOption, counted, err, escape, print_json
from downriver.service import Lineage
from downriver.service.limits import MOST_EXPORTED

_PATH = "/aspects?action=ingestProposal"


class SentProposals(msgspec.Struct):
    """How many datasets got their upstream lineage, and whether the graph was complete."""

    target: str
    datasets: int
    complete: bool


def datahub(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="DataHub's metadata service: http://gms:8080.")
    ],
    select: Annotated[
        str,
        typer.Option(
            "--select", metavar="SELECTOR", help="Send what a selector matches. Default: all."
        ),
    ] = "*",
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
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.export.selection(select, "datahub", limit=MOST_EXPORTED)
    proposals = msgspec.json.decode(answer.diagram, type=list[dict[str, Any]])
    for proposal in proposals:
        aspect = msgspec.json.encode(proposal["aspect"]["json"]).decode()
        body = {**proposal, "aspect": {"contentType": "application/json", "value": aspect}}
        api.post(_PATH, {"proposal": body}, **{"X-RestLi-Protocol-Version": "2.0.0"})
    sent = SentProposals(api.url, len(proposals), answer.complete)
    if json:
        print_json(sent)
        return
    err.print(f"sent the lineage of {counted(sent.datasets, 'dataset')} to {escape(sent.target)}")
    for spot in answer.blind_spots[:5]:
        err.print(f"  [yellow]?[/] {escape(str(spot.message))}")

"""Our own events on the wire: from ids and facets to OpenLineage JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from downriver import __version__
from downriver.events.code import Code
from downriver.events.facets import Asset
from downriver.events.wire import render_time
from downriver.model.ids import DatasetId, JobId

PRODUCER = f"https://github.com/downriver/downriver/tree/{__version__}"
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
_FACETS = "https://openlineage.io/spec/facets"

Facets = dict[str, dict[str, Any]]


def facet(name: str, version: str, /, **content: Any) -> dict[str, Any]:
    """Return a facet with the two fields every facet carries."""
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{version}/{name}.json", **content}


def dataset(
    dataset_id: DatasetId,
    facets: Facets | None = None,
    *,
    input_facets: Facets | None = None,
    output_facets: Facets | None = None,
) -> dict[str, Any]:
    """Return a dataset as events name it; the last two speak of one run's input or output."""
    return {
        "namespace": dataset_id.namespace,
        "name": dataset_id.name,
        **({"facets": facets} if facets else {}),
        **({"inputFacets": input_facets} if input_facets else {}),
        **({"outputFacets": output_facets} if output_facets else {}),
    }


def code_facet(code: Code) -> dict[str, Any]:
    """Return our facet that tells where a job's code is and which columns it names."""
    content = msgspec.to_builtins(code)
    if not code.raw:
        del content["raw"]
    return facet("DownriverCode", "1-0-0", **content)


def asset_facet(asset: Asset) -> dict[str, Any]:
    """Return our facet that tells what a dataset or job was registered as."""
    return facet("DownriverAsset", "1-0-0", **msgspec.to_builtins(asset))


def render_dataset_event(dataset_id: DatasetId, at: int, facets: Facets) -> bytes:
    """Return a DatasetEvent: what is known of a dataset, whoever writes it."""
    return msgspec.json.encode(
        {
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/DatasetEvent",
            "dataset": dataset(dataset_id, facets),
        }
    )


def render_job_event(
    job: JobId,
    at: int,
    *,
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    facets: Facets | None = None,
) -> bytes:
    """Return a JobEvent: what a job is declared to do, without a run that was seen doing it."""
    return msgspec.json.encode(
        {
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/JobEvent",
            "job": {"namespace": job.namespace, "name": job.name, "facets": facets or {}},
            "inputs": inputs,
            "outputs": outputs,
        }
    )


def render_run_event(
    job: JobId,
    run: str,
    state: str,
    at: int,
    *,
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    facets: Facets | None = None,
    run_facets: Facets | None = None,
) -> bytes:
    """Return a RunEvent: what a run of a job was seen to do."""
    return msgspec.json.encode(
        {
            "eventType": state,
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/RunEvent",
            "run": {"runId": run, **({"facets": run_facets} if run_facets else {})},
            "job": {"namespace": job.namespace, "name": job.name, "facets": facets or {}},
            "inputs": inputs,
            "outputs": outputs,
        }
    )

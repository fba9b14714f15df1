"""A trace as entities of Apache Atlas: the body of `POST /api/atlas/v2/entity/bulk`.

Only `DataSet` and `Process` are used, which every Atlas has. They have no columns.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.export.formats import ExportedGraph
    from downriver.model.answers import TraceNode

_BATCH = 200
_DATASET, _PROCESS = "DataSet", "Process"


def render_atlas(piece: ExportedGraph) -> str:
    """Return a `DataSet` for each dataset and a `Process` for each job between datasets.

    A dataset that derives from others without a job gets a process of its own.
    """
    nodes = {node.id: node for node in piece.trace.nodes}
    inputs: defaultdict[str, list[str]] = defaultdict(list)
    outputs: defaultdict[str, list[str]] = defaultdict(list)
    for edge in piece.trace.edges:
        if edge.kind == "reads":
            inputs[edge.target].append(edge.source)
        elif edge.kind == "writes":
            outputs[edge.source].append(edge.target)
        elif edge.kind == "derives" and edge.type is None:
            inputs[edge.target].append(edge.source)
            outputs[edge.target] = [edge.target]
    datasets = [node for node in nodes.values() if node.kind == "dataset"]
    guids = {node.id: f"-{number}" for number, node in enumerate(datasets, 1)}
    entities = [_entity(_DATASET, guids[node.id], node) for node in datasets]
    processes = [id_ for id_ in nodes if inputs[id_] or outputs[id_]]
    for number, id_ in enumerate(processes, len(datasets) + 1):
        process = _entity(_PROCESS, f"-{number}", nodes[id_])
        for key, ends in (("inputs", inputs[id_]), ("outputs", outputs[id_])):
            listed_guids = [guids[end] for end in dict.fromkeys(ends) if end in guids]
            process["attributes"][key] = [{"guid": g, "typeName": _DATASET} for g in listed_guids]
        entities.append(process)
    return msgspec.json.format(msgspec.json.encode({"entities": entities})).decode() + "\n"


def _entity(kind: str, guid: str, node: TraceNode) -> dict[str, Any]:
    lineage_of = "lineage of " if kind == _PROCESS and node.kind == "dataset" else ""
    name = f"{lineage_of}{node.name}"
    attributes = {"name": name, "qualifiedName": f"{name}@{node.namespace}"}
    return {"typeName": kind, "guid": guid, "attributes": attributes}


def batch_entities(text: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the entities of `render_atlas` in parts that refer to no other part.

    A dataset is in every part that names it: Atlas identifies it by its qualified name.
    """
    entities: list[dict[str, Any]] = msgspec.json.decode(text)["entities"]
    datasets = {one["guid"]: one for one in entities if one["typeName"] == _DATASET}
    processes = [one for one in entities if one["typeName"] == _PROCESS]
    unused = dict(datasets)
    for start in range(0, len(processes), _BATCH):
        part = processes[start : start + _BATCH]
        named = {
            end["guid"]: datasets[end["guid"]]
            for one in part
            for key in ("inputs", "outputs")
            for end in one["attributes"][key]
        }
        for guid in named:
            unused.pop(guid, None)
        yield [*named.values(), *part]
    alone = list(unused.values())
    for start in range(0, len(alone), _BATCH):
        yield alone[start : start + _BATCH]

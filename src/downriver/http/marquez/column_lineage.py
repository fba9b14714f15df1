"""`GET /api/v1/column-lineage`: the graph of columns around a column, a dataset or a job."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from downriver.errors import ColumnsNotFoundError, InvalidRequestError
from downriver.graph import Question, trace
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.marquez.graph_facts import node_of
from downriver.http.marquez.records import MarquezEdge, MarquezName
from downriver.http.marquez.versions import dataset_version
from downriver.http.request import (
    context_of,
    json_response,
    query_flag,
    query_number,
    query_text,
    run_read,
)
from downriver.model.answers import Direction
from downriver.model.facts import EdgeKind
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.openlineage.facets.dataset import SCHEMA, schema_columns
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot, Entity
    from downriver.model.answers import TraceEdge, TraceNode
    from downriver.service import Lineage
    from downriver.service.session import StoreSession

_DEFAULT_DEPTH = 20
_MOST_COLUMNS = 10_000
_VERSION = re.compile(r"#[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


class FieldTransformation(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the value of an input field is used, as OpenLineage describes it."""

    type: str
    subtype: str = ""
    description: str = ""
    masking: bool = False


class FieldInput(msgspec.Struct, rename="camel"):
    """A field from which another one derives. `transformations` is an addition to Marquez."""

    namespace: str
    dataset: str
    dataset_version: str
    field: str
    transformation_description: str | None
    transformation_type: str | None
    transformations: list[FieldTransformation]


class FieldData(msgspec.Struct, rename="camel"):
    """A field of a dataset with its inputs, as Marquez describes it."""

    namespace: str
    dataset: str
    dataset_version: str
    field: str
    field_type: str
    transformation_description: str | None
    transformation_type: str | None
    input_fields: list[FieldInput]


class FieldNode(msgspec.Struct, rename="camel"):
    """A field with its edges. Each edge has this field as its origin, as in Marquez."""

    id: str
    type: Literal["DATASET_FIELD"]
    data: FieldData
    in_edges: list[MarquezEdge]
    out_edges: list[MarquezEdge]


class ColumnLineageGraph(msgspec.Struct):
    """The answer of `GET /api/v1/column-lineage`."""

    graph: list[FieldNode]


async def get_column_lineage(request: Request) -> Response:
    """Return the columns upstream of `nodeId`: `?nodeId=&depth=&withDownstream=`."""
    node_id = query_text(request, "nodeId")
    depth = query_number(request, "depth", _DEFAULT_DEPTH, 10_000)
    downstream = query_flag(request, "withDownstream")
    if downstream and _VERSION.search(node_id):
        reason = "a version cannot be given together with withDownstream=true"
        raise InvalidRequestError("nodeId", reason)
    lineage = context_of(request).lineage
    answer = await run_read(request, column_graph, lineage, node_id, depth, downstream=downstream)
    return json_response(answer)


def column_graph(
    lineage: Lineage, node_id: str, depth: int | None, *, downstream: bool
) -> ColumnLineageGraph:
    """Return the columns from which those of a node derive, and those that derive from them."""
    direction = Direction.BOTH if downstream else Direction.UPSTREAM
    question = Question(direction, _DEFAULT_DEPTH if depth is None else depth, limit=_MOST_COLUMNS)
    columns: dict[str, TraceNode] = {}
    edges: defaultdict[tuple[str, str], dict[FieldTransformation, None]] = defaultdict(dict)
    with lineage.session.reading() as view:
        roots = _columns_of(lineage.session, node_id, view)
        for root in roots.columns:
            answer = trace(view.graph, view.reader, root, question)
            columns |= {node.id: node for node in answer.nodes}
            for edge in answer.edges:
                edges[edge.source, edge.target].setdefault(_transformation(edge))
        datasets = {DatasetId(node.namespace, node.name) for node in columns.values()}
        fields = _Fields(columns, _datasets(view, datasets, roots.asked))
    for (source, target), between in sorted(edges.items()):
        fields.connect(source, target, list(between))
    return ColumnLineageGraph(fields.nodes())


def _transformation(edge: TraceEdge) -> FieldTransformation:
    return FieldTransformation(
        edge.type or "", edge.subtype or "", edge.description or "", bool(edge.masking)
    )


class _Roots(NamedTuple):
    """The requested columns, and their dataset if the request names one."""

    columns: list[Entity]
    asked: Entity | None


def _columns_of(session: StoreSession, node_id: str, view: CatalogSnapshot) -> _Roots:
    """Return the columns of a Marquez id. A version in the id is ignored."""
    kind, _, name = _VERSION.sub("", node_id).partition(":")
    if kind == "datasetField":
        column = session.resolve(f"column:{name}", view)
        return _Roots([column], column)
    entity = session.resolve(f"{kind}:{name}", view)
    graph = view.graph.nodes
    datasets = [entity.node]
    if isinstance(entity.id, JobId):
        outputs = graph.neighbours([entity.node], EdgeKind.WRITES, downstream=True)
        datasets = outputs.get(entity.node, [])
    names = {member for dataset in datasets for member in graph.identities.group(dataset)}
    ids = view.reader.nodes.by_ids(names)
    columns = {
        str(ColumnId(DatasetId(ids[number].namespace, ids[number].name), field))
        for number, fields in view.reader.columns.names_of_each(names).items()
        for field in fields
    }
    if not columns:
        raise ColumnsNotFoundError(str(entity.id))
    resolved = [session.resolve(column, view) for column in sorted(columns)]
    return _Roots(resolved, None if isinstance(entity.id, JobId) else entity)


class _Dataset(NamedTuple):
    """A dataset under the name to show, with its version and the types of its fields."""

    name: MarquezName
    version: str
    types: dict[str, str]


def _datasets(
    view: CatalogSnapshot, datasets: Iterable[DatasetId], asked: Entity | None
) -> dict[DatasetId, _Dataset]:
    """Return datasets under their name in events, or under the requested name."""
    reader, identities = view.reader, view.graph.nodes.identities
    numbers = {
        DatasetId(node.namespace, node.name): number
        for node, number in reader.nodes.find_each(datasets).items()
    }
    shown = identities.display_names(numbers.values(), reader, as_sent=True)
    names = {dataset: shown[number].id for dataset, number in numbers.items()}
    if asked is not None:
        root = identities.canonical(asked.node)
        for dataset, number in numbers.items():
            if identities.canonical(number) == root:
                names[dataset] = node_of(asked)
    groups = {dataset: identities.group(number) for dataset, number in numbers.items()}
    members = {member for group in groups.values() for member in group}
    ids, facets = reader.nodes.by_ids(members), reader.facets.of_each(members, (SCHEMA,))
    found = {}
    for dataset, node in names.items():
        group = sorted(groups[dataset], key=lambda member: ids[member] != node)
        schema = next((facets[m][SCHEMA] for m in group if SCHEMA in facets.get(m, {})), None)
        name = MarquezName(node.namespace, node.name)
        types = {} if schema is None else {c.path: c.type for c in schema_columns(schema)}
        found[dataset] = _Dataset(name, dataset_version(name, schema), types)
    return found


class _Fields:
    """The nodes of the answer, built edge by edge."""

    def __init__(self, columns: dict[str, TraceNode], datasets: dict[DatasetId, _Dataset]) -> None:
        self._columns = columns
        self._datasets = datasets
        self._nodes: dict[str, FieldNode] = {}

    def nodes(self) -> list[FieldNode]:
        """Return the fields that have an edge, sorted by id."""
        return sorted(self._nodes.values(), key=lambda node: node.id)

    def connect(self, source: str, target: str, how: list[FieldTransformation]) -> None:
        """Add the edges by which one field derives from another."""
        origin, derived = self._node(source), self._node(target)
        derived.in_edges.append(MarquezEdge(derived.id, origin.id))
        origin.out_edges.append(MarquezEdge(origin.id, derived.id))
        first = how[0]
        derived.data.input_fields.append(
            FieldInput(
                origin.data.namespace,
                origin.data.dataset,
                origin.data.dataset_version,
                origin.data.field,
                first.description or None,
                first.subtype or first.type or None,
                how,
            )
        )
        if len(derived.data.input_fields) == 1:
            derived.data.transformation_description = first.description or None
            derived.data.transformation_type = first.subtype or first.type or None

    def _node(self, column: str) -> FieldNode:
        if column not in self._nodes:
            node = self._columns[column]
            dataset = self._datasets[DatasetId(node.namespace, node.name)]
            namespace, name = dataset.name.namespace, dataset.name.name
            field = node.field or ""
            self._nodes[column] = FieldNode(
                id=f"datasetField:{namespace}:{name}:{field}",
                type="DATASET_FIELD",
                data=FieldData(
                    namespace=namespace,
                    dataset=name,
                    dataset_version=dataset.version,
                    field=field,
                    field_type=dataset.types.get(field, ""),
                    transformation_description=None,
                    transformation_type=None,
                    input_fields=[],
                ),
                in_edges=[],
                out_edges=[],
            )
        return self._nodes[column]


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/column-lineage",
        get_column_lineage,
        KeyRole.READER,
        answers(ColumnLineageGraph, *NAMED),
        query=("nodeId", "depth", "withDownstream"),
    ),
)

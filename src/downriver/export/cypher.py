"""A trace as a property graph: Cypher text, and rows for the driver.

Jobs stand between datasets: `(:Dataset)-[:READS]->(:Job)-[:WRITES]->(:Dataset)`. Two relationships
leave them out: `(:Dataset)-[:DERIVED_FROM]->(:Dataset)` leads upstream, and
`(:Dataset)-[:PRODUCES]->(:Model)` to the models that are trained on a dataset. A node also has the
label of its type, such as `Table`, `Topic`, `Model` or `Task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from downriver.model.assets import ASSET_TYPES
from downriver.model.control_characters import escape_json
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.export.formats import ExportedGraph
    from downriver.model.answers import Trace, TraceEdge, TraceNode

_LABELS = {"dataset": "Dataset", "job": "Job", "column": "Column"}
_KINDS = {"reads": "READS", "writes": "WRITES", "derives": "DERIVES"}
_EDGE_FIELDS = (
    "status", "confidence", "first_seen", "last_seen", "first_event", "last_event", "job", "type",
    "subtype", "description", "change",
)  # fmt: skip
_BATCH = 1000
_MODEL = "model"
_TYPE_LABELS = {
    kind: "".join(part.capitalize() for part in kind.split("_")) for kind in ASSET_TYPES
}


def render_cypher(piece: ExportedGraph) -> str:
    """Return statements that create or update this part of a graph in any database."""
    return "".join(f"{statement};\n" for statement in _statements(piece))


def _statements(piece: ExportedGraph) -> Iterator[str]:
    trace = piece.trace
    yield from constraints()
    for node in trace.nodes:
        extra = type_label(piece.types.get(node.id))
        yield (
            f"MERGE (n:{_LABELS[node.kind]} {{id: {literal(node.id)}}})"
            f" SET n += {literal(node_properties(node))}{f', n:{extra}' if extra else ''}"
        )
    for column, owner in owners(trace):
        yield (
            f"MERGE (d:Dataset {{id: {literal(str(owner))}}})"
            f" SET d += {literal({'name': owner.name, 'namespace': owner.namespace})}"
        )
        yield (
            f"MATCH (d:Dataset {{id: {literal(str(owner))}}}), (c:Column {{id: {literal(column)}}})"
            " MERGE (d)-[:HAS_COLUMN]->(c)"
        )
    labels = {node.id: _LABELS[node.kind] for node in trace.nodes}
    for edge in trace.edges:
        source, target = labels.get(edge.source), labels.get(edge.target)
        if source and target:
            key = literal({"key": edge_key(edge)})
            yield (
                f"MATCH (a:{source} {{id: {literal(edge.source)}}}),"
                f" (b:{target} {{id: {literal(edge.target)}}})"
                f" MERGE (a)-[r:{relation(edge)} {key}]->(b)"
                f" SET r += {literal(edge_properties(edge))}"
            )
    for derivation in derivations(piece):
        yield (
            f"MATCH (a:Dataset {{id: {literal(derivation.source)}}}),"
            f" (b:Dataset {{id: {literal(derivation.target)}}})"
            f" MERGE (a)-[r:{derivation.relation}]->(b) SET r += {literal(derivation.properties)}"
        )


class DatasetRelation(NamedTuple):
    """A relationship between two datasets that leaves out the job between them."""

    source: str
    relation: str
    target: str
    properties: dict[str, Any]


def derivations(piece: ExportedGraph) -> Iterator[DatasetRelation]:
    """Yield DERIVED_FROM for every dataset and its upstreams, and PRODUCES for every model."""
    datasets = {node.id for node in piece.trace.nodes if node.kind == "dataset"}
    for target, edges in piece.upstreams().items():
        for edge in edges:
            if target in datasets and edge.source in datasets:
                evidence = edge_properties(edge)
                yield DatasetRelation(target, "DERIVED_FROM", edge.source, evidence)
                if piece.types.get(target) == _MODEL:
                    yield DatasetRelation(edge.source, "PRODUCES", target, evidence)


def type_label(kind: str | None) -> str:
    """Return the label of an asset type such as `dbt_model`, "" for an unknown type."""
    return _TYPE_LABELS.get(kind or "", "")


def constraints() -> Iterator[str]:
    """Yield the statements that create unique constraints on ids."""
    for label in _LABELS.values():
        name = f"downriver_{label.lower()}_id"
        yield f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"


def node_properties(node: TraceNode) -> dict[str, Any]:
    """Return the properties of a node."""
    properties: dict[str, Any] = {
        "name": node.name,
        "namespace": node.namespace,
        "marks": node.marks,
    }
    if node.field is not None:
        properties["field"] = node.field
    return properties


def edge_properties(edge: TraceEdge) -> dict[str, Any]:
    """Return the properties of an edge: its evidence."""
    values = {name: getattr(edge, name) for name in _EDGE_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


def edge_key(edge: TraceEdge) -> str:
    """Return a key that distinguishes edges between the same two nodes."""
    return "|".join(part or "" for part in (edge.job, edge.type, edge.subtype))


def relation(edge: TraceEdge) -> str:
    """Return the type of relationship that an edge is."""
    return _KINDS.get(edge.kind, "RELATES")


def owners(trace: Trace) -> Iterator[tuple[str, DatasetId]]:
    """Yield each column with the dataset it belongs to."""
    for node in trace.nodes:
        if node.kind == "column":
            yield node.id, DatasetId(node.namespace, node.name)


def literal(value: Any) -> str:
    """Return a value as Cypher writes it; text is escaped."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """Return text between quotes; JSON's escapes are Cypher's, surrogate pairs among them."""
    readable = text.encode("utf-8", "replace").decode()
    return escape_json(msgspec.json.encode(readable).decode())


class CypherDriver(Protocol):
    """The part of Neo4j's driver that is used."""

    def execute_query(self, query_: str, /, **parameters: Any) -> Any:
        """Run a statement in a separate transaction, and retry transient errors."""


def push_cypher(
    piece: ExportedGraph, driver: CypherDriver, database: str | None = None
) -> tuple[int, int]:
    """Write a part of the graph into a graph database; return its numbers of nodes and edges."""
    trace = piece.trace
    where = {} if database is None else {"database_": database}
    for statement in constraints():
        driver.execute_query(statement, **where)
    _push_nodes(piece, driver, where)
    has = [
        {"column": column, "dataset": str(owner), "name": owner.name, "namespace": owner.namespace}
        for column, owner in owners(trace)
    ]
    _push(
        driver,
        "MERGE (d:Dataset {id: row.dataset}) SET d.name = row.name, d.namespace = row.namespace"
        " WITH d, row MATCH (c:Column {id: row.column}) MERGE (d)-[:HAS_COLUMN]->(c)",
        has,
        where,
    )
    labels = {node.id: _LABELS[node.kind] for node in trace.nodes}
    alike: dict[tuple[str, str, str], list[TraceEdge]] = {}
    for edge in trace.edges:
        if edge.source in labels and edge.target in labels:
            key = (labels[edge.source], relation(edge), labels[edge.target])
            alike.setdefault(key, []).append(edge)
    for (source, kind, target), edges in sorted(alike.items()):
        _push(
            driver,
            f"MATCH (a:{source} {{id: row.source}}), (b:{target} {{id: row.target}})"
            f" MERGE (a)-[r:{kind} {{key: row.key}}]->(b) SET r += row.set",
            [_edge_row(edge) for edge in edges],
            where,
        )
    between = list(derivations(piece))
    for kind in ("DERIVED_FROM", "PRODUCES"):
        _push(
            driver,
            "MATCH (a:Dataset {id: row.source}), (b:Dataset {id: row.target})"
            f" MERGE (a)-[r:{kind}]->(b) SET r += row.set",
            [
                {"source": found.source, "target": found.target, "set": found.properties}
                for found in between
                if found.relation == kind
            ],
            where,
        )
    return len(trace.nodes), len(trace.edges)


def delete_nodes(ids: Iterable[str], driver: CypherDriver, database: str | None = None) -> None:
    """Delete nodes that were exported before and are no longer in the graph."""
    where = {} if database is None else {"database_": database}
    rows = [{"id": name} for name in sorted(ids)]
    for label in ("Dataset", "Job"):
        _push(driver, f"MATCH (n:{label} {{id: row.id}}) DETACH DELETE n", rows, where)


def _push_nodes(piece: ExportedGraph, driver: CypherDriver, where: dict[str, Any]) -> None:
    """Write the nodes: those with the same labels in one statement."""
    alike: dict[tuple[str, str], list[TraceNode]] = {}
    for node in piece.trace.nodes:
        key = (_LABELS[node.kind], type_label(piece.types.get(node.id)))
        alike.setdefault(key, []).append(node)
    for (label, extra), nodes in sorted(alike.items()):
        _push(
            driver,
            f"MERGE (n:{label} {{id: row.id}}) SET n += row.set{f', n:{extra}' if extra else ''}",
            [{"id": node.id, "set": node_properties(node)} for node in nodes],
            where,
        )


def _edge_row(edge: TraceEdge) -> dict[str, Any]:
    return {
        "source": edge.source,
        "target": edge.target,
        "key": edge_key(edge),
        "set": edge_properties(edge),
    }


def _push(
    driver: CypherDriver, statement: str, rows: list[dict[str, Any]], where: dict[str, Any]
) -> None:
    for start in range(0, len(rows), _BATCH):
        some = rows[start : start + _BATCH]
        driver.execute_query(f"UNWIND $rows AS row {statement}", rows=some, **where)

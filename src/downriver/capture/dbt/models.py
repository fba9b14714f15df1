"""Models, snapshots, seeds and analyses as jobs, with column lineage from their SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from downriver.capture.code import (
    CodeJob,
    DocumentedColumn,
    TableNames,
    add_sql,
    find_references,
    set_query,
)
from downriver.capture.code.dbt_build import build_settings
from downriver.capture.code.dbt_resources import text, texts
from downriver.capture.code.dbt_snapshots import (
    add_snapshot_columns,
    add_snapshot_references,
    list_snapshot_columns,
)
from downriver.capture.dbt.artifacts import Artifacts
from downriver.capture.dbt.nodes import DbtNode, catalog_columns
from downriver.capture.sql import (
    ColumnEdge,
    ColumnRef,
    SqlLineage,
    Template,
    parse_sql_lineage,
    render_sql,
)
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from downriver.capture.dbt.nodes import DbtNaming

_KINDS = {"model": "MODEL", "snapshot": "SNAPSHOT", "seed": "SEED", "analysis": "ANALYSIS"}
_INCREMENTAL = re.compile(r"\bis_incremental\s*\(")


class DbtModels:
    """Reads the SQL of one project, parents first, because children use their inferred schemas."""

    def __init__(
        self, artifacts: Artifacts, nodes: Mapping[str, DbtNode], naming: DbtNaming
    ) -> None:
        self._nodes = nodes
        self._naming = naming
        self._stored = [node for node in nodes.values() if node.is_stored]
        self._ids = {node.relation.casefold(): naming.dataset(node) for node in self._stored}
        self.called = _tables_by_argument(nodes)
        self._called_folded = {key.casefold(): table for key, table in self.called.items()}
        self._macros = {
            key: text(raw.get("macro_sql")) for key, raw in artifacts.resources("macros").items()
        }
        self._needed = {
            key: texts(raw.get("depends_on", {}).get("macros"))
            for key, raw in artifacts.resources("macros").items()
            if isinstance(raw.get("depends_on"), dict)
        }
        self.columns: dict[str, list[DocumentedColumn]] = {}  # by relation in lower case
        self._ephemeral: dict[str, SqlLineage] = {}  # by name in lower case
        for node in self._stored:
            known = catalog_columns(artifacts, node) or (node.columns if node.contract else [])
            if known:
                self.columns[node.relation.casefold()] = known

    def read(self, node: DbtNode) -> CodeJob:
        """Return the job of a node. An ephemeral model is replaced by its inputs."""
        job = self._job(node)
        if node.kind == "seed":
            job.add_output(self._naming.dataset(node))
        elif node.language != "sql":
            self._read_opaque(node, job, f"the columns of a model in {node.language} are not read")
        elif node.compiled or node.raw:
            self._read_sql(node, job)
        else:
            self._read_opaque(node, job, "the manifest has no SQL for this model")
        for name in node.declared_sources if node.kind != "source" else ():
            self._add_declared(name, job)
        return job

    def _add_declared(self, name: str, job: CodeJob) -> None:
        """Add a table that `meta.lineage` names as an input."""
        nodes = {
            node.id: node
            for node in self._stored
            if name in (node.name, f"{node.source_name}.{node.name}", node.relation)
        }
        if len(nodes) == 1:
            (node,) = nodes.values()
            job.add_input(self._naming.dataset(node))
        else:
            reason = f"meta.lineage names {name!r}: {len(nodes)} models of the project match, not 1"
            job.add_blind_spot(BlindSpotEntry("unknown_source", reason, 1))

    def dataset_for(self, table: str) -> DatasetId:
        """Return the dataset of a table name in SQL."""
        return self._ids.get(table.casefold()) or DatasetId(self._naming.namespace, table)

    def columns_of(self, table: str) -> Sequence[str] | None:
        """Return the columns of a table; None when they are unknown."""
        columns = self.columns.get(table.casefold())
        return None if columns is None else [column.name for column in columns]

    def parents(self, node: DbtNode) -> list[DbtNode]:
        """Return the tables a node depends on, directly or through ephemeral models."""
        parents: dict[str, DbtNode] = {}
        stack, seen = list(node.depends_on), set[str]()
        while stack:
            parent = self._nodes.get(stack.pop(0))
            if parent is None or parent.id in seen:
                continue
            seen.add(parent.id)
            if parent.is_stored:
                parents[parent.id] = parent
            else:
                stack += parent.depends_on
        return list(parents.values())

    def _job(self, node: DbtNode) -> CodeJob:
        return CodeJob(
            id=self._naming.job(node),
            integration="DBT",
            kind="EPHEMERAL" if node.materialized == "ephemeral" else _KINDS[node.kind],
            path=node.path,
            description=node.description,
            owners=node.owners,
            tags=node.tags,
            build=build_settings([node.config], _as_entry(node)),
        )

    def _read_opaque(self, node: DbtNode, job: CodeJob, reason: str) -> None:
        for parent in self.parents(node):
            job.add_input(self._naming.dataset(parent))
        if node.is_stored:
            job.add_output(self._naming.dataset(node))
        job.add_blind_spot(BlindSpotEntry("not_read", reason, 1))

    def _read_sql(self, node: DbtNode, job: CodeJob) -> None:
        target = self._naming.dataset(node) if node.is_stored else None
        parsed = self._parse(node)
        if target is None:
            self._ephemeral[node.relation.casefold()] = parsed
        lineage = _into(parsed, node.relation)
        written = node.raw or node.compiled
        job.dialect = lineage.dialect
        if node.compiled:
            job.sql, job.raw = node.compiled, node.raw or None
        else:
            set_query(job, node.raw, render_sql(node.raw, self.template(node)))
        self._infer(node, lineage)
        through = self._look_through(lineage, node.relation)
        add_sql(job, _without_itself(through, node.relation), self.dataset_for, result=target)
        if target is None:
            job.outputs, job.edges = [], []
        if lineage.blind_spots:
            for parent in self.parents(node):
                job.add_input(self._naming.dataset(parent))
        unstored = {self.dataset_for(name) for name in lineage.inputs if self._is_ephemeral(name)}
        job.add_references(
            reference
            for reference in find_references(written, lineage, self.table_names(node))
            if reference.dataset != target and reference.dataset not in unstored
        )
        if node.kind == "snapshot" and target is not None:
            add_snapshot_references(job, node.config)
            add_snapshot_columns(job, target, node.config)

    def table_names(self, node: DbtNode) -> TableNames:
        """Return the names of tables in a node's code."""
        return TableNames(self.dataset_for, self._called_folded, node.relation)

    def _is_ephemeral(self, table: str) -> bool:
        return table.casefold() in self._ephemeral

    # Lineage of one node

    def _parse(self, node: DbtNode) -> SqlLineage:
        """Return the lineage of a node's compiled query, or of its rendered template."""
        if not node.compiled:
            return self._parse_text(node, node.raw)
        lineage = self._parse_text(node, node.compiled)
        if _INCREMENTAL.search(node.raw):
            return _with_increments(lineage, self._parse_text(node, node.raw))
        return lineage

    def _parse_text(self, node: DbtNode, sql: str) -> SqlLineage:
        return parse_sql_lineage(
            sql,
            dialect=self._naming.dialect,
            schema=self.columns_of,
            template=self.template(node),
        )

    def template(self, node: DbtNode) -> Template:
        """Return the names and macros that a node's template uses."""
        return Template(this=node.relation, names=self.called, macros=self._macro_texts(node))

    def _macro_texts(self, node: DbtNode) -> tuple[str, ...]:
        """Return the macros a node needs, except dbt's own, which are built in."""
        macros: dict[str, str] = {}
        stack = list(node.macros)
        while stack:
            key = stack.pop()
            package = key.split(".")[1] if key.count(".") >= 2 else ""
            own = not (package.startswith("dbt_") or package == "dbt")
            if key not in macros and own and key in self._macros:
                macros[key] = self._macros[key]
                stack += self._needed.get(key, ())
        return tuple(macros.values())

    def _look_through(self, lineage: SqlLineage, target: str) -> SqlLineage:
        """Return lineage with the inputs of ephemeral models in place of these models."""
        statements = list(lineage.statements)
        stack, used = list(lineage.inputs), dict[str, SqlLineage]()
        while stack:
            name = stack.pop()
            ephemeral_lineage = self._ephemeral.get(name.casefold())
            if (
                ephemeral_lineage is not None
                and name not in used
                and name.casefold() != target.casefold()
            ):
                used[name] = _into(ephemeral_lineage, name)
                stack += ephemeral_lineage.inputs
        if not used:
            return lineage
        for ephemeral in used.values():
            statements = [*ephemeral.statements, *statements]
        parts = [*used.values(), lineage]
        return SqlLineage(
            dialect=lineage.dialect,
            dialect_guessed=lineage.dialect_guessed,
            statements=statements,
            inputs=list(dict.fromkeys(name for part in parts for name in part.inputs)),
            outputs=list(dict.fromkeys(name for part in parts for name in part.outputs)),
            column_edges=sorted({edge for part in parts for edge in part.column_edges}),
            dataset_edges=sorted({edge for part in parts for edge in part.dataset_edges}),
            blind_spots=[spot for part in parts for spot in part.blind_spots],
        ).end_to_end()

    def _infer(self, node: DbtNode, lineage: SqlLineage) -> None:
        """Keep the columns a query returns, unless the catalog or a contract lists them."""
        key = node.relation.casefold()
        if key in self.columns or not node.is_stored:
            return
        names = lineage.statements[-1].columns if lineage.statements else []
        if node.kind == "snapshot" and names:
            names = [*names, *list_snapshot_columns(node.config)]
        is_open = any(edge.target.column == "*" for edge in lineage.column_edges)
        if names and not is_open:
            described = {column.name.casefold(): column for column in node.columns}
            self.columns[key] = [
                msgspec.structs.replace(
                    described.get(name.casefold(), DocumentedColumn(name)), name=name
                )
                for name in names
            ]


def _as_entry(node: DbtNode) -> dict[str, object]:
    """Return the columns of a node as property files list them."""
    return {"columns": [{"name": c.name, "data_type": c.type} for c in node.columns]}


def _tables_by_argument(nodes: Mapping[str, DbtNode]) -> dict[str, str]:
    """Return the table of each `ref` and `source`, by their arguments."""
    called: dict[str, str] = {}
    for node in nodes.values():
        if node.kind == "source":
            called[f"{node.source_name}.{node.name}"] = node.relation
        elif node.kind in ("model", "seed", "snapshot"):
            if node.version:
                called[f"{node.name}_v{node.version}"] = node.relation
            if not node.version or node.is_latest:
                called[node.name] = node.relation
    return called


def _into(lineage: SqlLineage, table: str) -> SqlLineage:
    """Return the lineage of a query with a table as the target of its result."""

    def filled(edges: list[ColumnEdge]) -> list[ColumnEdge]:
        return [
            edge
            if edge.target.table
            else msgspec.structs.replace(edge, target=ColumnRef(table, edge.target.column))
            for edge in edges
        ]

    return msgspec.structs.replace(
        lineage,
        statements=[
            msgspec.structs.replace(
                statement,
                outputs=statement.outputs or [table],
                column_edges=filled(statement.column_edges),
                dataset_edges=filled(statement.dataset_edges),
            )
            for statement in lineage.statements
        ],
        outputs=[*lineage.outputs, table] if table not in lineage.outputs else lineage.outputs,
        column_edges=filled(lineage.column_edges),
        dataset_edges=filled(lineage.dataset_edges),
    )


def _with_increments(full: SqlLineage, template: SqlLineage) -> SqlLineage:
    """Add the inputs of an incremental run, if the template could be rendered."""
    if any(spot.kind == "template" for spot in template.blind_spots):
        return full
    return msgspec.structs.replace(
        full,
        inputs=list(dict.fromkeys([*full.inputs, *template.inputs])),
        column_edges=sorted({*full.column_edges, *template.column_edges}),
        dataset_edges=sorted({*full.dataset_edges, *template.dataset_edges}),
    )


def _without_itself(lineage: SqlLineage, table: str) -> SqlLineage:
    """Return lineage without the reads of an incremental model from its own table."""
    own = table.casefold()
    return msgspec.structs.replace(
        lineage,
        inputs=[name for name in lineage.inputs if name.casefold() != own],
        outputs=[name for name in lineage.outputs if name.casefold() != own],
        column_edges=[e for e in lineage.column_edges if e.source.table.casefold() != own],
        dataset_edges=[e for e in lineage.dataset_edges if e.source.table.casefold() != own],
    )

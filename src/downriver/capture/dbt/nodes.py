"""Models, seeds, snapshots, sources and tests, in one shape whatever the manifest's version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code import Column
from downriver.capture.dbt.artifacts import Artifacts, entries, mapping, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

_STORED = frozenset({"model", "seed", "snapshot", "source"})


class Node(msgspec.Struct, kw_only=True):
    """One thing of a dbt project."""

    id: str
    kind: str
    name: str
    package: str = ""
    database: str = ""
    schema: str = ""
    table: str = ""
    materialized: str = ""
    language: str = "sql"
    raw: str = ""
    compiled: str = ""
    path: str = ""
    description: str = ""
    tags: list[str] = []
    owners: list[str] = []
    columns: list[Column] = []
    column_tags: dict[str, list[str]] = {}
    depends_on: list[str] = []
    macros: list[str] = []
    config: dict[str, Any] = {}
    contract: bool = False
    source_name: str = ""
    version: str = ""
    is_latest: bool = False
    test: dict[str, Any] = {}
    column_name: str = ""
    attached_to: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether it is a table or view of its own."""
        return self.kind in _STORED and self.materialized != "ephemeral"

    @property
    def relation(self) -> str:
        """Its full name in the database."""
        return ".".join(part for part in (self.database, self.schema, self.table) if part)


def list_nodes(artifacts: Artifacts) -> Iterator[Node]:
    """Yield what the manifest holds of nodes and sources."""
    groups = {
        text(group.get("name")): _people(group.get("owner"))
        for group in artifacts.resources("groups").values()
    }
    for key, raw in {**artifacts.resources("nodes"), **artifacts.resources("sources")}.items():
        yield _node(key, raw, groups)


def _node(key: str, raw: dict[str, Any], groups: dict[str, list[str]]) -> Node:
    config, depends = mapping(raw.get("config")), mapping(raw.get("depends_on"))
    kind = text(raw.get("resource_type")) or key.partition(".")[0]
    columns = [c for c in mapping(raw.get("columns")).values() if isinstance(c, dict)]
    meta = {**mapping(config.get("meta")), **mapping(raw.get("meta"))}
    version = raw.get("version")
    return Node(
        id=key,
        kind=kind,
        name=text(raw.get("name")),
        package=text(raw.get("package_name")),
        database=text(raw.get("database")),
        schema=text(raw.get("schema")),
        table=text(raw.get("identifier")) or text(raw.get("alias")) or text(raw.get("name")),
        materialized=text(config.get("materialized")),
        language=text(raw.get("language")) or "sql",
        raw=text(raw.get("raw_code")) or text(raw.get("raw_sql")),
        compiled=text(raw.get("compiled_code")) or text(raw.get("compiled_sql")),
        path=text(raw.get("original_file_path")) or text(raw.get("path")),
        description=text(raw.get("description")) or text(raw.get("source_description")),
        tags=_tags(raw, config, meta),
        owners=_people(meta.get("owner")) or groups.get(_group(raw, config), []),
        columns=[_column(column) for column in columns],
        column_tags={
            text(c.get("name")): found
            for c in columns
            if (found := _tags(c, mapping(c.get("config")), _column_meta(c)))
        },
        depends_on=texts(depends.get("nodes")),
        macros=texts(depends.get("macros")),
        config=config,
        contract=bool(mapping(config.get("contract")).get("enforced")),
        source_name=text(raw.get("source_name")),
        version="" if version is None else str(version),
        is_latest=version is not None and version == raw.get("latest_version"),
        test=mapping(raw.get("test_metadata")),
        column_name=text(raw.get("column_name")),
        attached_to=text(raw.get("attached_node")),
    )


def _column(raw: dict[str, Any]) -> Column:
    return Column(text(raw.get("name")), text(raw.get("data_type")), text(raw.get("description")))


def _column_meta(raw: dict[str, Any]) -> dict[str, Any]:
    return {**mapping(mapping(raw.get("config")).get("meta")), **mapping(raw.get("meta"))}


def _group(raw: dict[str, Any], config: dict[str, Any]) -> str:
    return text(raw.get("group")) or text(config.get("group"))


def _tags(raw: dict[str, Any], config: dict[str, Any], meta: dict[str, Any]) -> list[str]:
    """Return tags, and the two that projects say in `meta`: certified and pii."""
    found = [*texts(raw.get("tags")), *texts(config.get("tags"))]
    found += ["certified"] * (meta.get("certified") is True)
    found += ["pii"] * (meta.get("pii") is True or meta.get("contains_pii") is True)
    return list(dict.fromkeys(found))


def _people(owner: object) -> list[str]:
    """Return the owners someone wrote down: a name, a list, or a name with an address."""
    if isinstance(owner, dict):
        named = text(owner.get("name")) or next(iter(texts(owner.get("email"))), "")
        return [named] if named else []
    if isinstance(owner, list):
        return [name for item in owner for name in _people(item)]
    return texts(owner)


def owners_of(raw: dict[str, Any]) -> list[str]:
    """Return the owners of an exposure, metric or semantic model."""
    config = mapping(raw.get("config"))
    meta = {**mapping(config.get("meta")), **mapping(raw.get("meta"))}
    return _people(raw.get("owner")) or _people(meta.get("owner"))


def tags_of(raw: dict[str, Any]) -> list[str]:
    """Return the tags of an exposure, metric or semantic model."""
    config = mapping(raw.get("config"))
    return _tags(raw, config, {**mapping(config.get("meta")), **mapping(raw.get("meta"))})


def catalog_columns(artifacts: Artifacts, node: Node) -> list[Column]:
    """Return the columns the database had when the catalog was written, in their order."""
    kind = "sources" if node.kind == "source" else "nodes"
    found = mapping(mapping(artifacts.catalog.get(kind)).get(node.id))
    described = {column.name.casefold(): column.description for column in node.columns}
    columns = entries(list(mapping(found.get("columns")).values()))
    columns.sort(key=_index)
    return [
        Column(
            name,
            text(column.get("type")),
            described.get(name.casefold(), "") or text(column.get("comment")),
        )
        for column in columns
        if (name := text(column.get("name")))
    ]


def _index(column: dict[str, Any]) -> int:
    index = column.get("index")
    return index if isinstance(index, int) else 0

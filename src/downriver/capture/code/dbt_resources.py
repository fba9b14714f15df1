"""The common parts of the entries in dbt's manifests and YAML files.

Both are read as plain objects, and a field may be missing or have another type than expected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_REF = re.compile(r"\bref\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"]([^'\"]+)['\"]")
_OWN_REF = re.compile(r"\bref\(\s*['\"]([^'\"]+)['\"]\s*(?:\)|,\s*(?:v|version)\s*=)")
_COMMENT = re.compile(r"\{#.*?(?:#\}|\Z)", re.DOTALL)
_SOURCE = re.compile(r"\bsource\(\s*['\"]([^'\"]+)['\"]\s*,\s*['\"]([^'\"]+)['\"]")

_WRITTEN_OUT = re.compile(
    r"\b(?:ref|source)\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"][^'\"]+['\"]\s*[,)]"
)
_COMPUTED = re.compile(r"\b(?:ref|source)\(\s*(?!['\"][^'\"]+['\"]\s*[,)])")

_LONGEST = 100  # characters of a value of `meta` that is a tag
# Names of sqlglot dialects that differ from the name of the adapter.
_DIALECTS = {
    "sqlserver": "tsql", "synapse": "tsql", "fabric": "tsql", "alloydb": "postgres",
    "glue": "spark", "starburst": "trino", "impala": "hive", "materialize": "postgres",
    "risingwave": "postgres", "maxcompute": "hive", "greenplum": "postgres",
}  # fmt: skip
_KNOWN_DIALECTS = frozenset(
    {
        "athena", "bigquery", "clickhouse", "databricks", "doris", "dremio", "drill", "duckdb",
        "exasol", "fabric", "hive", "mysql", "oracle", "postgres", "presto", "redshift",
        "singlestore", "snowflake", "spark", "sqlite", "starrocks", "teradata", "trino", "tsql",
    }
)  # fmt: skip
ADAPTERS = _KNOWN_DIALECTS | _DIALECTS.keys()


def find_dialect(adapter: str) -> str | None:
    """Return the SQL dialect of an adapter; None when it must be guessed."""
    name = _DIALECTS.get(adapter, adapter)
    return name if name in _KNOWN_DIALECTS else None


def mapping(value: object) -> dict[str, Any]:
    """Return a value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return a value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def entries(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list for any other value."""
    return [item for item in items(value) if isinstance(item, dict)]


def text(value: object) -> str:
    """Return a value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    """Return the texts of a list, or a text as a list of one."""
    if isinstance(value, str):
        return [value] if value else []
    return [item for item in items(value) if isinstance(item, str)]


def is_true(value: object) -> bool:
    """Return whether a value is true, in JSON or as text in YAML."""
    return value is True or text(value).lower() == "true"


def list_refs(sql: str) -> list[str]:
    """Return the names of the models in calls of `ref`."""
    return [str(name) for name in _REF.findall(sql)]


def blank_jinja_comments(source: str) -> str:
    """Return a template in which comments are blank. Other characters keep their positions."""
    return _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), source)


def blank_resources(sql: str) -> str:
    """Return a template without the calls of `ref` and `source` with constant arguments."""
    return _WRITTEN_OUT.sub("", sql)


def has_computed_resources(sql: str) -> bool:
    """Return whether a template computes an argument of `ref` or `source`."""
    return _COMPUTED.search(sql) is not None


def list_resources(sql: str) -> dict[str, int]:
    """Return the resources of a template, as `find_resource` names them, with their positions.

    References to models of another project or package are left out.
    """
    plain = blank_jinja_comments(sql)
    resources = {match[1]: match.start() for match in _OWN_REF.finditer(plain)}
    return resources | {
        ".".join(match.groups()): match.start() for match in _SOURCE.finditer(plain)
    }


def find_resource(expression: str) -> str | None:
    """Return the resource of a text: `orders` of `ref('orders')`, `raw.orders` of `source(…)`."""
    ref, source = _REF.search(expression), _SOURCE.search(expression)
    if ref is not None:
        return ref[1]
    return None if source is None else ".".join(source.groups())


def list_filters(raw: object, *, is_filter: bool = False) -> Iterator[str]:
    """Yield the filters and groups of a metric or saved query, and of its input metrics."""
    if isinstance(raw, str):
        if is_filter:
            yield raw
    elif isinstance(raw, dict):
        for key, value in raw.items():
            yield from list_filters(value, is_filter=is_filter or key in _FILTERS)
    else:
        for value in items(raw):
            yield from list_filters(value, is_filter=is_filter)


_FILTERS = frozenset({"filter", "where", "group_by"})


class SemanticField(NamedTuple):
    """A dimension or entity in a filter: `status` of the entity `order` in `order__status`."""

    entity: str
    name: str


def list_semantic_fields(condition: str) -> list[SemanticField]:
    """Return the dimensions and entities that a filter names."""
    fields = []
    for name in _SEMANTIC_FIELD.findall(condition):
        parts = name.split("__")
        fields.append(SemanticField(parts[-2] if len(parts) > 1 else "", parts[-1]))
    return [field for field in dict.fromkeys(fields) if field.name != _TIME_OF_MEASURE]


_SEMANTIC_FIELD = re.compile(r"\b(?:TimeDimension|Dimension|Entity)\(\s*['\"]([^'\"]+)['\"]")
_TIME_OF_MEASURE = "metric_time"


def list_meta(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the `meta` of an entry and of its config."""
    return {**mapping(mapping(raw.get("config")).get("meta")), **mapping(raw.get("meta"))}


_MARKS = ("certified", "canonical", "golden")
_NO = frozenset({"", "false", "no"})
_SOURCE_OF = re.compile(
    r"\bsources?\s*:\s*([\w.]+(?:(?:\s*\+\s*|\s+and\s+)[\w.]+)*)", re.IGNORECASE
)
_JOINT = re.compile(r"(?:(?<!\s)\s+)?(?:\+|\band\b)\s*")


def _is_concept(value: object) -> bool:
    return isinstance(value, str) and not is_true(value) and text(value).lower() not in _NO


def list_tags(raw: dict[str, Any]) -> list[str]:
    """Return the tags of an entry, and its `meta` as tags.

    `meta` with `tier: 1` is the tag `meta.tier:1`. It can also set the tags `certified`,
    `canonical`, `golden` and `pii`. `canonical: revenue` is `canonical` and `concept:revenue`.
    """
    meta = list_meta(raw)
    tags = [*texts(raw.get("tags")), *texts(mapping(raw.get("config")).get("tags"))]
    tags += [key for key in _MARKS if is_true(meta.get(key))]
    for key in _MARKS:
        if _is_concept(meta.get(key)):
            tags += [key, f"concept:{str(meta[key]).strip().lower()}"]
    tags += ["pii"] * (is_true(meta.get("pii")) or is_true(meta.get("contains_pii")))
    tags += [
        f"meta.{key}:{str(value).lower() if isinstance(value, bool) else value}"
        for key, value in meta.items()
        if isinstance(value, (str, int, float)) and key != "owner" and len(str(value)) <= _LONGEST
    ]
    return list(dict.fromkeys(tags))


def list_declared_sources(raw: dict[str, Any]) -> list[str]:
    """Return the tables that `meta.lineage` names: `source: raw_orders`, as text or a mapping."""
    declared = list_meta(raw).get("lineage")
    if isinstance(declared, str):
        match = _SOURCE_OF.search(declared)
        return _JOINT.split(match[1]) if match else []
    entry = mapping(declared)
    listed = [entry.get("source"), *texts(entry.get("source")), *texts(entry.get("sources"))]
    return list(dict.fromkeys(name for each in listed if (name := text(each))))


def list_owners(raw: dict[str, Any]) -> list[str]:
    """Return the owners of an entry: its `owner`, else the one of its `meta`."""
    return owner_names(raw.get("owner")) or owner_names(list_meta(raw).get("owner"))


def owner_names(owner: object) -> list[str]:
    """Return owners from a name, a list of names, or an object with a name or an email."""
    if isinstance(owner, dict):
        named = text(owner.get("name")) or next(iter(texts(owner.get("email"))), "")
        return [named] if named else []
    if isinstance(owner, list):
        return [name for item in owner for name in owner_names(item)]
    return texts(owner)


def sort_parents_first(
    keys: Iterable[str], parents_of: Callable[[str], Iterable[str]]
) -> list[str]:
    """Return keys with parents before children. A cycle, which dbt forbids, is cut."""
    known = dict.fromkeys(keys)
    done: dict[str, None] = {}
    for key in known:
        stack = [(key, False)]
        visited: set[str] = set()
        while stack:
            current, parents_done = stack.pop()
            if parents_done:
                done[current] = None
            elif current in known and current not in done and current not in visited:
                visited.add(current)
                stack.append((current, True))
                stack += [(parent, False) for parent in parents_of(current)]
    return list(done)

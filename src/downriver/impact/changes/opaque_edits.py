"""Edits of templates whose effect is not visible in the rendered SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.code.dbt_resources import blank_jinja_comments
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from downriver.impact.changes.commit_code import CommitCode
    from downriver.impact.changes.commits import FilePair

# Names whose values exist only at run time: the warehouse, its flags, results of queries.
_AT_RUN_TIME = re.compile(
    r"\b(target|adapter|flags|graph|run_query|load_result|statement|env_var|invocation_id)\b"
)
_TAG = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)", re.DOTALL)
_CALL = re.compile(r"\b(\w+)(\.\w+)?\s*\(")
_BLOCK = re.compile(
    r"\{%[-+]?\s*(macro|materialization)\s+(\w+)\b(?:(?!\{%[-+]?\s*(?:macro|materialization)\s).)*?"
    r"end(?:macro|materialization)\s*[-+]?%\}",
    re.DOTALL,
)
# Functions of dbt and Jinja whose arguments the scanner reads.
_READ_CALLS = frozenset(
    {"ref", "source", "config", "var", "is_incremental", "this", "range", "set", "docs", "doc"}
)
# Macros that dbt calls by itself; a project can define its own.
_CALLED_BY_DBT = frozenset(
    {
        "generate_schema_name", "generate_database_name", "generate_alias_name", "ref", "source",
        "get_where_subquery", "should_full_refresh", "is_incremental", "create_schema",
        "get_create_table_as_sql", "get_merge_sql", "get_delete_insert_merge_sql",
    }
)  # fmt: skip


def find_opaque_edits(pairs: Sequence[FilePair], sides: Sequence[CommitCode]) -> Iterator[Unread]:
    """Yield edits of templates whose effect is not visible in the rendered SQL of models."""
    known = _READ_CALLS.union(*(side.macro_names for side in sides))
    macro_files = {path for side in sides for path in side.macro_files}
    for pair in pairs:
        if not pair.is_type(".sql"):
            continue
        if pair.path in macro_files:
            found = _opaque_macro(pair, sides)
        elif pair.base is not None and pair.head is not None:
            found = _opaque_tag(pair, known)
        else:
            continue
        if found is not None:
            line, detail = found
            yield Unread(path=pair.path, line=line, reason=UnreadReason.DYNAMIC_CODE, detail=detail)


def _opaque_tag(pair: FilePair, known: Collection[str]) -> tuple[int, str] | None:
    """Return the place and the effect of an edited tag that depends on an unknown value."""
    before = {_normalize_tag(tag) for tag in _TAG.findall(blank_jinja_comments(pair.base or ""))}
    source = pair.head or ""
    for tag in _TAG.finditer(blank_jinja_comments(source)):
        if _normalize_tag(tag[0]) in before:
            continue
        line = source.count("\n", 0, tag.start()) + 1
        for name, of_package in _CALL.findall(tag[0]):
            if of_package or name not in known:
                called = f"{name}{of_package}"
                return line, f"the edit changes a call of {called}, whose result is unknown"
        at_run_time = _AT_RUN_TIME.search(tag[0])
        if at_run_time is not None:
            return (
                line,
                f"the edited tag depends on {at_run_time[1]}, which is known only at run time",
            )
    return None


def _normalize_tag(tag: str) -> str:
    return " ".join(re.sub(r"\{([{%])[-+]?|[-+]?([}%])\}", " ", tag).split())


def _opaque_macro(pair: FilePair, sides: Sequence[CommitCode]) -> tuple[int, str] | None:
    """Return the place and the effect of an edited macro whose result is not visible in a model."""
    before, after = (_macros(source) for source in (pair.base, pair.head))
    for name in {**after, **before}:
        kind, text, line = after.get(name, ("", "", 0))
        old_kind, old_text, _ = before.get(name, ("", "", 0))
        if _normalize_tag(text) == _normalize_tag(old_text):
            continue
        if "materialization" in (kind, old_kind):
            return line, f"materialization {name} decides how tables are built"
        if name in _CALLED_BY_DBT:
            return line, f"dbt calls macro {name} for every model"
        of_adapter = "__" in name and not name.startswith("default__")
        if of_adapter or _AT_RUN_TIME.search(f"{text} {old_text}"):
            return line, f"the result of macro {name} depends on the warehouse or on flags of dbt"
        if name in before and not any(_is_called(name, side) for side in sides):
            return line, f"no file of this repository calls macro {name}; another project may"
    return None


def _macros(source: str | None) -> dict[str, tuple[str, str, int]]:
    """Return kind, text and line of the macros and materializations in a file, by name."""
    plain = blank_jinja_comments(source or "")
    return {
        match[2]: (match[1], match[0], plain.count("\n", 0, match.start()) + 1)
        for match in _BLOCK.finditer(plain)
    }


def _is_called(name: str, side: CommitCode) -> bool:
    """Return whether a model, test, hook or another macro names a macro."""
    called = re.compile(rf"(?<!macro ){re.escape(name.removeprefix('default__'))}\b")
    return any(
        called.search(side.text(path))
        for path in side.files
        if path.endswith((".sql", ".yml", ".yaml"))
    )

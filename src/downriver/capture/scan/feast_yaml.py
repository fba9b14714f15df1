"""Feast in YAML: the name of the project, and features with a transformation in SQL."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code import (
    CodeJob,
    TableNames,
    add_sql,
    find_references,
    set_query,
)
from downriver.capture.code.dbt_resources import entries, text
from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan.located_text import LocatedText, load_yaml
from downriver.capture.sql import parse_sql_lineage
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.scan.repository import Repository
    from downriver.capture.sql import SqlLineage

_FEATURES = re.compile(r"^features:\s*$", re.MULTILINE)
_BLOCK = re.compile(r":\s*[|>][-+\d]*\s*(?:#.*)?$")
_TRANSFORMATION = re.compile(r"^[ \t-]+transformation:", re.MULTILINE)


def find_feast_project(repository: Repository | None, files: list[str]) -> str:
    """Return the project of the first `feature_store.yaml`."""
    for path in files:
        if PurePosixPath(path).name == "feature_store.yaml" and repository is not None:
            try:
                content = load_yaml(repository.read(path) or "")
            except YamlError:
                continue
            if isinstance(content, dict) and isinstance(content.get("project"), str):
                return str(content["project"])
    return "feast"


def has_features(source: str) -> bool:
    """Return whether YAML may list features with transformations."""
    return bool(_FEATURES.search(source) and _TRANSFORMATION.search(source))


def read_features(
    path: str,
    source: str,
    project: str,
    namespace: str,
    dataset_for: Callable[[str], DatasetId],
) -> Iterator[CodeJob]:
    """Yield a job for each feature that names its source table or a transformation."""
    content = load_yaml(source)
    for feature in entries(content.get("features")) if isinstance(content, dict) else ():
        name = feature.get("name")
        if isinstance(name, LocatedText) and (feature.get("source") or _query(feature)):
            job_id = JobId(namespace, f"feast.{name}")
            job = CodeJob(id=job_id, integration="FEAST", kind="FEATURE", path=path, line=name.line)
            target = DatasetId(f"feast://{project}", str(name))
            _read_feature(job, feature, target, dataset_for, source.splitlines())
            yield job


def _query(feature: dict[str, Any]) -> LocatedText | None:
    query = feature.get("transformation")
    return query if isinstance(query, LocatedText) and query.strip() else None


def _read_feature(
    job: CodeJob,
    feature: dict[str, Any],
    target: DatasetId,
    dataset_for: Callable[[str], DatasetId],
    lines: list[str],
) -> None:
    query = _query(feature)
    if query is None:
        message = "the feature has no transformation"
        job.add_output(target)
        job.add_blind_spot(BlindSpotEntry("unknown_columns", message, job.line))
    else:
        # The text of a block begins below the line with its mark.
        first_line = query.line + bool(_BLOCK.search(lines[query.line - 1]))
        lineage = parse_sql_lineage(query)
        set_query(job, str(query))
        add_sql(job, lineage, dataset_for, result=target, first_line=first_line)
        names = TableNames(dataset_for)
        job.add_references(find_references(query, lineage, names, first_line=first_line))
        column = _column_of(target.name, lineage)
        if column is None:
            message = f"no column of the transformation is {target.name}"
            job.add_blind_spot(BlindSpotEntry("unknown_columns", message, first_line))
        job.edges = [
            msgspec.structs.replace(edge, target_field=target.name)
            if edge.target_field == column
            else edge
            for edge in job.edges
        ]
    if table := text(feature.get("source")):
        job.add_input(dataset_for(table))


def _column_of(feature: str, lineage: SqlLineage) -> str | None:
    """Return the column of a query that is a feature: by its name, else the only computed one."""
    direct = [edge for edge in lineage.column_edges if edge.type == "DIRECT"]
    columns = dict.fromkeys(edge.target.column for edge in direct)
    if feature in columns:
        return feature
    copied = {edge.target.column for edge in direct if edge.subtype == "IDENTITY"}
    computed = [column for column in columns if column not in copied]
    return computed[0] if len(computed) == 1 else None

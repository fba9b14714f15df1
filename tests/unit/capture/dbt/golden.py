"""The golden cases of `tests/golden/dbt`: files of a target directory and all we read from them.

A case lists, as text, every job, dataset note and run. Anything else is a failure.
DOWNRIVER_UPDATE_GOLDEN=1 writes the actual result into the cases; review it before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.unit.capture.code.lines import job_lines

from downriver.capture.dbt import capture_dbt, read_artifacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.dbt import DbtCapture

FOLDER = Path(__file__).parents[3] / "golden" / "dbt"
FILES = ("manifest", "catalog", "run_results", "sources")
UPDATE = os.environ.get("DOWNRIVER_UPDATE_GOLDEN") == "1"
NOW = 1_800_000_000_000_000


def write_target(case: dict[str, Any], folder: Path) -> Path:
    for name in FILES:
        if name in case:
            (folder / f"{name}.json").write_text(json.dumps(case[name]), "utf-8")
    return folder


def read_case(case: dict[str, Any], folder: Path) -> str:
    found = capture_dbt(
        read_artifacts(write_target(case, folder)),
        namespace=None,
        job_namespace="dbt",
        project_dir=None,
        now=NOW,
    )
    return "\n".join(_lines(found)) + "\n"


def _lines(found: DbtCapture) -> Iterator[str]:
    counts = " ".join(f"{kind}={number}" for kind, number in found.counts.items())
    yield f"{found.project} v{found.manifest_version} {found.namespace} {counts}"
    for job in found.jobs:
        yield from job_lines(job, found.namespace)
    for captured in found.events:
        event = json.loads(captured.raw)
        if "dataset" in event:
            yield f"dataset {_dataset(event['dataset'])} at {event['eventTime']}"
        elif "run" in event:
            yield f"run {event['job']['name']} {event['eventType']} at {event['eventTime']}"
            for dataset in event["inputs"]:
                yield from _assertions(dataset)
        for dataset in event.get("outputs", []):
            if dataset.get("facets", {}).keys() - {"columnLineage"}:
                yield f"dataset {_dataset(dataset)}"


def _dataset(dataset: dict[str, Any]) -> str:
    facets = dataset.get("facets", {})
    words = [dataset["name"]]
    if "schema" in facets:
        fields = [
            ":".join(filter(None, (f["name"], f.get("type"), f.get("description"))))
            for f in facets["schema"]["fields"]
        ]
        words.append(f"({', '.join(fields)})")
    if "ownership" in facets:
        words.append(f"owners={[o['name'] for o in facets['ownership']['owners']]}")
    if "tags" in facets:
        tags = [f"{t.get('field', '')}#{t['key']}" for t in facets["tags"]["tags"]]
        words.append(f"tags={tags}")
    if "documentation" in facets:
        words.append(repr(facets["documentation"]["description"]))
    if "symlinks" in facets:
        words.append(f"also {[i['name'] for i in facets['symlinks']['identifiers']]}")
    return " ".join(words)


def _assertions(dataset: dict[str, Any]) -> Iterator[str]:
    facet = dataset.get("inputFacets", {}).get("dataQualityAssertions", {})
    for found in facet.get("assertions", []):
        words = [f"{key}={value}" for key, value in found.items()]
        yield f"  {dataset['name']} {' '.join(words)}"


def update(path: Path, text: str) -> None:
    """Write the actual result into a case. Its input stays."""
    head = path.read_text("utf-8").split("expected: |\n")[0]
    body = "".join(f"  {line}\n" for line in text.splitlines())
    path.write_text(f"{head}expected: |\n{body}", "utf-8")


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))

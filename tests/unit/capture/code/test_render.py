"""Events of jobs read from code have all their facets."""

from __future__ import annotations

import json

from downriver.capture.code import CodeEdge, CodeJob, ColumnReference, render_job
from downriver.model.facts import EdgeKind, EdgeSeen
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import (
    BLIND_SPOTS,
    BlindSpotEntry,
    parse_blind_spots,
    parse_code,
)
from downriver.openlineage.fold import fold

SOURCE, TARGET, OTHER = (DatasetId("db", name) for name in ("s", "t", "u"))


def job(**changes: object) -> CodeJob:
    edge = CodeEdge(
        source=SOURCE, source_field="a", target=TARGET, target_field="b", subtype="IDENTITY"
    )
    made = {
        "id": JobId("n", "j"), "integration": "PYTHON", "kind": "SCRIPT", "path": "jobs/j.py",
        "line": 3, "inputs": [SOURCE], "outputs": [TARGET], "edges": [edge],
    }  # fmt: skip
    return CodeJob(**{**made, **changes})


def facets_of(made: CodeJob) -> dict[str, bytes]:
    facets = json.loads(render_job(made, 0).raw)["job"]["facets"]
    return {name: json.dumps(body).encode() for name, body in facets.items()}


def test_code_and_blind_spots_survive_a_round_trip() -> None:
    reference = ColumnReference(
        dataset=SOURCE, field="a", line=7, clause="filter", conditional=True, text="df.a"
    )
    made = job(references=[reference], spots=[BlindSpotEntry("opaque", "an RDD", 9)], raw="{{ x }}")
    facets = facets_of(made)
    code = parse_code(facets)
    assert code is not None
    assert (code.path, code.line, code.raw) == ("jobs/j.py", 3, "{{ x }}")
    (kept,) = code.references or ()
    assert (kept.namespace, kept.name, kept.field) == ("db", "s", "a")
    assert (kept.line, kept.clause, kept.conditional, kept.text) == (7, "filter", True, "df.a")
    assert [(s.kind, s.line) for s in parse_blind_spots(facets[BLIND_SPOTS])] == [("opaque", 9)]


def test_parent_and_dependencies_are_job_facets() -> None:
    made = job(parent=JobId("n", "dag"), after=[JobId("n", "before")])
    seen = fold(render_job(made, 0)).sightings
    assert EdgeSeen(EdgeKind.PARENT, JobId("n", "dag"), JobId("n", "j"), None) in seen
    assert EdgeSeen(EdgeKind.PRECEDES, JobId("n", "before"), JobId("n", "j"), None) in seen


def test_each_of_two_outputs_has_its_own_inputs() -> None:
    edge = CodeEdge(
        source=OTHER, source_field="c", target=OTHER, target_field="c", subtype="FILTER"
    )
    entries = json.loads(
        facets_of(job(outputs=[TARGET, OTHER], edges=[*job().edges, edge]))["lineage"]
    )
    fed = {e["name"]: {i["name"] for i in e["inputs"]} for e in entries["entries"]}
    assert fed == {"t": {"s"}, "u": {"u"}}

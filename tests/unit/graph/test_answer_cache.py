"""Names and evidence are cached between answers, and no answer is outdated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.openlineage import DATABASE, Json, dataset, encode, run_event

from downriver.graph import GraphIndex, Question, trace
from downriver.service import Lineage
from downriver.store.port import StoreState

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.model.answers import Trace

_LATER = "2026-01-02T12:00:00Z"
_LATEST = "2026-01-03T12:00:00Z"
_ROOT = f"dataset:{DATABASE}:raw"


def _copy(run: str, at: str = "2026-01-01T12:00:00Z", **facets: Json) -> Json:
    return run_event(
        "copy", run, at=at, inputs=[dataset("raw")], outputs=[dataset("clean", facets or None)]
    )


def _symlinked() -> Json:
    path = {"namespace": "s3://lake", "name": "clean", "type": "LOCATION"}
    return _copy("run-2", _LATER, symlinks={"identifiers": [path]})


def _unread() -> Json:
    spots = {"spots": [{"kind": "dynamic_sql", "message": "not constant", "line": 3}]}
    return run_event("copy", "run-3", job_facets={"downriver_blindSpots": spots})


_CHANGES: dict[str, list[Json]] = {
    "seen again later": [_copy("run-2", _LATER)],
    "another event at the same time": [_copy(f"run-{n}") for n in range(2, 8)],
    "another name": [_symlinked()],
    "a blind spot": [_unread()],
    "a new edge": [run_event("report", inputs=[dataset("clean")], outputs=[dataset("mart")])],
}


@pytest.mark.parametrize("change", _CHANGES)
def test_an_answer_after_a_write_equals_that_of_a_new_process(change: str, tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(_copy("run-1"))])
        before = lineage.trace(_ROOT)
        for event in _CHANGES[change]:
            lineage.ingest([encode(event)])
            after = lineage.trace(_ROOT)
            with Lineage.open(str(tmp_path)) as another:
                assert after == another.trace(_ROOT)
        assert after != before


def test_an_answer_after_a_rebuild_equals_that_of_a_new_process(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(_copy("run-1")), encode(_symlinked())])
        before = lineage.trace(_ROOT)
        lineage.session.store.rebuild(lambda done, total: None)
        assert lineage.trace(_ROOT) == before


def test_a_question_on_an_older_snapshot_gets_the_evidence_of_that_snapshot(
    tmp_path: Path,
) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(_copy("run-1"))])
        index = GraphIndex(lineage.session.store)
        with index.reading() as old:
            entity = lineage.session.resolve(_ROOT, old)
            first = trace(old.graph, old.reader, entity, Question())
            # As if another thread had refreshed the snapshot and answered a question from it.
            newer = StoreState(old.graph.state.generation, 99)
            version = old.graph.version._replace(state=newer)
            old.graph.cache.refresh(version, None)
            numbers = old.graph.nodes.flow.id.values.tolist()
            changed = msgspec.structs.replace(first.edges[0], last_event="ff")
            old.graph.cache.edges(numbers, version, lambda ids: dict.fromkeys(ids, changed))
            assert trace(old.graph, old.reader, entity, Question()) == first


def test_cached_answers_are_immutable(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(_copy("run-1"))])
        answer = lineage.trace(_ROOT)
        with pytest.raises(AttributeError, match="immutable"):
            answer.edges[0].status = "stale"  # type: ignore[misc]


def test_edges_seen_under_two_names_keep_one_place_and_all_evidence(tmp_path: Path) -> None:
    """An edge that was rendered alone is merged once another name of its dataset has it, too."""
    path = dataset("clean", namespace="s3://lake")
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(_copy("run-1")), encode(_symlinked())])
        by_path = run_event("copy", "run-9", at=_LATEST, inputs=[dataset("raw")], outputs=[path])
        before = lineage.trace(_ROOT)
        lineage.ingest([encode(by_path)])
        after = lineage.trace(_ROOT)
    assert [(e.source, e.target) for e in after.edges] == [
        (e.source, e.target) for e in before.edges
    ]
    assert [e.last_seen for e in after.edges if e.kind == "writes"] == [_LATEST]


def _traces(lineage: Lineage) -> list[Trace]:
    return [lineage.trace(_ROOT, direction) for direction in ("upstream", "downstream", "both")]


def test_the_same_question_gets_the_same_answer_from_what_is_kept(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(_copy("run-1")), encode(_symlinked()), encode(_unread())])
        assert _traces(lineage) == _traces(lineage)

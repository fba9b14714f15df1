"""Lists, counts and manual changes are the same on every store, and after a rebuild."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.openlineage import DATABASE, JOBS, dataset, dataset_event, parsed, run_event

from downriver.model.facts import RunState
from downriver.model.ids import NAMESPACE_RECORDS, DatasetId, JobId
from downriver.openlineage.facets.custom import DELETED, render_deleted
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    TAGS,
    parse_description,
    parse_owners,
    parse_tags,
    render_description,
    render_owners,
)
from downriver.openlineage.facets.label_statement import (
    render_tag_facets,
    render_withdrawal,
    render_withdrawn_single,
    stated_facet_name,
)
from downriver.store import open_store
from downriver.store.catalog.directory import QUARTER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver.store import Store

DAY = 86_400_000_000


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = str(tmp_path)
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_database")
    with closing(open_store(url)) as opened:
        yield opened


def day(number: int) -> str:
    return f"2026-01-{number:02d}T00:00:00Z"


def statement(tag: str, field: str = "", *, present: bool = True) -> dict:
    facets = render_tag_facets(tag, field, present=present)
    return {name: msgspec.json.decode(body) for name, body in facets.items()}


def deletion(name: str, at: str) -> dict:
    return dataset_event(name, {DELETED: msgspec.json.decode(render_deleted())}, at)


def tags_of(store: Store, name: str) -> dict[str, list[str]]:
    with store.reader() as reader:
        number = reader.nodes.get(DatasetId(DATABASE, name))
        bodies = [reader.facets.of(number).get(TAGS), reader.facets.named(TAGS).get(number)]
        facets = reader.facets.of_each([number], (TAGS,))[number]
        assert parse_tags(bodies[0]) == parse_tags(bodies[1]) == parse_tags(facets[TAGS])
        assert not any(name.startswith("downriver_tag_") for name in reader.facets.of(number))
        whole, by_column = parse_tags(bodies[0])
    return {"": sorted(whole)} | {column: sorted(tags) for column, tags in by_column.items()}


def test_tags_of_people_are_not_replaced_by_those_of_a_producer(store: Store) -> None:
    nightly = {"tags": {"tags": [{"key": "nightly", "value": "true"}]}}
    store.append(
        [
            parsed(dataset_event("orders", nightly, day(1))),
            parsed(dataset_event("orders", statement("PII"), day(2))),
            parsed(dataset_event("orders", statement("secret", "email"), day(2))),
            parsed(dataset_event("orders", nightly, day(3))),
        ]
    )
    assert tags_of(store, "orders") == {"": ["nightly", "pii"], "email": ["secret"]}
    store.append([parsed(dataset_event("orders", statement("nightly", present=False), day(4)))])
    store.append([parsed(dataset_event("orders", nightly, day(5)))])
    store.append([parsed(dataset_event("orders", statement("pii", present=False), day(6)))])
    assert tags_of(store, "orders") == {"": [], "email": ["secret"]}
    store.rebuild(lambda done, total: None)
    assert tags_of(store, "orders") == {"": [], "email": ["secret"]}


def test_two_concurrent_tag_changes_both_apply(store: Store) -> None:
    for tag in ("pii", "gold"):
        store.append([parsed(dataset_event("orders", statement(tag), day(2)))])
    assert tags_of(store, "orders") == {"": ["gold", "pii"]}


def test_a_domain_that_a_person_states_replaces_those_of_producers(store: Store) -> None:
    def sent(domain: str) -> dict:
        return {"tags": {"tags": [{"key": "domain", "value": domain}]}}

    told = [
        dataset_event("orders", sent("raw"), day(1)),
        dataset_event("orders", statement("domain:sales"), day(2)),
        dataset_event("orders", statement("domain:finance"), day(3)),
        dataset_event("orders", sent("sales"), day(4)),
    ]
    for event in reversed(told):
        store.append([parsed(event)])
    assert tags_of(store, "orders") == {"": ["domain:finance"]}
    store.append(
        [parsed(dataset_event("orders", statement("domain:finance", present=False), day(5)))]
    )
    assert tags_of(store, "orders") == {"": ["domain:sales"]}
    store.append([parsed(dataset_event("orders", statement("domain:finance"), day(6)))])
    assert tags_of(store, "orders") == {"": ["domain:finance"]}
    withdrawn = {
        name: msgspec.json.decode(body) for name, body in render_withdrawn_single("domain").items()
    }
    store.append([parsed(dataset_event("orders", withdrawn, day(7)))])
    assert tags_of(store, "orders") == {"": ["domain:sales"]}


def labels_of(store: Store, name: str) -> tuple[tuple[str, ...], str]:
    with store.reader() as reader:
        number = reader.nodes.get(DatasetId(DATABASE, name))
        one = reader.facets.of(number)
        some = reader.facets.of_each([number], (OWNERSHIP, DOCUMENTATION))[number]
        assert {OWNERSHIP, DOCUMENTATION} == some.keys() == one.keys()
        for facet in (OWNERSHIP, DOCUMENTATION):
            assert one[facet] == some[facet] == reader.facets.named(facet)[number]
        return parse_owners(one[OWNERSHIP]), parse_description(one[DOCUMENTATION])


def test_owners_and_descriptions_that_a_person_states_replace_those_of_producers(
    store: Store,
) -> None:
    def facets(owner: str, *, stated: bool) -> dict:
        rendered = {
            OWNERSHIP: render_owners("Dataset", [owner]),
            DOCUMENTATION: render_description("Dataset", f"Owned by {owner}."),
        }
        return {
            stated_facet_name(name) if stated else name: msgspec.json.decode(body)
            for name, body in rendered.items()
        }

    told = [
        dataset_event("orders", facets("tool", stated=False), day(1)),
        dataset_event("orders", facets("ann", stated=True), day(2)),
        dataset_event("orders", facets("robot", stated=False), day(3)),
    ]
    for event in (told[1], told[2], told[0]):
        store.append([parsed(event)])
    assert labels_of(store, "orders") == (("ann",), "Owned by ann.")
    store.rebuild(lambda done, total: None)
    assert labels_of(store, "orders") == (("ann",), "Owned by ann.")
    withdrawn = {
        stated_facet_name(name): msgspec.json.decode(render_withdrawal())
        for name in (OWNERSHIP, DOCUMENTATION)
    }
    store.append([parsed(dataset_event("orders", withdrawn, day(4)))])
    assert labels_of(store, "orders") == (("robot",), "Owned by robot.")


def listed(store: Store) -> list[str]:
    with store.reader() as reader:
        found = reader.directory.dataset_ids(DATABASE)
        names = reader.nodes.by_ids(found)
        hidden = reader.directory.find_deleted(reader.directory.nodes_in(DATABASE))
        assert not hidden & set(found)
        return [names[number].name for number in found]


def test_a_deleted_dataset_returns_with_a_later_event_and_not_with_a_late_one(
    store: Store,
) -> None:
    store.append([parsed(dataset_event(name, {}, day(5))) for name in ("b", "a")])
    assert listed(store) == ["a", "b"]
    store.append([parsed(deletion("a", day(10)))])
    assert listed(store) == ["b"]
    store.append([parsed(dataset_event("a", {"schema": {}}, day(8)))])  # arrives late
    assert listed(store) == ["b"]
    store.append([parsed(run_event(at=day(11), inputs=[dataset("a")]))])
    assert listed(store) == ["a", "b"]
    store.rebuild(lambda done, total: None)
    assert listed(store) == ["a", "b"]


def test_jobs_are_listed_by_the_state_of_their_last_run(store: Store) -> None:
    store.append(
        [
            parsed(run_event("failed", "1", "COMPLETE", day(1))),
            parsed(run_event("failed", "2", "FAIL", day(2))),
            parsed(run_event("fixed", "3", "FAIL", day(1))),
            parsed(run_event("fixed", "4", "COMPLETE", day(3))),
            parsed(run_event("fixed", "4", "START", day(2))),  # late: reverts nothing
        ]
    )

    def names(*states: RunState, limit: int = 10, offset: int = 0) -> list[str]:
        with store.reader() as reader:
            found = reader.directory.job_ids(JOBS, states, limit, offset)
            known = reader.nodes.by_ids(found)
            return [known[number].name for number in found]

    with store.reader() as reader:
        failed = {RunState.FAIL}
        counts = [reader.directory.count_jobs(where, failed) for where in (JOBS, None, "other")]
        runs = reader.directory.runs(reader.nodes.get(JobId(JOBS, "fixed")), 1, 1)
    assert names() == ["fixed", "failed"]
    assert names(limit=1, offset=1) == ["failed"]
    assert names(RunState.FAIL) == ["failed"]
    assert names(RunState.FAIL, RunState.COMPLETE) == ["fixed", "failed"]
    assert counts == [1, 1, 0]
    assert [run.run for run in runs] == ["3"]


def test_a_record_is_listed_as_a_namespace_and_is_no_dataset(store: Store) -> None:
    record = {"eventTime": day(1), "dataset": {"namespace": NAMESPACE_RECORDS, "name": "empty"}}
    store.append([parsed(record), parsed(run_event(outputs=[dataset("orders")]))])
    with store.reader() as reader:
        names = [seen.name for seen in reader.directory.namespaces(10, 0)]
        page = [seen.name for seen in reader.directory.namespaces(1, 1)]
        assert reader.directory.find_namespace("empty") is not None
        assert reader.directory.find_namespace("nowhere") is None
        assert reader.directory.find_namespace(NAMESPACE_RECORDS) is None
        assert reader.counts().datasets == 1
        assert [row[3] for row in reader.changes.nodes(0)] == ["load", "orders"]
        assert not reader.nodes.named("empty")
        assert [seen.name for seen in reader.directory.dataset_namespaces()] == [DATABASE]
    assert names == ["empty", JOBS, DATABASE]
    assert page == [JOBS]


def events_of(store: Store, **asked: int) -> list[str]:
    between = {"after": 0, "before": 2**62, "limit": 10, "offset": 0} | asked
    with store.reader() as reader:
        found = reader.activity.events(**between, newest_first=False)
        count = reader.activity.count_events(between["after"], between["before"])
    assert count >= len(found)
    return [msgspec.json.decode(event)["run"]["runId"] for event in found]


def test_events_of_runs_are_in_the_order_of_their_time(store: Store) -> None:
    store.append([parsed(run_event(run=f"r{number}", at=day(number))) for number in (3, 1, 2)])
    store.append([parsed(dataset_event("orders", {}, day(2)))])  # of no run
    assert events_of(store) == ["r1", "r2", "r3"]
    assert events_of(store, limit=1, offset=1) == ["r2"]
    store.append([parsed(run_event(run="r1", at=day(1)))])  # again: not twice
    store.rebuild(lambda done, total: None)
    assert events_of(store) == ["r1", "r2", "r3"]
    second = 1_767_312_000_000_000  # 2026-01-02
    assert events_of(store, after=second, before=second + DAY) == ["r2"]
    with store.reader() as reader:
        counted = reader.activity.event_counts(second, second + 2 * DAY)
    assert sorted(counted) == [(second + n * DAY, RunState.COMPLETE, 1) for n in (0, 1)]
    assert second % QUARTER == 0

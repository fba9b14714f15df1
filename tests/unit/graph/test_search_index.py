"""Searches in the index find, count and filter what a scan of the whole catalog does."""

from __future__ import annotations

import fnmatch
import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.unit.graph.events import dataset, dataset_event, run_event, schema, symlinks

from downriver.graph.names.assets import dataset_type, job_type
from downriver.model.facts import EdgeKind
from downriver.model.ids import EVERY_FIELD, JobId
from downriver.openlineage.facets.custom import parse_asset
from downriver.openlineage.facets.description import parse_owners, parse_tags
from downriver.openlineage.facets.job import parse_job_type
from downriver.service import Lineage
from downriver.service.views.search import SearchFilter
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from downriver.graph import CatalogSnapshot
    from downriver.model.views.search import SearchPage

WORDS = ("", "orders", "or", "a", "x", "ORDERS day")
FILTERS = (
    SearchFilter(),
    SearchFilter(kind="dataset"),
    SearchFilter(kind="job"),
    SearchFilter(type="dbt_model"),
    SearchFilter(type="t*"),
    SearchFilter(namespace="s3*"),
    SearchFilter(tag="PII"),
    SearchFilter(tag="zone:*"),
    SearchFilter(owner="team:?"),
    SearchFilter(kind="dataset", tag="*", owner="team:a"),
)


class Labelled(NamedTuple):
    """A name of a node as a scan of the catalog finds it. `node` is the same for all its names."""

    node: int
    kind: str
    name: str
    namespace: str
    type: str
    tags: frozenset[str]
    owners: frozenset[str]


def made_batches(seed: int, count: int) -> list[list[bytes]]:
    """Make events that add labels, change, delete and move them, and join names."""
    chance = random.Random(seed)
    names = ["orders", "raw.orders", "orders_day", "a", "Xa", "days/x"]
    return [
        [_event(chance, chance.choice(names), names) for _ in range(chance.randint(1, 3))]
        for _ in range(count)
    ]


def _event(chance: random.Random, name: str, names: list[str]) -> bytes:
    facets = {}
    if chance.random() < 0.5:
        entries = [{"key": chance.choice(["pii", "zone"]), "value": chance.choice(["", "eu"])}]
        if chance.random() < 0.5:
            entries[0]["field"] = chance.choice(["id", "Order_X"])
        facets["tags"] = {"tags": entries}
    if chance.random() < 0.4:
        owners = chance.sample(["team:a", "team:b", "ops"], chance.randint(0, 2))
        facets["ownership"] = {"owners": [{"name": owner} for owner in owners]}
    if chance.random() < 0.2:
        facets[chance.choice(["tags", "ownership"])] = {"_deleted": True}
    if chance.random() < 0.3:
        facets["datasetType"] = {"datasetType": chance.choice(["VIEW", "TOPIC", "STRANGE"])}
    if chance.random() < 0.3:
        facets["symlinks"] = symlinks(f"lake/{chance.choice('ab')}", "s3://lake")
    if chance.random() < 0.5:
        facets["schema"] = schema(*chance.sample(["id", "Order_X", "orders", "x", "X"], 2))
    day = chance.randint(1, 9)
    if chance.random() < 0.3:
        namespace = chance.choice(["db", "s3://lake"])
        return dataset_event(name, namespace, day=day, **facets)
    kind = {
        "integration": chance.choice(["DBT", "SPARK", ""]),
        "jobType": chance.choice(["", "TASK"]),
    }
    job = {"jobType": kind} if chance.random() < 0.7 else {}
    written = dataset(name, **facets)
    return run_event(
        chance.choice(["load_orders", "day"]), [chance.choice(names)], [written], day=day, **job
    )


def scan(view: CatalogSnapshot) -> list[Labelled]:
    """Read every node, one by one."""
    reader, graph = view.reader, view.graph.nodes
    found = []
    for number, code, namespace, name in reader.changes.nodes(0):
        members = graph.identities.group(number)
        facets = [reader.facets.of(member) for member in members]
        node = reader.nodes.by_ids([number])[number]
        tags, owners = set[str](), set[str]()
        for of_name in facets:
            parsed = parse_tags(of_name.get("tags"))
            tags |= parsed.whole.union(*parsed.by_column.values())
            owners |= {*parse_owners(of_name.get("ownership"))}
        assets = [parse_asset(f["downriver_asset"]) for f in facets if "downriver_asset" in f]
        writers = graph.neighbours(members, EdgeKind.WRITES, downstream=False)
        jobs = [
            parse_job_type(reader.facets.of(job).get("jobType"))
            for listed in writers.values()
            for job in listed
        ]
        declared = sorted(
            dataset_type(node, (), f["datasetType"])
            for f in facets
            if "STRANGE" not in str(f.get("datasetType", "STRANGE"))
        )
        if assets:
            kind = min(asset.assetType for asset in assets)
        elif isinstance(node, JobId):
            kind = job_type(parse_job_type(reader.facets.of(number).get("jobType")))
        elif (written := dataset_type(node, jobs)) == "dbt_model" or not declared:
            kind = written
        else:
            kind = declared[0]
        found.append(
            Labelled(
                members[0],
                "job" if code else "dataset",
                name,
                namespace,
                kind,
                frozenset(tags),
                frozenset(owners),
            )
        )
    return found


def scan_columns(view: CatalogSnapshot) -> set[tuple[str, str]]:
    """Read every column, one by one: the id of its dataset as shown, and its name."""
    rows = [row for row in view.reader.changes.columns(0) if row[2] != EVERY_FIELD]
    names = view.graph.nodes.identities.display_names({row[1] for row in rows}, view.reader)
    return {(str(names[owner].id), field) for _, owner, field in rows}


def allows(where: SearchFilter, node: Labelled) -> bool:
    def fits(pattern: str | None, values) -> bool:
        return pattern is None or any(
            fnmatch.fnmatchcase(value.lower(), pattern.lower()) for value in values
        )

    return (
        fits(where.kind, [node.kind])
        and fits(where.type, [node.type])
        and fits(where.namespace, [node.namespace])
        and fits(where.tag, node.tags)
        and fits(where.owner, node.owners)
    )


def contains(name: str, text: str) -> bool:
    return all(word.lower() in name.lower() for word in text.split())


def check(page: SearchPage, nodes: list[Labelled], text: str, where: SearchFilter) -> None:
    order = sorted(nodes, key=lambda n: (n.kind, len(n.name), n.name.lower(), n.namespace))
    matching = [n for n in order if contains(n.name, text) and allows(where, n)]
    # A dataset is found once, under the first of its names.
    firsts = {n.node: n for n in reversed(matching)}
    expected = [n for n in matching if firsts[n.node] is n]
    found = [(e.kind, e.name, e.namespace, e.type) for e in page.entities]
    assert found == [(n.kind, n.name, n.namespace, n.type) for n in expected]
    assert (page.total, page.total_is_exact, page.complete) == (len(expected), True, True)
    assert page.facets.kind == Counter(n.kind for n in expected)
    assert page.facets.type == Counter(n.type for n in expected)
    assert page.facets.namespace == Counter(n.namespace for n in expected)
    assert page.facets.tag == Counter(tag for n in expected for tag in n.tags)
    assert page.facets.owner == Counter(owner for n in expected for owner in n.owners)


@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_and_counts_what_a_scan_does_after_every_write(tmp_path, seed):
    with Lineage(SqliteStore(tmp_path / "lineage.db")) as lineage:
        for number, batch in enumerate(made_batches(seed, 25)):
            lineage.ingest(batch)
            if number == 12:
                lineage.store.rebuild(lambda done, total: None)
            with lineage.session.reading() as view:
                nodes, columns = scan(view), scan_columns(view)
            for text in WORDS:
                for where in FILTERS:
                    check(lineage.search(text, limit=100, where=where), nodes, text, where)
                hits = [hit for hit in lineage.search(text).hits if hit.kind == "column"]
                found = [(hit.dataset, hit.name) for hit in hits]
                expected = {column for column in columns if text and contains(column[1], text)}
                assert len(found) == len(set(found)) == min(len(expected), 20)
                assert set(found) <= expected
                lengths = [len(name) for _, name in found]
                assert lengths == sorted(lengths)


def test_the_index_reads_only_the_labels_that_a_write_may_have_changed(tmp_path):
    tagged = {"tags": {"tags": [{"key": "pii"}]}}
    with Lineage(SqliteStore(tmp_path / "lineage.db")) as lineage:
        lineage.ingest([dataset_event(f"t{number}", **tagged) for number in range(20)])
        lineage.search("t")
        with lineage.store.reader() as reader:
            seen = reader.state().seq
        lineage.ingest([dataset_event("t3", day=2, **tagged), dataset_event("new")])
        with lineage.store.reader() as reader:
            changed = reader.changes.labelled(seen)
            assert changed is not None
            assert [node.name for node in reader.nodes.by_ids(changed).values()] == ["t3"]


def test_columns_are_found_by_tag_and_namespace(tmp_path):
    def table(name: str, namespace: str, field: str) -> bytes:
        tags = {"tags": [{"key": "pii", "field": field}]}
        return dataset_event(name, namespace, schema=schema("email", "Email_Hash"), tags=tags)

    with Lineage(SqliteStore(tmp_path / "lineage.db")) as lineage:
        lineage.ingest([table("a", "one", "EMAIL"), table("b", "two", "email_hash")])
        for where, expected in (
            (SearchFilter(kind="column"), ["a.email", "b.email", "a.Email_Hash", "b.Email_Hash"]),
            (SearchFilter(tag="pii"), ["a.email", "b.Email_Hash"]),
            (SearchFilter(kind="column", namespace="tw*"), ["b.email", "b.Email_Hash"]),
            (SearchFilter(tag="other"), []),
        ):
            hits = lineage.search("email", where=where).hits
            assert [hit.label for hit in hits if hit.kind == "column"] == expected

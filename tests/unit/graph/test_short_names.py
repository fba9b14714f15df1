"""Names in answers are short, and no two are alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.graph.events import dataset, run_event

from downriver.graph.names.short_names import ShortNames, find_full_ids, parse_full_id
from downriver.model.ids import ColumnId, DatasetId, JobId


def short(*ids: str) -> list[str]:
    names = ShortNames.of_ids(ids)
    return [names[full] for full in ids]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["dataset:db:warehouse.public.orders"], ["orders"]),
        (["dataset:db:public.orders", "dataset:db:raw.orders"], ["public.orders", "raw.orders"]),
        (["dataset:a:orders", "dataset:b:orders"], ["orders (a)", "orders (b)"]),
        (["dataset:db:orders", "dataset:db:raw.orders"], ["orders", "raw.orders"]),
        (["dataset:file:/tmp/lake/raw/orders", "dataset:file:/tmp/lake/x/"], ["orders", "x"]),
        (["dataset:file:/lake/raw/a.csv", "dataset:file:/lake/b/a.csv"], ["raw/a.csv", "b/a.csv"]),
        (["dataset:kafka://broker:9092:orders.v1"], ["orders.v1"]),
        (["dataset:postgres://host:5432:shop.public.orders"], ["orders"]),
        (["column:db:public.orders:amount"], ["orders.amount"]),
        (["column:db:raw.orders:id", "column:db:orders:id"], ["raw.orders.id", "orders.id"]),
        (["dataset:sftp://bank:daily.csv"], ["daily.csv"]),
        (["dataset:files:churn_v1.2"], ["churn_v1.2"]),
        (["job:airflow:daily.load", "dataset:db:load"], ["daily.load", "load"]),
    ],
)
def test_names_are_as_short_as_the_answer_allows(ids, expected):
    assert short(*ids) == expected


parts = st.sampled_from(["a", "b", "orders", "raw"])
nodes = st.builds(
    lambda kind, namespace, names: kind(namespace, ".".join(names)),
    st.sampled_from([DatasetId, JobId]),
    st.sampled_from(["db", "s3://lake", "kafka://host:9092"]),
    st.lists(parts, min_size=1, max_size=3),
)


@given(st.lists(nodes, unique=True, max_size=8))
def test_no_two_datasets_have_one_name(nodes):
    names = ShortNames({str(node): node for node in nodes})
    for kind in (DatasetId, JobId):
        shown = [names[str(node)] for node in nodes if isinstance(node, kind)]
        assert len(set(shown)) == len(shown)


@pytest.mark.parametrize(
    "entity",
    [
        DatasetId("s3://lake", "raw/orders"),
        DatasetId("postgres://host:5432", "shop.orders"),
        JobId("airflow", "daily"),
        ColumnId(DatasetId("kafka://host:9092", "orders"), "amount"),
    ],
)
def test_a_full_id_is_parsed(entity):
    assert parse_full_id(str(entity)) == entity


def test_full_ids_are_found_in_messages():
    text = "reads dataset:s3://lake:raw/orders, and job:etl:load writes (dataset:db:x)."
    assert find_full_ids(text) == {
        "dataset:s3://lake:raw/orders",
        "job:etl:load",
        "dataset:db:x",
    }


def test_full_ids_in_messages_become_short_names(lineage):
    lineage.ingest([run_event("load", [dataset("raw.orders")], [dataset("mart.orders")])])
    answer = lineage.trace("raw.orders", "both")
    names = ShortNames.of_ids(node.id for node in answer.nodes)
    assert [names[node.id] for node in answer.nodes] == ["raw.orders", "mart.orders", "load"]
    assert names.replace_in("job:etl:load writes dataset:db:mart.orders") == (
        "load writes mart.orders"
    )
    assert names.namespaces == ["db"]
    assert names["dataset:other:thing"] == "dataset:other:thing"

"""Short names: as short as possible, and never the same for two entities of a kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downriver.graph.names.short_names import ShortNames
from downriver.model.ids import ColumnId, DatasetId, JobId


def names_of(*ids: object) -> list[str]:
    names = ShortNames(map(str, ids))
    return [names[str(each)] for each in ids]


def test_a_dataset_goes_by_the_last_part_of_its_name():
    assert names_of(
        DatasetId("postgres://db:5432", "shop.public.orders"), DatasetId("s3://lake", "raw/users")
    ) == ["orders", "users"]


def test_a_column_goes_by_its_dataset_and_field():
    assert names_of(ColumnId(DatasetId("db", "shop.orders"), "amount")) == ["orders.amount"]


def test_equal_last_parts_are_told_apart_by_the_part_before():
    datasets = [DatasetId("s3://lake", name) for name in ("raw/orders", "silver/orders", "orders")]
    assert names_of(*datasets) == ["raw/orders", "silver/orders", "orders"]


def test_equal_names_in_two_namespaces_show_the_namespace():
    datasets = [DatasetId("a", "orders"), DatasetId("b", "orders")]
    assert names_of(*datasets) == ["orders (a)", "orders (b)"]


def test_a_job_and_a_dataset_of_one_name_are_both_short():
    assert names_of(JobId("dbt", "marts.revenue"), DatasetId("db", "marts.revenue")) == [
        "revenue",
        "revenue",
    ]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("daily.csv", "daily.csv"),
        ("/data/lake/raw/orders.parquet", "orders.parquet"),
        ("churn_v1.2", "churn_v1.2"),
        ("folder/", "folder"),
        ("analytics.fct_orders.test", "fct_orders.test"),
        ("", "dataset:files:"),
    ],
)
def test_file_types_versions_and_general_words_do_not_stand_alone(name: str, short: str):
    assert names_of(DatasetId("files", name)) == [short]


def test_namespaces_are_listed_by_frequency():
    names = ShortNames(["dataset:b:x", "dataset:a:x", "dataset:b:y", "job:c:z"])
    assert names.namespaces == ["b", "a", "c"]


def test_ids_in_messages_become_short_names():
    names = ShortNames(["dataset:s3://lake:raw/orders", "job:etl:load.orders"])
    text = "reads dataset:s3://lake:raw/orders, and job:etl:load.orders writes dataset:db:other."
    assert names.replace_in(text) == "reads orders, and orders writes dataset:db:other."


PARTS = st.lists(st.sampled_from(["a", "b", "csv", "1"]), min_size=1, max_size=4)
NAMES = st.tuples(st.sampled_from("./"), PARTS).map(lambda pair: pair[0].join(pair[1]))


@given(st.lists(st.builds(DatasetId, st.sampled_from(["n", "m"]), NAMES), unique=True))
def test_no_two_datasets_have_the_same_short_name(datasets: list[DatasetId]):
    assert len(set(names_of(*datasets))) == len(datasets)

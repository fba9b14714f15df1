"""Normal forms: which spellings are one dataset, which may be, and which are different."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downriver.model.ids import DatasetId
from downriver.openlineage.naming import (
    NameDifference,
    compare_names,
    folder_of,
    is_file,
    loose_form,
    normal_form,
)

ONE_DATASET = [
    (("s3://lake", "raw/orders"), ("s3a://lake", "raw/orders")),
    (("s3://lake", "raw/orders"), ("s3n://lake", "/raw/orders/")),
    (("gs://lake", "raw/orders"), ("gcs://lake", "raw//orders")),
    (("abfss://c@acc.dfs.core.windows.net", "x"), ("wasbs://c@acc.blob.core.windows.net", "x")),
    (("hdfs://nn:8020", "/raw/orders"), ("hdfs://nn", "/raw/orders")),
    (("file", "/data/orders"), ("file://", "/data/./orders/")),
    (("s3://lake", "raw/orders"), ("s3://lake", "raw/orders/day=2026-01-01/hour=3")),
    (("s3://lake", "raw/orders"), ("s3://lake", "raw/orders/*.parquet")),
    (("s3://lake", "raw/orders"), ("s3://lake", "raw/orders/part-00000-ab.snappy.parquet")),
    (("s3://lake", "raw/my orders"), ("s3://lake", "raw/my%20orders")),
    (("postgres://h:5432", "db.public.orders"), ("postgresql://h", 'db."public"."orders"')),
    (("mssql://h", "db.dbo.orders"), ("sqlserver://h:1433", "[db].[dbo].[orders]")),
    (("hive://ms", "gold.orders"), ("hive://ms", "Gold.Orders")),
    (("duckdb://x", "main.orders"), ("duckdb://x", "main.ORDERS")),
    (("snowflake://acc", "DB.PUBLIC.ORDERS"), ("snowflake://acc", "db.public.orders")),
]
MAY_BE_ONE = [
    (("postgres://h", "public.orders"), ("postgres://h", "public.Orders"), NameDifference.CASE),
    (("snowflake://a", "DB.S.ORDERS"), ("snowflake://a", "DB.S.Orders"), NameDifference.CASE),
    (("bigquery", "p.d.orders"), ("bigquery", "p.d.ORDERS"), NameDifference.CASE),
    (("s3://lake", "raw/Orders"), ("s3://lake", "raw/orders"), NameDifference.CASE),
    (("hdfs://one", "/raw/orders"), ("hdfs://two", "/raw/orders"), NameDifference.HOST),
    (("s3://lake", "raw/orders"), ("s3a://lake", "raw/orders/a.csv"), NameDifference.FOLDER),
    (("default", "orders"), ("postgres://h", "db.public.orders"), NameDifference.PREFIX),
    (("pg", "public.orders"), ("pg", "warehouse.public.orders"), NameDifference.PREFIX),
    (("hive://ms", "gold.orders"), ("s3://lake", "wh/gold.db/orders"), NameDifference.PREFIX),
    (("file", "data/raw/orders"), ("file", "/srv/data/raw/orders"), NameDifference.PREFIX),
]
DIFFERENT = [
    (("pg", "prod.orders"), ("pg", "staging.orders")),
    (("postgres://a", "db.public.orders"), ("postgres://b", "db.public.orders")),
    (("s3://one", "raw/orders"), ("s3://two", "raw/orders")),
    (("s3://lake", "raw/orders"), ("s3://lake", "raw/orders_2")),
    (("s3://lake", "raw/a.csv"), ("s3://lake", "raw/b.csv")),
    (("s3://lake", "raw"), ("s3://lake", "raw/orders")),
    (("pg", "orders"), ("pg", "reorders")),
    (("file", "/data/a=b/orders"), ("file", "/data/a=b/items")),
    (("prod", "orders"), ("staging", "orders")),
    (("hive://ms", "orders"), ("s3://lake", "wh/orders")),
]


@pytest.mark.parametrize(("one", "other"), ONE_DATASET)
def test_spellings_of_one_dataset_have_one_normal_form(one, other):
    assert normal_form(DatasetId(*one)) == normal_form(DatasetId(*other))
    assert loose_form(*one) == loose_form(*other)


@pytest.mark.parametrize(("one", "other", "difference"), MAY_BE_ONE)
def test_names_that_may_be_one_dataset_differ_in_one_thing(one, other, difference):
    assert normal_form(DatasetId(*one)) != normal_form(DatasetId(*other))
    assert compare_names(DatasetId(*one), DatasetId(*other)) is difference
    assert compare_names(DatasetId(*other), DatasetId(*one)) is difference


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_datasets_are_not_compared(one, other):
    assert compare_names(DatasetId(*one), DatasetId(*other)) is None
    assert compare_names(DatasetId(*other), DatasetId(*one)) is None


words = st.text("abcXYZ019_", min_size=1, max_size=6)
tables = st.lists(words, min_size=1, max_size=4).map(".".join)
paths = st.lists(words, min_size=1, max_size=5).map("/".join)
namespaces = st.sampled_from(
    ["default", "pg", "postgres://h:5432", "snowflake://a", "hive://ms", "s3://lake", "file"]
)
names = st.builds(DatasetId, namespaces, tables | paths)


@given(names)
def test_a_normal_form_is_its_own_normal_form(name):
    once = normal_form(name)
    assert normal_form(once) == once


@given(names, names)
def test_a_certain_match_is_always_a_possible_one(one, other):
    if normal_form(one) == normal_form(other):
        assert loose_form(one.namespace, one.name) == loose_form(other.namespace, other.name)


@given(names, names)
def test_the_comparison_has_no_direction(one, other):
    assert compare_names(one, other) is compare_names(other, one)


@given(st.sampled_from(["s3", "s3a", "s3n"]), st.lists(words, min_size=1), st.integers(0, 2))
def test_every_spelling_of_a_path_is_one_dataset(scheme, parts, slashes):
    plain = DatasetId("s3://lake", "/".join(parts))
    spelled = DatasetId(f"{scheme}://lake", "/./".join(parts) + "/" * slashes)
    assert normal_form(plain) == normal_form(spelled)


@given(namespaces, words, words, words)
def test_tables_of_two_schemas_are_never_compared(namespace, table, one, other):
    if one.casefold() != other.casefold() and namespace != "file":
        names = [DatasetId(namespace, f"{schema}.{table}") for schema in (one, other)]
        assert compare_names(*names) in (None, NameDifference.SPELLING)


def test_a_file_has_a_folder_and_a_table_has_none():
    assert folder_of(DatasetId("s3a://lake", "raw/a.csv")) == DatasetId("s3://lake", "raw")
    assert folder_of(DatasetId("pg", "public.csv")) is None
    assert folder_of(DatasetId("s3://lake", "a.csv")) is None
    assert is_file("raw/a.csv.gz")
    assert not is_file("warehouse/gold.db")

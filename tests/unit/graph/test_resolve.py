"""Names that users may write, and the errors for unknown and ambiguous ones."""

from __future__ import annotations

import pytest
from tests.test_growing_inputs import cpu_limit
from tests.unit.graph.events import (
    column_lineage,
    copied,
    dataset,
    dataset_event,
    nested_schema,
    renamed_from,
    run_event,
    schema,
    symlinks,
)

from downriver.errors import AmbiguousNameError, EntityNotFoundError
from downriver.model.flows import Flow

HOST = "postgres://host:5432"


def meant(lineage, text):
    with lineage.session.reading() as view:
        return str(lineage.session.resolve(text, view).id)


@pytest.mark.parametrize(
    "text", ["daily", "dag:daily", "job:daily", "Job:etl:daily", "etl:daily", " daily "]
)
def test_a_job_is_found_by_its_name_with_or_without_its_kind(lineage, text):
    lineage.ingest([run_event("daily", ["raw"])])
    assert meant(lineage, text) == "job:etl:daily"


@pytest.mark.parametrize(
    "text",
    [
        f"dataset:{HOST}:db.public.orders",
        f"table:{HOST}:db.public.orders",
        f"{HOST}:db.public.orders",
        f"{HOST}/db.public.orders",
        "db.public.orders",
        "table:public.orders",
    ],
)
def test_a_namespace_may_hold_colons(lineage, text):
    lineage.ingest([dataset_event("db.public.orders", HOST)])
    assert meant(lineage, text) == f"dataset:{HOST}:db.public.orders"


@pytest.mark.parametrize(
    "text",
    [
        f"column:{HOST}:db.public.orders:address.city",
        f"datasetField:{HOST}:db.public.orders:address.city",
        "column:orders.address.city",
        "orders.address.city",
        "Public.Orders.Address.City",
        "db.public.orders.address.city",
    ],
)
def test_a_nested_column_goes_by_its_path(lineage, text):
    lineage.ingest(
        [dataset_event("db.public.orders", HOST, schema=nested_schema("address", "city"))]
    )
    assert meant(lineage, text) == f"column:{HOST}:db.public.orders:address.city"


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "raw/orders",
        "s3://bucket/raw/orders",
        "file:orders",
        "dataset:s3://bucket:raw/orders",
    ],
)
def test_a_file_goes_by_its_path_or_its_url(lineage, text):
    lineage.ingest([dataset_event("raw/orders", "s3://bucket")])
    assert meant(lineage, text) == "dataset:s3://bucket:raw/orders"


@pytest.mark.parametrize("text", ["hdfs://nn:8020/data/x", "/data/x", "x"])
def test_a_path_may_begin_with_a_slash(lineage, text):
    lineage.ingest([dataset_event("/data/x", "hdfs://nn:8020")])
    assert meant(lineage, text) == "dataset:hdfs://nn:8020:/data/x"


def test_a_whole_name_is_meant_before_the_end_of_a_longer_one(lineage):
    lineage.ingest([run_event("load", ["orders", "raw.orders"])])
    assert meant(lineage, "orders") == "dataset:db:orders"
    assert meant(lineage, "raw.orders") == "dataset:db:raw.orders"


def test_a_name_in_another_case_is_found_unless_one_fits_exactly(lineage):
    lineage.ingest([run_event("load", ["Orders", "orders"])])
    assert meant(lineage, "Orders") == "dataset:db:Orders"
    with pytest.raises(AmbiguousNameError):
        meant(lineage, "ORDERS")


def test_columns_that_differ_only_in_case_are_ambiguous_unless_one_fits_exactly(lineage):
    lineage.ingest([dataset_event("orders", schema=schema("amount", "Amount"))])
    assert meant(lineage, "orders.Amount") == "column:db:orders:Amount"
    with pytest.raises(AmbiguousNameError) as refused:
        meant(lineage, "orders.AMOUNT")
    assert refused.value.candidates == ["column:db:orders:Amount", "column:db:orders:amount"]


def test_the_same_name_in_two_namespaces_is_refused_and_both_are_listed(lineage):
    lineage.ingest([dataset_event("orders", "snowflake"), dataset_event("orders", "mysql")])
    with pytest.raises(AmbiguousNameError) as refused:
        meant(lineage, "orders")
    assert refused.value.candidates == ["dataset:mysql:orders", "dataset:snowflake:orders"]
    for candidate in refused.value.candidates:
        assert meant(lineage, candidate) == candidate


def test_two_jobs_of_one_name_are_refused(lineage):
    lineage.ingest([run_event("daily", namespace="a"), run_event("daily", namespace="b")])
    with pytest.raises(AmbiguousNameError) as refused:
        meant(lineage, "dag:daily")
    assert refused.value.candidates == ["job:a:daily", "job:b:daily"]


def test_two_names_of_one_table_are_one_candidate(lineage):
    lineage.ingest(
        [dataset_event("lake/orders", symlinks=symlinks("sales.orders")), dataset_event("other")]
    )
    assert lineage.trace("orders").root.id == "dataset:db:sales.orders"


def test_a_column_is_found_under_every_name_of_its_table(lineage):
    lineage.ingest(
        [
            dataset_event(
                "lake/orders", symlinks=symlinks("sales.orders"), schema=schema("amount")
            ),
            dataset_event("sales.all", lifecycleStateChange=renamed_from("sales.orders"), day=2),
        ]
    )
    for name in ("lake/orders", "sales.orders", "sales.all"):
        assert lineage.trace(f"{name}.amount").root.id == "column:db:sales.all:amount"


def test_every_id_in_an_answer_can_be_asked_for(lineage):
    lineage.ingest(
        [
            run_event(
                "daily.load",
                [],
                [
                    dataset(
                        "lake/orders",
                        HOST,
                        symlinks=symlinks("sales.orders"),
                        columnLineage=column_lineage(
                            total=[copied("raw.a.b")], net=[copied("raw.x")]
                        ),
                    )
                ],
            ),
            run_event(
                "report",
                [],
                [dataset("r", columnLineage=column_lineage(y=[copied("sales.orders.net")]))],
            ),
        ]
    )
    nodes = [
        *lineage.trace("job:report", "both").nodes,
        *lineage.trace("raw.x", "both").nodes,
        *lineage.trace("raw.a.b", "both").nodes,
        *lineage.trace("r", "upstream").nodes,
    ]
    assert len({node.id for node in nodes}) == 11
    for node in nodes:
        assert lineage.trace(node.id).root.id == node.id


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("oders", "public.orders"),
        ("table:public.order", "public.orders"),
        ("orders.amuont", "public.orders.amount"),
        ("orders.adress.city", "public.orders.address.city"),
        ("column:orders.amont", "public.orders.amount"),
        ("job:dialy", "daily"),
    ],
)
def test_an_unknown_name_offers_near_ones(lineage, text, near):
    fields = {"fields": [{"name": "amount"}, *nested_schema("address", "city")["fields"]]}
    lineage.ingest([run_event("daily", [dataset("public.orders", schema=fields)])])
    with pytest.raises(EntityNotFoundError) as unknown:
        meant(lineage, text)
    assert unknown.value.near[0] == near


@pytest.mark.parametrize(
    "text", ["", "   ", ":", "dataset:", "column:::", "orders.", ".amount", "*", "orders.*", "💥"]
)
def test_invalid_names_are_not_found(lineage, text):
    lineage.ingest([dataset_event("orders", schema=schema("amount"))])
    with pytest.raises(EntityNotFoundError):
        meant(lineage, text)


def test_in_an_empty_store_everything_is_unknown(lineage):
    with pytest.raises(EntityNotFoundError) as unknown:
        lineage.trace("orders")
    assert unknown.value.near == []


@pytest.mark.parametrize(
    "text",
    [
        "s3://lake/gold/daily_revenue",
        "s3://lake/gold/daily_revenue/",
        "s3a://lake/gold/./daily_revenue",
        "s3n://lake//gold/daily_revenue/day=2026-01-01",
        "s3://lake/gold/daily_revenue/*.parquet",
    ],
)
def test_a_url_is_found_in_every_spelling(lineage, text):
    lineage.ingest([dataset_event("gold/daily_revenue", "s3://lake", schema=schema("amount"))])
    assert lineage.trace(text).root.id == "dataset:s3://lake:gold/daily_revenue"
    column = lineage.trace(f"{text.partition('/day=')[0].removesuffix('/*.parquet')}.amount")
    assert column.root.id == "column:s3://lake:gold/daily_revenue:amount"


@pytest.mark.parametrize("path", ["s3://lake/raw/orders/", "file:///data/orders/", "s3a://b/x//y/"])
def test_a_path_with_a_slash_at_the_end_is_registered_and_found(lineage, path):
    lineage.flows.register([Flow(source_id=path, target_id="table:report")])
    assert [node.name for node in lineage.trace(path).nodes][-1] == "report"


@pytest.mark.parametrize("part", ["a:", "a.", "a/", "a://", '"', "a_b "])
@pytest.mark.parametrize("length", [999, 60_000, 4_000_000])
def test_an_unknown_name_of_any_length_is_rejected_in_little_time(lineage, part, length):
    lineage.ingest([dataset_event("db.public.orders", HOST)])
    text = (part * length)[:length]
    with (
        cpu_limit(f"a name of {length} characters", seconds=3),
        pytest.raises(EntityNotFoundError) as error,
    ):
        meant(lineage, text)
    assert len(str(error.value)) < 5_000


def test_a_name_with_many_dots_has_a_column(lineage):
    deep = ".".join(["db", *["part"] * 80, "orders"])
    lineage.ingest([dataset_event(deep, HOST, schema=schema("id", "total"))])
    assert meant(lineage, f"{deep}.total") == f"column:{HOST}:{deep}:total"
    assert meant(lineage, f"column:{HOST}:{deep}:total") == f"column:{HOST}:{deep}:total"

"""The registry of Feast as `feast registry-dump` writes it, and features in YAML."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.command import downriver

from downriver.capture.catalogs import parse_feast
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.service import Lineage

EXAMPLES = Path(__file__).parents[3] / "examples" / "catalogs"
REGISTRY = (EXAMPLES / "feast_registry.json").read_text()
FEATURES = (EXAMPLES / "feast_features.yaml").read_text()
VIEW = DatasetId("feast://shop", "customer_spend")
FILE = DatasetId("s3://lake", "features/spend.parquet")


def registry(source: dict[str, Any] | None, **spec: Any) -> str:
    view = {"name": "v", "features": [{"name": "x", "valueType": "INT64"}], **spec}
    if source is not None:
        view["batchSource"] = source
    return json.dumps({"project": "p", "featureViews": [{"spec": view}]})


def test_a_view_reads_its_file_by_column_and_a_service_reads_the_view():
    export = parse_feast(REGISTRY, "registry.json")
    view, service = export.jobs
    assert (view.id, view.kind, view.inputs) == (
        JobId("feast", "shop.customer_spend"), "FEATURE_VIEW", [FILE]
    )  # fmt: skip
    assert view.outputs[VIEW] == {
        "spend_30d": [(FILE, "spend")],
        "orders_30d": [(FILE, "orders_30d")],
        "customer_id": [(FILE, "customer_id")],
    }
    assert service.outputs[DatasetId("feast://shop", "feature_services/churn_v1")] == {
        "spend_30d": [(VIEW, "spend_30d")]
    }
    table = export.tables[0]
    assert (table.owners, table.tags) == (["ml@example.com"], ["team:growth"])
    assert [(c.name, c.type) for c in table.columns] == [
        ("spend_30d", "float"), ("orders_30d", "int64"), ("customer_id", "int64")
    ]  # fmt: skip


def test_the_warning_that_feast_prints_before_the_registry_is_skipped():
    warning = "\x1b[1m\x1b[33mWarning: The registry-dump command is for debugging only.\x1b[0m\n"
    assert parse_feast(warning + REGISTRY, "a") == parse_feast(REGISTRY, "a")


POSTGRES = base64.b64encode(json.dumps({"table": "public.t", "query": ""}).encode()).decode()


@pytest.mark.parametrize(
    ("source", "inputs"),
    [
        ({"bigqueryOptions": {"table": "acme.shop.t"}}, ["bigquery:acme.shop.t"]),
        (
            {"snowflakeOptions": {"database": "DB", "schema": "S", "table": "T"}},
            ["snowflake:DB.S.T"],
        ),
        ({"redshiftOptions": {"query": "select x from a.b"}}, ["redshift:a.b"]),
        ({"batchSource": {"fileOptions": {"uri": "s3://l/f.parquet"}}}, ["s3://l:f.parquet"]),
        (
            {
                "dataSourceClassType": "feast.infra.offline_stores.contrib.postgres_offline_store"
                ".postgres_source.PostgreSQLSource",
                "customOptions": {"configuration": POSTGRES},
            },
            ["postgres:public.t"],
        ),
    ],
)
def test_sources_are_datasets(source: dict[str, Any], inputs: list[str]):
    (job,) = parse_feast(registry(source), "registry.json").jobs
    assert [f"{one.namespace}:{one.name}" for one in job.inputs] == inputs
    (columns,) = job.outputs.values()
    assert columns == {"x": [(job.inputs[0], "x")]}
    assert not job.blind_spots


def test_the_namespace_of_tables_can_be_given():
    source = {"snowflakeOptions": {"table": "A.B.T"}}
    (job,) = parse_feast(registry(source), "registry.json", "snowflake://acme").jobs
    assert job.inputs == [DatasetId("snowflake://acme", "A.B.T")]


def test_a_query_gives_the_columns_that_features_are_computed_from():
    source = {"bigqueryOptions": {"query": "select sum(a) as x from p.d.t group by k"}}
    (job,) = parse_feast(registry(source), "registry.json").jobs
    assert list(job.outputs.values()) == [{"x": [(DatasetId("bigquery", "p.d.t"), "a")]}]


def test_a_stream_view_reads_the_topic_and_the_batch_source():
    stream = {
        "kafkaOptions": {"kafkaBootstrapServers": "k1:9092,k2:9092", "topic": "spend"},
    }
    text = registry({"fileOptions": {"uri": "s3://l/f"}}, streamSource=stream)
    (job,) = parse_feast(text, "registry.json").jobs
    assert job.inputs == [DatasetId("s3://l", "f"), DatasetId("kafka://k1:9092", "spend")]


@pytest.mark.parametrize("source", [None, {"name": "odd"}, {"customOptions": {"configuration": 1}}])
def test_a_view_whose_source_is_unknown_is_a_blind_spot(source: dict[str, Any] | None):
    (job,) = parse_feast(registry(source), "registry.json").jobs
    assert [spot.kind for spot in job.blind_spots] == ["unknown_source"]


def test_an_on_demand_view_reads_views_and_requests_and_is_a_blind_spot():
    spec = {
        "name": "ratio",
        "features": [{"name": "r", "valueType": "DOUBLE"}],
        "sources": {
            "customer_spend": {"featureViewProjection": {"featureViewName": "customer_spend"}},
            "vals": {"requestDataSource": {"name": "vals"}},
        },
    }
    text = json.dumps({"project": "shop", "onDemandFeatureViews": [{"spec": spec}, {"spec": {}}]})
    export = parse_feast(text, "registry.json")
    (job,) = export.jobs
    assert job.inputs == [VIEW, DatasetId("feast://shop", "requests/vals")]
    assert [spot.kind for spot in job.blind_spots] == ["not_read"]
    assert export.unread[0].where == "registry.json: onDemandFeatureViews[1]"


def test_features_in_yaml_are_computed_from_their_transformation():
    (job,) = parse_feast(FEATURES, "features.yaml").jobs
    raw = DatasetId("default", "raw_transactions")
    assert job.inputs == [raw, DatasetId("default", "transactions_table")]
    assert list(job.outputs.values()) == [{"avg_transaction_amount": [(raw, "amount")]}]
    assert not job.blind_spots


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("{name: a, source: t}", "the feature has no transformation"),
        (
            "{name: a, transformation: 'select sum(x), max(y) from t'}",
            "no column of the transformation is a",
        ),
    ],
)
def test_a_feature_without_a_known_column_is_a_blind_spot(feature: str, message: str):
    (job,) = parse_feast(f"features:\n- {feature}\n", "features.yaml").jobs
    assert [spot.message for spot in job.blind_spots] == [message]


def test_a_feature_without_a_source_is_reported():
    export = parse_feast("features: [{name: a}, 7]", "features.yaml")
    assert [record.where for record in export.unread] == [
        "features.yaml: features[0]",
        "features.yaml: features[1]",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", "a: [", "featureViews: 1"])
def test_a_file_of_something_else_is_refused(text: str):
    with pytest.raises(InvalidRequestError, match=r"file\.json"):
        parse_feast(text, "file.json")


def test_an_import_is_traced_from_the_service_to_the_file(tmp_path: Path):
    command = ("import", "feast", str(EXAMPLES / "feast_registry.json"), "--json")
    first, again = (json.loads(downriver(*command, cwd=tmp_path).stdout) for _ in range(2))
    assert (first["stored"], again["stored"], again["duplicates"]) == (4, 0, 4)
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        found = lineage.trace("feature_services/churn_v1.spend_30d", "upstream")
    assert {(node.name, node.field) for node in found.nodes} >= {
        ("customer_spend", "spend_30d"),
        ("features/spend.parquet", "spend"),
    }

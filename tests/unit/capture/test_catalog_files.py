"""Files of Atlas, DataHub, OpenMetadata and Amundsen, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.command import downriver

from downriver.capture.catalogs import (
    parse_amundsen,
    parse_atlas,
    parse_datahub,
    parse_openmetadata,
)
from downriver.capture.entries import merge_exports
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.service import Lineage

EXAMPLES = Path(__file__).parents[3] / "examples" / "catalogs"
HIVE = DatasetId("hive://cl1", "default.user_events")


@pytest.mark.parametrize(
    ("command", "files", "source", "target"),
    [
        ("atlas", ["atlas_entities.json"], "user_events.user_id", "daily_users:user_id"),
        ("datahub", ["datahub_metadata.json"], "raw.orders.amount", "gold.revenue:total"),
        ("openmetadata", ["openmetadata_lineage.json"], "raw.orders.amount", "gold.revenue:total"),
        ("amundsen", ["amundsen_tables.csv", "amundsen_column_lineage.csv"], "orders.amount",
         "shop.revenue:total"),
    ],
)  # fmt: skip
def test_an_import_has_column_lineage_and_repeats_nothing(
    tmp_path: Path, command: str, files: list[str], source: str, target: str
):
    paths = [str(EXAMPLES / file) for file in files]
    first = downriver("import", command, *paths, "--json", cwd=tmp_path)
    again = json.loads(downriver("import", command, *paths, "--json", cwd=tmp_path).stdout)
    assert first.returncode == 0, first.stderr
    assert (again["stored"], again["duplicates"]) == (0, json.loads(first.stdout)["stored"])
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        edges = lineage.trace(source, "downstream").edges
    assert [edge.target.endswith(target) for edge in edges] == [True]


@pytest.mark.parametrize("parse", [parse_amundsen, parse_atlas, parse_datahub, parse_openmetadata])
@pytest.mark.parametrize("text", ["[]", "{}", '{"a": 1}', "a,b\n1,2\n", '[{"a": [1, null]}]'])
def test_a_file_of_something_else_is_refused(parse, text):
    with pytest.raises(InvalidRequestError, match="file"):
        parse(text, "file")


def test_a_single_entity_of_atlas_is_a_dataset():
    entity = {
        "typeName": "hive_table",
        "attributes": {"name": "user_events", "qualifiedName": "default.user_events@cl1",
                       "owner": "data_team"},
    }  # fmt: skip
    (table,) = parse_atlas(json.dumps({"entity": entity}), "file").tables
    assert (table.id, table.owners) == (HIVE, ["data_team"])


def test_an_answer_of_atlas_about_lineage_has_edges():
    def header(kind: str, name: str) -> dict[str, object]:
        return {"typeName": kind, "attributes": {"qualifiedName": f"{name}@cl1"}}

    answer = {
        "baseEntityGuid": "a",
        "guidEntityMap": {
            "a": header("hive_table", "default.user_events"),
            "p": header("hive_process", "load"),
            "b": header("hive_table", "default.daily"),
        },
        "relations": [
            {"fromEntityId": "a", "toEntityId": "p"},
            {"fromEntityId": "p", "toEntityId": "b"},
        ],
    }
    (job,) = parse_atlas(json.dumps(answer), "file").jobs
    assert job.inputs == [HIVE]
    assert list(job.outputs) == [DatasetId("hive://cl1", "default.daily")]


def test_a_path_in_atlas_is_the_dataset_at_the_path():
    attributes = {"qualifiedName": "s3a://lake/raw@cm", "path": "s3a://lake/raw"}
    entity = {"typeName": "hdfs_path", "attributes": attributes}
    (table,) = parse_atlas(json.dumps([entity]), "file").tables
    assert table.id == DatasetId("s3://lake", "raw")


def test_an_entity_of_atlas_without_a_name_is_reported():
    export = parse_atlas(json.dumps([{"typeName": "hive_table", "attributes": {}}]), "file")
    assert export.unread[0].reason == "hive_table: no qualifiedName"


def test_a_change_event_of_datahub_has_columns_tags_and_owners():
    urn = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/raw/orders,PROD)"
    prefix = "com.linkedin.pegasus2avro"
    fields = [{"fieldPath": "[version=2.0].[type=string].email", "nativeDataType": "varchar",
               "globalTags": {"tags": [{"tag": "urn:li:tag:PII"}]}}]  # fmt: skip
    aspects = [
        {f"{prefix}.schema.SchemaMetadata": {"fields": fields}},
        {f"{prefix}.common.Ownership": {"owners": [{"owner": "urn:li:corpuser:ana"}]}},
    ]
    snapshot = {f"{prefix}.metadata.snapshot.DatasetSnapshot": {"urn": urn, "aspects": aspects}}
    (table,) = parse_datahub(json.dumps([{"proposedSnapshot": snapshot}]), "file").tables
    assert table.id == DatasetId("s3://lake", "raw/orders")
    assert ([c.name for c in table.columns], table.column_tags) == (["email"], {"email": ["pii"]})
    assert table.owners == ["ana"]


def test_a_data_job_of_datahub_reads_and_writes():
    table = "urn:li:dataset:(urn:li:dataPlatform:hive,{},PROD)"
    record = {
        "entityUrn": "urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,prod),load)",
        "aspectName": "dataJobInputOutput",
        "aspect": {"value": json.dumps({"inputDatasets": [table.format("a")],
                                        "outputDatasets": [table.format("b")]})},
    }  # fmt: skip
    (job,) = parse_datahub(json.dumps([record]), "file").jobs
    assert job.id == JobId("airflow", "shop.load")
    assert (job.inputs, list(job.outputs)) == ([DatasetId("hive", "a")], [DatasetId("hive", "b")])


def test_a_malformed_urn_is_reported_and_other_records_are_kept():
    records = json.loads((EXAMPLES / "datahub_metadata.json").read_text())
    records.append({"entityUrn": "urn:li:dataset:odd", "aspectName": "status", "aspect": {}})
    export = parse_datahub(json.dumps(records), "file")
    assert len(export.tables) == 2
    assert "urn:li:dataset:odd" in export.unread[0].reason


def test_an_edge_of_openmetadata_belongs_to_its_pipeline():
    answer = json.loads((EXAMPLES / "openmetadata_lineage.json").read_text())
    details = answer["upstreamEdges"][0]["lineageDetails"]
    details["pipeline"] = {"fullyQualifiedName": "airflow.shop"}
    (job,) = parse_openmetadata(json.dumps(answer), "file").jobs
    assert job.id == JobId("openmetadata", "airflow.shop")


def test_newer_answers_of_openmetadata_name_the_ends_of_an_edge():
    end = {"id": "1", "fullyQualifiedName": 'dw.shop.raw."orders.v2"', "type": "table"}
    target = {"id": "2", "fullyQualifiedName": "dw.shop.gold.revenue", "type": "table"}
    answer = {
        "nodes": {"a": {"entity": end}, "b": {"entity": target}},
        "upstreamEdges": {"x": {"fromEntity": end, "toEntity": target}},
        "downstreamEdges": {},
    }
    (job,) = parse_openmetadata(json.dumps(answer), "file").jobs
    assert job.inputs == [DatasetId("openmetadata://dw", "shop.raw.orders.v2")]


def test_an_edge_of_openmetadata_to_an_unknown_entity_is_reported():
    answer = json.loads((EXAMPLES / "openmetadata_lineage.json").read_text())
    answer["nodes"] = []
    export = parse_openmetadata(json.dumps(answer), "file")
    assert "not in the file" in export.unread[0].reason


def test_files_of_amundsen_add_up_to_one_table():
    table = "database,cluster,schema,name,description,tags\nhive,gold,shop,orders,All,pii\n"
    column = (
        "name,description,col_type,sort_order,database,cluster,schema,table_name\n"
        "email,,string,1,hive,gold,shop,orders\n"
    )
    owner = "db_name,schema,cluster,table_name,owners\nhive,shop,gold,orders,ana@x.com\n"
    (merged,) = merge_exports(
        [parse_amundsen(text, "file") for text in (table, column, owner)]
    ).tables
    assert ([c.name for c in merged.columns], merged.owners) == (["email"], ["ana@x.com"])
    assert (merged.description, merged.tags) == ("All", ["pii"])


def test_a_malformed_key_of_amundsen_is_reported_with_its_line():
    text = "source_table_key,target_table_key\nodd,hive://gold.shop/b\n"
    (unread,) = parse_amundsen(text, "file").unread
    assert unread.where == "file:2"


def test_an_end_of_a_process_of_atlas_that_is_not_in_the_file_is_reported():
    ends = {"inputs": [{"guid": "g-1", "typeName": "hive_table"}], "outputs": []}
    process = {"typeName": "hive_process", "attributes": {"qualifiedName": "load@cl1", **ends}}
    (record,) = parse_atlas(json.dumps([process]), "file").unread
    assert record.where == "file: hive_process load@cl1"
    assert record.reason == "inputs: no entity with guid g-1 and no qualifiedName"

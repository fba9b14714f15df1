"""Operators of Airflow providers: the datasets that their arguments name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan.located_text import LocatedText
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.scan.python.interpreter.values import Arguments, Value
    from downriver.capture.scan.python.recorder import JobRecorder

_NOTIFIES = (
    "Slack|Teams|MSTeams|Discord|Telegram|Pager|Opsgenie|Mattermost|Email|Smtp|SendGrid|Chime"
    "|Dingding|SesEmail|Sns|Apprise|Zendesk|Jira|Github"
)
_STORED = "Table|Object|File|Blob|(?<!Big)Quer|Row|Record|Document|View|Entit|GetData(?:Op|$)"
_RUNNING = (
    "Job|Pipeline|Batch|Run|Execution|Training|Predict|Embedding|Workflow|Invocation|Transform"
    "|Model|Index|Export|Import|Replication|Notebook|Pod|Flow|Load"
)
_CONTROLS = re.compile(
    rf"(?:{_NOTIFIES})\w*|(?=\w*\Z)\w*(?:Trigger\w{{0,60}}Dag|Branch|ShortCircuit)\w*"
    r"|(?:Empty|Dummy|LatestOnly|Subdag|SubDag|HITL|Approval|ExternalTaskMarker)\w*"
)
# Sensors, and management of clusters and buckets, unless an argument names data. Operators that
# start jobs, or that handle tables or objects, can move data.
_MANAGES = re.compile(
    r".*Sensor(?:Async)?"
    r"|(?!\w*(?:" + _STORED + r"))\w*(?:Delete|Update|Get|List|Describe|Cancel|Stop|Terminate|Pause"
    r"|Resume|Reboot|Undelete|Modify|Patch|Restore|Deregister|Diagnose|Lookup|IamBinding|Remove)\w*"
    r"|(?!\w*(?:"
    + _STORED
    + "|"
    + _RUNNING
    + r"))\w*(?:Create|Insert|Start|Deploy|Set|Test)[A-Z]\w*"
)


_NAMES_DATA = (
    "table", "table_name", "table_names", "table_id", "tables", "bucket_key", "object_name",
    "s3_key", "blob_name", "filepath", "source_object", "source_objects", "destination_object",
)  # fmt: skip


def is_control(kind: str) -> bool:
    """Whether an operator only controls the order of tasks, or notifies."""
    return _CONTROLS.fullmatch(kind) is not None


def has_data(kind: str, args: Arguments) -> bool:
    """Whether an operator can read or write data. A notification does not."""
    if is_control(kind):
        return False
    return not _MANAGES.fullmatch(kind) or any(args.get(name) is not None for name in _NAMES_DATA)


class _Place(NamedTuple):
    """The arguments that name data: a table, files at a URL, or a bucket and its keys."""

    scheme: str  # empty for a table, `url` for whole URLs, `file` for local paths
    names: tuple[str, ...]  # tables, URLs or keys: the first argument that is given
    home: tuple[str, ...] = ()  # schema or bucket


class _Transfer(NamedTuple):
    """The inputs and outputs of an operator."""

    reads: tuple[_Place, ...]
    writes: tuple[_Place, ...]


def _table(*names: str, home: tuple[str, ...] = ("schema",)) -> _Place:
    return _Place("", names, home)


_S3_FILES = _Place("s3", ("s3_key", "s3_keys", "key", "keys", "prefix"),
                   ("s3_bucket", "s3_bucket_name", "bucket_name", "bucket"))  # fmt: skip
_GCS_FILES = _Place(
    "gs",
    ("source_objects", "source_object", "gcs_object", "object_name", "object", "filename",
     "prefix"),
    ("bucket", "source_bucket", "bucket_name", "gcs_bucket"),
)  # fmt: skip
_BIGQUERY = _table("destination_project_dataset_table", "destination_dataset_table", home=())
_GLUE = ("database_name", "database")
_LOCAL = _Place("file", ("src", "filename", "file_path", "local_path", "path"))

# The first pattern that matches an operator's name decides. The SQL of an operator is always read.
_TRANSFERS: tuple[tuple[re.Pattern[str], _Transfer], ...] = tuple(
    (re.compile(rf"(?:{name})(?:Async)?(?:Operator)?"), _Transfer(reads, writes))
    for name, reads, writes in (
        (r"S3ToRedshift|S3ToRedshiftTransfer", (_S3_FILES,), (_table("table"),)),
        (r"RedshiftToS3|RedshiftToS3Transfer", (_table("table"),), (_S3_FILES,)),
        (r"S3ToSnowflake|CopyFromExternalStageToSnowflake", (_S3_FILES,), (_table("table"),)),
        (r"S3ToSql|S3ToMySql|S3ToHive|S3ToDynamoDB|S3ToTeradata", (_S3_FILES,),
         (_table("table", "mysql_table", "hive_table", "dynamodb_table_name", "teradata_table"),)),
        (r"HiveToDynamoDB", (), (_table("table_name", home=()),)),
        (r"GlueCatalog\w*(?:Table|Partitions?)", (), (_table("table_name", home=_GLUE),)),
        (r"GoogleAdsListAccounts", (), (_GCS_FILES,)),
        (r"SqlToS3|MySQLToS3|ExasolToS3|MongoToS3|GlacierToS3|SalesforceToS3", (),
         (_S3_FILES,)),
        (r"DynamoDBToS3", (_table("dynamodb_table_name", home=()),),
         (_Place("s3", ("s3_key_prefix",), ("s3_bucket_name",)),)),
        (r"S3CopyObject", (_Place("s3", ("source_bucket_key",), ("source_bucket_name",)),),
         (_Place("s3", ("dest_bucket_key",), ("dest_bucket_name",)),)),
        (r"S3FileTransform", (_Place("s3", ("source_s3_key",)),),
         (_Place("s3", ("dest_s3_key",)),)),
        (r"S3CreateObject", (), (_S3_FILES,)),
        (r"LocalFilesystemToS3", (_LOCAL,), (_Place("s3", ("dest_key",), ("dest_bucket",)),)),
        (r"(?:SFTP|FTP|HttpTo|Http|Imap\w*|GoogleApi|AzureBlobStorage)(?:To)?S3", (),
         (_Place("s3", ("s3_key", "s3_destination_key", "dest_s3_key"), ("s3_bucket",)),)),
        (r"S3ToGCS|S3ToGoogleCloudStorage", (_S3_FILES,), (_Place("url", ("dest_gcs",)),)),
        (r"GCSToS3|GoogleCloudStorageToS3", (_GCS_FILES,), (_Place("url", ("dest_s3_key",)),)),
        (r"GCSToBigQuery|GoogleCloudStorageToBigQuery|GoogleCloudStorageToBigQueryTransfer"
         r"|BigQueryCreateExternalTable", (_GCS_FILES,), (_BIGQUERY,)),
        (r"BigQueryToGCS|BigQueryToCloudStorage",
         (_table("source_project_dataset_table", home=()),),
         (_Place("url", ("destination_cloud_storage_uris",)),)),
        (r"BigQueryToBigQuery", (_table("source_project_dataset_tables", home=()),), (_BIGQUERY,)),
        (r"BigQueryTo(?:Sql|MySql|Postgres|MsSql)", (_table("dataset_table", home=()),),
         (_table("target_table_name", "mysql_table", home=()),)),
        (r"BigQueryExecuteQuery|BigQueryOperator", (), (_BIGQUERY,)),
        (r"BigQueryGetData", (_table("table_id", home=("dataset_id",)),), ()),
        (r"BigQuery(?:Upsert|Delete|CreateEmpty|Update)?Table(?:Schema)?|BigQueryCreateTable"
         r"|BigQueryCreateEmptyTable|BigQueryCreateView", (),
         (_table("deletion_dataset_table", "table_id", home=("dataset_id",)),)),
        (r"GCSToGCS|GCSSynchronizeBuckets|GoogleCloudStorageToGoogleCloudStorage",
         (_GCS_FILES,), (_Place("gs", ("destination_object",), ("destination_bucket",)),)),
        (r"GCSToLocalFilesystem|GoogleCloudStorageDownload", (_GCS_FILES,), (_LOCAL,)),
        (r"GCSFileTransform", (_GCS_FILES,),
         (_Place("gs", ("destination_object",), ("destination_bucket",)),)),
        (r"LocalFilesystemToGCS|FileToGoogleCloudStorage", (_LOCAL,),
         (_Place("gs", ("dst", "destination"), ("bucket",)),)),
        (r"SFTPToGCS", (_Place("file", ("source_path",)),),
         (_Place("gs", ("destination_path",), ("destination_bucket",)),)),
        (r"GCSToSFTP", (_GCS_FILES,), (_Place("file", ("destination_path",)),)),
        (r"CassandraToGCS|\w+ToGCS|\w+ToGoogleCloudStorage", (),
         (_Place("gs", ("filename", "object_name", "destination_object", "blob_name"),
                 ("bucket", "bucket_name", "destination_bucket", "gcs_bucket")),)),
        (r"(?:MySql|MsSql|Vertica|Oracle|S3)ToHive\w*", (), (_table("hive_table", home=()),)),
        (r"(?:Hive|Presto|Trino|Vertica)ToMySql\w*", (), (_table("mysql_table", home=()),)),
        (r"GenericTransfer", (), (_table("destination_table", home=()),)),
        (r"OracleToOracle", (), (_table("destination_table", home=()),)),
        (r"SQL(?:Column|Table|Value|Threshold)?(?:Interval)?Check|BigQuery(?:Column|Table)Check",
         (_table("table", home=()),), ()),
        (r"SQLInsertRows", (), (_table("table_name", "table"),)),
        (r"TdLoad", (_table("source_table", home=()),), (_table("target_table", home=()),)),
        (r"LoadFile|AstroLoadFile", (_Place("url", ("input_file",)),), ()),
        (r"DatabricksCopyInto", (_Place("url", ("file_location",)),), (_table("table_name"),)),
        (r"LocalFilesystemToWasb|LocalFilesystemToADLS", (_LOCAL,), ()),
        # A sensor waits for data that its task depends on.
        (r"S3Key\w*Sensor|S3PrefixSensor", (_Place("s3", ("bucket_key", "prefix"),
                                                   ("bucket_name",)),), ()),
        (r"(?:GCS|GoogleCloudStorage)\w*Sensor", (_GCS_FILES,), ()),
        (r"BigQueryTable\w*Sensor", (_table("table_id", home=("dataset_id",)),), ()),
        (r"(?:\w*Hive|AwsGlueCatalog|GlueCatalog|Athena|Databricks)\w*Partition\w*Sensor",
         (_table("table", "table_name", home=("schema", "database", "database_name")),), ()),
        (r"Wasb\w*Sensor", (_Place("wasb", ("blob_name", "prefix"), ("container_name",)),), ()),
        (r"(?:File|SFTP|Hdfs|WebHdfs)\w*Sensor", (_Place("file", ("filepath", "path")),), ()),
        (r"ProduceToTopic", (), (_Place("kafka", ("topic",)),)),
        (r"ConsumeFromTopic", (_Place("kafka", ("topics",)),), ()),
    )
)  # fmt: skip


def record_transfer(recorder: JobRecorder, kind: str, args: Arguments) -> None:
    """Record the datasets that the arguments of an operator name."""
    transfer = next((known for name, known in _TRANSFERS if name.fullmatch(kind)), None)
    if transfer is None:
        return
    for place in transfer.reads:
        for dataset in _datasets(recorder, place, args):
            recorder.add_input(dataset)
    for place in transfer.writes:
        for dataset in _datasets(recorder, place, args):
            recorder.add_output(dataset, None)


def _datasets(recorder: JobRecorder, place: _Place, args: Arguments) -> Iterator[DatasetId]:
    given = next((args.get(name) for name in place.names if args.get(name) is not None), None)
    home = next((args.get(name) for name in place.home if args.get(name) is not None), None)
    if given is None:
        return
    for name in given if isinstance(given, (list, tuple)) else [given]:
        if not _is_known(name) or (home is not None and not _is_known(home)):
            recorder.add_blind_spot(
                "dynamic_path" if place.scheme else "dynamic_name",
                f"the {'path' if place.scheme else 'table'} is only known at run time",
                args.line,
            )
        elif not place.scheme:
            table = str(name).replace(":", ".")
            yield recorder.context.dataset_for(f"{home}.{table}" if home else table)
        elif place.scheme == "kafka":
            yield DatasetId("kafka://unknown", str(name))
        elif place.scheme in ("url", "file") or "://" in name:
            yield dataset_at(str(name))
        else:
            yield dataset_at(f"{place.scheme}://{home}/{name}" if home else str(name))


def _is_known(value: Value) -> bool:
    return isinstance(value, LocatedText) and not value.is_dynamic and "{{" not in value


def record_configuration(recorder: JobRecorder, args: Arguments) -> None:
    """Record the load, copy or extract job of a `configuration` for BigQuery."""
    configuration = args.get("configuration")
    if not isinstance(configuration, dict):
        return
    for kind, section in configuration.items():
        if not isinstance(section, dict):
            continue
        for key, value in section.items():
            if key in ("destinationTable", "sourceTable", "sourceTables"):
                for table in value if isinstance(value, list) else [value]:
                    _record_table(recorder, table, args.line, is_output=key == "destinationTable")
            elif key in ("sourceUris", "destinationUris"):
                place = _Place("url", (key,))
                uris = args._replace(named={key: value})
                for dataset in _datasets(recorder, place, uris):
                    if kind == "extract":
                        recorder.add_output(dataset, None)
                    else:
                        recorder.add_input(dataset)


def _record_table(recorder: JobRecorder, table: Value, line: int, *, is_output: bool) -> None:
    parts = [table.get(k) for k in ("projectId", "datasetId", "tableId")] if (
        isinstance(table, dict)
    ) else [None]  # fmt: skip
    if not _is_known(parts[-1]) or not all(_is_known(part) for part in parts if part is not None):
        recorder.add_blind_spot("dynamic_name", "the table is only known at run time", line)
        return
    dataset = recorder.context.dataset_for(".".join(str(p) for p in parts if p is not None))
    if is_output:
        recorder.add_output(dataset, None)
    else:
        recorder.add_input(dataset)

"""Functions and methods of data libraries, and the arguments that name their data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python import storage
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    ImportedName,
    StoredObject,
    Value,
)
from downriver.capture.scan.python.sql_text import looks_like_sql, looks_like_statement, run_sql
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments


class _Access(NamedTuple):
    """The access of a call to data, and the argument that names the data."""

    verb: Literal["read", "write"]
    of: Literal["path", "table", "sql", "bucket", "topic"]
    names: tuple[str, ...]
    position: int = 0
    home: tuple[str, ...] = ()  # arguments with a schema or a bucket
    home_position: int = -1


def _reads(of: Literal["path", "table", "sql", "topic"], *names: str, at: int = 0) -> _Access:
    home = ("schema", "database", "dataset") if of == "table" else ()
    return _Access("read", of, names, at, home)


def _writes(of: Literal["path", "table", "topic"], *names: str, at: int = 0) -> _Access:
    home = ("schema", "database", "dataset") if of == "table" else ()
    return _Access("write", of, names, at, home)


_FILES = (
    r"(?:csv|parquet|json|ndjson|ipc|avro|excel|delta|feather|orc|file|table|hdf|fwf|pickle|xml)"
)
_FRAMES = r"(?:polars|dask\.dataframe|dask|geopandas|modin\.pandas|cudf|pyspark\.pandas|fireducks)"
_PATH = ("source", "path", "filepath_or_buffer", "filename", "urlpath", "io", "path_or_buf", "file",
         "where", "path_or_paths", "input_file", "f", "fp")  # fmt: skip

# By the full name of an imported function. The first pattern that matches decides.
_FUNCTIONS: tuple[tuple[re.Pattern[str], _Access], ...] = tuple(
    (re.compile(name), access)
    for name, access in (
        (rf"{_FRAMES}\.(?:read|scan)_{_FILES}", _reads("path", *_PATH)),
        (r"polars\.(?:DataFrame|LazyFrame)\.deserialize", _reads("path", *_PATH)),
        (rf"{_FRAMES}\.read_(?:sql\w*|database\w*)", _reads("sql", "sql", "query", "table_name")),
        (r"pandas_gbq\.read_gbq", _reads("sql", "query_or_table", "query")),
        (r"pandas_gbq\.to_gbq", _writes("table", "destination_table", at=1)),
        (r"pyarrow\.\w+\.(?:read_\w+|ParquetFile|ParquetDataset|open_csv|dataset)",
         _reads("path", *_PATH)),
        (r"pyarrow\.\w+\.write_(?:table|csv|feather|dataset|orc)",
         _writes("path", "where", "output_file", "dest", "base_dir", at=1)),
        (r"pyarrow\.parquet\.ParquetWriter", _writes("path", "where")),
        (r"awswrangler\.s3\.read_\w+", _reads("path", "path")),
        (r"awswrangler\.s3\.to_\w+", _writes("path", "path", at=1)),
        (r"awswrangler\.s3\.(?:upload)", _writes("path", "path", at=1)),
        (r"awswrangler\.s3\.(?:download)", _reads("path", "path")),
        (r"awswrangler\.\w+\.read_sql_query|awswrangler\.athena\.\w+_query\w*",
         _reads("sql", "sql")),
        (r"awswrangler\.\w+\.read_sql_table", _reads("table", "table")),
        (r"awswrangler\.athena\.to_iceberg", _writes("table", "table", at=2)),
        (r"awswrangler\.\w+\.(?:to_sql|copy)", _writes("table", "table", at=2)),
        (r"(?:sklearn\.externals\.)?joblib\.load|torch\.load|numpy\.(?:load|loadtxt|genfromtxt"
         r"|fromfile)|(?:tensorflow\.)?keras\.models\.load_model|xarray\.(?:open|load)_\w+",
         _reads("path", "filename", "f", "file", "fname", "filepath", "filename_or_obj")),
        (r"(?:sklearn\.externals\.)?joblib\.dump|torch\.save",
         _writes("path", "filename", "f", at=1)),
        (r"numpy\.(?:save|savez|savez_compressed|savetxt)", _writes("path", "file", "fname")),
        (r"(?:pickle|json|cloudpickle|dill|simplejson|ujson|orjson|_pickle)\.load",
         _reads("path", "file", "fp")),
        (r"(?:pickle|json|cloudpickle|dill|simplejson|ujson|_pickle)\.dump",
         _writes("path", "file", "fp", at=1)),
        (r"csv\.(?:reader|DictReader)", _reads("path", "csvfile", "f")),
        (r"csv\.(?:writer|DictWriter)", _writes("path", "csvfile", "f")),
        (r"deltalake\.(?:\w+\.)*DeltaTable", _reads("path", "table_uri")),
        (r"deltalake\.(?:\w+\.)*write_deltalake", _writes("path", "table_or_uri")),
        (r"snowflake\.connector\.pandas_tools\.write_pandas", _writes("table", "table_name", at=2)),
        (r"psycopg2\.extras\.execute_(?:values|batch)", _reads("sql", "sql", at=1)),
        (r"(?:requests|httpx)\.get|urllib\.request\.(?:urlopen|urlretrieve)",
         _reads("path", "url")),
        (r"duckdb\.(?:sql|query|execute)", _reads("sql", "query")),
        (r"duckdb\.(?:read|from)_(?:csv|parquet|json)\w*",
         _reads("path", "path_or_buffer", "file_glob")),
        (r"duckdb\.table", _reads("table", "table_name")),
        (r"apache_beam\.(?:\w+\.)*Read(?:All)?From(?:Text|Parquet|Avro|Csv|Json|TFRecord)\w*",
         _reads("path", "file_pattern", "path")),
        (r"apache_beam\.(?:\w+\.)*WriteTo(?:Text|Parquet|Avro|Csv|Json|TFRecord)\w*",
         _writes("path", "file_path_prefix", "path")),
        (r"apache_beam\.(?:\w+\.)*WriteToFiles", _writes("path", "path")),
        (r"apache_beam\.(?:\w+\.)*MatchFiles", _reads("path", "file_pattern")),
        (r"apache_beam\.(?:\w+\.)*ReadFromKafka", _reads("topic", "topics", at=1)),
        (r"apache_beam\.(?:\w+\.)*WriteToKafka", _writes("topic", "topic", at=1)),
        (r"apache_beam\.(?:\w+\.)*Read(?:All)?From(?:BigQuery|Jdbc|Spanner|Snowflake)\w*",
         _reads("sql", "query", "table", "table_name")),
        (r"apache_beam\.(?:\w+\.)*WriteTo(?:BigQuery|Jdbc|Spanner|Snowflake)\w*",
         _writes("table", "table", "table_name")),
        (r"apache_beam\.(?:\w+\.)*(?:ReadFromPubSub|ReadStringsFromPubSub)",
         _reads("topic", "topic", "subscription")),
        (r"apache_beam\.(?:\w+\.)*(?:WriteToPubSub|WriteStringsToPubSub)",
         _writes("topic", "topic")),
        (r"dlt\.(?:read|read_stream)", _reads("table", "name")),
        (r"kafka\.KafkaConsumer", _reads("topic", "topics")),
        (r"smart_open\.open", _reads("path", "uri")),
    )
)  # fmt: skip


def _bucket(verb: Literal["read", "write"], bucket: int, key: int) -> _Access:
    return _Access(verb, "bucket", ("Key", "key", "s3_key", "object_name"), key,
                   ("Bucket", "bucket_name", "bucket"), bucket)  # fmt: skip


# By the name of a method, on any object.
_METHODS: tuple[tuple[re.Pattern[str], _Access], ...] = tuple(
    (re.compile(name), access)
    for name, access in (
        (r"(?:write|sink)_(?:csv|parquet|json|ndjson|ipc|avro|excel|delta)",
         _writes("path", "file", "target", "path", "workbook")),
        (r"write_database", _writes("table", "table_name")),
        (r"to_(?:file|delta)", _writes("path", "filename", "path")),
        (r"textFile|wholeTextFiles|sequenceFile|binaryFiles|textFileStream",
         _reads("path", "name", "path", "directory")),
        (r"saveAs(?:TextFile|SequenceFile|PickleFile|HadoopFile|NewAPIHadoopFile)",
         _writes("path", "path")),
        (r"get_object|download_fileobj", _bucket("read", 0, 1)),
        (r"put_object", _bucket("write", 0, 1)),
        (r"upload_fileobj", _bucket("write", 1, 2)),
        (r"load_(?:string|bytes|file|file_obj)", _bucket("write", 2, 1)),
        (r"load_table_from_\w+", _writes("table", "destination", at=1)),
        (r"insert_rows(?:_json|_from_dataframe)?", _writes("table", "table")),
        (r"list_rows", _reads("table", "table")),
        (r"copy_from", _writes("table", "table", at=1)),
        (r"copy_to", _reads("table", "table", at=1)),
        (r"copy_(?:records_)?to_table", _writes("table", "table_name")),
        (r"copy_expert", _reads("sql", "sql")),
        (r"executescript|execute_values|execute_batch", _reads("sql", "sql_script", "sql")),
        (r"bulk_load", _writes("table", "table")),
        (r"bulk_dump", _reads("table", "table")),
        (r"subscribe", _reads("topic", "topics")),
        (r"produce", _writes("topic", "topic")),
    )
)  # fmt: skip
_UPLOADS = re.compile(r"upload_from_\w+|upload_file\w*|put|upload")
_DOWNLOADS = re.compile(r"download_\w+|get|download")


def function(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    """Return the value of a function of a library; None if this module does not list it."""
    for name, access in _FUNCTIONS:
        if name.fullmatch(target.name):
            value = _follow(run, access, args, is_required=True)
            if target.name.startswith("polars.") and isinstance(value, Frame):
                return msgspec.structs.replace(value, library="polars")
            return value
    return None


def method(run: Interpreter, base: Value, name: str, args: Arguments) -> Value | None:
    """Return the value of a method of a library's object; None if this module does not list it."""
    if name in ("upload_file", "download_file"):
        return _transfer_file(run, name, args)
    for pattern, access in _METHODS:
        if pattern.fullmatch(name):
            frame = base if isinstance(base, Frame) else None
            return _follow(run, access, args, is_required=False, frame=frame)
    first = args.get("", 0)
    if name in ("bucket", "get_bucket", "Bucket") and isinstance(first, LocatedText):
        return StoredObject("s3" if name == "Bucket" else "gs", first)
    return None


def stored_object_method(
    run: Interpreter, base: StoredObject, name: str, args: Arguments
) -> Value | None:
    """Return the value of a method of a bucket or of an object in it."""
    first = args.get("", 0) or args.get("blob_name") or args.get("Key")
    if name in ("blob", "get_blob", "Object"):
        return base._replace(key=first if isinstance(first, LocatedText) else UNKNOWN)
    if name in ("upload_file", "upload_fileobj", "put_object") and base.key is None:
        base = base._replace(key=args.get("Key", 1))
    elif name in ("download_file", "download_fileobj") and base.key is None:
        base = base._replace(key=args.get("Key", 0))
    if _UPLOADS.fullmatch(name) or name == "put_object":
        _record_object(run, base.scheme, base.bucket, base.key, args.line, is_output=True)
    elif _DOWNLOADS.fullmatch(name):
        _record_object(run, base.scheme, base.bucket, base.key, args.line, is_output=False)
    return UNKNOWN


def _transfer_file(run: Interpreter, name: str, args: Arguments) -> Value:
    """Follow `upload_file(Filename, Bucket, Key)` and `download_file(Bucket, Key, Filename)`."""
    is_upload = name == "upload_file"
    bucket = args.get("Bucket", 1 if is_upload else 0) or args.get("bucket_name")
    key = args.get("Key", 2 if is_upload else 1) or args.get("key")
    if bucket is None:
        return UNKNOWN
    _record_object(run, "s3", bucket, key, args.line, is_output=is_upload)
    return UNKNOWN


def _record_object(
    run: Interpreter, scheme: str, bucket: Value, key: Value, line: int, *, is_output: bool
) -> None:
    parts = [part for part in (bucket, key) if isinstance(part, LocatedText)]
    if len(parts) < 2 or any(part.is_dynamic for part in parts):
        verb = "writes" if is_output else "reads"
        run.recorder.add_blind_spot(
            "dynamic_path", f"{verb} an object whose name is only known at run time", line
        )
        return
    dataset = dataset_at(f"{scheme}://{bucket}/{str(key).lstrip('/')}")
    if is_output:
        run.recorder.add_output(dataset, None)
    else:
        run.recorder.add_input(dataset)


def _follow(
    run: Interpreter,
    access: _Access,
    args: Arguments,
    *,
    is_required: bool,
    frame: Frame | None = None,
) -> Value | None:
    given = next((args.named[name] for name in access.names if name in args.named), None)
    given = args.get("", access.position) if given is None else given
    if given is None and not is_required:
        return None
    frame = frame or next((value for value in args.all() if isinstance(value, Frame)), None)
    match access.of:
        case "sql":
            return _query(run, given, args)
        case "bucket":
            home = args.get("", access.home_position)
            home = next((args.named[n] for n in access.home if n in args.named), home)
            if home is None:
                return None
            _record_object(run, "s3", home, given, args.line, is_output=access.verb == "write")
            return UNKNOWN
        case "topic":
            return _topic(run, given, args.line, is_output=access.verb == "write")
        case "table":
            given = _in_schema(given, access, args)
            if isinstance(given, LocatedText):
                given = LocatedText(given.replace(":", "."), given.line)
            if access.verb == "read":
                return storage.read_table(run, given, args.line, "pandas")
            storage.write_frame(run, frame, given, args.line, is_path=False)
        case "path":
            given = storage.path_of(given)
            if access.verb == "read":
                return storage.read_path(run, given, args.line, "pandas")
            storage.write_frame(run, frame, given, args.line, is_path=True)
    return UNKNOWN


def _in_schema(table: Value, access: _Access, args: Arguments) -> Value:
    home = next((args.named[name] for name in access.home if name in args.named), None)
    if isinstance(home, LocatedText) and isinstance(table, LocatedText) and "." not in table:
        return LocatedText(f"{home}.{table}", table.line)
    return table


def _query(run: Interpreter, query: Value, args: Arguments) -> Value:
    if isinstance(query, LocatedText) and (looks_like_sql(query) or looks_like_statement(query)):
        return run_sql(run, query, library="pandas")
    if isinstance(query, LocatedText) and not any(char.isspace() for char in query.strip()):
        table = LocatedText(query.replace(":", "."), query.line)
        return storage.read_table(run, table, args.line, "pandas")
    run.recorder.add_blind_spot("dynamic_sql", "the query is only known at run time", args.line)
    return UNKNOWN_FRAME


def _topic(run: Interpreter, topic: Value, line: int, *, is_output: bool) -> Value:
    names = topic if isinstance(topic, list) else [topic]
    for name in names:
        if not isinstance(name, LocatedText) or name.is_dynamic:
            verb = "writes" if is_output else "reads"
            run.recorder.add_blind_spot(
                "dynamic_name", f"{verb} a topic whose name is only known at run time", line
            )
        elif is_output:
            run.recorder.add_output(_topic_dataset(name), None)
        else:
            run.recorder.add_input(_topic_dataset(name))
    return UNKNOWN


def _topic_dataset(name: LocatedText) -> DatasetId:
    pubsub = re.fullmatch(r"projects/([^/]+)/(topic|subscription)s/([^/]+)", name)
    if pubsub is not None:
        return DatasetId("pubsub", f"{pubsub[2]}:{pubsub[1]}:{pubsub[3]}")
    return DatasetId("kafka://unknown", str(name))

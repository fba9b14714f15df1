"""Export a version of the lake as Parquet, OpenLineage or Neo4j files. Needs no Spark."""

from __future__ import annotations

import csv
import datetime as dt
import io
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError, LakeError
from downriver.lake import schemas
from downriver.lake.storage.files import Folder
from downriver.lake.storage.runs import scan_current, schema_of
from downriver.lake.storage.tables import read_current_version
from downriver.model.ids import EVERY_FIELD, ColumnId, DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.lake.storage.tables import LakeVersion

_AT_ONCE = 2000
_ROWS_AT_ONCE = 100_000
_LAYERS = ("silver", "gold")  # facts can be rebuilt from the events


class ExportedFile(msgspec.Struct):
    """A file or folder that was written, and its number of rows or events."""

    path: str
    rows: int


def export_parquet(lake: Folder, target: str) -> list[ExportedFile]:
    """Write the silver and gold tables into a folder: `layer/table/*.parquet`."""
    snapshot, to = _built(lake), _new_folder(target)
    written = []
    for name, stored in sorted(snapshot.tables.items()):
        layer = name.partition(".")[0]
        if layer in _LAYERS and name in schemas.BY_NAME:
            path = name.replace(".", "/")
            rows = scan_current(lake, stored, _ROWS_AT_ONCE)
            to.write_batches(f"{path}/part-0.parquet", schema_of(lake, stored), rows)
            written.append(ExportedFile(path, stored.rows))
    return written


def export_openlineage(lake: Folder, target: str) -> list[ExportedFile]:
    """Write every event, as sent, on its own line; compressed if the name ends in `.gz`."""
    base, _, name = target.rpartition("/")
    to = Folder(base or ".")
    count = 0
    with to.open_new(name) as stream:
        for body in _bodies(lake):
            # JSON has line breaks only between tokens: in strings they are escaped.
            stream.write(b" ".join(body.splitlines()) + b"\n")
            count += 1
    return [ExportedFile(name, count)]


def _bodies(lake: Folder) -> Iterator[bytes]:
    for batch in read_current_version(lake).batches:
        for bodies in lake.scan_column(f"{batch.path}/events", "body", _AT_ONCE):
            yield from bodies


def export_neo4j(lake: Folder, target: str) -> list[ExportedFile]:
    """Write the graph as CSV files for `neo4j-admin database import`."""
    snapshot, to = _built(lake), _new_folder(target)
    written = []
    for file in NEO4J_FILES:
        stored = snapshot.tables[file.table]
        batches = scan_current(lake, stored, _AT_ONCE)
        rows = (row for batch in batches for row in batch.to_pylist())
        with to.open_new(file.name) as stream:
            written.append(ExportedFile(file.name, write_csv(file, rows, stream)))
    for name, text in NEO4J_SCRIPTS.items():
        to.write(name, text.encode())
    return written


def _built(lake: Folder) -> LakeVersion:
    snapshot = read_current_version(lake)
    if not snapshot.tables:
        raise LakeError(f"{lake.location} has not been built yet; run `downriver lake build`")
    return snapshot


def _new_folder(target: str) -> Folder:
    folder = Folder(target)
    if folder.names("."):
        raise InvalidRequestError("DIR", f"{target} is not empty")
    return folder


# The CSV files of Neo4j: one for each kind of node and relationship.

Row = dict[str, Any]
_SEEN = ("first_seen:datetime", "last_seen:datetime", "observed:boolean")
_ARRAY = ";"  # the list separator of neo4j-admin


class Neo4jFile(NamedTuple):
    """A CSV file: its header, its table, and the function that turns a row into lines."""

    name: str
    header: tuple[str, ...]
    table: str
    lines: Callable[[Row], Iterator[tuple[Any, ...]]]


def write_csv(file: Neo4jFile, rows: Iterable[Row], stream: IO[bytes]) -> int:
    """Write a file, and return its number of lines without the header."""
    text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(file.header)
    count = 0
    for row in rows:
        for line in file.lines(row):
            writer.writerow([_plain_value(value) for value in line])
            count += 1
    text.flush()
    text.detach()
    return count


def _plain_value(value: Any) -> Any:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
            return moment.isoformat()
        case list():
            return _ARRAY.join(str(item).replace(_ARRAY, ",") for item in value)
        case _:
            return value


def _dataset(row: Row, prefix: str = "") -> str:
    return str(DatasetId(row[f"{prefix}namespace"], row[f"{prefix}name"]))


def _end(row: Row, end: str) -> str:
    kind = JobId if row[f"{end}_kind"] == "job" else DatasetId
    return str(kind(row[f"{end}_namespace"], row[f"{end}_name"]))


def _seen_times(row: Row) -> tuple[Any, ...]:
    return (row["first_seen"], row["last_seen"], row["observed"])


def _dataset_lines(row: Row) -> Iterator[tuple[Any, ...]]:
    about = (row["namespace"], row["name"], row["description"], row["owners"])
    yield (_dataset(row), *about, row["lifecycle"], *_seen_times(row), "Dataset")


def _job_lines(row: Row) -> Iterator[tuple[Any, ...]]:
    about = (row["namespace"], row["name"], row["description"], row["owners"])
    yield (
        str(JobId(row["namespace"], row["name"])),
        *about,
        row["integration"],
        row["job_type"],
        *_seen_times(row),
        "Job",
    )


def _column_lines(row: Row) -> Iterator[tuple[Any, ...]]:
    about = (row["namespace"], row["name"], row["field"], row["type"], row["description"])
    yield (_column(row), *about, row["current"], "Column")


def _column(row: Row) -> str:
    return str(ColumnId(DatasetId(row["namespace"], row["name"]), row["field"]))


def _has_column_lines(row: Row) -> Iterator[tuple[Any, ...]]:
    yield (_dataset(row), _column(row), "HAS_COLUMN")


def _edge_lines(row: Row) -> Iterator[tuple[Any, ...]]:
    job = str(JobId(row["job_namespace"], row["job_name"])) if row["job_name"] else None
    ends = (_end(row, "source"), _end(row, "target"))
    yield (*ends, row["status"], job, *_seen_times(row), row["kind"].upper())


def _feeds_lines(row: Row) -> Iterator[tuple[Any, ...]]:
    """Yield the edge. An end with all columns (`*`) becomes the dataset node."""
    ends = [
        _dataset(row, f"{end}_")
        if row[f"{end}_field"] == EVERY_FIELD
        else str(
            ColumnId(DatasetId(row[f"{end}_namespace"], row[f"{end}_name"]), row[f"{end}_field"])
        )
        for end in ("source", "target")
    ]
    yield (*ends, row["kinds"], row["direct"], row["masking"], *_seen_times(row), "FEEDS")


NEO4J_FILES = (
    Neo4jFile(
        "datasets.csv",
        (
            *("id:ID", "namespace", "name", "description", "owners:string[]", "lifecycle"),
            *(*_SEEN, ":LABEL"),
        ),
        "silver.datasets",
        _dataset_lines,
    ),
    Neo4jFile(
        "jobs.csv",
        (
            *("id:ID", "namespace", "name", "description", "owners:string[]", "integration"),
            *("job_type", *_SEEN, ":LABEL"),
        ),
        "silver.jobs",
        _job_lines,
    ),
    Neo4jFile(
        "columns.csv",
        (
            *("id:ID", "namespace", "dataset", "name", "type", "description"),
            *("current:boolean", ":LABEL"),
        ),
        "silver.columns",
        _column_lines,
    ),
    Neo4jFile(
        "has_column.csv", (":START_ID", ":END_ID", ":TYPE"), "silver.columns", _has_column_lines
    ),
    Neo4jFile(
        "edges.csv",
        (":START_ID", ":END_ID", "status", "job", *_SEEN, ":TYPE"),
        "gold.edges",
        _edge_lines,
    ),
    Neo4jFile(
        "feeds.csv",
        (
            *(":START_ID", ":END_ID", "kinds:string[]", "direct:boolean", "masking:boolean"),
            *(*_SEEN, ":TYPE"),
        ),
        "gold.column_edges",
        _feeds_lines,
    ),
)

NEO4J_SCRIPTS = {
    "import.sh": """\
#!/bin/sh
# Imports the files of this folder into an empty database. Stop Neo4j first.
cd "$(dirname "$0")" || exit 1
exec neo4j-admin database import full "${1:-neo4j}" --multiline-fields=true \\
  --nodes=datasets.csv --nodes=jobs.csv --nodes=columns.csv \\
  --relationships=has_column.csv --relationships=edges.csv --relationships=feeds.csv
""",
    "constraints.cypher": """\
CREATE CONSTRAINT dataset_id IF NOT EXISTS FOR (n:Dataset) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT job_id IF NOT EXISTS FOR (n:Job) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT column_id IF NOT EXISTS FOR (n:Column) REQUIRE n.id IS UNIQUE;
""",
}

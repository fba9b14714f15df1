"""`downriver import`: lineage that other systems export, from files or their APIs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.capture.catalogs import (
    parse_amundsen,
    parse_atlas,
    parse_datahub,
    parse_feast,
    parse_glue,
    parse_kubeflow,
    parse_openmetadata,
    parse_unity,
)
from downriver.capture.entries import merge_exports, render_export
from downriver.capture.rest import RestApi
from downriver.cli.events import StoredEvents, UnreadableEvent, show_stored
from downriver.cli.output import JsonOption, StoreOption, counted, print_json
from downriver.errors import InvalidRequestError
from downriver.service import Lineage
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.entries import CatalogExport

_BATCH = 500

KeyOption = Annotated[
    str,
    typer.Option(
        "--api-key",
        metavar="KEY",
        envvar="DOWNRIVER_IMPORT_KEY",
        help="The token of the other system, or USER:PASSWORD.",
    ),
]


class CatalogImport(StoredEvents, kw_only=True):
    """The result of an import from another system."""

    source: str
    tables: int
    jobs: int


def glue(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The JSON output of `aws glue get-tables`.")
    ],
    region: Annotated[
        str,
        typer.Option(
            "--region",
            metavar="REGION",
            help="The AWS region. It is part of the tables' namespace.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import the tables of the AWS Glue Data Catalog: columns, owners and tags.

    The S3 location of a table becomes a second name of the table. Jobs that write files there are
    therefore connected with the table.
    """
    export = parse_glue(_text(file), str(file), region)
    _import(export, str(file), store, at=_modified(file), json=json)


def unity(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Rows of system.access.column_lineage or table_lineage, as CSV or JSON.",
        ),
    ],
    workspace: Annotated[
        str,
        typer.Option(
            "--workspace",
            metavar="HOST",
            help="The host of the workspace. It is part of the tables' namespace.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import the lineage of Unity Catalog: jobs, notebooks, tables and columns."""
    export = parse_unity(_text(file), str(file), workspace)
    _import(export, str(file), store, at=_modified(file), json=json)


def kafka_connect(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL|FILE",
            help="The REST API of Kafka Connect, such as http://connect:8083, or a JSON file with "
            "configurations of connectors.",
        ),
    ],
    brokers: Annotated[
        str,
        typer.Option(
            "--brokers",
            metavar="HOST:PORT",
            help="The first Kafka broker. It is part of the namespace of the topics.",
        ),
    ] = "localhost:9092",
    api_key: KeyOption = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import the connectors of Kafka Connect: which table, topic and sink each connects.

    Connectors of Debezium, JDBC, S3, GCS, Snowflake, BigQuery, Elasticsearch, MongoDB and Iceberg
    are read. Others become jobs with a blind spot.
    """
    from downriver.capture.kafka.connectors import fetch_connectors, parse_connectors

    text: str | bytes
    if "://" in source:
        api = RestApi(source, api_key)
        text, name, at = fetch_connectors(api), api.url, None
    else:
        text, name, at = _text(Path(source)), source, _modified(Path(source))
    _import(parse_connectors(text, name, brokers), name, store, at=at, json=json)


def atlas(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="JSON of entities or lineage of Apache Atlas."),
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import entities and lineage of Apache Atlas: datasets, processes, columns, classifications.

    A file has an entity, a list of entities, or an answer of Atlas about lineage.
    """
    _import_files(files, parse_atlas, store, json=json)


def datahub(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Metadata files of DataHub, as JSON.")
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import metadata files of DataHub: datasets, data jobs, columns, tags and lineage."""
    _import_files(files, parse_datahub, store, json=json)


def openmetadata(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="JSON of OpenMetadata's API.")
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import answers of OpenMetadata's API: lineage of an entity, and lists of tables."""
    _import_files(files, parse_openmetadata, store, json=json)


def amundsen(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="CSV files of Amundsen's databuilder.")
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import CSV files of Amundsen: tables, columns, owners and lineage.

    The header of each file shows which of these it contains.
    """
    _import_files(files, parse_amundsen, store, json=json)


def kubeflow(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Pipelines that KFP compiled, as YAML.")
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import compiled Kubeflow pipelines: tasks, artifacts and models."""
    _import_files(files, parse_kubeflow, store, json=json)


def feast(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="The output of `feast registry-dump`, or YAML with features."
        ),
    ],
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="The namespace of tables, such as snowflake://acme. "
            "Default: the system, or `default` for YAML.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import feature views, on-demand views and services of Feast, with their sources."""
    _import_files(files, partial(parse_feast, namespace=namespace), store, json=json)


def _import_files(
    files: list[Path],
    parse: Callable[[str, str], CatalogExport],
    store: str | None,
    *,
    json: bool,
) -> None:
    """Import several files as one export, so that all facts of one dataset are in one event."""
    exports = [parse(_text(file), str(file)) for file in files]
    name = ", ".join(map(str, files))
    _import(merge_exports(exports), name, store, at=max(map(_modified, files)), json=json)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{file}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidRequestError("FILE", f"{file}: not text in UTF-8") from exc


def _modified(file: Path) -> int:
    """Return when a file was changed, in µs.

    With this time, the same file gives the same events again.
    """
    return int(file.stat().st_mtime * 1_000_000)


def _import(
    export: CatalogExport, source: str, store: str | None, *, at: int | None, json: bool
) -> None:
    """Store the export of a system, as of a time or of now."""
    summary = CatalogImport(source=source, tables=len(export.tables), jobs=len(export.jobs))
    summary.problems = [UnreadableEvent(where, reason) for where, reason in export.unread]
    events = list(render_export(export, now() if at is None else at))
    with Lineage.open(store) as lineage:
        for start in range(0, len(events), _BATCH):
            receipts = lineage.ingest(events[start : start + _BATCH])
            repeated = sum(receipt.duplicate for receipt in receipts)
            summary.duplicates += repeated
            summary.stored += len(receipts) - repeated
    if json:
        print_json(summary)
    else:
        counts = f"{counted(summary.tables, 'table')}, {counted(summary.jobs, 'job')}"
        show_stored(summary, f"{counts} of {source}")
    if summary.problems:
        raise typer.Exit(1)

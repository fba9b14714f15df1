"""Kafka Connect: the tables, topics and files that connectors copy, from their configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from downriver.capture.dataset_names import dataset_over_jdbc
from downriver.capture.entries import CatalogExport, ExportedJob, ExportedTable, UnreadRecord
from downriver.capture.kafka.changes import NAMESPACE, SCHEMES, table_namespace
from downriver.errors import InvalidRequestError, ServerError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.rest import RestApi

Config: TypeAlias = Mapping[str, str]
_PORTS = {"postgres": "5432", "mysql": "3306", "mssql": "1433", "oracle": "1521", "db2": "50000"}
_REGEX = re.compile(r"[\\*+?|()\[\]^$]")


class Connector(NamedTuple):
    """A connector: its name, its configuration, and the topics that it used so far."""

    name: str
    config: Config
    topics: tuple[str, ...] = ()


class _Copy(NamedTuple):
    """One dataset that a connector copies to another; None for an end that is not known."""

    source: DatasetId | None
    target: DatasetId | None


def parse_connectors(text: str | bytes, name: str, brokers: str) -> CatalogExport:
    """Return the connectors of a response of Connect's REST API, or of a file with configurations.

    `brokers` is the address of the Kafka cluster, `host:port`: connectors do not name it.
    """
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        raise InvalidRequestError("FILE", f"{name}: not JSON: {exc}") from exc
    connectors = list(_connectors(content))
    if not connectors:
        reason = f"{name}: no object has connector.class: not a configuration of Kafka Connect"
        raise InvalidRequestError("FILE", reason)
    export = CatalogExport("kafka-connect")
    aliases: dict[DatasetId, DatasetId] = {}
    for connector in connectors:
        try:
            export.jobs.append(_job(connector, f"kafka://{brokers}", aliases))
        except (re.error, ValueError) as exc:
            export.unread.append(UnreadRecord(f"{name}: {connector.name}", str(exc)))
    topics = {
        one for job in export.jobs for one in (*job.inputs, *job.outputs)
        if one.namespace == f"kafka://{brokers}"
    }  # fmt: skip
    export.tables = [
        *(ExportedTable(id=one, kind="TOPIC") for one in sorted(topics)),
        *(ExportedTable(id=one, kind="TABLE", other_names=[a]) for one, a in aliases.items()),
    ]
    return export


def fetch_connectors(api: RestApi) -> bytes:
    """Return the connectors of a Connect cluster, each with the topics that it used so far."""
    response = api.get("/connectors?expand=info")
    if not isinstance(response, dict):
        raise ServerError(api.url, "the response of /connectors is not that of Kafka Connect")
    for name, entry in response.items():
        used = api.get(f"/connectors/{quote(name, safe='')}/topics")
        if isinstance(used, dict) and isinstance(used.get(name), dict):
            entry["topics"] = used[name].get("topics", [])
    return msgspec.json.encode(response)


def _connectors(content: Any) -> list[Connector]:
    """Return the connectors in any of the shapes that Connect has for them."""
    if isinstance(content, list):
        return [one for entry in content for one in _connectors(entry)]
    if not isinstance(content, dict):
        return []
    info = content.get("info")
    if isinstance(info, dict):  # the response of `?expand=info`, with topics on request
        return [one._replace(topics=_topics(content)) for one in _connectors(info)]
    config = content.get("config")
    if isinstance(config, dict) and "connector.class" in config:
        name = str(content.get("name") or config.get("name") or "")
        return [Connector(name, _texts(config), _topics(content))]
    if "connector.class" in content:
        return [Connector(str(content.get("name", "connector")), _texts(content))]
    return [one for entry in content.values() for one in _connectors(entry)]


def _texts(config: dict[str, Any]) -> Config:
    return {key: str(value) for key, value in config.items() if value is not None}


def _topics(content: dict[str, Any]) -> tuple[str, ...]:
    topics = content.get("topics")
    return tuple(map(str, topics)) if isinstance(topics, list) else ()


def _job(connector: Connector, home: str, aliases: dict[DatasetId, DatasetId]) -> ExportedJob:
    config = connector.config
    kind = config["connector.class"]
    job = ExportedJob(
        id=JobId(NAMESPACE, connector.name),
        kind="CONNECTOR",
        streaming=True,
        description=f"Kafka connector {connector.name} ({kind.rpartition('.')[2]})",
    )
    reader = _reader(kind)
    if reader is None:
        reason = f"connectors of the class {kind} are not read"
        job.blind_spots.append(BlindSpotEntry("unknown_inputs", reason))
        return job
    if _is_debezium_source(kind):
        job.id = JobId(NAMESPACE, _server(connector))  # change events name this, not the connector
    copies = reader(connector, home)
    for copy in copies:
        if copy.source is not None and copy.source not in job.inputs:
            job.inputs.append(copy.source)
        if copy.target is not None:
            job.outputs.setdefault(copy.target, {})
            if copy.source is not None:
                job.origins.setdefault(copy.target, []).append(copy.source)
        if copy.source is not None and _is_debezium_source(kind):
            connected = _debezium_kind(kind)
            alias = DatasetId(table_namespace(connected, _server(connector)), copy.source.name)
            aliases[copy.source] = alias
    for missing, what in ((not job.inputs, "reads"), (not job.outputs, "writes")):
        if missing:
            job.blind_spots.append(BlindSpotEntry("unknown_inputs", _unstated(connector, what)))
    return job


def _unstated(connector: Connector, what: str) -> str:
    return (
        f"the configuration of {connector.name} does not list what it {what}; read the connectors "
        "from the REST API, which lists their topics"
    )


_Reader: TypeAlias = Callable[[Connector, str], "list[_Copy]"]


def _reader(kind: str) -> _Reader | None:
    return next((reader for part, reader in _READERS if part in kind), None)


def _is_debezium_source(kind: str) -> bool:
    return "io.debezium.connector." in kind and "Sink" not in kind


def _debezium_kind(kind: str) -> str:
    return kind.partition("io.debezium.connector.")[2].partition(".")[0]


def _server(connector: Connector) -> str:
    config = connector.config
    return config.get("topic.prefix") or config.get("database.server.name") or connector.name


def _debezium(connector: Connector, home: str) -> list[_Copy]:
    config, kind = connector.config, _debezium_kind(connector.config["connector.class"])
    if kind not in SCHEMES:
        raise ValueError(f"Debezium connector of an unknown kind: {kind}")
    scheme, server = SCHEMES[kind], _server(connector)
    host = config.get("database.hostname", "")
    port = config.get("database.port") or _PORTS.get(scheme, "")
    place = f"{scheme}://{host}:{port}" if port else f"{scheme}://{host}"
    if kind == "mongodb":
        place = re.sub(r"^mongodb(\+srv)?://([^@/]*@)?([^/?]*).*", r"mongodb://\3",
                       config.get("mongodb.connection.string", "mongodb://"))  # fmt: skip
    database = config.get("database.dbname") or config.get("database.names", "").partition(",")[0]
    listed = config.get("table.include.list") or config.get("collection.include.list") or ""
    names = [name for name in _split(listed) if not _REGEX.search(name.replace("\\.", ""))]
    tables = [name.replace("\\.", ".") for name in names]
    if not tables:
        tables = [topic[len(server) + 1 :] for topic in connector.topics
                  if topic.startswith(f"{server}.")]  # fmt: skip
    copies = []
    for table in tables:
        whole = f"{database}.{table}" if database and table.count(".") < 2 and kind in (
            "postgresql", "sqlserver", "oracle", "db2") else table  # fmt: skip
        topic = _routed(f"{server}.{table}", config)
        copies.append(_Copy(DatasetId(place, whole), DatasetId(home, topic)))
    return copies


def _jdbc_source(connector: Connector, home: str) -> list[_Copy]:
    config = connector.config
    prefix, url = config.get("topic.prefix", ""), config.get("connection.url", "")
    tables = _split(config.get("table.whitelist") or config.get("table.include.list") or "")
    if not tables and config.get("query"):
        return [_Copy(None, DatasetId(home, _routed(prefix, config)))]
    copies = []
    for table in tables:
        topic = _routed(f"{prefix}{table.rpartition('.')[2]}", config)
        copies.append(_Copy(dataset_over_jdbc(url, table), DatasetId(home, topic)))
    return copies or [_Copy(None, DatasetId(home, topic)) for topic in connector.topics]


def _jdbc_sink(connector: Connector, home: str) -> list[_Copy]:
    pattern = connector.config.get("table.name.format") or "${topic}"
    pattern = connector.config.get("collection.name.format") or pattern
    url = connector.config.get("connection.url", "")
    return _sink(
        connector, home, lambda topic: dataset_over_jdbc(url, _fill_pattern(pattern, topic))
    )


def _fill_pattern(pattern: str, topic: str) -> str:
    return pattern.replace("${topic}", topic).replace("${source.table}", topic.rpartition(".")[2])


def _bucket_sink(scheme: str, bucket: str) -> _Reader:
    def read(connector: Connector, home: str) -> list[_Copy]:
        config = connector.config
        root = f"{scheme}://{config.get(bucket, '')}/{config.get('topics.dir', 'topics')}"
        return _sink(connector, home, lambda topic: dataset_at(f"{root}/{topic}"))

    return read


def _snowflake_sink(connector: Connector, home: str) -> list[_Copy]:
    config = connector.config
    account = config.get("snowflake.url.name", "").removeprefix("https://").partition(".")[0]
    schema = f"{config.get('snowflake.database.name')}.{config.get('snowflake.schema.name')}"
    tables = _pairs(config.get("snowflake.topic2table.map", ""))
    return _sink(connector, home, lambda topic: DatasetId(
        f"snowflake://{account}", f"{schema}.{tables.get(topic, topic)}"))  # fmt: skip


def _bigquery_sink(connector: Connector, home: str) -> list[_Copy]:
    config = connector.config
    tables = _pairs(config.get("topic2TableMap", ""))
    schema = f"{config.get('project')}.{config.get('defaultDataset')}"
    return _sink(connector, home, lambda topic: DatasetId(
        "bigquery", f"{schema}.{tables.get(topic, topic)}"))  # fmt: skip


def _elasticsearch_sink(connector: Connector, home: str) -> list[_Copy]:
    url = connector.config.get("connection.url", "").partition(",")[0]
    host = url.partition("://")[2].rstrip("/")
    return _sink(connector, home, lambda topic: DatasetId(f"elasticsearch://{host}", topic.lower()))


def _mongodb_sink(connector: Connector, home: str) -> list[_Copy]:
    config = connector.config
    address = re.sub(r"^mongodb(\+srv)?://([^@/]*@)?([^/?]*).*", r"mongodb://\3",
                     config.get("connection.uri", "mongodb://"))  # fmt: skip
    return _sink(connector, home, lambda topic: DatasetId(
        address, f"{config.get('database')}.{config.get('collection') or topic}"))  # fmt: skip


def _iceberg_sink(connector: Connector, home: str) -> list[_Copy]:
    config = connector.config
    tables = _split(config.get("iceberg.tables", ""))
    warehouse = config.get("iceberg.catalog.warehouse") or config.get("iceberg.catalog.uri") or ""
    sources = [DatasetId(home, topic) for topic in _read_topics(connector)]
    targets = [DatasetId(f"iceberg://{warehouse.partition('://')[2]}", t) for t in tables]
    return [*(_Copy(one, None) for one in sources), *(_Copy(None, one) for one in targets)]


def _sink(
    connector: Connector, home: str, target: Callable[[str], DatasetId | None]
) -> list[_Copy]:
    """Return the copies of each topic. Transformations rename it before the sink reads it."""
    return [
        _Copy(DatasetId(home, topic), target(_routed(topic, connector.config)))
        for topic in _read_topics(connector)
    ]


def _read_topics(connector: Connector) -> list[str]:
    topics = _split(connector.config.get("topics", ""))
    return topics or sorted(connector.topics)


def _routed(topic: str, config: Config) -> str:
    """Return the name of a topic after the transformations that rename it."""
    for name in _split(config.get("transforms", "")):
        kind = config.get(f"transforms.{name}.type", "")
        if kind.endswith("RegexRouter"):
            pattern, replacement = "regex", "replacement"
        elif kind.endswith("ByLogicalTableRouter"):
            pattern, replacement = "topic.regex", "topic.replacement"
        else:
            continue
        regex = config.get(f"transforms.{name}.{pattern}", "")
        template = re.sub(
            r"\$(\d+)", r"\\g<\1>", config.get(f"transforms.{name}.{replacement}", "")
        )
        if regex and (match := re.fullmatch(regex, topic)):
            topic = match.expand(template)
    return topic


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pairs(text: str) -> dict[str, str]:
    """Return a map such as `topic:table, topic2=table2`."""
    pairs = (re.split(r"[:=]", part, maxsplit=1) for part in _split(text))
    return {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}


_READERS: tuple[tuple[str, _Reader], ...] = (
    ("JdbcSinkConnector", _jdbc_sink),  # also Debezium's
    ("io.debezium.connector.", _debezium),
    ("JdbcSourceConnector", _jdbc_source),
    ("S3SinkConnector", _bucket_sink("s3", "s3.bucket.name")),
    ("GcsSinkConnector", _bucket_sink("gs", "gcs.bucket.name")),
    ("SnowflakeSinkConnector", _snowflake_sink),
    ("BigQuerySinkConnector", _bigquery_sink),
    ("ElasticsearchSinkConnector", _elasticsearch_sink),
    ("MongoSinkConnector", _mongodb_sink),
    ("IcebergSinkConnector", _iceberg_sink),
)

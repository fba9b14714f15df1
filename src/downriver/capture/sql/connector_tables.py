"""Tables of Flink and RisingWave that stand for a topic, file or table of another system.

`CREATE TABLE orders (…) WITH ('connector' = 'kafka', 'topic' = 'shop.orders')` moves no data. The
statements after it read and write the topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

from downriver.capture.dataset_names import dataset_over_jdbc
from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.text.tokens import (
    find_closing,
    is_string,
    tokenize_leniently,
    words_of,
)
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from downriver.capture.sql.result import SqlLineage, StatementLineage

    Options = Mapping[str, str]

# Connectors without data of their own: generators, and sinks that store nothing.
_WITHOUT_DATA = frozenset({"datagen", "faker", "print", "blackhole", "nexmark", "python-input"})


class ConnectorTables(NamedTuple):
    """The dataset of each declared table, by the name that the lineage has for the table."""

    datasets: Mapping[str, DatasetId]

    def names(self, dataset_for: Callable[[str], DatasetId]) -> Callable[[str], DatasetId]:
        """Return a function that also finds the datasets of the declared tables."""
        if not self.datasets:
            return dataset_for
        return lambda table: self.datasets.get(table) or dataset_for(table)


def find_connector_tables(lineage: SqlLineage) -> ConnectorTables:
    """Return the tables of other systems that a script declares.

    A table that is only declared is removed from the outputs. A connector that is not known is
    added to the blind spots.
    """
    datasets: dict[str, DatasetId] = {}
    declared: set[str] = set()
    written = {
        table
        for statement in lineage.statements
        if not _declares(statement)
        for table in statement.outputs
    }
    for statement in filter(_declares, lineage.statements):
        options = _options(statement.sql)
        connector = options.get("connector", "").lower()
        if not connector:
            continue
        declared.update(set(statement.outputs) - written)
        dataset = _dataset(connector, options)
        if dataset is not None:
            datasets.update(dict.fromkeys(statement.outputs, dataset))
        elif connector not in _WITHOUT_DATA:
            lineage.blind_spots.append(_unknown(statement, connector))
    if declared:
        lineage.outputs = [table for table in lineage.outputs if table not in declared]
    return ConnectorTables(datasets)


def _declares(statement: StatementLineage) -> bool:
    return statement.kind.upper().startswith("CREATE") and not statement.inputs


def _unknown(statement: StatementLineage, connector: str) -> SqlBlindSpot:
    message = f"{', '.join(statement.outputs)} is a table of another system: what the options of "
    return SqlBlindSpot(
        "unknown_connector", f"{message}{connector} name is not known", statement.line
    )


def _options(sql: str) -> dict[str, str]:
    """Return the options of the last `WITH (…)`, by their names in lower case."""
    tokens, _ = tokenize_leniently(sql, Dialect.get_or_raise(None))
    words = words_of(tokens)
    starts = [at for at in range(len(words) - 1) if words[at : at + 2] == ["WITH", "("]]
    if not starts:
        return {}
    options: dict[str, str] = {}
    key: list[Token] = []
    for token in tokens[starts[-1] + 2 : find_closing(tokens, starts[-1] + 1)]:
        if token.token_type == TokenType.COMMA:
            key = []
        elif key and key[-1].token_type == TokenType.EQ:
            options.setdefault(_text(key[:-1]), str(token.text))
        else:
            key.append(token)
    return options


def _text(key: Sequence[Token]) -> str:
    """Return the name of an option: a string, or words such as properties.bootstrap.server."""
    return "".join(
        token.text if is_string(token) or token.token_type != TokenType.DOT else "."
        for token in key
    ).lower()


def _dataset(connector: str, options: Options) -> DatasetId | None:
    """Return the dataset that the options of a connector name."""
    kind = connector.removeprefix("upsert-")
    reader = next((read for prefix, read in _READERS if kind.startswith(prefix)), None)
    return reader(options) if reader is not None else None


def _kafka(options: Options) -> DatasetId | None:
    servers = options.get("properties.bootstrap.servers") or options.get(
        "properties.bootstrap.server", ""
    )
    topic = options.get("topic", "")
    if not topic or ";" in topic or "," in topic:  # several topics are not one dataset
        return None
    return DatasetId(f"kafka://{servers.partition(',')[0]}", topic) if servers else None


def _jdbc(options: Options) -> DatasetId | None:
    url = options.get("url") or options.get("jdbc.url", "")
    table = options.get("table-name") or options.get("table.name", "")
    return dataset_over_jdbc(url, table) if url and table else None


def _path(options: Options) -> DatasetId | None:
    path = options.get("path", "")
    return dataset_at(path) if path else None


def _database(scheme: str, port: str) -> Callable[[Options], DatasetId | None]:
    """Return a reader of a CDC connector, which names the parts of its table."""

    def read(options: Options) -> DatasetId | None:
        database = options.get("database-name") or options.get("database.name", "")
        schema = options.get("schema-name") or options.get("schema.name", "")
        table = options.get("table-name") or options.get("table.name", "")
        host = options.get("hostname", "")
        if not (host and table) or any(sign in table for sign in "*|[("):  # a pattern
            return None
        name = ".".join(part for part in (database, schema, table) if part)
        return DatasetId(f"{scheme}://{host}:{options.get('port', port)}", name)

    return read


def _elasticsearch(options: Options) -> DatasetId | None:
    host = options.get("hosts", "").partition(";")[0].partition("://")[2].rstrip("/")
    index = options.get("index", "")
    return DatasetId(f"elasticsearch://{host}", index.lower()) if host and index else None


def _mongodb(options: Options) -> DatasetId | None:
    address = options.get("uri") or f"mongodb://{options.get('hosts', '')}"
    host = address.partition("://")[2].rpartition("@")[2].partition("/")[0].partition("?")[0]
    database, collection = options.get("database", ""), options.get("collection", "")
    return DatasetId(f"mongodb://{host}", f"{database}.{collection}") if host else None


_READERS: tuple[tuple[str, Callable[[Options], DatasetId | None]], ...] = (
    ("kafka", _kafka),
    ("jdbc", _jdbc),
    ("filesystem", _path),
    ("hudi", _path),
    ("paimon", _path),
    ("delta", lambda options: _path({"path": options.get("table-path", "")})),
    ("mysql-cdc", _database("mysql", "3306")),
    ("postgres-cdc", _database("postgres", "5432")),
    ("sqlserver-cdc", _database("mssql", "1433")),
    ("oracle-cdc", _database("oracle", "1521")),
    ("elasticsearch", _elasticsearch),
    ("opensearch", _elasticsearch),
    ("mongodb", _mongodb),
)

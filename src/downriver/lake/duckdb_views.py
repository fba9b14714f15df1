"""DuckDB views over the lake's Parquet files, and a Grafana dashboard that queries them.

Needs no Spark. Superset, Metabase and Grafana can all connect to a DuckDB file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import LakeError
from downriver.lake import schemas
from downriver.lake.storage.files import Folder
from downriver.lake.storage.runs import ENTITY
from downriver.lake.storage.tables import read_current_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.lake.storage.tables import StoredRun, StoredTable

_LAYERS = ("silver", "gold")


class Panel(NamedTuple):
    """A panel of the dashboard: its title, its type in Grafana, its width and its query."""

    title: str
    kind: str  # the type in Grafana
    width: int  # of 24 columns
    sql: str


def render_views(lake: Folder) -> str:
    """Return statements that create a view for each table of the current version."""
    snapshot = read_current_version(lake)
    if not snapshot.tables:
        raise LakeError(f"{lake.location} has not been built yet; run `downriver lake build`")
    statements = [
        _view(lake, name, stored)
        for name, stored in sorted(snapshot.tables.items())
        if name.partition(".")[0] in _LAYERS and name in schemas.BY_NAME
    ]
    head = f"-- Views of version {snapshot.version}. Create them again after each build.\n"
    return (
        head + "\n".join([*statements, *(f"{text};" for text in (*DERIVED, MODEL_SOURCES))]) + "\n"
    )


def _view(lake: Folder, name: str, stored: StoredTable) -> str:
    """Return a view of the current rows: a row is replaced by newer runs of its entity."""
    columns = ", ".join(f'"{column}"' for column in schemas.BY_NAME[name].column_names)
    parts = []
    for number, run in enumerate(stored.runs):
        newer = stored.runs[number + 1 :]
        replaced = f"SELECT {ENTITY} FROM {_parquet(lake, newer)}" if newer else ""  # noqa: S608
        where = f" WHERE {ENTITY} NOT IN ({replaced})" if newer else ""
        parts.append(f"SELECT {columns} FROM {_parquet(lake, [run])}{where}")  # noqa: S608 (quoted)
    body = " UNION ALL ".join(parts)
    return f"CREATE OR REPLACE VIEW {name.replace('.', '_')} AS {body};"


def _parquet(lake: Folder, runs: Sequence[StoredRun]) -> str:
    urls = (f"{lake.url_of(run.path)}/*.parquet".replace("'", "''") for run in runs)
    files = ", ".join(f"'{url}'" for url in urls)
    return f"read_parquet([{files}])"


# Views for common questions. They are also translated into Trino's SQL.
DERIVED = (
    """\
CREATE OR REPLACE VIEW lineage_datasets AS
SELECT h.namespace, h.name, h.last_seen, h.readers + h.writers > 0 AS covered,
       h.unknown_downstreams > 0 AS has_unknown_downstreams,
       coalesce(r.downstream_datasets + r.downstream_jobs, 0) AS blast_radius,
       c.name IS NOT NULL AS certified, coalesce(c.intact, FALSE) AS intact
FROM gold_dataset_health h
LEFT JOIN gold_reach r ON r.namespace = h.namespace AND r.name = h.name
LEFT JOIN gold_certified_paths c ON c.namespace = h.namespace AND c.name = h.name""",
    """\
CREATE OR REPLACE VIEW lineage_hotspots AS
SELECT r.namespace, r.name, r.downstream_datasets, r.downstream_jobs, r.downstream_depth,
       h.readers, h.has_owner, h.has_schema
FROM gold_reach r JOIN gold_dataset_health h USING (namespace, name)""",
    """\
CREATE OR REPLACE VIEW lineage_late AS
SELECT namespace, name, last_written, usual_seconds, late_seconds
FROM gold_freshness WHERE late_seconds > 0""",
    """\
CREATE OR REPLACE VIEW lineage_coverage AS
SELECT datasets, jobs,
       100.0 * with_schema / greatest(datasets, 1) AS percent_with_schema,
       100.0 * with_owner / greatest(datasets, 1) AS percent_with_owner,
       100.0 * written_with_column_lineage / greatest(written, 1) AS percent_with_column_lineage,
       orphans, dead
FROM gold_coverage""",
)

# The datasets that each model derives from. Trino limits the depth of recursion.
MODEL_SOURCES = """\
CREATE OR REPLACE VIEW lineage_model_sources AS
WITH RECURSIVE sources (model, kind, namespace, name) AS (
  SELECT name, 'dataset', namespace, name FROM gold_nodes
  WHERE kind = 'dataset' AND namespace = 'model'
  UNION
  SELECT s.model, e.source_kind, e.source_namespace, e.source_name
  FROM sources s JOIN gold_edges e
    ON e.target_kind = s.kind AND e.target_namespace = s.namespace AND e.target_name = s.name
)
SELECT DISTINCT model, namespace, name FROM sources WHERE kind = 'dataset'"""

# Of the variables of the dashboard: texts for LIKE, and its time range.
_FILTERS = """
 WHERE name LIKE ${dataset:sqlstring}
   AND (${model:sqlstring} = '%' OR (namespace, name) IN (
     SELECT (namespace, name) FROM lineage_model_sources WHERE model LIKE ${model:sqlstring}))
   AND last_seen BETWEEN CAST('${__from:date:iso}' AS TIMESTAMPTZ)
     AND CAST('${__to:date:iso}' AS TIMESTAMPTZ)"""
_VARIABLES = (("dataset", "Dataset"), ("model", "Data of the model"))


def _kpi(title: str, figure: str) -> Panel:
    """Return a tile with a figure over the datasets that the variables select."""
    sql = f"SELECT {figure} FROM lineage_datasets{_FILTERS}"  # noqa: S608 (constants)
    return Panel(title, "stat", 6, sql)


PANELS = (
    _kpi("Lineage coverage", "100.0 * count(*) FILTER (covered) / nullif(count(*), 0) AS percent"),
    _kpi("Unknown downstreams", "count(*) FILTER (has_unknown_downstreams) AS datasets"),
    _kpi(
        "Certified-path integrity",
        "100.0 * count(*) FILTER (intact) / nullif(count(*) FILTER (certified), 0) AS percent",
    ),
    _kpi("Median blast radius", "median(blast_radius) AS downstream"),
    Panel("Datasets", "stat", 4, "SELECT datasets FROM lineage_coverage"),
    Panel("Jobs", "stat", 4, "SELECT jobs FROM lineage_coverage"),
    Panel("% with schema", "stat", 4, "SELECT percent_with_schema FROM lineage_coverage"),
    Panel("% with owner", "stat", 4, "SELECT percent_with_owner FROM lineage_coverage"),
    Panel(
        "% of written datasets with column lineage",
        "stat",
        4,
        "SELECT percent_with_column_lineage FROM lineage_coverage",
    ),
    Panel("Orphans and dead", "stat", 4, "SELECT orphans, dead FROM lineage_coverage"),
    Panel(
        "Growth",
        "timeseries",
        12,
        "SELECT CAST(day AS TIMESTAMP) AS time, datasets, jobs, edges, column_edges "
        "FROM gold_daily_kpis ORDER BY 1",
    ),
    Panel(
        "Runs and failures",
        "timeseries",
        12,
        "SELECT CAST(day AS TIMESTAMP) AS time, runs, failed_runs, failed_checks "
        "FROM gold_daily_kpis ORDER BY 1",
    ),
    Panel(
        "Largest blast radius",
        "table",
        12,
        "SELECT name, downstream_datasets, downstream_jobs, readers, has_owner "
        "FROM lineage_hotspots ORDER BY downstream_datasets DESC, name LIMIT 20",
    ),
    Panel(
        "Late datasets",
        "table",
        12,
        "SELECT name, last_written, late_seconds / 3600 AS hours_late "
        "FROM lineage_late ORDER BY late_seconds DESC, name LIMIT 20",
    ),
    Panel(
        "Failing jobs",
        "table",
        12,
        "SELECT job_name, runs, failed, failure_rate, last_error FROM gold_failure_rates "
        "WHERE failed > 0 ORDER BY failure_rate DESC, failed DESC, job_name LIMIT 20",
    ),
    Panel(
        "Schema changes",
        "table",
        12,
        "SELECT seen_at, name, added, removed, retyped FROM gold_schema_drift "
        "ORDER BY seen_at DESC, name LIMIT 20",
    ),
    Panel(
        "Certified datasets with uncertified inputs",
        "table",
        12,
        "SELECT name, upstream_uncertified, upstream_failing, uncertified_inputs "
        "FROM gold_certified_paths WHERE NOT intact ORDER BY upstream_uncertified DESC, name",
    ),
    Panel(
        "Reach of personal data",
        "table",
        12,
        "SELECT name, field, tagged, pii_columns, pii_influences FROM gold_pii_reach "
        "ORDER BY pii_columns DESC, name, field LIMIT 50",
    ),
)
_ROW = 24
_HEIGHTS = {"stat": 4, "timeseries": 8, "table": 8}


def render_dashboard() -> str:
    """Return the dashboard as Grafana JSON; Grafana asks for the data source on import."""
    source = {"type": "motherduck-duckdb-datasource", "uid": "${DS_DUCKDB}"}
    document = {
        "__inputs": [
            {
                "name": "DS_DUCKDB",
                "label": "DuckDB",
                "type": "datasource",
                "pluginId": source["type"],
                "pluginName": "DuckDB",
            }
        ],
        "uid": "downriver-lake",
        "title": "Lineage",
        "tags": ["downriver"],
        "schemaVersion": 39,
        "time": {"from": "now-90d", "to": "now"},
        "templating": {"list": [_variable(name, label) for name, label in _VARIABLES]},
        "panels": list(_placed(source)),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _variable(name: str, label: str) -> dict[str, Any]:
    """Return a text field of the dashboard. `%` stands for any characters."""
    everything = {"text": "%", "value": "%"}
    return {"type": "textbox", "name": name, "label": label, "query": "%", "current": everything}


def _placed(source: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the panels in rows, from left to right."""
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        height = _HEIGHTS[panel.kind]
        yield {
            "id": number,
            "title": panel.title,
            "type": panel.kind,
            "datasource": source,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
            "targets": [{"refId": "A", "datasource": source, "rawSql": panel.sql, "format": 1}],
        }
        x += panel.width
        if x >= _ROW:
            x, y = 0, y + height

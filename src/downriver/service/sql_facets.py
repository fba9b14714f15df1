"""Inputs and outputs of events that have SQL and no datasets, read from the SQL.

Some producers send the query of a task and none of its tables: Airflow's provider does so for
databases that it has no extractor for. The datasets in the SQL become a separate event in the log,
beside the event of the producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from downriver import settings
from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.events import SqlJob, render_inferred_event
from downriver.graph.names.table_names import CatalogNames
from downriver.model.facts import RunState
from downriver.openlineage.facets.base import job_id, parse_facet
from downriver.openlineage.facets.job import SQL, parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.openlineage import Event
    from downriver.service.session import StoreSession

_EXTERNAL_QUERY = "externalQuery"


class _ExternalQuery(msgspec.Struct):
    source: str = ""


def has_only_sql(event: Event) -> bool:
    """Return whether an event has SQL, no datasets, and ends a run or declares a job."""
    wire = event.wire
    if wire.job is UNSET or wire.inputs or wire.outputs or SQL not in (wire.job.facets or {}):
        return False
    if wire.run is not UNSET and event.state is not RunState.COMPLETE:
        return False  # SQL of a run that failed may have changed nothing
    return settings.read_text(settings.SQL_FACETS) != "off"


def infer_datasets(session: StoreSession, events: Iterable[Event]) -> int:
    """Store the inputs and outputs in the SQL of events. Return the number of such events."""
    inferred = [_infer(session, event) for event in events if has_only_sql(event)]
    found = [event for event in inferred if event is not None]
    session.ingest(found)
    return len(found)


def _infer(session: StoreSession, event: Event) -> Event | None:
    wire = event.wire
    if wire.job is UNSET:
        return None
    sql = parse_sql(bytes((wire.job.facets or {})[SQL]))
    if not sql.query.strip():
        return None
    with session.reading() as view:
        names = CatalogNames(view.reader, view.graph.nodes.identities, _namespace(event))
        lineage = parse_sql_lineage(sql.query, dialect=sql.dialect or None, schema=names.columns_of)
        if not (lineage.inputs or lineage.outputs or lineage.blind_spots):
            return None
        about = SqlJob(job_id(wire.job.namespace, wire.job.name), sql.query)
        return render_inferred_event(lineage, about, event.ref.at, names.dataset_for)


def _namespace(event: Event) -> str:
    """Return the namespace of tables: the connection that the run names, else that of the job."""
    wire = event.wire
    facets = {} if wire.run is UNSET else wire.run.facets or {}
    raw = facets.get(_EXTERNAL_QUERY)
    connection = "" if raw is None else parse_facet(bytes(raw), _ExternalQuery).source
    return connection or ("" if wire.job is UNSET else wire.job.namespace)

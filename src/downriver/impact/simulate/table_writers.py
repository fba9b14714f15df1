"""The effect on jobs that write into a changed dataset, by their SQL or by their edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.impact.simulate.delta import ABSENT, Delta, DeltaKind, ProcessResult
from downriver.impact.simulate.process import Job
from downriver.impact.simulate.sql_simulation import simulate_script
from downriver.model.changes import Outcome
from downriver.model.ids import EVERY_FIELD, ColumnId
from downriver.model.verdicts import Basis, Reference

if TYPE_CHECKING:
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.delta import Sentence
    from downriver.impact.simulate.process import Process
    from downriver.model.ids import DatasetId


def simulate_writer(
    process: Process, catalog: SimulationCatalog, node: int, delta: Delta
) -> ProcessResult | None:
    """Return the effect on a process that writes a changed dataset; None if it rebuilds it."""
    reading = catalog.reading(process)
    if reading is None or not reading.understood:
        return _simulate_by_edges(process, catalog, node, delta)
    outputs = [o for o in reading.found.outputs if reading.output_node(o) == node]
    if any(output.replaces or output.defines for output in outputs):
        return None  # this process makes the change
    result = simulate_script(reading, catalog, {node: delta})
    if any(output.open for output in outputs):
        _record_possible_failure(result, catalog.dataset(node).id, delta)
    return result


def _record_possible_failure(result: ProcessResult, dataset: DatasetId, delta: Delta) -> None:
    """Record that a writer may fail. It writes all columns of a file or table without a schema."""
    for column, touch in delta.columns(*ABSENT, DeltaKind.ADDED, DeltaKind.REQUIRED).items():
        reason = ("writes ", dataset, f"; whether what it writes has {column} is unknown")
        result.worsen(Outcome.MAY_FAIL, reason, touch.trail, "table_edges")


def _simulate_by_edges(
    process: Process, catalog: SimulationCatalog, node: int, delta: Delta
) -> ProcessResult:
    """Return the effect on a process that writes a changed dataset."""
    result = ProcessResult(basis="column_edges")
    dataset = catalog.dataset(node).id
    filled = {
        derives.target.casefold()
        for source in process.inputs
        for derives in catalog.derives(process, source)
        if derives.output == node
    }
    basis: Basis = "column_edges" if filled else "table_edges"
    # A derivation without a job is dropped with its dataset.
    if delta.removed is not None and isinstance(process, Job):
        reason: Sentence = ("writes ", dataset, ", which no longer exists")
        result.worsen(Outcome.FAILS, reason, delta.removed, basis)
    for column, touch in delta.columns(DeltaKind.REQUIRED).items():
        if column in filled or EVERY_FIELD in filled:
            continue
        outcome = Outcome.FAILS if filled else Outcome.MAY_FAIL
        reason = ("writes ", dataset, f" and is not known to fill {column}, which is required")
        result.worsen(outcome, reason, touch.trail, basis)
    for column, touch in delta.columns(*ABSENT).items():
        if column in filled:
            reason = ("fills ", ColumnId(dataset, column), ", which was renamed or dropped")
            result.worsen(Outcome.MAY_FAIL, reason, touch.trail, basis)
            result.refer([Reference(dataset=str(dataset), column=column)])
    return result

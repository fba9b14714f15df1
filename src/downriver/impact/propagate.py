"""Propagates changes downstream, process by process, until no dataset changes any more."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from downriver.impact.changes.file_edits import changes_from_delta
from downriver.impact.rebuild_plan import plan_rebuild
from downriver.impact.simulate.delta import (
    ABSENT,
    Delta,
    DeltaKind,
    ProcessResult,
    ResolvedChange,
    initial_deltas,
)
from downriver.impact.simulate.edge_simulation import simulate_compile_error, simulate_reader
from downriver.impact.simulate.process import Job
from downriver.impact.simulate.sql_simulation import simulate_script
from downriver.impact.simulate.table_writers import simulate_writer
from downriver.impact.worklist import Worklist
from downriver.model.answers import BlindSpot, is_complete
from downriver.model.changes import Outcome, change_type
from downriver.model.governance import CERTIFIED_TAGS
from downriver.model.trust.verification import DatasetPrediction
from downriver.model.verdicts import (
    Effect,
    EffectSeverity,
    EntityMention,
    Impact,
    ProposedChange,
    join_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.impact.changes.dbt.names import BrokenReference
    from downriver.impact.changes.file_edits import ScriptEdit
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.delta import Sentence
    from downriver.impact.simulate.process import JobKey, Process, ProcessKey
    from downriver.impact.simulate.script.bound_script import BoundScript
    from downriver.model.ids import EntityId, NodeId
    from downriver.model.unread import Unread

_MOST_VISITS = 6  # of one process: cycles reach a fixed point before

_SEVERITIES = {
    Outcome.FAILS: EffectSeverity.BREAKING,
    Outcome.MAY_FAIL: EffectSeverity.WARNING,
    Outcome.CHANGES: EffectSeverity.WARNING,
    Outcome.NOT_REBUILT: EffectSeverity.WARNING,
    Outcome.DEPRECATED: EffectSeverity.WARNING,
    Outcome.UNTOUCHED: EffectSeverity.NONE,
}


def propagate_changes(
    changes: Sequence[ResolvedChange],
    catalog: SimulationCatalog,
    edits: Mapping[JobKey, ScriptEdit] | None = None,
    rewritten: Mapping[JobKey, Job] | None = None,
    unread: Sequence[Unread] = (),
    errors: Mapping[JobKey, BrokenReference] | None = None,
) -> Impact:
    """Return the effects of changes on all processes downstream, and on writers of what changes.

    `edits` is the new SQL of processes, by key; its effect on their outputs is simulated.
    `rewritten` are processes read from new code; `changes` already contains their effect. `unread`
    are the unread parts of the change: they make the answer incomplete. `errors` are processes that
    can no longer be compiled.
    """
    impact = Propagation(changes, catalog, edits or {}, rewritten, errors).impact()
    return with_unread(impact, unread)


def with_unread(impact: Impact, unread: Sequence[Unread]) -> Impact:
    """Return an impact that also lists the unread parts of its change."""
    every = [*impact.unread, *unread]
    return msgspec.structs.replace(
        impact, unread=every, complete=is_complete(impact.blind_spots, unread=every)
    )


class Propagation:
    """The propagation of changes through the whole graph. `deltas` is the state of each dataset."""

    def __init__(
        self,
        changes: Sequence[ResolvedChange],
        catalog: SimulationCatalog,
        edits: Mapping[JobKey, ScriptEdit],
        rewritten: Mapping[JobKey, Job] | None = None,
        errors: Mapping[JobKey, BrokenReference] | None = None,
    ) -> None:
        self._errors: Mapping[ProcessKey, BrokenReference] = dict((errors or {}).items())
        self._rewritten: Mapping[ProcessKey, Job] = dict((rewritten or {}).items())
        self._changes = changes
        self._catalog = catalog
        self._edits: Mapping[ProcessKey, ScriptEdit] = dict(edits.items())
        self._before: Mapping[ProcessKey, BoundScript] = {
            key: edit.reading(catalog) for key, edit in edits.items()
        }
        self._proposal = initial_deltas(changes, catalog)
        self._deltas: dict[int, Delta] = dict(self._proposal.deltas)
        self._hops: dict[int, int] = dict.fromkeys(self._deltas, 0)  # of datasets
        self._depth: dict[ProcessKey, int] = {}  # of processes
        self._results: dict[ProcessKey, ProcessResult] = {}
        self._writers: dict[ProcessKey, ProcessResult] = {}  # of writers of changed datasets
        self._filled: dict[tuple[ProcessKey, int], Delta] = {}  # by process and dataset
        for node in self._proposal.deltas:
            self._simulate_writers(node)
        self._spread()
        for key, result in self._writers.items():
            self._results[key] = self._worse(key, self._results.get(key) or result)

    @property
    def deltas(self) -> dict[int, Delta]:
        """The delta of each affected dataset."""
        return self._deltas

    def impact(self) -> Impact:
        """Return the effects, and how complete they are."""
        upstream = self._find_failed_upstream()
        effects = [
            self._effect(key, result, upstream.get(key, [])) for key, result in self._affected()
        ]
        effects.sort(key=_by_weight)
        spots = self._blind_spots()
        proposed = self._proposed_changes()
        changes = [proposal.change for proposal in proposed]
        datasets = [self._catalog.dataset(node) for node in self._targets()]
        return Impact(
            changes=[str(change) for change in changes],
            change_types=list(dict.fromkeys(map(change_type, changes))),
            targets=[str(dataset.id) for dataset in datasets],
            target_names=[dataset.id.name for dataset in datasets],
            effects=effects,
            untouched=self._count_untouched(),
            complete=is_complete(spots),
            blind_spots=spots,
            target_tags=sorted({tag for d in datasets for tag in self._tags_of(d.node)}),
            owners=list(dict.fromkeys(owner for d in datasets for owner in d.owners)),
            proposed=proposed,
            predictions=[
                self._prediction(node, delta) for node, delta in self._deltas.items() if delta
            ],
            edited=[str(self._process(key).id) for key in (*self._edits, *self._rewritten)],
            rebuild=plan_rebuild(
                self._process(key)
                for key in dict.fromkeys([*self._edits, *(key for key, _ in self._affected())])
            ),
        )

    def _prediction(self, node: int, delta: Delta) -> DatasetPrediction:
        columns: dict[str, list[str]] = {}
        for (column, kind), touch in delta.touches.items():
            columns.setdefault(column, []).append(kind.value)
            if kind is DeltaKind.RENAMED:
                columns.setdefault(touch.to.casefold(), []).append(DeltaKind.ADDED.value)
        return DatasetPrediction(
            dataset=str(self._catalog.dataset(node).id),
            columns=columns,
            rows=delta.rows is not None,
            unknown=delta.possible is not None or delta.stale is not None,
            gone=delta.removed is not None,
        )

    def _count_untouched(self) -> int:
        return sum(
            result.outcome is Outcome.UNTOUCHED
            and key not in self._edits
            and key not in self._rewritten
            for key, result in self._results.items()
        )

    def _targets(self) -> list[int]:
        """Return the changed datasets: those of the changes, and those that edited SQL fills."""
        edited = [node for key in self._edits for node in self._results[key].outputs]
        return list(dict.fromkeys([*self._proposal.deltas, *edited]))

    def _proposed_changes(self) -> list[ProposedChange]:
        """Return the requested changes, and those that edited SQL makes to its tables."""
        changes = [(change.node, change.change) for change in self._changes]
        changes += [
            (node, change)
            for key in self._edits
            for node, delta in self._results[key].outputs.items()
            for change in changes_from_delta(self._catalog.dataset(node).id.name, delta)
        ]
        proposed = [
            ProposedChange(dataset=str(self._catalog.dataset(node).id), change=change)
            for node, change in changes
        ]
        return [change for at, change in enumerate(proposed) if change not in proposed[:at]]

    # Downstream

    def _spread(self) -> None:
        waiting = Worklist(self._catalog)
        visits: Counter[ProcessKey] = Counter()
        for node in self._deltas:
            self._queue_readers(node, waiting)
        for key in dict.fromkeys((*self._edits, *self._rewritten, *self._errors)):
            self._depth.setdefault(key, 0)
            waiting.add(key, 0)
        while waiting:
            key = waiting.pop()
            visits[key] += 1
            if visits[key] > _MOST_VISITS:
                continue
            process = self._process(key)
            result = self._evaluate(process)
            before = self._results.get(key)
            self._results[key] = result
            for node, delta in _outputs(before, result).items():
                if self._fill(key, node, delta):
                    self._simulate_writers(node, but=key)
                    self._queue_readers(node, waiting, but=key)

    def _process(self, key: ProcessKey) -> Process:
        return self._rewritten.get(key) or self._catalog.process(key)

    def _worse(self, key: ProcessKey, result: ProcessResult) -> ProcessResult:
        """Return the more severe effect on a process, as a reader or as a writer."""
        writer = self._writers.get(key)
        if writer is None:
            return result
        result.worsen(writer.outcome, writer.reason, writer.trail, writer.basis)
        result.refer(writer.references)
        return result

    def _queue_readers(self, node: int, waiting: Worklist, but: ProcessKey | None = None) -> None:
        """Queue the readers of a dataset, except a job that reads what it fills."""
        hops = self._hops[node] + 1
        for key in self._catalog.consumers(node):
            if key == but:
                continue
            self._depth[key] = min(self._depth.get(key, hops), hops)
            waiting.add(key, hops)

    def _evaluate(self, process: Process) -> ProcessResult:
        error = self._errors.get(process.key)
        if error is not None:
            return simulate_compile_error(process, error)
        edit = self._edits.get(process.key)
        if edit is not None:
            before = self._before[process.key]
            return simulate_script(before, self._catalog, self._deltas, edit.head, edit.build)
        if process.key in self._rewritten:
            return simulate_reader(process, self._catalog, self._deltas)
        reading = self._catalog.reading(process)
        if reading is not None and reading.understood and self._covers(process, reading.inputs):
            return simulate_script(reading, self._catalog, self._deltas)
        return simulate_reader(process, self._catalog, self._deltas)

    def _covers(self, process: Process, inputs: set[int]) -> bool:
        """Return whether the SQL contains every changed input.

        If not, other code reads the rest.
        """
        return all(node in inputs for node in process.inputs if node in self._deltas)

    def _fill(self, key: ProcessKey, node: int, delta: Delta) -> bool:
        """Add the effect of a process on a dataset. Return whether the delta changed."""
        self._filled[(key, node)] = delta
        hops = self._depth[key]
        self._hops[node] = min(self._hops.get(node, hops), hops)
        return self._merge(node)

    def _merge(self, node: int) -> bool:
        """Merge the deltas of the proposal and of all writers; True if the delta changed."""
        merged = Delta()
        if node in self._proposal.deltas:
            merged.merge(self._proposal.deltas[node])
        for writer in self._catalog.writers(node):
            filled = self._filled.get((writer, node))
            if filled is not None:
                merged.merge(filled)
        known = self._deltas.get(node)
        self._deltas[node] = merged
        return known is None or not merged.same_as(known)

    # Writers of changed datasets

    def _simulate_writers(self, node: int, but: ProcessKey | None = None) -> None:
        """Simulate the jobs that write into a changed dataset, except the one that changes it."""
        delta = self._deltas[node]
        if not _concerns_writers(delta):
            return
        for key in self._catalog.writers(node):
            if key == but or key in self._edits or key in self._rewritten:
                continue
            result = simulate_writer(self._catalog.process(key), self._catalog, node, delta)
            if result is None or result.outcome is Outcome.UNTOUCHED:
                continue
            self._writers[key] = result
            self._depth.setdefault(key, self._hops[node] + 1)
            if result.outcome is Outcome.FAILS:
                self._filled[(key, node)] = Delta(stale=result.trail)
                self._merge(node)

    # Consumers that depend on other consumers

    def _failing_readers(self, key: ProcessKey, seen: set[ProcessKey]) -> list[ProcessKey]:
        """Return the readers that fail because a process no longer outputs a column."""
        seen.add(key)
        failing: list[ProcessKey] = []
        for node, delta in self._results[key].outputs.items():
            for reader in self._catalog.consumers(node) if delta.columns(*ABSENT) else ():
                result = self._results.get(reader)
                if result is None or reader in seen:
                    continue
                if result.outcome is Outcome.FAILS:
                    failing.append(reader)
                elif result.outcome is Outcome.CHANGES:
                    failing += self._failing_readers(reader, seen)
        return list(dict.fromkeys(failing))

    def _find_failed_upstream(self) -> dict[ProcessKey, list[ProcessKey]]:
        """Return the failing processes that keep each other process from being rebuilt."""
        upstream: dict[ProcessKey, list[ProcessKey]] = {}
        for failing, result in self._results.items():
            if result.outcome is not Outcome.FAILS:
                continue
            stack, seen = [failing], {failing}
            while stack:
                for node in self._process(stack.pop()).outputs:
                    for reader in self._catalog.consumers(node):
                        other = self._results.get(reader)
                        if other is None or reader in seen:
                            continue
                        seen.add(reader)
                        if other.outcome is Outcome.NOT_REBUILT:
                            upstream.setdefault(reader, []).append(failing)
                            stack.append(reader)
        return upstream

    def _reason(self, key: ProcessKey, result: ProcessResult) -> Sentence:
        if result.outcome is not Outcome.CHANGES:
            return result.reason
        readers = self._failing_readers(key, set())
        reason = self._describe_loss(result, readers) if readers else result.reason
        return (*reason, f"; {result.note}" if reason else result.note) if result.note else reason

    def _describe_loss(self, result: ProcessResult, readers: list[ProcessKey]) -> Sentence:
        missing = [c for delta in result.outputs.values() for c in delta.columns(*ABSENT)]
        columns = ", ".join(dict.fromkeys(missing))
        names: list[str | EntityId] = []
        for reader in dict.fromkeys(map(self._shown_id, readers)):
            names += [", ", reader] if names else [reader]
        return (f"no longer outputs {columns}, which breaks ", *names)

    def _shown_id(self, key: ProcessKey) -> NodeId:
        return self._catalog.shown_id(self._catalog.process(key))

    # Results

    def _affected(self) -> Iterable[tuple[ProcessKey, ProcessResult]]:
        for key, result in self._results.items():
            edit = self._edits.get(key)
            is_the_change = (
                edit is not None
                and not edit.is_indirect
                and result.outcome is Outcome.CHANGES
                and not result.data_loss
            )
            if result.outcome is not Outcome.UNTOUCHED and not is_the_change:
                yield key, result

    def _effect(self, key: ProcessKey, result: ProcessResult, failed: list[ProcessKey]) -> Effect:
        process = self._process(key)
        card = self._catalog.summary(process)
        severity = _SEVERITIES[result.outcome]
        reason_parts = [
            part if isinstance(part, str) else EntityMention.of(part)
            for part in self._reason(key, result)
        ]
        path = list(map(EntityMention.of, result.trail))
        if result.outcome is Outcome.FAILS and self._only_if_there(result):
            severity = EffectSeverity.WARNING
        columns = [reference.column for reference in result.references if reference.column]
        return Effect(
            consumer=card.consumer,
            name=card.name,
            asset_type=card.type,
            severity=severity,
            outcome=result.outcome,
            basis=result.basis,
            reason=join_parts(reason_parts),
            reason_parts=reason_parts,
            affected_references=list(dict.fromkeys(columns)),
            references=result.references,
            hops=max(self._depth[key], 1),
            path=[step.name for step in path],
            path_ids=[step.id for step in path],
            reads=[str(self._catalog.dataset(n).id) for n in process.inputs if n in self._deltas],
            writes=card.writes,
            owners=card.owners,
            tags=card.tags,
            certified=not {*CERTIFIED_TAGS}.isdisjoint(card.tags),
            last_run=card.last_run,
            because_of=[str(self._shown_id(k)) for k in failed],
        )

    def _only_if_there(self, result: ProcessResult) -> bool:
        return bool(result.references) and all(r.conditional for r in result.references)

    def _tags_of(self, node: int) -> set[str]:
        dataset = self._catalog.dataset(node)
        touched = {column for column, _ in self._deltas[node].touches}
        tags = set(dataset.tags)
        for column in touched:
            tags |= dataset.column_tags.get(column, frozenset())
        return tags

    def _blind_spots(self) -> list[BlindSpot]:
        processes = [self._catalog.process(key) for key in self._results]
        jobs = [process for process in processes if isinstance(process, Job)]
        stated = self._catalog.stated_spots(jobs)
        jobs_with_spots = {spot.entity for spot in stated}
        unread = [
            BlindSpot(kind="unread_sql", entity=str(job.id), message=message)
            for job in jobs
            if job.script is not None and str(job.id) not in jobs_with_spots
            for message in job.script.unread[:3]
        ]
        weak = [
            BlindSpot(
                kind="no_column_lineage",
                entity=str(self._catalog.process(key).id),
                message=(
                    "reads an affected dataset; the columns that it uses are unknown: "
                    "capture its code or its column lineage"
                ),
            )
            for key, result in self._affected()
            if result.basis == "table_edges" and result.outcome is not Outcome.DEPRECATED
        ]
        touched = [*self._targets(), *self._deltas]
        cuts = self._catalog.possible_cuts(touched)
        jobs_unread = self._catalog.unread_jobs(touched)
        return [*self._proposal.blind_spots, *stated, *unread, *weak, *cuts, *jobs_unread]


def _outputs(before: ProcessResult | None, result: ProcessResult) -> dict[int, Delta]:
    """Return the deltas of a process's outputs, empty for outputs that it no longer affects.

    If an edited process is visited before an edited process upstream of it, its first result may be
    a failure.
    """
    cleared = {} if before is None else dict.fromkeys(before.outputs, Delta())
    return {**cleared, **result.outputs}


def _concerns_writers(delta: Delta) -> bool:
    kinds = (*ABSENT, DeltaKind.REQUIRED, DeltaKind.ADDED, DeltaKind.RETYPED)
    return delta.removed is not None or bool(delta.columns(*kinds))


_WEIGHTS = {EffectSeverity.BREAKING: 0, EffectSeverity.WARNING: 1, EffectSeverity.NONE: 2}


def _by_weight(effect: Effect) -> tuple[int, int, str]:
    return (_WEIGHTS[effect.severity], effect.hops, effect.name)

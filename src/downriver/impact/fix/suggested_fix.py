"""Writes the patch for a change, and lists the places that need a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlglot import exp

from downriver.impact.changes.file_edits import ScriptEdit
from downriver.impact.fix.source_files import cast_edits, patch_python, rename_edits
from downriver.impact.fix.text_edits import apply_edits, unified_diff
from downriver.impact.fix.yaml_edits import list_mentions, patch_yaml
from downriver.impact.propagate import Propagation, propagate_changes
from downriver.impact.simulate.delta import MISSING, Delta, DeltaKind, initial_deltas
from downriver.impact.simulate.script.bound_script import BoundScript, BoundTables
from downriver.impact.simulate.script.job_script import JobScript
from downriver.model.answers import MappingStruct
from downriver.model.changes import ColumnDrop, ColumnRename, Outcome
from downriver.model.verdicts import (
    EffectSeverity,
    EntityMention,
    Impact,
    Reference,
    SentenceParts,
    join_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.impact.fix.source_files import SourceFiles
    from downriver.impact.fix.text_edits import TextEdit
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.delta import ResolvedChange
    from downriver.impact.simulate.process import Job, JobKey
    from downriver.model.changes import Change
    from downriver.model.verdicts import Effect


def write_plan(changes: Sequence[Change], impact: Impact) -> list[str]:
    """Return the steps for each rename, with consumers in the order of their dependencies."""
    steps: list[str] = []
    for change in changes:
        if isinstance(change, ColumnRename) and impact.effects:
            steps += _steps(change, impact)
    return steps


def _steps(change: ColumnRename, impact: Impact) -> Iterator[str]:
    table, old, new = change.dataset, change.column, change.to
    yield f"expand: add {table}.{new}, fill it from {old}, and let every writer fill both"
    by_hops: dict[int, list[str]] = {}
    for effect in impact.breaking:
        owners = f" ({', '.join(effect.owners)})" if effect.owners else ""
        by_hops.setdefault(effect.hops, []).append(f"{effect.name}{owners}")
    for hops in sorted(by_hops):
        yield f"migrate: {', '.join(by_hops[hops])}"
    yield f"check: `downriver impact {table}.{old} --drop` must list no consumer"
    yield f"contract: drop {table}.{old}"


_ROUNDS = 6  # a patch may reveal the next place, behind a star


class FilePatch(msgspec.Struct, kw_only=True):
    """An edit of one file. It is `verified` when the simulated job is no longer affected."""

    path: str
    consumer: str
    diff: str
    verified: bool


class ManualStep(msgspec.Struct, kw_only=True):
    """A place that needs a decision, and why. `consumer` is a full id, or the path of a file."""

    consumer: str
    reason: str
    reason_parts: SentenceParts = []
    reference: Reference | None = None


class Fix(MappingStruct, kw_only=True):
    """Patches, manual steps, and the plan for the change without downtime.

    `verified`: with all patches applied, the simulated impact is empty. `absent` are the needed
    files that do not exist.
    """

    changes: list[str]
    patches: list[FilePatch]
    to_decide: list[ManualStep]
    plan: list[str]
    verified: bool
    remaining: list[str]
    absent: list[str] = msgspec.field(default_factory=list)

    @property
    def diff(self) -> str:
        """All patches as one."""
        return "".join(patch.diff for patch in self.patches)


def write_fix(
    changes: Sequence[ResolvedChange], catalog: SimulationCatalog, code: SourceFiles
) -> Fix:
    """Return the patch for changes to these files."""
    return _FixWriter(changes, catalog, code).fix()


class _FixWriter:
    def __init__(
        self, changes: Sequence[ResolvedChange], catalog: SimulationCatalog, code: SourceFiles
    ) -> None:
        self._changes = changes
        self._catalog = catalog
        self._code = code
        self._absent: set[str] = set()
        self._before = propagate_changes(changes, catalog)
        self._edits: dict[JobKey, ScriptEdit] = {}
        self._lost: dict[str, str] = {}  # consumer -> why it cannot be patched

    def fix(self) -> Fix:
        after = self._patch_all()
        other = [*self._python_patches(), *self._yaml_patches()]
        still_affected = {effect.consumer for effect in after.effects}
        patches = [
            FilePatch(
                path=edit.process.path,
                consumer=self._consumer(edit.process),
                diff=unified_diff(edit.process.path, edit.base.sql, edit.head.sql),
                verified=self._consumer(edit.process) not in still_affected,
            )
            for edit in self._edits.values()
            if edit.base.sql != edit.head.sql
        ]
        return Fix(
            changes=[str(change.change) for change in self._changes],
            patches=[*patches, *other],
            to_decide=list(self._to_decide(after)),
            plan=write_plan([change.change for change in self._changes], self._before),
            verified=not after.effects and not other,
            remaining=sorted(still_affected),
            absent=sorted(self._absent),
        )

    def _read(self, process: Job) -> str | None:
        text = self._code.read(process.path) if process.path else None
        if text is None and process.path:
            self._absent.add(process.path)
        return text

    # SQL

    def _patch_all(self) -> Impact:
        """Patch broken consumers and simulate again, until no more can be patched."""
        impact = self._before
        for _ in range(_ROUNDS):
            if not self._patch_round(impact):
                break
            impact = propagate_changes(self._changes, self._catalog, self._edits)
        return impact

    def _patch_round(self, impact: Impact) -> bool:
        patched = False
        for effect in impact.effects:
            process = self._job_of(effect)
            if process is None or process.script is None or not _is_patchable(effect):
                continue
            if self._makes_change(process):
                continue
            patched |= self._patch_sql(effect, process)
        return patched

    def _makes_change(self, process: Job) -> bool:
        """Return whether a process builds a changed table: it is edited to make the change."""
        changed = {change.node for change in self._changes}.intersection(process.outputs)
        reading = self._catalog.reading(process) if changed else None
        if reading is None:
            return bool(changed)
        outputs = [o for o in reading.found.outputs if reading.output_node(o) in changed]
        return not outputs or any(output.replaces or output.defines for output in outputs)

    def _patch_sql(self, effect: Effect, process: Job) -> bool:
        edit = self._edits.get(process.key) or self._open(process)
        if edit is None:
            self._lost[effect.consumer] = f"its file {process.path or ''!r} was not found"
            return False
        text = apply_edits(edit.head.sql, self._replacements(edit))
        if text == edit.head.sql:
            self._lost.setdefault(effect.consumer, "the place to edit in its file is ambiguous")
            return False
        head = JobScript(text, edit.head.named_dialect)
        self._edits[process.key] = edit._replace(head=head)
        self._lost.pop(effect.consumer, None)
        return True

    def _open(self, process: Job) -> ScriptEdit | None:
        text = self._read(process)
        if text is None or process.script is None:
            return None
        script = JobScript(text, process.script.named_dialect)
        return ScriptEdit(process._replace(code=None), script, script)

    def _replacements(self, edit: ScriptEdit) -> Iterator[TextEdit]:
        deltas = self._deltas()
        process = edit.process._replace(script=edit.head)
        tables = BoundTables(process, self._catalog, deltas)
        reading = edit.head.read(tables)
        for problem in reading.problems():
            renamed = self._find_new_name(problem.name, process, deltas)
            if problem.kind != "missing_column" or problem.node is None or renamed is None:
                continue
            if isinstance(problem.node.parent, exp.Join):  # USING needs the name on both sides
                self._lost[self._consumer(process)] = f"USING ({problem.name}) must become ON"
                continue
            yield from rename_edits(edit.head, problem.node, renamed)
        yield from self._casts(process)

    def _find_new_name(self, name: str, process: Job, deltas: dict[int, Delta]) -> str | None:
        """Return the new name of a column that is missing in an input, or else in an output."""
        for nodes in (process.inputs, process.outputs):
            known = [delta for node in nodes if (delta := deltas.get(node)) is not None]
            touches = [touch for d in known if (touch := d.find(name, DeltaKind.RENAMED))]
            if touches:
                return touches[0].to
            if any(delta.find(name, kind) for delta in known for kind in MISSING):
                return None
        return None

    def _casts(self, process: Job) -> Iterator[TextEdit]:
        script = process.script
        if script is None:
            return
        reading = BoundScript(process, script, self._catalog)
        for node in process.inputs:
            delta = self._proposed.get(node)
            for column in delta.columns(DeltaKind.RETYPED) if delta is not None else ():
                old = self._old_type(node, column)
                for lookup in reading.lookups.get((node, column), ()):
                    if (
                        old
                        and _reads_table(lookup.node, reading, node)
                        and not _is_cast(lookup.node)
                    ):
                        yield from cast_edits(script, lookup.node, old)

    def _old_type(self, node: int, column: str) -> str:
        types = {field.name.casefold(): field.type for field in self._catalog.fields(node) or ()}
        return types.get(column, "")

    @property
    def _proposed(self) -> dict[int, Delta]:
        return initial_deltas(self._changes, self._catalog).deltas

    def _deltas(self) -> dict[int, Delta]:
        """Return the delta of every dataset with the current patches."""
        return Propagation(self._changes, self._catalog, self._edits).deltas

    def _job_of(self, effect: Effect) -> Job | None:
        return self._catalog.find_job(effect.consumer)

    def _consumer(self, process: Job) -> str:
        return self._catalog.shown_as(process)

    # Other files

    def _python_patches(self) -> Iterator[FilePatch]:
        for change in self._changes:
            if not isinstance(change.change, ColumnRename):
                continue
            for effect in self._before.effects:
                process = self._job_of(effect)
                if process is None or process.script is not None or effect.hops > 1:
                    continue
                yield from self._python_patch(effect, process, change.change)

    def _python_patch(
        self, effect: Effect, process: Job, change: ColumnRename
    ) -> Iterator[FilePatch]:
        before = self._read(process)
        if before is None:
            return
        lines = [
            r.line for r in effect.references if r.column.casefold() == change.column.casefold()
        ]
        after = patch_python(before, change.column, change.to, lines)
        if after != before:
            diff = unified_diff(process.path, before, after)
            yield FilePatch(path=process.path, consumer=effect.consumer, diff=diff, verified=False)

    def _yaml_patches(self) -> Iterator[FilePatch]:
        """Rename the column where dbt's YAML describes and tests it."""
        for change in self._changes:
            if not isinstance(change.change, ColumnRename):
                continue
            table = self._catalog.dataset(change.node).id.name.rpartition(".")[2]
            for path in self._code.list_yaml():
                before = self._code.read(path) or ""
                after = patch_yaml(before, table, change.change.column, change.change.to)
                if after != before:
                    diff = unified_diff(path, before, after)
                    yield FilePatch(path=path, consumer=path, diff=diff, verified=False)

    # Manual steps

    def _yaml_steps(self) -> Iterator[ManualStep]:
        """List the lines of YAML that name a renamed or dropped column and are not patched."""
        for change in self._changes:
            if not isinstance(change.change, ColumnRename | ColumnDrop):
                continue
            dataset = self._catalog.dataset(change.node).id
            table = dataset.name
            short = table.rpartition(".")[2]
            parts: SentenceParts = [f"names {change.change.column} of ", EntityMention.of(dataset)]
            renamed = isinstance(change.change, ColumnRename)
            for path in self._code.list_yaml():
                text = self._code.read(path) or ""
                for mention in list_mentions(text, short, change.change.column, patched=renamed):
                    yield ManualStep(
                        consumer=path,
                        reason=join_parts(parts),
                        reason_parts=parts,
                        reference=Reference(
                            dataset=table,
                            column=change.change.column,
                            path=path,
                            line=mention.line,
                            text=mention.text,
                        ),
                    )

    def _to_decide(self, after: Impact) -> Iterator[ManualStep]:
        yield from self._consumer_steps(after)
        yield from self._yaml_steps()

    def _consumer_steps(self, after: Impact) -> Iterator[ManualStep]:
        for effect in after.effects:
            if (
                effect.severity is not EffectSeverity.BREAKING
                and effect.outcome is not Outcome.MAY_FAIL
            ):
                continue
            lost = self._lost.get(effect.consumer)
            parts: SentenceParts = [lost] if lost is not None else effect.reason_parts
            for reference in effect.references or (None,):
                yield ManualStep(
                    consumer=effect.consumer,
                    reason=join_parts(parts),
                    reason_parts=parts,
                    reference=reference,
                )


def _is_patchable(effect: Effect) -> bool:
    return effect.outcome in (Outcome.FAILS, Outcome.NOT_REBUILT, Outcome.CHANGES)


def _reads_table(node: exp.Expression, reading: BoundScript, dataset: int) -> bool:
    """Return whether a reference is in the query that reads the table itself."""
    select = node.find_ancestor(exp.Select)
    if select is None:
        return False
    sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
    for source in sources:
        table = source.this if source is not None else None
        if isinstance(table, exp.Table):
            name = tuple(str(part.name) for part in table.parts if part.name)
            if reading.tables.node(name) == dataset:
                return True
    return False


def _is_cast(node: exp.Expression) -> bool:
    return isinstance(node.parent, exp.Cast)

"""Options of a model that name columns or contain SQL: keys, partitions, hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.code import CodeJob, ColumnReference, add_sql, set_query
from downriver.capture.sql import Template, read_rendered, render_sql
from downriver.model.ids import JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.capture.sql import RenderedTemplate, SqlLineage
    from downriver.model.ids import DatasetId

COLUMN_OPTIONS = (
    "unique_key", "partition_by", "cluster_by", "check_cols", "updated_at", "sort", "dist",
    "order_by", "merge_update_columns", "merge_exclude_columns", "event_time", "partitioned_by",
    "liquid_clustered_by", "sortkey", "distkey", "primary_key",
)  # fmt: skip
_HOOKS = ("pre_hook", "post_hook", "pre-hook", "post-hook")
_COLUMN_KEYS = ("field", "column", "columns", "name")  # of an option that is a mapping
_WORDS = frozenset({"all", "even", "auto", "compound", "interleaved", "none"})  # no columns


def list_columns(option: Any) -> Iterator[str]:
    """Yield the columns that an option of a model names."""
    if isinstance(option, dict):
        for key in _COLUMN_KEYS:
            yield from list_columns(option.get(key))
    elif isinstance(option, (list, tuple)):
        for part in option:
            yield from list_columns(part)
    elif isinstance(option, str) and option.lower() not in _WORDS:
        yield option


def add_config(job: CodeJob, config: dict[str, Any], text: str, own: DatasetId) -> None:
    """Add references to the columns that the `config` call of a model names.

    These are columns that the model returns. The reference is to the columns they come from.
    """
    for option in COLUMN_OPTIONS:
        for column in list_columns(config.get(option)):
            for edge in [e for e in job.edges if e.target == own]:
                if edge.target_field.casefold() == column.casefold():
                    job.add_reference(
                        ColumnReference(
                            dataset=edge.source,
                            field=edge.source_field,
                            line=line_of_word(text, column),
                            clause="other",
                            text=f"{option}: {column}",
                        )
                    )


def line_of_word(text: str, word: str) -> int:
    """Return the line that contains a word; 1 when none does."""
    at = text.lower().find(word.lower())
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


class HookReader(NamedTuple):
    """Reads the statements that dbt runs before and after a model, or all models."""

    text: str  # of the file that they belong to
    template: Template
    dialect: str | None
    dataset_for: Callable[[str], DatasetId]

    def add(self, job: CodeJob, hooks: Iterable[str]) -> list[CodeJob]:
        """Add the lineage of hooks to a job. Return the jobs of hooks that use its tables.

        Such a hook reads what the job writes, so it is a consumer with a name of its own.
        """
        apart: list[CodeJob] = []
        for hook in dict.fromkeys(hooks):
            rendered = render_sql(hook, self.template)
            lineage = read_rendered(rendered, dialect=self.dialect)
            used = {self.dataset_for(table) for table in lineage.inputs}
            if used.isdisjoint(job.outputs):
                self._merge(job, hook, rendered, lineage)
            else:
                number = f"_{len(apart) + 1}" if apart else ""
                name = JobId(job.id.namespace, f"{job.id.name}.hook{number}")
                apart.append(self._job(job, name, hook, rendered, lineage))
        return apart

    def _merge(
        self, job: CodeJob, hook: str, rendered: RenderedTemplate, lineage: SqlLineage
    ) -> None:
        for spot in lineage.blind_spots:
            message = f"in a hook: {spot.message}"
            job.add_blind_spot(BlindSpotEntry(spot.kind, message, self._line(hook)))
        _add_statements(job, lineage, self.dataset_for)
        add_executed(job, rendered.executed, self.dialect, self.dataset_for)

    def _job(
        self, job: CodeJob, name: JobId, hook: str, rendered: RenderedTemplate, lineage: SqlLineage
    ) -> CodeJob:
        hook_job = CodeJob(id=name, integration=job.integration, kind="OPERATION", path=job.path)
        hook_job.line = self._line(hook)
        hook_job.dialect = lineage.dialect
        set_query(hook_job, hook, rendered)
        add_sql(hook_job, lineage, self.dataset_for)
        return hook_job

    def _line(self, hook: str) -> int:
        return line_of_word(self.text, hook.strip().splitlines()[0])


def add_executed(
    job: CodeJob,
    statements: Iterable[str],
    dialect: str | None,
    dataset_for: Callable[[str], DatasetId],
) -> None:
    """Add the lineage of statements that a template runs. Each already has a blind spot."""
    for sql in statements:
        lineage = read_rendered(render_sql(sql, Template()), dialect=dialect)
        _add_statements(job, lineage, dataset_for)


def _add_statements(
    job: CodeJob, lineage: SqlLineage, dataset_for: Callable[[str], DatasetId]
) -> None:
    own_inputs, own_outputs = set(job.inputs), set(job.outputs)
    part = CodeJob(id=job.id, integration=job.integration, kind=job.kind, path=job.path)
    add_sql(part, lineage, dataset_for)
    for dataset in part.inputs:
        if dataset not in own_outputs:
            job.add_input(dataset)
    for dataset in part.outputs:
        if dataset not in own_inputs:
            job.add_output(dataset)
    job.edges += [edge for edge in part.edges if edge not in job.edges]


def list_hooks(config: dict[str, Any], options: Iterable[str] = _HOOKS) -> Iterator[str]:
    """Yield the SQL of the hooks in the options of a model or project."""
    for option in options:
        given = config.get(option)
        for hook in given if isinstance(given, (list, tuple)) else [given]:
            sql = hook.get("sql") if isinstance(hook, dict) else hook
            if isinstance(sql, str) and sql.strip():
                yield sql

"""SQL files: scripts, and the models, snapshots and tests of dbt projects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.code import (
    CodeJob,
    DerivationStep,
    OutputShape,
    TableNames,
    add_sql,
    find_references,
    set_query,
)
from downriver.capture.code.dbt_resources import (
    list_declared_sources,
    list_refs,
    sort_parents_first,
)
from downriver.capture.code.dbt_snapshots import (
    add_snapshot_columns,
    list_snapshot_columns,
    split_snapshots,
)
from downriver.capture.scan.dbt.model_config import (
    HookReader,
    add_config,
    add_executed,
    line_of_word,
    list_hooks,
)
from downriver.capture.scan.python.module_code import read_module_code
from downriver.capture.sql import (
    INCLUDE,
    SqlLineage,
    find_connector_tables,
    find_included_file,
    parse_sql_lineage,
    read_rendered,
    render_sql,
)
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.capture.scan.dbt import DbtProject
    from downriver.capture.scan.dbt.project import DbtModelFile

_DBT_CALL = re.compile(
    r"\bdbt\.(ref|source)\(\s*['\"]([^'\"]+)['\"]\s*(?:,\s*['\"]([^'\"]+)['\"])?"
)
_DBT_ANY_CALL = re.compile(r"\bdbt\.(?:ref|source)\(")
OWN_DATA = frozenset({"model", "snapshot"})


class SqlFiles:
    """Reads SQL files. The inferred columns of a dbt model are used by the models after it."""

    def __init__(
        self,
        namespace: str,
        dataset_for: Callable[[str], DatasetId],
        columns_of: Callable[[DatasetId], list[str] | None],
        dialect: str | None,
        is_read: Callable[[str, str], bool],
    ) -> None:
        """`is_read` returns whether the scan also reads a file that another file names."""
        self._namespace = namespace
        self._is_read = is_read
        self._dataset_for = dataset_for
        self._columns_of = columns_of
        self._dialect = dialect
        self.inferred_columns: dict[DatasetId, list[str]] = {}

    def read_script(self, path: str, text: str) -> CodeJob:
        """Return the job of a script."""
        job = self._job(path, path.rpartition(".")[0], "SQL", "SCRIPT")
        lineage = parse_sql_lineage(text, dialect=self._dialect, schema=self._schema)
        self._follow_included(lineage, path)
        job.dialect = lineage.dialect
        set_query(job, text)
        dataset_for = find_connector_tables(lineage).names(self._dataset_for)
        add_sql(job, lineage, dataset_for)
        job.add_references(find_references(text, lineage, TableNames(dataset_for)))
        return job

    def _follow_included(self, lineage: SqlLineage, path: str) -> None:
        """Remove the blind spots of files that a script runs and that are jobs of their own."""
        for statement in lineage.statements:
            file = find_included_file(statement.sql) if statement.kind == INCLUDE else None
            if file is not None and self._is_read(file.path, path):
                for spot in statement.blind_spots:
                    lineage.blind_spots.remove(spot)

    def read_dbt(
        self,
        path: str,
        text: str,
        project: DbtProject,
        kind: str,
        find_in_project: Callable[[str], DatasetId],
    ) -> list[CodeJob]:
        """Return the jobs of a file of a dbt project, and their hooks.

        A file has a model, a test, an analysis, or one or more snapshots. `find_in_project` returns
        the dataset of a table name in the SQL of this project.
        """
        blocks = split_snapshots(text) if kind == "snapshot" else {}
        return [
            job
            for block in blocks.values() or [text]
            for job in self._read_dbt(path, block, project, kind, find_in_project)
        ]

    def _read_dbt(
        self,
        path: str,
        text: str,
        project: DbtProject,
        kind: str,
        find_in_project: Callable[[str], DatasetId],
    ) -> list[CodeJob]:
        model = project.model_at(path, text)
        job = self._job(path, model.job, "DBT", kind.upper())
        if kind in OWN_DATA:
            job.build = project.build_of(path, model.name, text)
        own = find_in_project(model.table)
        undeclared: set[str] = set()

        def dataset_for(table: str) -> DatasetId:
            dataset = find_in_project(table)
            named, folded = dataset.name.casefold(), table.casefold()
            if f".{named}".endswith(f".{folded}"):
                return dataset
            # `raw.orders` in the model orders is another table, and so is an undeclared source.
            is_other = dataset == own or folded in undeclared
            return DatasetId(self._namespace, table) if is_other else dataset

        def schema(table: str) -> Sequence[str] | None:
            dataset = dataset_for(table)
            return self.inferred_columns.get(dataset) or self._columns_of(dataset)

        this = project.sql_names.get(model.name, model.table)
        template = project.template(this, schema)
        rendered = render_sql(text, template)
        undeclared.update(t.casefold() for t in rendered.tables if t not in project.relation_names)
        lineage = read_rendered(rendered, dialect=self._dialect or project.dialect, schema=schema)
        is_stored = kind in OWN_DATA and not lineage.outputs
        target = own if is_stored else None
        job.dialect = lineage.dialect
        set_query(job, text, rendered)
        add_sql(job, lineage, dataset_for, result=target)
        if target is not None:
            job.inputs = [dataset for dataset in job.inputs if dataset != target]
            job.edges = [edge for edge in job.edges if edge.source != target]
            if lineage.statements and not any(e.target.column == "*" for e in lineage.column_edges):
                self.inferred_columns[target] = lineage.statements[-1].columns
            if kind == "snapshot":
                config = {**project.config_of(path, model.name, text), **rendered.config}
                add_snapshot_columns(job, target, config)
                if target in self.inferred_columns:
                    own_columns = self.inferred_columns[target]
                    self.inferred_columns[target] = [*own_columns, *list_snapshot_columns(config)]
        names = TableNames(dataset_for, project.folded_names, model.table)
        references = find_references(text, lineage, names)
        job.add_references(reference for reference in references if reference.dataset != target)
        if target is not None:
            options = {**project.folder_config(path), **rendered.config}
            add_config(job, options, text, target)
        dialect = self._dialect or project.dialect
        hooks = [*project.hooks_of(path, model.name), *list_hooks(rendered.config)]
        apart = HookReader(text, template, dialect, dataset_for).add(job, hooks)
        add_executed(job, rendered.executed, dialect, dataset_for)
        if kind in OWN_DATA:
            _add_declared(job, project, model, text, find_in_project)
        return [job, *apart]

    def read_python_model(
        self, path: str, text: str, project: DbtProject, dataset_for: Callable[[str], DatasetId]
    ) -> CodeJob:
        """Return the job of a model in Python: its tables are known, its columns are not."""
        model = project.model_at(path, text)
        job = self._job(path, model.job, "DBT", "MODEL")
        for call in _DBT_CALL.finditer(text):
            function, first, second = call.groups()
            name = f"{first}.{second}" if function == "source" and second else second or first
            job.add_input(dataset_for(project.names.get(name, name)))
        _add_declared(job, project, model, "", dataset_for)
        own = dataset_for(model.table)
        job.add_output(own)
        line = line_of_word(text, "def model")
        message = "the columns of a model in Python are not read"
        job.add_blind_spot(BlindSpotEntry("not_read", message, line))
        module = read_module_code(path, text)
        if module is not None:
            step = DerivationStep(columns=(), text="\n".join(sorted(module.code_for([line]))))
            job.written.append(OutputShape(dataset=own, columns=(), open=True, steps=(step,)))
        for line, code in enumerate(text.splitlines(), 1):
            if _DBT_ANY_CALL.search(code) and not _DBT_CALL.search(code):
                message = "a dbt.ref or dbt.source whose name is not written in the call"
                job.add_blind_spot(BlindSpotEntry("dynamic_name", message, line))
        return job

    def read_run_hooks(
        self, path: str, text: str, project: DbtProject, dataset_for: Callable[[str], DatasetId]
    ) -> Iterator[CodeJob]:
        """Yield the jobs of the statements that dbt runs before and after all models."""
        for option in ("on-run-start", "on-run-end"):
            hooks = list(list_hooks(project.settings, [option]))
            job = self._job(path, f"{project.name}.{option}", "DBT", "OPERATION")
            job.line = line_of_word(text, option)
            dialect = self._dialect or project.dialect
            HookReader(text, project.template(""), dialect, dataset_for).add(job, hooks)
            if job.inputs or job.outputs or job.spots:
                yield job

    def _job(self, path: str, name: str, integration: str, kind: str) -> CodeJob:
        job_id = JobId(self._namespace, name)
        return CodeJob(id=job_id, integration=integration, kind=kind, path=path)

    def _schema(self, table: str) -> Sequence[str] | None:
        dataset = self._dataset_for(table)
        return self.inferred_columns.get(dataset) or self._columns_of(dataset)


def _add_declared(
    job: CodeJob,
    project: DbtProject,
    model: DbtModelFile,
    text: str,
    dataset_for: Callable[[str], DatasetId],
) -> None:
    """Add the tables that `meta.lineage` of a model names as inputs."""
    config = project.config_of(model.path, model.name, text)
    properties = {**project.properties.get(model.name, {}), "config": config}
    for name in list_declared_sources(properties):
        relations = {
            relation
            for argument, relation in project.names.items()
            if name in (argument, argument.rpartition(".")[2], relation)
        }
        if len(relations) == 1:
            job.add_input(dataset_for(relations.pop()))
        else:
            reason = (
                f"meta.lineage names {name!r}: {len(relations)} models of the project match, not 1"
            )
            job.add_blind_spot(BlindSpotEntry("unknown_source", reason, 1))


def sort_models(models: dict[str, str], defined: dict[str, str]) -> list[str]:
    """Return the paths of models in order of their references.

    `models` maps the paths to their texts, `defined` the name of each model to its path.
    """
    return sort_parents_first(
        models, lambda path: [defined[n] for n in list_refs(models[path]) if n in defined]
    )

"""Builds models of both sides of a change in a scratch schema, in the order of the data flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.capture.code.dbt_resources import is_true, text
from downriver.impact.simulate.build_rules import adds_columns, apply_build, check_columns
from downriver.impact.simulate.column_types import compare_types, parse_type
from downriver.impact.simulate.delta import ColumnDelta, Delta, DeltaKind
from downriver.impact.verify.databases import StatementError, StatementFault
from downriver.impact.verify.models import UndefinedReferenceError, UnrenderedError, render_model
from downriver.model.ids import short_name
from downriver.model.trust.verification import BuildState, UnverifiedReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.impact.verify.databases import DatabaseTable, RelationColumn, ScratchDatabase
    from downriver.impact.verify.models import CommitModels, SideModel

Side = Literal["base", "head"]
_SHOWN = 3
_UNVERIFIED_FAULTS = {
    StatementFault.MISSING_RELATION: UnverifiedReason.MISSING_RELATION,
    StatementFault.TIMEOUT: UnverifiedReason.TIMEOUT,
    StatementFault.NOT_A_QUERY: UnverifiedReason.NOT_A_QUERY,
}


class ModelBuild(NamedTuple):
    """The result of building a model on one side: its table, or why it was not built."""

    state: BuildState
    table: str = ""  # in the scratch schema
    error: str = ""
    unverified: UnverifiedReason | None = None


class _UpstreamError(Exception):
    """A model that another one reads has no table in the scratch schema."""

    def __init__(self, name: str, build: ModelBuild) -> None:
        super().__init__(name)
        self.name = name
        self.build = build


class Builds:
    """The models that were built. `changed` are the models to build on both sides.

    `altered` are tables that the change alters outside of dbt: the database has them as they are
    before the change.
    """

    def __init__(
        self,
        database: ScratchDatabase,
        sides: dict[Side, CommitModels],
        changed: set[str],
        altered: set[str],
    ) -> None:
        self._database = database
        self._sides = sides
        self._changed = changed
        self._altered = altered
        self._done: dict[tuple[Side, str], ModelBuild] = {}
        self._relations: dict[str, list[DatabaseTable]] = {}
        for relation in database.relations():
            self._relations.setdefault(relation.name.casefold(), []).append(relation)
        self._default_schemas = [database.options.target] if database.options.target else []
        self._default_schemas += database.default_schemas()
        self.upstream: dict[str, None] = {}  # unchanged models that the database does not have

    def build(self, side: Side, name: str) -> ModelBuild:
        """Build the models upstream and then the model, or return why it is not built."""
        if (side, name) not in self._done:
            cycle = "the models read each other"
            self._done[side, name] = ModelBuild(BuildState.FAILED, error=cycle)
            self._done[side, name] = self._build(side, name)
        return self._done[side, name]

    def rebuild(self, side: Side, name: str) -> str:
        """Build a model of one side once more, and return the name of that table."""
        model = self._sides[side].models[name]
        table = f"again__{name}"
        self._database.create(table, self._render(side, model))
        return table

    def _build(self, side: Side, name: str) -> ModelBuild:
        model = self._sides[side].models.get(name)
        if model is None or not _is_enabled(model):
            return ModelBuild(BuildState.ABSENT)
        table = f"{side}__{name}"
        try:
            self._database.create(table, self._render(side, model))
            columns = self._database.columns(self._database.scratch(table))
            error = self._dbt_error(side, model, columns)
        except _UpstreamError as exc:
            return _result_after_failure(exc)
        except UnrenderedError as exc:
            return ModelBuild(BuildState.NOT_BUILT, error=exc.detail, unverified=exc.reason)
        except UndefinedReferenceError as exc:
            return ModelBuild(BuildState.FAILED, error=str(exc))
        except StatementError as exc:
            reason = _UNVERIFIED_FAULTS.get(exc.fault)
            state = BuildState.FAILED if reason is None else BuildState.NOT_BUILT
            return ModelBuild(state, error=exc.message, unverified=reason)
        if error:
            return ModelBuild(BuildState.FAILED, error=error)
        return ModelBuild(BuildState.BUILT, table)

    def _render(self, side: Side, model: SideModel) -> str:
        if model.kind == "seed":
            raise UnrenderedError(UnverifiedReason.SEED, "the change edits the rows of this seed")
        if model.kind == "snapshot":
            detail = "a snapshot keeps a history, which a new build does not have"
            raise UnrenderedError(UnverifiedReason.SNAPSHOT, detail)
        if not model.file.path.endswith(".sql"):
            raise UnrenderedError(UnverifiedReason.PYTHON_MODEL, "a model in Python is not run")
        return render_model(
            model,
            self._database.dialect,
            lambda key: self._relation_of(side, model, key),
            lambda relation: [column.name for column in self._database.columns(relation)],
            self._database.scratch(f"{side}__{model.name}"),
        )

    def _dbt_error(self, side: Side, model: SideModel, columns: list[RelationColumn]) -> str:
        """Return the error with which dbt rejects these columns, "" if it accepts them."""
        families = {c.name.casefold(): parse_type(c.type).family for c in columns}
        violation = next(check_columns(model.build, families), None)
        if violation is not None:
            return violation.reason
        before = self.build("base", model.name) if side == "head" else None
        if before is None or before.state is not BuildState.BUILT:
            return ""
        known = self._database.columns(self._database.scratch(before.table))
        delta = _delta_of(known, columns)
        if not adds_columns(model.build):
            # An incremental model keeps the columns of its table.
            table = self._database.scratch(f"{side}__{model.name}")
            for column in delta.columns(DeltaKind.ADDED):
                name = next(c.name for c in columns if c.name.casefold() == column)
                self._database.query(
                    f"ALTER TABLE {table} DROP COLUMN {self._database.quote(name)}"
                )
        return apply_build(model.build, delta).error

    # Names in templates, as relations in the database

    def _relation_of(self, side: Side, model: SideModel, key: str) -> str:
        project = model.project
        relation = project.names.get(key, key)
        name = self._model_named(side, model, key, relation)
        if name is None and side == "head" and self._model_named("base", model, key, relation):
            raise UndefinedReferenceError(f"refers to the model {key}, which does not exist")
        if name is None:
            if side == "head" and short_name(relation).casefold() in self._altered:
                detail = f"it reads {relation}, which the change alters outside of dbt"
                raise UnrenderedError(UnverifiedReason.MIGRATION, detail)
            return self._find_source(relation)
        if name in self._changed:
            return self._built(side, name)
        found = self._find_model(self._sides[side].models[name])
        if found is None:
            self.upstream[name] = None
            return self._built("base", name)
        return found

    def _built(self, side: Side, name: str) -> str:
        build = self.build(side, name)
        if build.state is not BuildState.BUILT:
            raise _UpstreamError(name, build)
        return self._database.scratch(build.table)

    def _model_named(self, side: Side, model: SideModel, key: str, relation: str) -> str | None:
        """Return the model of one side that a key refers to: by name, or as the latest version."""
        models = self._sides[side].models
        if key in models or "." in key:
            return key if key in models else None
        names = (
            name
            for name, other in models.items()
            if other.project.root == model.project.root and project_name(other) == relation
        )
        return next(names, None)

    def _find_model(self, model: SideModel) -> str | None:
        """Return the table of an unchanged model in the database."""
        candidates = self._relations.get(short_name(project_name(model)).casefold(), [])
        config = model.project.config_of(model.file.path, model.name, model.text)
        custom = text(config.get("schema")).casefold()
        wanted = [
            f"{schema}_{custom}" if custom else schema for schema in self._default_schemas
        ] + ([custom] if custom else [])
        return self._choose_table(candidates, wanted, custom)

    def _find_source(self, relation: str) -> str:
        """Return a table that no model of this side builds."""
        parts = [part.casefold() for part in relation.split(".")]
        candidates = self._relations.get(parts[-1], [])
        for length in range(min(len(parts), 3), 1, -1):
            fitting = [
                relations for relations in candidates
                if [part.casefold() for part in relations][-length:] == parts[-length:]
            ]  # fmt: skip
            if fitting:
                return self._database.quote(*fitting[0])
        relations = (
            self._choose_table(candidates, self._default_schemas, "") if len(parts) == 1 else None
        )
        if relations is None:
            detail = f"the database has no table {relation}"
            raise UnrenderedError(UnverifiedReason.MISSING_RELATION, detail)
        return relations

    def _choose_table(
        self, candidates: list[DatabaseTable], wanted: list[str], custom: str
    ) -> str | None:
        """Return one of some tables: the one in the first preferred schema, else the only one."""
        for schema in wanted:
            for relation in candidates:
                if relation.schema.casefold() == schema.casefold():
                    return self._database.quote(*relation)
        if custom:
            candidates = [r for r in candidates if r.schema.casefold().endswith(f"_{custom}")]
        if len(candidates) > 1:
            shown = ", ".join(f"{r.schema}.{r.name}" for r in candidates[:_SHOWN])
            detail = f"the database has {shown}; name the schema of dbt with --verify-schema"
            raise UnrenderedError(UnverifiedReason.AMBIGUOUS_RELATION, detail)
        return self._database.quote(*candidates[0]) if candidates else None


def project_name(model: SideModel) -> str:
    """Return the relation of a model, as its project names it."""
    return model.project.names.get(model.name, model.file.table)


def _is_enabled(model: SideModel) -> bool:
    enabled = model.project.config_of(model.file.path, model.name, model.text).get("enabled", True)
    return enabled is not False and (not isinstance(enabled, str) or is_true(enabled))


def _result_after_failure(error: _UpstreamError) -> ModelBuild:
    """Return the result of a model that reads a model that is not built."""
    build = error.build
    if build.unverified is not None:
        detail = f"it reads {error.name}, which is not built: {build.error}"
        return ModelBuild(BuildState.NOT_BUILT, error=detail, unverified=UnverifiedReason.UPSTREAM)
    if build.state is BuildState.ABSENT:
        return ModelBuild(BuildState.FAILED, error=f"it reads {error.name}, which does not exist")
    return ModelBuild(BuildState.NOT_BUILT, error=f"it reads {error.name}, which fails")


def _delta_of(before: Iterable[RelationColumn], after: Iterable[RelationColumn]) -> Delta:
    """Return how the columns of two tables differ."""
    old = {column.name.casefold(): column.type for column in before}
    new = {column.name.casefold(): column.type for column in after}
    delta = Delta()
    for name in old.keys() - new.keys():
        delta.put(name, DeltaKind.LOST, ColumnDelta())
    for name in new.keys() - old.keys():
        delta.put(name, DeltaKind.ADDED, ColumnDelta())
    for name in old.keys() & new.keys():
        if compare_types(old[name], new[name]) != "same":
            delta.put(name, DeltaKind.RETYPED, ColumnDelta(new[name]))
    return delta

"""Builds what a change affects on both sides, and compares what is observed with the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.inventory.databases import without_password
from downriver.capture.scan import Repository
from downriver.impact.verify.builds import Builds, ModelBuild, project_name
from downriver.impact.verify.comparison import TableComparer
from downriver.impact.verify.databases import StatementError, open_scratch
from downriver.impact.verify.models import CommitModels
from downriver.model.answers import BlindSpot, is_complete
from downriver.model.changes import Outcome
from downriver.model.ids import short_name
from downriver.model.trust.verification import (
    BuildState,
    Contradiction,
    DatabaseVerification,
    ModelVerification,
    SideBuild,
    UnverifiedConsumer,
    UnverifiedReason,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.impact.changes.commits import CommitTrees, FilePair
    from downriver.impact.verify.builds import Side
    from downriver.impact.verify.comparison import TableComparison
    from downriver.impact.verify.databases import ScratchDatabase, VerifyOptions
    from downriver.model.verdicts import Effect, Impact

_MAY_FAIL = (Outcome.FAILS, Outcome.MAY_FAIL, Outcome.NOT_REBUILT)
_CONTRADICTED = {
    Contradiction.UNPREDICTED_FAILURE: "cannot be built with the change, which was not predicted",
    Contradiction.UNPREDICTED_DIFFERENCE: "differs with the change in a way that was not predicted",
}


def verify_commits(
    impact: Impact, pairs: Sequence[FilePair], trees: CommitTrees, options: VerifyOptions
) -> Impact:
    """Return an impact with what a database shows of it.

    What contradicts the prediction, and was not predicted, makes the answer incomplete.
    """
    sides: dict[Side, CommitModels] = {
        "base": CommitModels(Repository(trees.base, is_fixed=True)),
        "head": CommitModels(Repository(trees.head, is_fixed=True)),
    }
    with open_scratch(options) as database:
        found = _Verifier(impact, pairs, sides, database).run()
    spots = [
        BlindSpot(kind="contradicted", entity=model.model, message=_CONTRADICTED[kind])
        for model in found.models
        for kind in model.contradictions
        if kind in _CONTRADICTED
    ]
    spots = [*impact.blind_spots, *spots]
    return msgspec.structs.replace(
        impact,
        verification=found,
        blind_spots=spots,
        complete=is_complete(spots, unread=impact.unread),
    )


class _Verifier:
    """Verifies one impact with one database."""

    def __init__(
        self,
        impact: Impact,
        pairs: Sequence[FilePair],
        sides: dict[Side, CommitModels],
        database: ScratchDatabase,
    ) -> None:
        self._impact = impact
        self._sides = sides
        self._database = database
        self._comparer = TableComparer(database)
        self._changed = self._list_changed(pairs)
        self._names = _names_by_relation(sides)
        altered = {
            short_name(name).casefold()
            for target, name in zip(impact.targets, impact.target_names, strict=True)
            if self._model_of(target) is None
        }
        self._builds = Builds(database, sides, self._changed, altered)
        self._effects = self._effects_by_model(impact.effects)
        self._predictions = {
            name: prediction
            for prediction in impact.predictions
            if (name := self._model_of(prediction.dataset)) is not None
        }

    def _model_of(self, dataset: str) -> str | None:
        """Return the model that fills a dataset, given as a full id."""
        relation = dataset.rpartition(":")[2].casefold()
        if "/" in relation:
            return None  # a definition of the semantic layer, or a file
        return self._names.get(relation) or self._names.get(short_name(relation))

    def _list_changed(self, pairs: Sequence[FilePair]) -> set[str]:
        """Return the models that the change edits, those that it affects, and all downstream."""
        edited = {pair.path for pair in pairs}
        found: set[str] = set()
        for side in self._sides.values():
            found |= {name for path, name in side.by_path().items() if path in edited}
            found |= set(self._impact.rebuild.models) & side.models.keys()
        # A model may be removed from the way between two others by one side only.
        while True:
            more = {name for side in self._sides.values() for name in side.downstream(found)}
            if more <= found:
                return found
            found |= more

    def _effects_by_model(self, effects: Iterable[Effect]) -> dict[str, Effect]:
        found: dict[str, Effect] = {}
        for effect in effects:
            for dataset in effect.writes if effect.asset_type == "dbt_model" else ():
                name = self._model_of(dataset)
                if name is not None:
                    found.setdefault(name, effect)
        return found

    def run(self) -> DatabaseVerification:
        """Build and compare all models."""
        models = [self._verify(name) for name in sorted(self._changed)]
        built = {effect.consumer for effect in self._effects.values()}
        consumers = [
            UnverifiedConsumer(
                consumer=effect.consumer,
                name=effect.name,
                asset_type=effect.asset_type,
                reason=UnverifiedReason.NOT_A_MODEL,
            )
            for effect in self._impact.effects
            if effect.consumer not in built
        ]
        return DatabaseVerification(
            database=without_password(self._database.options.url),
            models=models,
            consumers=consumers,
            upstream=list(self._builds.upstream),
        )

    def _verify(self, name: str) -> ModelVerification:
        effect = self._effects.get(name)
        prediction = self._predictions.get(name)
        base, head = (self._builds.build(side, name) for side in _SIDES)
        model = self._sides["head"].models.get(name) or self._sides["base"].models[name]
        is_changed = prediction is not None
        found = ModelVerification(
            model=name,
            path=model.file.path,
            predicted=effect.outcome if effect is not None else _CHANGES[is_changed],
            base=_side(base),
            head=_side(head),
            prediction=prediction,
        )
        found.unverified, found.detail = _why_unverified(base, head)
        if found.unverified is not None:
            return found
        if BuildState.ABSENT not in (base.state, head.state):
            self._compare(found, base, head)
        elif head.state is BuildState.BUILT:
            found.head = SideBuild(state=head.state, rows=self._comparer.count(head.table))
        found.contradictions += _contradictions_of_state(found)
        return found

    def _compare(self, found: ModelVerification, base: ModelBuild, head: ModelBuild) -> None:
        if head.state is not BuildState.BUILT:
            found.base = SideBuild(state=base.state, rows=self._comparer.count(base.table))
            return
        keys = list(self._sides["base"].models[found.model].keys())
        tables = self._comparer.compare(base.table, head.table, keys)
        found.base = SideBuild(state=base.state, rows=tables.base_rows)
        found.head = SideBuild(state=head.state, rows=tables.head_rows)
        found.rows, found.not_compared = tables.rows, tables.not_compared
        predicted = set(found.prediction.columns) if found.prediction is not None else set()
        differing = tables.differences()
        expected = predicted
        if found.prediction is not None and (found.prediction.rows or found.prediction.unknown):
            expected = predicted | tables.base.keys() & tables.head.keys()
        surprising = self._surprising(found, tables, differing - predicted)
        unstable: set[str] = set()
        if surprising:
            unstable = self._unstable_columns(found, base, keys)
            surprising -= unstable
        found.columns = [
            msgspec.structs.replace(column, unstable=True)
            if column.name.casefold() in unstable
            else column
            for column in self._comparer.describe(
                base.table, head.table, tables, predicted | differing, expected
            )
        ]
        if surprising:
            found.contradictions.append(Contradiction.UNPREDICTED_DIFFERENCE)

    def _surprising(
        self, found: ModelVerification, tables: TableComparison, columns: set[str]
    ) -> set[str]:
        """Return what differs, of these columns and of the rows ("*"), and was not predicted."""
        prediction = found.prediction
        if found.predicted in _MAY_FAIL or (prediction is not None and prediction.unknown):
            return set()
        if prediction is not None and prediction.rows:
            shared = tables.base.keys() & tables.head.keys()
            return {n for n in columns if n not in shared or _is_retyped(tables, n)}
        has_other_rows = tables.base_rows != tables.head_rows
        return columns | ({"*"} if has_other_rows else set())

    def _unstable_columns(
        self, found: ModelVerification, base: ModelBuild, keys: list[list[str]]
    ) -> set[str]:
        """Return the columns that also differ between two builds of the base."""
        try:
            again = self._builds.rebuild("base", found.model)
        except StatementError:
            return set()
        tables = self._comparer.compare(base.table, again, keys)
        self._database.drop(again)
        unstable = tables.differences()
        return unstable | ({"*"} if tables.base_rows != tables.head_rows else set())


def _names_by_relation(sides: dict[Side, CommitModels]) -> dict[str, str]:
    """Return the models by their relations, and by the last part of each where it is unique."""
    full = {
        project_name(model).casefold(): name
        for side in sides.values()
        for name, model in side.models.items()
    }
    short: dict[str, set[str]] = {}
    for relation, name in full.items():
        short.setdefault(short_name(relation), set()).add(name)
    return {**{last: min(names) for last, names in short.items() if len(names) == 1}, **full}


_SIDES: tuple[Side, Side] = ("base", "head")
_CHANGES = {True: Outcome.CHANGES, False: Outcome.UNTOUCHED}


def _is_retyped(tables: TableComparison, name: str) -> bool:
    return tables.base[name].type != tables.head[name].type


def _side(build: ModelBuild) -> SideBuild:
    return SideBuild(state=build.state, error=build.error)


def _why_unverified(base: ModelBuild, head: ModelBuild) -> tuple[UnverifiedReason | None, str]:
    """Return why a model is not verified. A failure of the head alone is an observation."""
    for build in (base, head):
        if build.unverified is not None:
            return build.unverified, build.error
    if base.state in (BuildState.FAILED, BuildState.NOT_BUILT):
        return UnverifiedReason.BASE_FAILS, base.error
    return None, ""


def _contradictions_of_state(found: ModelVerification) -> list[Contradiction]:
    if found.head.state is BuildState.FAILED and found.predicted not in _MAY_FAIL:
        return [Contradiction.UNPREDICTED_FAILURE]
    if found.head.state is BuildState.BUILT and found.predicted is Outcome.FAILS:
        return [Contradiction.UNCONFIRMED_FAILURE]
    return []

"""Builds the affected models on both sides, and compares the observation with the prediction."""

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
    """Return an impact with its verification by a database.

    A failure or difference that was not predicted makes the answer incomplete.
    """
    sides: dict[Side, CommitModels] = {
        "base": CommitModels(Repository(trees.base, is_fixed=True)),
        "head": CommitModels(Repository(trees.head, is_fixed=True)),
    }
    with open_scratch(options) as database:
        verification = _Verifier(impact, pairs, sides, database).run()
    spots = [
        BlindSpot(kind="contradicted", entity=model.model, message=_CONTRADICTED[kind])
        for model in verification.models
        for kind in model.contradictions
        if kind in _CONTRADICTED
    ]
    spots = [*impact.blind_spots, *spots]
    return msgspec.structs.replace(
        impact,
        verification=verification,
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
        models: set[str] = set()
        for side in self._sides.values():
            models |= {name for path, name in side.by_path().items() if path in edited}
            models |= set(self._impact.rebuild.models) & side.models.keys()
        # One side may remove a model that connects two others.
        while True:
            more = {name for side in self._sides.values() for name in side.downstream(models)}
            if more <= models:
                return models
            models |= more

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
        model_verification = ModelVerification(
            model=name,
            path=model.file.path,
            predicted=effect.outcome if effect is not None else _CHANGES[is_changed],
            base=_side(base),
            head=_side(head),
            prediction=prediction,
        )
        model_verification.unverified, model_verification.detail = _why_unverified(base, head)
        if model_verification.unverified is not None:
            return model_verification
        if BuildState.ABSENT not in (base.state, head.state):
            self._compare(model_verification, base, head)
        elif head.state is BuildState.BUILT:
            model_verification.head = SideBuild(
                state=head.state, rows=self._comparer.count(head.table)
            )
        model_verification.contradictions += _contradictions_of_state(model_verification)
        return model_verification

    def _compare(
        self, model_verification: ModelVerification, base: ModelBuild, head: ModelBuild
    ) -> None:
        if head.state is not BuildState.BUILT:
            model_verification.base = SideBuild(
                state=base.state, rows=self._comparer.count(base.table)
            )
            return
        keys = list(self._sides["base"].models[model_verification.model].keys())
        tables = self._comparer.compare(base.table, head.table, keys)
        model_verification.base = SideBuild(state=base.state, rows=tables.base_rows)
        model_verification.head = SideBuild(state=head.state, rows=tables.head_rows)
        model_verification.rows, model_verification.not_compared = tables.rows, tables.not_compared
        predicted = (
            set(model_verification.prediction.columns)
            if model_verification.prediction is not None
            else set()
        )
        differing = tables.differences()
        expected = predicted
        if model_verification.prediction is not None and (
            model_verification.prediction.rows or model_verification.prediction.unknown
        ):
            expected = predicted | tables.base.keys() & tables.head.keys()
        surprising = self._unpredicted_columns(model_verification, tables, differing - predicted)
        unstable: set[str] = set()
        if surprising:
            unstable = self._unstable_columns(model_verification, base, keys)
            surprising -= unstable
        model_verification.columns = [
            msgspec.structs.replace(column, unstable=True)
            if column.name.casefold() in unstable
            else column
            for column in self._comparer.describe(
                base.table, head.table, tables, predicted | differing, expected
            )
        ]
        if surprising:
            model_verification.contradictions.append(Contradiction.UNPREDICTED_DIFFERENCE)

    def _unpredicted_columns(
        self, model_verification: ModelVerification, tables: TableComparison, columns: set[str]
    ) -> set[str]:
        """Return the differing columns, and "*" for the rows, that were not predicted."""
        prediction = model_verification.prediction
        if model_verification.predicted in _MAY_FAIL or (
            prediction is not None and prediction.unknown
        ):
            return set()
        if prediction is not None and prediction.rows:
            shared = tables.base.keys() & tables.head.keys()
            return {n for n in columns if n not in shared or _is_retyped(tables, n)}
        has_other_rows = tables.base_rows != tables.head_rows
        return columns | ({"*"} if has_other_rows else set())

    def _unstable_columns(
        self, model_verification: ModelVerification, base: ModelBuild, keys: list[list[str]]
    ) -> set[str]:
        """Return the columns that also differ between two builds of the base."""
        try:
            again = self._builds.rebuild("base", model_verification.model)
        except StatementError:
            return set()
        tables = self._comparer.compare(base.table, again, keys)
        self._database.drop(again)
        unstable = tables.differences()
        return unstable | ({"*"} if tables.base_rows != tables.head_rows else set())


def _names_by_relation(sides: dict[Side, CommitModels]) -> dict[str, str]:
    """Return the models by relation, and by the last part of the relation if it is unique."""
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


def _contradictions_of_state(model_verification: ModelVerification) -> list[Contradiction]:
    if (
        model_verification.head.state is BuildState.FAILED
        and model_verification.predicted not in _MAY_FAIL
    ):
        return [Contradiction.UNPREDICTED_FAILURE]
    if (
        model_verification.head.state is BuildState.BUILT
        and model_verification.predicted is Outcome.FAILS
    ):
        return [Contradiction.UNCONFIRMED_FAILURE]
    return []

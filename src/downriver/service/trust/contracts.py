"""Data contracts: stored in the log, and checked against the events about the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver import settings
from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.govern.contracts import StatedContract, check_contract
from downriver.govern.contracts.evaluation import list_differences, summarize
from downriver.govern.contracts.observations import find_contracts, observe_dataset
from downriver.govern.drift.measures import read_checks
from downriver.govern.entity_context import EntityContext
from downriver.graph import Entity
from downriver.graph.answers.view import limit_blind_spots
from downriver.model.answers import BlindSpot
from downriver.model.ids import DatasetId
from downriver.model.trust.contracts import (
    ClauseResult,
    ContractChange,
    ContractChanges,
    ContractChecks,
    ContractResult,
)
from downriver.openlineage.events import dataset_event
from downriver.openlineage.facets.contract import CONTRACT, parse_contract_facet, render_contract
from downriver.openlineage.facets.dataset import ASSERTIONS, QualityAssertion, render_assertions
from downriver.openlineage.wire import render_time
from downriver.service.govern import parse_moment
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.graph import CatalogSnapshot
    from downriver.model.trust.contracts import DataContract
    from downriver.openlineage import Event
    from downriver.service.session import StoreSession

ASSERTION_PREFIX = "contract."
_MEASURES = 500
_ORDER = {"violated": 0, "unknown": 1, "passed": 2}


class _Located(NamedTuple):
    """A contract and its dataset; None if no event names the dataset."""

    stated: StatedContract
    dataset: Entity | None
    problem: str = ""


class ContractApi:
    """Applies and checks contracts. Call it to check them."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        contracts: Sequence[StatedContract] | None = None,
        *,
        at: str | None = None,
        record: bool = True,
    ) -> ContractChecks:
        """Return the outcome of these contracts, or of all that were applied.

        `at` is the moment of the check, now by default. `record` writes the outcomes to the log as
        assertions of quality, so incidents and the monitor report violations.
        """
        moment = now() if at is None else parse_moment(at, "at")
        with self._session.reading() as view:
            located = self._applied(view) if contracts is None else self._locate(contracts, view)
            around = EntityContext(
                view.graph, view.reader, settings.read_number(settings.STALE_DAYS)
            )
            results = [_check(each, view, around, moment) for each in located]
            events = [
                event
                for each, result in zip(located, results, strict=True)
                if (event := _outcome_event(each, result, view, moment)) is not None
            ]
        if record:
            self._session.ingest_many(events)
        results.sort(key=lambda result: (_ORDER[result.outcome], result.dataset))
        spots = [
            BlindSpot(kind="contract_unknown", entity=result.dataset, message=clause.message)
            for result in results
            for clause in result.clauses
            if clause.outcome == "unknown"
        ]
        return ContractChecks(
            at=render_time(moment),
            passed=all(result.outcome != "violated" for result in results),
            contracts=results,
            recorded=record,
            complete=not spots,
            blind_spots=limit_blind_spots(spots, len(spots)),
        )

    def apply(self, contracts: Sequence[StatedContract], *, done: bool = True) -> ContractChanges:
        """Store these contracts of their datasets, and return what changes.

        Applying them again changes nothing. Without `done`, only return what would change.
        """
        at = now()
        changes: list[ContractChange] = []
        events: list[Event] = []
        with self._session.reading() as view:
            for stated in contracts:
                dataset = self._dataset(stated, view)
                known = _current(view, dataset)
                differences = list_differences(known, stated.contract)
                if differences:
                    change = ContractChange(dataset=str(dataset.id), differences=differences)
                    changes.append(change)
                    facets = {CONTRACT: render_contract(stated.contract)}
                    events.append(dataset_event(_id(dataset), at, facets))
        if done:
            self._session.ingest_many(events)
        return ContractChanges(changes=changes, declared=len(contracts), done=done)

    def _locate(self, contracts: Sequence[StatedContract], view: CatalogSnapshot) -> list[_Located]:
        located_contracts: list[_Located] = []
        for stated in contracts:
            try:
                located_contracts.append(_Located(stated, self._dataset(stated, view)))
            except EntityNotFoundError as exc:
                located_contracts.append(_Located(stated, None, exc.message))
        return located_contracts

    def _dataset(self, stated: StatedContract, view: CatalogSnapshot) -> Entity:
        entity = self._session.resolve(stated.contract.dataset, view)
        if not isinstance(entity.id, DatasetId):
            place = stated.path or "contract"
            raise InvalidRequestError(place, f"dataset: {entity.id} is not a dataset")
        return entity

    def _applied(self, view: CatalogSnapshot) -> list[_Located]:
        contracts = find_contracts(view.graph, view.reader)
        display_names = view.graph.nodes.identities.display_names(contracts, view.reader)
        return [
            _Located(StatedContract(contract), Entity(display_names[node].id, node))
            for node, contract in contracts.items()
        ]


def _current(view: CatalogSnapshot, dataset: Entity) -> DataContract | None:
    body = view.reader.facets.of_each([dataset.node], (CONTRACT,)).get(dataset.node, {})
    return parse_contract_facet(body[CONTRACT]) if CONTRACT in body else None


def _id(dataset: Entity) -> DatasetId:
    return DatasetId(dataset.id.namespace, dataset.id.name)  # type: ignore[union-attr]


def _check(
    located: _Located, view: CatalogSnapshot, around: EntityContext, moment: int
) -> ContractResult:
    contract, path = located.stated
    if located.dataset is None:
        clauses = [ClauseResult(clause="dataset", outcome="unknown", message=located.problem)]
    else:
        observed = observe_dataset(view, around, located.dataset.node, moment)
        clauses = check_contract(contract, observed)
    return ContractResult(
        dataset=contract.dataset if located.dataset is None else str(located.dataset.id),
        outcome=summarize(clauses),
        clauses=clauses,
        owner=contract.owner,
        consumers=contract.consumers,
        path=path,
    )


def _outcome_event(
    located: _Located, result: ContractResult, view: CatalogSnapshot, moment: int
) -> Event | None:
    """Return the event that records outcomes.

    A clause with the outcome unknown keeps its last outcome.
    """
    if located.dataset is None:
        return None
    assertions = [
        QualityAssertion(
            assertion=ASSERTION_PREFIX + clause.clause,
            success=clause.outcome == "passed",
            severity="error",
            column=clause.column,
            expected=clause.expected,
            actual=clause.actual or (None if clause.outcome == "passed" else clause.message),
        )
        for clause in result.clauses
        if clause.outcome != "unknown"
    ]
    assertions += _withdrawn(located.dataset, result, view, moment)
    if not assertions:
        return None
    return dataset_event(_id(located.dataset), moment, {ASSERTIONS: render_assertions(assertions)})


def _withdrawn(
    dataset: Entity, result: ContractResult, view: CatalogSnapshot, moment: int
) -> list[QualityAssertion]:
    """Return the failed clauses that were removed from the contract, as passed."""
    stated = {(ASSERTION_PREFIX + each.clause, each.column) for each in result.clauses}
    names = view.graph.nodes.identities.group(dataset.node)
    measures = [m for name in names for m in view.reader.history.measures(name, _MEASURES, moment)]
    measures.sort(key=lambda measure: measure.at)
    return [
        QualityAssertion(
            assertion=check.assertion.assertion,
            success=True,
            column=check.assertion.column,
            actual="no longer in the contract",
        )
        for check in read_checks(measures)
        if check.assertion.assertion.startswith(ASSERTION_PREFIX)
        and not check.assertion.success
        and not check.job
        and (check.assertion.assertion, check.assertion.column) not in stated
    ]

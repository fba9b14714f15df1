"""Effects of changes, verdicts about them, and patches for the consumers that break."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from downriver import settings
from downriver.errors import EntityNotFoundError, InvalidRequestError, StoreError
from downriver.govern.tags import propagating_tags, tags_reaching
from downriver.govern.verdict_history import summarise
from downriver.graph import FOREVER, Entity
from downriver.graph.names.resolution import find_entity
from downriver.impact import (
    NO_CHANGES,
    POLICY_FILE,
    CatalogCache,
    Policy,
    ResolvedChange,
    ScriptCache,
    SimulationCatalog,
    SourceFolder,
    answer_impact,
    apply_diff,
    changes_from_request,
    decide,
    find_edits,
    list_changed_files,
    list_edited,
    open_trees,
    propagate_changes,
    read_ddl,
    read_edited_files,
    read_policy,
    write_fix,
)
from downriver.impact.selection import select_effects
from downriver.impact.verify import verify_commits
from downriver.model.answers import is_complete
from downriver.model.changes import Change, with_dataset
from downriver.model.governance import PII_TAG
from downriver.model.ids import DEFAULT_NAMESPACE, ColumnId, DatasetId
from downriver.model.unread import Unread, UnreadReason
from downriver.openlineage.events import waiver_event
from downriver.openlineage.wire import render_time
from downriver.service.base_catalog import open_base
from downriver.service.capture import scan_catalog
from downriver.service.session import now
from downriver.service.trace import TraceApi, parse_as_of
from downriver.service.views.selection import SelectionApi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from downriver.graph import CatalogSnapshot
    from downriver.impact import CommitTrees, FilePair, Fix, LocatedChange, SourceFiles
    from downriver.impact.changes.edited_code import EditedCode
    from downriver.impact.verify import VerifyOptions
    from downriver.model.trust.verification import DatasetPrediction
    from downriver.model.verdicts import Impact, ImpactAnswer, ImpactRequest, Verdict
    from downriver.service.session import StoreSession
    from downriver.store import StoreState


log = logging.getLogger("downriver")

# The entity of a recorded waiver if the changed dataset is unknown, as for an unread file.
_UNKNOWN_TARGET = DatasetId("downriver", "gate")


class ImpactApi:
    """Simulates changes, decides about them, and writes patches. Call it to simulate changes."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
        self._trace = TraceApi(session)
        self._scripts = ScriptCache()
        self._cache: tuple[StoreState | None, CatalogCache] = (None, CatalogCache(self._scripts))

    def __call__(
        self,
        changes: Sequence[Change],
        select: str | None = None,
        *,
        as_of: str | None = None,
    ) -> Impact:
        """Return the effects of changes on consumers and on the jobs that write the table.

        `select` is a selector: only consumers that it selects are in the answer.

        With `as_of`, the effects at that moment.
        """
        moment = parse_as_of(as_of)
        with self._session.reading(moment) as view:
            proposed = [ResolvedChange(*self._resolved(change, view, moment)) for change in changes]
            impact = propagate_changes(proposed, self._simulation(view, moment))
            return self._selected(impact, select)

    def _selected(self, impact: Impact, select: str | None) -> Impact:
        """Return the effects on the consumers that a selector selects."""
        if select is None:
            return impact
        selected = SelectionApi(self._session)(select)
        if selected.unknown:
            raise InvalidRequestError("--select", f"{', '.join(selected.unknown)} selects nothing")
        return select_effects(impact, select, selected.ids)

    def analyze(
        self, request: ImpactRequest, policy: Policy | None = None, *, as_of: str | None = None
    ) -> ImpactAnswer:
        """Return the effects of a requested change, and the verdict of the policy."""
        with self._session.reading():
            dataset, column = self._trace.split_entity(request.entity_id)
            impact = self(changes_from_request(request, dataset, column), as_of=as_of)
        return answer_impact(request, decide(impact, policy), DEFAULT_NAMESPACE)

    def of_files(
        self,
        pairs: Sequence[FilePair],
        trees: CommitTrees | None = None,
        unread: Sequence[Unread] = (),
        select: str | None = None,
    ) -> Impact:
        """Return the effects of edited files, from the changes in meaning between two versions.

        With `trees`, which hold all files of either commit, the base is read from them, and the
        store is used for consumers outside the repository. `unread` are files of the change that
        have no text. `select` is a selector: only consumers that it selects are in the answer.
        """
        pairs = list_edited(pairs)
        if trees is None:
            with self._session.reading() as view:
                names = scan_catalog(view, DEFAULT_NAMESPACE)
                impact = self._compare(pairs, read_edited_files(pairs, names), unread)
                return self._selected(impact, select)
        with open_base(self._session, pairs, trees) as base:
            overlay = ImpactApi(base.session)
            impact = overlay._selected(overlay._compare(pairs, base.edited, unread), select)
        spots = [*impact.blind_spots, *base.blind_spots] if impact.changes else impact.blind_spots
        return msgspec.structs.replace(
            impact,
            blind_spots=spots,
            complete=is_complete(spots, unread=impact.unread),
            commits=base.commits,
        )

    def of_commits(
        self,
        folder: Path,
        base: str,
        head: str | None = None,
        verify: VerifyOptions | None = None,
        select: str | None = None,
    ) -> Impact:
        """Return the effects of the files that differ between two commits of a repository.

        Without `head`, the working tree is compared. `verify` names a database in which both sides
        are built, to check the effects. `select` is a selector: only consumers that it selects are
        in the answer.
        """
        pairs, unread = list_changed_files(folder, base, head)
        with open_trees(folder, base, head) as trees:
            impact = self.of_files(pairs, trees, unread, select)
            return impact if verify is None else verify_commits(impact, pairs, trees, verify)

    def _compare(
        self, pairs: Sequence[FilePair], code: EditedCode, unread: Sequence[Unread]
    ) -> Impact:
        with self._session.reading() as view:
            catalog = self._simulation(view)
            edits = find_edits(pairs, catalog, code)
            unread = [*unread, *edits.unread]
            proposed = self._resolve_located(edits.changes, edits.replaced, view, unread)
            proposed += edits.proposed
            return propagate_changes(
                proposed, catalog, edits.by_process, edits.rewritten, unread, edits.errors
            )

    def of_ddl(
        self, sql: str, dialect: str | None = None, path: str = "", select: str | None = None
    ) -> Impact:
        """Return the effects of a migration; statements that cannot be read make it incomplete."""
        ddl = read_ddl(sql, dialect, path=path)
        if not (ddl.changes or ddl.unread or ddl.replaced):
            raise InvalidRequestError("ddl", NO_CHANGES)
        with self._session.reading() as view:
            changes = [located.change for located in ddl.changes]
            proposed = [ResolvedChange(*self._resolved(change, view)) for change in changes]
            proposed += self._resolve_located([], ddl.replaced, view, [])
            impact = propagate_changes(proposed, self._simulation(view), unread=ddl.unread)
            return self._selected(impact, select)

    def of_diff(self, diff: str) -> Impact:
        """Return the effects of a unified diff of the server's repository."""
        return self.of_files(apply_diff(diff, self._repository_code("diff")))

    def _resolve_located(
        self,
        changes: Sequence[LocatedChange],
        replaced: Sequence[LocatedChange],
        view: CatalogSnapshot,
        unread: list[Unread],
    ) -> list[ResolvedChange]:
        """Return changes to datasets of the catalog; a change to an unknown one is unread."""
        resolved = []
        for located in (*changes, *replaced):
            try:
                resolved.append(ResolvedChange(*self._resolved(located.change, view)))
            except EntityNotFoundError:
                if located in changes:
                    unread.append(
                        Unread(
                            path=located.path,
                            line=located.line,
                            reason=UnreadReason.UNKNOWN_TABLE,
                            detail=str(located.change),
                        )
                    )
        return resolved

    def fix(self, changes: Sequence[Change], code: SourceFiles) -> Fix:
        """Write a patch of these files for the consumers that changes break."""
        with self._session.reading() as view:
            proposed = [ResolvedChange(*self._resolved(change, view)) for change in changes]
            return write_fix(proposed, self._simulation(view), code)

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None = None) -> Fix:
        """Write the patch for a change described in a few words, to these files or our own."""
        if code is None:
            code = self._repository_code("files")
        with self._session.reading():
            dataset, column = self._trace.split_entity(request.entity_id)
            return self.fix(changes_from_request(request, dataset, column), code)

    def _repository_code(self, field: str) -> SourceFolder:
        if self._session.repository is None:
            raise InvalidRequestError(field, "no code is available; start the server with --repo")
        return SourceFolder(self._session.repository.root)

    def policy(self) -> tuple[Policy, str | None]:
        """Return the policy of the server's repository and its file; else the default policy."""
        repository = self._session.repository
        if repository is None or not (repository.root / POLICY_FILE).is_file():
            return Policy(), None
        return read_policy(repository.root / POLICY_FILE), POLICY_FILE

    def gate(self, impact: Impact, policy: Policy | None = None, *, by: str = "") -> Verdict:
        """Decide about changes by policy, and record the verdict.

        The use of a waiver is also recorded in the log.
        """
        verdict = decide(self._with_propagating_tags(impact), policy)
        self._record(verdict, by)
        waived = [f for f in verdict.findings if f.waived]
        if waived:
            waivers = [{"rule": f.rule, "waiver": f.waived, "entities": f.entities} for f in waived]
            at = now()
            self._session.ingest(
                [
                    waiver_event(target, at, impact.changes, waivers)
                    for target in impact.changed_datasets or [_UNKNOWN_TARGET]
                ]
            )
        return verdict

    def _with_propagating_tags(self, impact: Impact) -> Impact:
        """Return an impact with the tags that reach the changed columns along column lineage."""
        with self._session.reading() as view:
            declared = sorted(propagating_tags(view.reader) - {PII_TAG})
            columns = [
                entity
                for predicted in impact.predictions
                if predicted.dataset in impact.targets
                for entity in _columns_of(predicted, view)
            ]
            reached = tags_reaching(
                view.graph, view.reader, columns, settings.read_number(settings.STALE_DAYS)
            )
        tags = sorted(reached.union(impact.target_tags))
        return msgspec.structs.replace(impact, target_tags=tags, propagating=declared)

    def _record(self, verdict: Verdict, by: str) -> None:
        at = now()
        try:
            self._session.store.record_verdict(summarise(verdict, at, by), at)
        except StoreError as exc:  # a read-only store still decides
            log.warning("the verdict was not recorded: %s", exc.message)

    def _resolved(
        self, change: Change, view: CatalogSnapshot, as_of: int = FOREVER
    ) -> tuple[Change, int]:
        entity = self._session.resolve(change.dataset, view)
        if not isinstance(entity.id, DatasetId):
            raise InvalidRequestError("dataset", f"{entity.id} is not a dataset")
        spans = view.reader.nodes.spans(view.graph.nodes.identities.group(entity.node))
        first = min(span.first.at for span in spans.values())
        if first > as_of:
            raise InvalidRequestError(
                "as_of", f"{entity.id} was first seen later, at {render_time(first)}"
            )
        named = with_dataset(change, entity.id.name)
        return named, view.graph.nodes.identities.canonical(entity.node)

    def _simulation(self, view: CatalogSnapshot, as_of: int = FOREVER) -> SimulationCatalog:
        """Return the catalog for one question. Questions about one state share loaded values."""
        if as_of != FOREVER:
            return SimulationCatalog(view.graph, view.reader, CatalogCache(self._scripts), as_of)
        state, cache = self._cache
        if state != view.graph.state:
            cache = CatalogCache(self._scripts)
            self._cache = (view.graph.state, cache)
        return SimulationCatalog(view.graph, view.reader, cache)


def _columns_of(predicted: DatasetPrediction, view: CatalogSnapshot) -> Iterator[Entity]:
    found = find_entity(predicted.dataset, view.reader, view.graph.nodes.identities)
    if found is None or not isinstance(found.id, DatasetId):
        return  # not in any store yet
    for name in view.graph.nodes.identities.group(found.node):
        for field in predicted.columns:
            column = view.reader.columns.find(name, field)
            if column is not None:
                yield Entity(ColumnId(found.id, column[1]), name, column[0])

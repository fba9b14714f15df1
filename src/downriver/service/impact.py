"""What changes do, whether they may pass, and how to mend what they break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.errors import InvalidRequestError
from downriver.impact import (
    ResolvedChange,
    SimulationCatalog,
    SourceFolder,
    answer_impact,
    changes_from_request,
    decide,
    find_edits,
    propagate_changes,
    read_commits,
    read_edited_files,
    write_fix,
)
from downriver.model.answers import BlindSpot
from downriver.model.changes import Change, with_dataset
from downriver.model.ids import DEFAULT_NAMESPACE, DatasetId
from downriver.openlineage.produce import render_waiver_event
from downriver.service.capture import CaptureApi
from downriver.service.session import now
from downriver.service.trace import TraceApi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.scan import Repository
    from downriver.impact import CommitTrees, FilePair, Fix, Policy, SourceFiles
    from downriver.model.verdicts import Impact, ImpactAnswer, ImpactRequest, Verdict
    from downriver.store import CatalogReader, Store, StoreState


class ImpactApi(CaptureApi, TraceApi):
    """Simulates changes and decides about them."""

    def __init__(self, store: Store, repository: Repository | None = None) -> None:
        super().__init__(store, repository)
        self._world: tuple[StoreState, SimulationCatalog] | None = None

    def impact(self, changes: Sequence[Change]) -> Impact:
        """Answer what changes do to everyone downstream, and to those who write there."""
        with self.reading() as reader:
            proposed = [ResolvedChange(*self._resolved(change, reader)) for change in changes]
            return propagate_changes(proposed, self._world_of(reader))

    def analyze_impact(self, request: ImpactRequest, policy: Policy | None = None) -> ImpactAnswer:
        """Answer what a change described in a few words does, and what the policy says of it."""
        dataset, column = self.split_entity(request.entity_id)
        impact = self.impact(changes_from_request(request, dataset, column))
        return answer_impact(request, decide(impact, policy), DEFAULT_NAMESPACE)

    def impact_of_files(
        self, pairs: Sequence[FilePair], trees: CommitTrees | None = None
    ) -> Impact:
        """Answer what edited files do: what changes in meaning is found out first.

        `trees` hold the files around them, as they are in either commit.
        """
        with self.reading() as reader:
            world = self._world_of(reader)
            names = self._names(reader, DEFAULT_NAMESPACE)
            edits = find_edits(
                pairs,
                world,
                lambda files: (
                    read_edited_files(files, names)
                    if trees is None
                    else read_commits(files, names, trees)
                ),
            )
            proposed = [ResolvedChange(*self._resolved(change, reader)) for change in edits.changes]
            proposed += edits.proposed
            found = propagate_changes(proposed, world, edits.by_process, edits.rewritten)
        for message in edits.unknown:
            path, _, reason = message.partition(": ")
            found.blind_spots.append(BlindSpot(kind="unread_file", entity=path, message=reason))
            found.complete = False
        return found

    def fix(self, changes: Sequence[Change], code: SourceFiles) -> Fix:
        """Write the patch for changes: what can be mended safely in these files."""
        with self.reading() as reader:
            proposed = [ResolvedChange(*self._resolved(change, reader)) for change in changes]
            return write_fix(proposed, self._world_of(reader), code)

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None = None) -> Fix:
        """Write the patch for a change described in a few words, to these files or our own."""
        if code is None:
            if self.repository is None:
                reason = "no code is known here; send files, or start the server with --repo"
                raise InvalidRequestError("files", reason)
            code = SourceFolder(self.repository.root)
        dataset, column = self.split_entity(request.entity_id)
        return self.fix(changes_from_request(request, dataset, column), code)

    def gate(self, impact: Impact, policy: Policy | None = None) -> Verdict:
        """Decide about changes by policy; a waiver that lets something pass goes into the log."""
        verdict = decide(impact, policy)
        waived = [f for f in verdict.findings if f.waived]
        if waived:
            told = [{"rule": f.rule, "waiver": f.waived, "entities": f.entities} for f in waived]
            at = now()
            with self.reading() as reader:
                targets = [self.resolve(target, reader).id for target in impact.targets]
            self.ingest(
                [
                    render_waiver_event(target, at, impact.changes, told)
                    for target in targets
                    if isinstance(target, DatasetId)
                ]
            )
        return verdict

    def _resolved(self, change: Change, reader: CatalogReader) -> tuple[Change, int]:
        entity = self.resolve(change.dataset, reader)
        if not isinstance(entity.id, DatasetId):
            raise InvalidRequestError("dataset", f"{entity.id} is no dataset")
        named = with_dataset(change, entity.id.name)
        return named, self._graph.nodes.identities.canonical(entity.node)

    def _world_of(self, reader: CatalogReader) -> SimulationCatalog:
        """Return the catalog as simulations see it; what was parsed is kept while it holds."""
        state = reader.state()
        if self._world is None or self._world[0] != state:
            before = None if self._world is None else self._world[1]
            self._world = (state, SimulationCatalog(self._graph, before))
        world = self._world[1]
        world.reader = reader
        return world

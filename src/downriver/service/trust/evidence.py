"""Evidence packs: collects the facts about a dataset, signs them, and records the pack."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.export.pictures import render_svg
from downriver.govern.evidence.html_report import render_report
from downriver.govern.evidence.pack import (
    MANIFEST,
    PACK_FORMAT,
    ChainHead,
    ContractVersion,
    DatasetFreshness,
    EvidenceColumn,
    EvidencePack,
    EvidenceRecord,
    EvidenceRecords,
    EvidenceVersion,
    WaiverRecord,
    sign_files,
)
from downriver.govern.signing_key import key_path, load_signing_key
from downriver.graph import Entity, trace
from downriver.graph.answers.entity_lists import list_derivations
from downriver.graph.answers.job_runs import last_filled, writers_of_all
from downriver.model.access import ACTOR
from downriver.model.answers import Direction, is_complete
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.events import dataset_event
from downriver.openlineage.facets.base import parse_facet
from downriver.openlineage.facets.custom import (
    BUILD,
    EVIDENCE_PREFIX,
    WAIVERS,
    parse_build,
    parse_waivers,
    render_evidence,
)
from downriver.openlineage.facets.dataset import VERSION
from downriver.openlineage.facets.description import TAGS, parse_tags
from downriver.openlineage.wire import parse_time, render_time
from downriver.service.export import ExportApi
from downriver.service.govern import GovernApi, parse_moment
from downriver.service.session import now
from downriver.service.trace import parse_question
from downriver.service.views.entity_view import EntityViewApi
from downriver.service.views.history import HistoryApi
from downriver.service.views.runs import RunApi

if TYPE_CHECKING:
    from downriver.govern.signing_key import SigningKey
    from downriver.graph import CatalogSnapshot
    from downriver.model.answers import Trace
    from downriver.model.governance import Finding
    from downriver.model.views.graph_view import EntityView
    from downriver.model.views.runs import RunRecord
    from downriver.service.session import StoreSession

_NODES = 500  # of the picture
_RUNS = 100
_COLUMNS = 2_000
_FINDINGS = 1_000
_HOUR = 3_600_000_000


class SignedPack(NamedTuple):
    """The record of a pack, and its files by name."""

    record: EvidenceRecord
    pack: EvidencePack
    files: dict[str, bytes]


class EvidenceApi:
    """Makes and lists evidence packs. Call it to make one."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, dataset: str, *, as_of: str | None = None, by: str = "") -> SignedPack:
        """Return a signed pack of a dataset at a moment, now by default, and record it."""
        key = self.key()
        at = now()
        moment = at if as_of is None else parse_moment(as_of, "as_of")
        author = by or ACTOR.get()
        with self._session.reading(moment) as view:
            resolved = self._session.resolve(dataset, view)
            if not isinstance(resolved.id, DatasetId):
                raise InvalidRequestError("dataset", f"{resolved.id} is not a dataset")
            pack = _Collector(self._session, view, resolved, moment).collect(at, author)
        files = {
            "evidence.json": msgspec.json.format(msgspec.json.encode(pack), indent=2) + b"\n",
            "graph.svg": (picture := render_svg(pack.graph)).encode(),
            "evidence.html": render_report(pack, _inline(picture)).encode(errors="replace"),
        }
        files = sign_files(pack, files, key)
        record = _record(pack, files[MANIFEST], key)
        facets = {EVIDENCE_PREFIX + record.id[:16]: render_evidence(msgspec.to_builtins(record))}
        self._session.ingest([dataset_event(resolved.id, at, facets)])
        return SignedPack(record, pack, files)

    def key(self) -> SigningKey:
        """Return the key that signs packs of this store. The first call creates it."""
        return load_signing_key(key_path(self._session.store))

    def list_packs(self, dataset: str) -> EvidenceRecords:
        """Return the recorded packs of a dataset, the latest first."""
        with self._session.reading() as view:
            resolved = self._session.resolve(dataset, view)
            if not isinstance(resolved.id, DatasetId):
                raise InvalidRequestError("dataset", f"{resolved.id} is not a dataset")
            group = view.graph.nodes.identities.group(resolved.node)
            facets = view.reader.facets.starting_with(group, EVIDENCE_PREFIX)
        records = [
            parse_facet(body, EvidenceRecord)
            for named in facets.values()
            for body in named.values()
        ]
        records.sort(key=lambda record: (record.created_at, record.id), reverse=True)
        return EvidenceRecords(dataset=str(resolved.id), packs=records)


def _inline(svg: str) -> str:
    """Return an SVG file as an element of an HTML page."""
    return svg[svg.index("<svg") :]


def _record(pack: EvidencePack, manifest: bytes, key: SigningKey) -> EvidenceRecord:
    return EvidenceRecord(
        id=hashlib.sha256(manifest).hexdigest(),
        dataset=pack.dataset,
        version=pack.version.id,
        as_of=pack.as_of,
        created_at=pack.created_at,
        created_by=pack.created_by,
        entries=pack.log.entries,
        chain=pack.log.chain,
        key=key.public,
        complete=pack.complete,
    )


class _Collector:
    """Collects the parts of a pack from one view of the store."""

    def __init__(
        self, session: StoreSession, view: CatalogSnapshot, entity: Entity, moment: int
    ) -> None:
        self._session = session
        self._view = view
        self._entity = entity
        self._name = str(entity.id)
        self._moment = moment
        self._as_of = render_time(moment)
        self._group = view.graph.nodes.identities.group(entity.node)

    def collect(self, at: int, author: str) -> EvidencePack:
        shown = EntityViewApi(self._session)(self._name, as_of=self._as_of)
        graph = ExportApi(self._session).subgraph(self._name, as_of=self._as_of, limit=_NODES)
        runs = self._runs()
        schemas = [
            version
            for version in HistoryApi(self._session).schema_versions(self._name).versions
            if parse_time(version.at, "at") <= self._moment
        ]
        entries, chain = self._view.reader.log.head()
        return EvidencePack(
            format=PACK_FORMAT,
            dataset=shown.id,
            type=shown.type,
            description=shown.description,
            as_of=self._as_of,
            created_at=render_time(at),
            created_by=author,
            version=EvidenceVersion.of(
                schema_event=schemas[-1].event if schemas else None,
                last_run=shown.last_good_run.id if shown.last_good_run else None,
                dataset_version=_own_version(shown),
            ),
            log=ChainHead(entries=entries, chain=chain.hex()),
            owners=shown.owners,
            tags=shown.tags,
            aliases=shown.aliases,
            columns=self._columns(shown),
            freshness=self._freshness(graph),
            runs=runs,
            quality=shown.quality,
            findings=self._findings(),
            schema_history=schemas,
            contract_history=self._contracts(),
            waivers=self._waivers(),
            graph=graph,
            complete=is_complete(graph.blind_spots),
            blind_spots=graph.blind_spots,
        )

    def _columns(self, shown: EntityView) -> list[EvidenceColumn]:
        question = parse_question(Direction.UPSTREAM, 1, self._as_of, 10_000)
        facets = self._view.reader.facets.of_each(self._group, (TAGS,), self._moment)
        tags = [parse_tags(named.get(TAGS)).by_column for named in facets.values()]
        columns = []
        for column in shown.columns[:_COLUMNS]:
            known = self._column(column.name)
            traced = (
                None
                if known is None
                else trace(self._view.graph, self._view.reader, known, question)
            )
            columns.append(
                EvidenceColumn(
                    name=column.name,
                    type=column.type,
                    description=column.description,
                    tags=sorted({t for of in tags for t in of.get(column.name.casefold(), ())}),
                    derivations=[] if traced is None else list_derivations(traced),
                )
            )
        return columns

    def _column(self, field: str) -> Entity | None:
        for name in self._group:
            entity = self._view.reader.columns.find(name, field)
            dataset = self._view.reader.nodes.by_ids([name])[name]
            if entity is not None and isinstance(dataset, DatasetId):
                return Entity(ColumnId(dataset, entity[1]), name, entity[0])
        return None

    def _runs(self) -> list[RunRecord]:
        later = render_time(self._moment + 1)
        runs = RunApi(self._session)(self._name, before=later, limit=_RUNS).runs
        return [self._run_then(run) for run in runs]

    def _run_then(self, run: RunRecord) -> RunRecord:
        """Return a run as it was at the moment. A run that ended later was still running."""
        if run.ended_at is None or parse_time(run.ended_at, "ended_at") <= self._moment:
            return run
        return msgspec.structs.replace(
            run, state="RUNNING", ended_at=None, duration_seconds=None, error=None
        )

    def _freshness(self, graph: Trace) -> list[DatasetFreshness]:
        """Return when the dataset and those upstream of it were last written."""
        nodes = [n for n in graph.nodes if n.kind == "dataset" and n.depth <= 0]
        nodes.sort(key=lambda node: (-node.depth, node.id))
        numbers = self._view.reader.nodes.find_each(DatasetId(n.namespace, n.name) for n in nodes)
        dataset_freshness = []
        for node in nodes:
            number = numbers[DatasetId(node.namespace, node.name)]
            names = self._view.graph.nodes.identities.group(number)
            writers = writers_of_all(self._view, names)
            filled = last_filled(self._view.reader, writers, self._moment)
            age = None if filled is None else round((self._moment - filled) / _HOUR, 1)
            dataset_freshness.append(
                DatasetFreshness(
                    dataset=node.id,
                    depth=node.depth,
                    last_updated=None if filled is None else render_time(filled),
                    age_hours=age,
                )
            )
        return dataset_freshness

    def _findings(self) -> list[Finding]:
        answer = GovernApi(self._session).findings(status=None, entity=self._name, limit=_FINDINGS)
        return [f for f in answer.findings if parse_time(f.first_seen, "at") <= self._moment]

    def _contracts(self) -> list[ContractVersion]:
        """Return the contracts of the dataset, and those of dbt on the jobs that write it."""
        reader = self._view.reader
        contract_versions = []
        for node in self._group:
            for facet in reader.facets.of(node):
                if "contract" in facet.casefold():
                    contract_versions += self._versions(node, facet)
        writers = reader.nodes.find_each(writers_of_all(self._view, self._group))
        for job in writers.values():
            contract_versions += self._versions(job, BUILD)
        return contract_versions

    def _versions(self, node: int, facet: str) -> list[ContractVersion]:
        entity = str(self._view.reader.nodes.by_ids([node])[node])
        contract_versions = []
        for version in self._view.reader.history.facet_versions(node, facet):
            content: Any = msgspec.json.decode(version.body)
            if facet == BUILD:
                build = parse_build({BUILD: version.body})
                content = None if build is None else msgspec.to_builtins(build.contract)
            if content is None or version.span.first.at > self._moment:
                continue
            contract_versions.append(
                ContractVersion(
                    entity=entity,
                    facet=facet,
                    first_seen=render_time(version.span.first.at),
                    last_seen=render_time(min(version.span.last.at, self._moment)),
                    content=content,
                )
            )
        return contract_versions

    def _waivers(self) -> list[WaiverRecord]:
        waivers = []
        for node in self._group:
            for version in self._view.reader.history.facet_versions(node, WAIVERS):
                if version.span.first.at <= self._moment:
                    changes, waived = parse_waivers(version.body)
                    at = render_time(version.span.first.at)
                    waivers.append(WaiverRecord(at=at, changes=changes, waived=waived))
        return sorted(waivers, key=lambda waiver: waiver.at)


def _own_version(shown: EntityView) -> str | None:
    facet = shown.facets.get(VERSION)
    version = facet.get("datasetVersion") if isinstance(facet, dict) else None
    return version if isinstance(version, str) else None

"""`Lineage`: one store and all operations on it."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

from downriver.service.session import StoreSession
from downriver.store import ScopedStore, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from downriver.capture.scan import Repository
    from downriver.model.access import Scope
    from downriver.openlineage import Event
    from downriver.service.admin import AdminApi
    from downriver.service.capture import CaptureApi
    from downriver.service.catalog.directory import DirectoryApi
    from downriver.service.catalog.identity import IdentityApi
    from downriver.service.catalog.registry import RegistryApi
    from downriver.service.entities import EntityApi
    from downriver.service.export import ExportApi
    from downriver.service.govern import GovernApi
    from downriver.service.impact import ImpactApi
    from downriver.service.registration.flows import FlowApi
    from downriver.service.systems.capture import SystemApi
    from downriver.service.systems.integrations import IntegrationApi
    from downriver.service.trace import TraceApi
    from downriver.service.trust.checkpoints import CheckpointApi
    from downriver.service.trust.checks import CheckApi
    from downriver.service.trust.contracts import ContractApi
    from downriver.service.trust.evidence import EvidenceApi
    from downriver.service.trust.privacy import PrivacyApi
    from downriver.service.trust.quality import QualityApi
    from downriver.service.trust.retention import RetentionApi
    from downriver.service.trust.schemas import SchemaApi
    from downriver.service.trust.tag_changes import TagApi
    from downriver.service.trust.triggers import TriggerApi
    from downriver.service.views.column_edges import ColumnEdgeApi
    from downriver.service.views.entity_view import EntityViewApi
    from downriver.service.views.graph_diff import GraphDiffApi
    from downriver.service.views.graph_map import MapApi
    from downriver.service.views.graph_view import GraphApi
    from downriver.service.views.history import HistoryApi
    from downriver.service.views.runs import RunApi
    from downriver.service.views.search import SearchApi
    from downriver.service.views.selection import SelectionApi
    from downriver.service.views.versions import VersionApi
    from downriver.store import Receipt, Store


class Lineage:
    """One store and the parts that work on it. Thread-safe.

    `lineage.trace("orders")`, `lineage.trace.paths(…)`, `lineage.capture.sql(…)`,
    `lineage.impact([change])`, `lineage.impact.gate(…)`. A part is imported when it is first used.
    """

    def __init__(
        self,
        store: Store,
        repository: Repository | None = None,
        base: StoreSession | None = None,
    ) -> None:
        self.session = StoreSession(store, repository, base)
        self._scopes = _ScopedLineages(self)

    @classmethod
    def open(
        cls,
        location: str | None = None,
        *,
        create: bool = True,
        repository: Path | None = None,
    ) -> Self:
        """Open the store at `location`, else DOWNRIVER_STORE, else the nearest `.downriver/`.

        The code of registered assets is found in `repository`, and nowhere else.
        """
        if repository is None:
            return cls(open_store(location, create=create))
        from downriver.capture.scan import Repository

        return cls(open_store(location, create=create), Repository(repository))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write everything that is queued and release the store."""
        if "flows" in self.__dict__:
            self.flows.close()
        self._scopes.close()
        self.session.close()

    @property
    def store(self) -> Store:
        """The open store."""
        return self.session.store

    def scoped(self, scope: Scope) -> Lineage:
        """Return this lineage limited to namespaces, as a limited key reads it. It is cached."""
        return self._scopes.get(scope)

    def ingest(self, events: Sequence[bytes | Event]) -> list[Receipt]:
        """Store events, all or none; they are on disk when this returns."""
        return self.session.ingest(events)

    @cached_property
    def capture(self) -> CaptureApi:
        """Lineage from SQL, dbt and repositories, and assets registered by hand."""
        from downriver.service.capture import CaptureApi

        return CaptureApi(self.session)

    @cached_property
    def systems(self) -> SystemApi:
        """Lineage from other systems: MLflow, Delta Lake, Iceberg."""
        from downriver.service.systems.capture import SystemApi

        return SystemApi(self.session)

    @cached_property
    def versions(self) -> VersionApi:
        """Versions of a dataset. Call it to list them."""
        from downriver.service.views.versions import VersionApi

        return VersionApi(self.session)

    @cached_property
    def flows(self) -> FlowApi:
        """Flows and pipelines that people register."""
        from downriver.service.registration.flows import FlowApi

        return FlowApi(self.session)

    @cached_property
    def trace(self) -> TraceApi:
        """Traces, paths and trees. Call it to trace an entity."""
        from downriver.service.trace import TraceApi

        return TraceApi(self.session)

    @cached_property
    def graph(self) -> GraphApi:
        """Parts of the graph with labels, columns and runs. Call it for the graph around one."""
        from downriver.service.views.graph_view import GraphApi

        return GraphApi(self.session)

    @cached_property
    def column_edges(self) -> ColumnEdgeApi:
        """Edges between columns, with evidence and the line of code behind them."""
        from downriver.service.views.column_edges import ColumnEdgeApi

        return ColumnEdgeApi(self.session)

    @cached_property
    def select(self) -> SelectionApi:
        """Datasets and jobs by selector. Call it to list their ids."""
        from downriver.service.views.selection import SelectionApi

        return SelectionApi(self.session)

    @cached_property
    def entity(self) -> EntityViewApi:
        """An entity with its code, checks and raw facets. Call it."""
        from downriver.service.views.entity_view import EntityViewApi

        return EntityViewApi(self.session)

    @cached_property
    def search(self) -> SearchApi:
        """Search over datasets, jobs, columns, tags and owners. Call it to get a page."""
        from downriver.service.views.search import SearchApi

        return SearchApi(self.session)

    @cached_property
    def map(self) -> MapApi:
        """The whole graph as arrays. Call it."""
        from downriver.service.views.graph_map import MapApi

        return MapApi(self.session)

    @cached_property
    def history(self) -> HistoryApi:
        """Versions of schemas, and moments at which the graph changed."""
        from downriver.service.views.history import HistoryApi

        return HistoryApi(self.session)

    @cached_property
    def runs(self) -> RunApi:
        """Runs of jobs. Call it to list them."""
        from downriver.service.views.runs import RunApi

        return RunApi(self.session)

    @cached_property
    def directory(self) -> DirectoryApi:
        """Namespaces, sources, tags, datasets and jobs by page, and counts over time."""
        from downriver.service.catalog.directory import DirectoryApi

        return DirectoryApi(self.session)

    @cached_property
    def registry(self) -> RegistryApi:
        """Datasets, jobs, runs, tags and deletions that people register by hand."""
        from downriver.service.catalog.registry import RegistryApi

        return RegistryApi(self.session)

    @cached_property
    def entities(self) -> EntityApi:
        """Entities: search, details, neighbours and diagnosis."""
        from downriver.service.entities import EntityApi

        return EntityApi(self.session)

    @cached_property
    def identity(self) -> IdentityApi:
        """Names that are one dataset, and names that may be."""
        from downriver.service.catalog.identity import IdentityApi

        return IdentityApi(self.session)

    @cached_property
    def impact(self) -> ImpactApi:
        """Effects of changes, verdicts and patches. Call it to simulate changes."""
        from downriver.service.impact import ImpactApi

        return ImpactApi(self.session)

    @cached_property
    def govern(self) -> GovernApi:
        """KPIs, incidents, tags, certified paths and findings."""
        from downriver.service.govern import GovernApi

        return GovernApi(self.session)

    @cached_property
    def checks(self) -> CheckApi:
        """Rules that the lineage itself must satisfy. Call it."""
        from downriver.service.trust.checks import CheckApi

        return CheckApi(self.session)

    @cached_property
    def tag(self) -> TagApi:
        """Sets and removes tags of entities. Call it."""
        from downriver.service.trust.tag_changes import TagApi

        return TagApi(self.session)

    @cached_property
    def triggers(self) -> TriggerApi:
        """Actions that findings start downstream. Call it to record them."""
        from downriver.service.trust.triggers import TriggerApi

        return TriggerApi(self.session)

    @cached_property
    def retention(self) -> RetentionApi:
        """Removes datasets and jobs from answers, and shows them again."""
        from downriver.service.trust.retention import RetentionApi

        return RetentionApi(self.session)

    @cached_property
    def evidence(self) -> EvidenceApi:
        """Signed evidence packs of datasets. Call it to make one."""
        from downriver.service.trust.evidence import EvidenceApi

        return EvidenceApi(self.session)

    @cached_property
    def checkpoints(self) -> CheckpointApi:
        """Signed checkpoints of the log. Call it to make one."""
        from downriver.service.trust.checkpoints import CheckpointApi

        return CheckpointApi(self.session)

    @cached_property
    def contracts(self) -> ContractApi:
        """Data contracts. Call it to check them."""
        from downriver.service.trust.contracts import ContractApi

        return ContractApi(self.session)

    @cached_property
    def privacy(self) -> PrivacyApi:
        """Reports what personal data reaches. Call it with a column."""
        from downriver.service.trust.privacy import PrivacyApi

        return PrivacyApi(self.session)

    @cached_property
    def quality(self) -> QualityApi:
        """Quality scores. Call it with a dataset."""
        from downriver.service.trust.quality import QualityApi

        return QualityApi(self.session)

    @cached_property
    def schemas(self) -> SchemaApi:
        """Versions of schemas and their compatibility. Call it to list those of a dataset."""
        from downriver.service.trust.schemas import SchemaApi

        return SchemaApi(self.session)

    @cached_property
    def diff(self) -> GraphDiffApi:
        """The graph at two moments, compared. Call it."""
        from downriver.service.views.graph_diff import GraphDiffApi

        return GraphDiffApi(self.session)

    @cached_property
    def integrations(self) -> IntegrationApi:
        """The systems that can send lineage. Call it to list them."""
        from downriver.service.systems.integrations import IntegrationApi

        return IntegrationApi(self.session)

    @cached_property
    def export(self) -> ExportApi:
        """Pictures and other tools' formats. Call it to export a part of the graph."""
        from downriver.service.export import ExportApi

        return ExportApi(self.session)

    @cached_property
    def admin(self) -> AdminApi:
        """State of the store, its hash chain, and API keys."""
        from downriver.service.admin import AdminApi

        return AdminApi(self.session)


_MOST_SCOPES = 32


class _ScopedLineages:
    """The most recently used views of a lineage that are limited to namespaces."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._opened: dict[Scope, tuple[ScopedStore, Lineage]] = {}
        self._lock = threading.Lock()

    def get(self, scope: Scope) -> Lineage:
        with self._lock:
            known = self._opened.pop(scope, None)
            if known is None or known[0].outdated:
                session = self._lineage.session
                store = ScopedStore(session.store, scope)
                known = store, Lineage(store, session.repository, session)
            self._opened[scope] = known
            # Answers in progress may still use the one that is dropped: it is closed when the last
            # of them ends, by garbage collection.
            while len(self._opened) > _MOST_SCOPES:
                del self._opened[next(iter(self._opened))]
        return known[1]

    def close(self) -> None:
        with self._lock:
            while self._opened:
                self._opened.popitem()[1][1].close()

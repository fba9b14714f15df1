"""The job and run of a session, and its parent run."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.model.ids import JobId, RunId
from downriver.openlineage.facets.job import PARENT, render_parent_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from downriver.openlineage.facets.base import Facets

DEFAULT_NAMESPACE = "spark"


class RunContext(NamedTuple):
    """The run of an application or of a block, with its parent and root runs."""

    own: RunId
    parent: RunId | None = None
    root: RunId | None = None

    def within(self, name: str) -> RunContext:
        """Return the context of an action of this run."""
        return self.named(f"{self.own.job.name}.{name}")

    def named(self, name: str) -> RunContext:
        """Return the context of a block that has its own job name."""
        job = JobId(self.own.job.namespace, name)
        return RunContext(RunId(job, new_run()), self.own, self.root or self.parent or self.own)

    def facets(self) -> Facets:
        """Return the parent run facet, if there is a parent."""
        if self.parent is None:
            return {}
        root = self.root or self.parent
        return {PARENT: render_parent_run(self.parent, root)}


def new_run() -> str:
    """Return the id of a new run."""
    return str(uuid.uuid4())


def read_context(
    conf: Callable[[str], str],
    environ: Mapping[str, str],
    *,
    app: str,
    job: str | None,
    namespace: str | None,
) -> RunContext:
    """Return the context of a session, from arguments, the configuration or the parent run."""
    parent, root = _read_parent(conf, environ)
    own_namespace = (
        namespace
        or conf("spark.downriver.namespace")
        or conf("spark.openlineage.namespace")
        or (parent.job.namespace if parent else "")
        or DEFAULT_NAMESPACE
    )
    name = job or conf("spark.downriver.job") or conf("spark.openlineage.appName") or app
    return RunContext(RunId(JobId(own_namespace, name), new_run()), parent, root)


def _read_parent(
    conf: Callable[[str], str], environ: Mapping[str, str]
) -> tuple[RunId | None, RunId | None]:
    run_id = _from_conf(conf, "parent")
    if run_id is not None:
        return run_id, _from_conf(conf, "rootParent")
    given = _from_json(environ.get("OPENLINEAGE_CONTEXT", ""))
    if given[0] is not None:
        return given
    return _from_path(environ.get("OPENLINEAGE_PARENT_ID", "")), None


def _from_conf(conf: Callable[[str], str], prefix: str) -> RunId | None:
    run, name = conf(f"spark.openlineage.{prefix}RunId"), conf(f"spark.openlineage.{prefix}JobName")
    namespace = conf(f"spark.openlineage.{prefix}JobNamespace") or DEFAULT_NAMESPACE
    return RunId(JobId(namespace, name), run) if run and name else None


def _from_json(text: str) -> tuple[RunId | None, RunId | None]:
    try:
        given = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return None, None
    if not isinstance(given, dict):
        return None, None
    return _from_facet(given.get("parent")), _from_facet(given.get("root"))


def _from_facet(given: object) -> RunId | None:
    match given:
        case {"run": {"runId": str(run)}, "job": {"namespace": str(namespace), "name": str(name)}}:
            return RunId(JobId(namespace, name), run)
    return None


def _from_path(text: str) -> RunId | None:
    """Parse `namespace/name/run`; the namespace may contain slashes."""
    namespace, _, rest = text.rpartition("/")[0].rpartition("/")
    run = text.rpartition("/")[2]
    return RunId(JobId(namespace, rest), run) if namespace and rest and run else None

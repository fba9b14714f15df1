"""Namespaces, sources and tags in the format of Marquez."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from downriver.errors import InvalidRequestError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.marquez.parameters import PAGE, read_page
from downriver.http.marquez.shapes import (
    MarquezDataSource,
    MarquezNamespace,
    MarquezNamespaces,
    MarquezSources,
    MarquezTag,
    MarquezTagRequest,
    MarquezTags,
    NamespaceRequest,
    SourceRequest,
)
from downriver.http.request import context_of, json_response, read_struct, run_read
from downriver.openlineage.facets.custom import RecordFacet
from downriver.openlineage.wire import render_time
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.service.catalog.directory import NamespaceEntry, SourceEntry, TagEntry

_NOBODY = "anonymous"
_TYPES = {"postgres": "POSTGRESQL"}


async def put_marquez_namespace(request: Request) -> Response:
    """Register a namespace with its owner. A deleted one is shown again."""
    body = await read_struct(request, NamespaceRequest)
    lineage, name = context_of(request).lineage, _name(request, "namespace")
    record = RecordFacet(owner=body.owner_name, description=body.description or "")
    await run_in_threadpool(lineage.registry.put_namespace, name, record)
    return json_response(_namespace(await run_read(request, lineage.directory.namespace, name)))


async def get_marquez_namespace(request: Request) -> Response:
    """Return a namespace."""
    directory, name = context_of(request).lineage.directory, request.path_params["namespace"]
    return json_response(_namespace(await run_read(request, directory.namespace, name)))


async def list_marquez_namespaces(request: Request) -> Response:
    """Return namespaces by name: `?limit=&offset=`."""
    directory = context_of(request).lineage.directory
    namespaces = await run_read(request, directory.namespaces, *read_page(request))
    return json_response(MarquezNamespaces([_namespace(entry) for entry in namespaces]))


async def delete_marquez_namespace(request: Request) -> Response:
    """Hide a namespace with its datasets and jobs, until later events mention them again."""
    lineage, name = context_of(request).lineage, request.path_params["namespace"]
    namespace = await run_read(request, lineage.directory.namespace, name)
    await run_in_threadpool(lineage.registry.delete_namespace, name)
    return json_response(_namespace(namespace))


def _namespace(entry: NamespaceEntry) -> MarquezNamespace:
    return MarquezNamespace(
        name=entry.name,
        created_at=render_time(entry.first_at),
        updated_at=render_time(entry.last_at),
        owner_name=entry.record.owner or _NOBODY,
        description=entry.record.description or None,
        is_hidden=entry.hidden,
    )


async def put_marquez_source(request: Request) -> Response:
    """Register a system that holds datasets."""
    body = await read_struct(request, SourceRequest)
    lineage, name = context_of(request).lineage, _name(request, "source")
    record = RecordFacet(
        type=body.type, url=body.connection_url, description=body.description or ""
    )
    await run_in_threadpool(lineage.registry.put_source, name, record)
    return json_response(_source(await run_read(request, lineage.directory.source, name)))


async def get_marquez_source(request: Request) -> Response:
    """Return a source: registered, named by a dataSource facet, or a namespace of datasets."""
    directory, name = context_of(request).lineage.directory, request.path_params["source"]
    return json_response(_source(await run_read(request, directory.source, name)))


async def list_marquez_sources(request: Request) -> Response:
    """Return sources by name: `?limit=&offset=`."""
    sources = await run_read(request, context_of(request).lineage.directory.sources)
    return json_response(
        MarquezSources([_source(entry) for entry in read_page(request).of(sources)])
    )


def _source(entry: SourceEntry) -> MarquezDataSource:
    scheme = urlsplit(entry.url).scheme or entry.name
    return MarquezDataSource(
        type=entry.record.type or _TYPES.get(scheme, scheme.upper()),
        name=entry.name,
        created_at=render_time(entry.first_at),
        updated_at=render_time(entry.last_at),
        connection_url=entry.url,
        description=entry.record.description or None,
    )


async def put_marquez_tag(request: Request) -> Response:
    """Register a tag with its description."""
    body = await read_struct(request, MarquezTagRequest)
    lineage, name = context_of(request).lineage, _name(request, "tag")
    record = RecordFacet(description=body.description or "")
    await run_in_threadpool(lineage.registry.put_tag, name, record)
    return json_response(MarquezTag(name.lower(), body.description))


async def list_marquez_tags(request: Request) -> Response:
    """Return the tags that are registered or in use, by name: `?limit=&offset=`."""
    tags = await run_read(request, context_of(request).lineage.directory.tags)
    return json_response(MarquezTags([_tag(entry) for entry in read_page(request).of(tags)]))


def _tag(entry: TagEntry) -> MarquezTag:
    return MarquezTag(entry.name, entry.description or None)


def _name(request: Request, parameter: str) -> str:
    name: str = request.path_params[parameter]
    if not name.strip():
        raise InvalidRequestError(parameter, "empty")
    return name


_NAMESPACE = "/api/v1/namespaces/{namespace}"
_SOURCE = "/api/v1/sources/{source}"
_WRITTEN = (400, 413, 503)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/namespaces",
        list_marquez_namespaces,
        KeyRole.READER,
        answers(MarquezNamespaces, 400),
        query=PAGE,
    ),
    Endpoint(
        "PUT",
        _NAMESPACE,
        put_marquez_namespace,
        KeyRole.WRITER,
        answers(MarquezNamespace, *_WRITTEN),
        body=NamespaceRequest,
    ),
    Endpoint(
        "GET",
        _NAMESPACE,
        get_marquez_namespace,
        KeyRole.READER,
        answers(MarquezNamespace, 404),
    ),
    Endpoint(
        "DELETE",
        _NAMESPACE,
        delete_marquez_namespace,
        KeyRole.WRITER,
        answers(MarquezNamespace, 404, 503),
    ),
    Endpoint(
        "GET",
        "/api/v1/sources",
        list_marquez_sources,
        KeyRole.READER,
        answers(MarquezSources, 400),
        query=PAGE,
    ),
    Endpoint(
        "PUT",
        _SOURCE,
        put_marquez_source,
        KeyRole.WRITER,
        answers(MarquezDataSource, *_WRITTEN),
        body=SourceRequest,
    ),
    Endpoint("GET", _SOURCE, get_marquez_source, KeyRole.READER, answers(MarquezDataSource, 404)),
    Endpoint(
        "GET",
        "/api/v1/tags",
        list_marquez_tags,
        KeyRole.READER,
        answers(MarquezTags, 400),
        query=PAGE,
    ),
    Endpoint(
        "PUT",
        "/api/v1/tags/{tag}",
        put_marquez_tag,
        KeyRole.WRITER,
        answers(MarquezTag, *_WRITTEN),
        body=MarquezTagRequest,
    ),
)

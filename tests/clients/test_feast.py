"""The registry of a feature repository that Feast applied."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

FILES = {
    "feature_store.yaml": """
project: churn
registry: registry.db
provider: local
offline_store: {type: file}
online_store: {type: sqlite, path: online.db}
entity_key_serialization_version: 3
""",
    "features.py": """
from datetime import timedelta
import pandas as pd
from feast import Entity, FeatureService, FeatureView, Field, FileSource, RequestSource
from feast.on_demand_feature_view import on_demand_feature_view
from feast.types import Float64

pd.DataFrame(
    {"customer_id": [1], "amount": [2.0], "at": [pd.Timestamp.now(tz="UTC")]}
).to_parquet("spend.parquet")
customer = Entity(name="customer", join_keys=["customer_id"])
spend = FileSource(
    name="spend", path="spend.parquet", timestamp_field="at",
    field_mapping={"amount": "spend_30d"},
)
customer_spend = FeatureView(
    name="customer_spend", entities=[customer], ttl=timedelta(days=1), source=spend,
    schema=[Field(name="spend_30d", dtype=Float64)], owner="ana@example.com",
    tags={"tier": "gold"},
)
limit = RequestSource(name="limit", schema=[Field(name="limit", dtype=Float64)])

@on_demand_feature_view(
    sources=[customer_spend, limit], schema=[Field(name="over_limit", dtype=Float64)]
)
def limits(inputs: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"over_limit": inputs["spend_30d"] - inputs["limit"]})

churn_v1 = FeatureService(name="churn_v1", features=[customer_spend, limits])
""",
}


@pytest.fixture(scope="module")
def home(client_python: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store into which the registry was imported."""
    feast, home = client_python("feast==0.67.0").parent / "feast", tmp_path_factory.mktemp("feast")
    for name, text in FILES.items():
        (home / name).write_text(text)
    env = {"FEAST_USAGE": "False", "HOME": str(home), "PATH": f"{feast.parent}:{os.defpath}"}
    for command, output in (("apply", "applied"), ("registry-dump", "registry.json")):
        with (home / output).open("w") as out, (home / "errors").open("w") as err:
            done = subprocess.run(
                [feast, command],
                cwd=home,
                env=env,
                stdout=out,
                stderr=err,
                timeout=600,
                check=False,
            )
        assert done.returncode == 0, (home / "errors").read_text()[-3000:]
    imported = downriver("import", "feast", "registry.json", cwd=home)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    return home


def test_a_feature_is_traced_through_its_view_to_the_file(home: Path) -> None:
    shown = downriver("trace", "feature_services/churn_v1.spend_30d", "--upstream", cwd=home)
    assert "customer_spend.spend_30d" in shown.stdout
    assert "spend.parquet.amount" in shown.stdout


def test_an_on_demand_view_has_its_inputs_and_a_blind_spot_for_its_code(home: Path) -> None:
    with Lineage.open(str(home / ".downriver")) as lineage:
        found = lineage.trace("feast://churn/feature_services/churn_v1", "upstream")
    assert {"limits", "requests/limit", "customer_spend"} <= {node.name for node in found.nodes}
    assert any("transformation in Python" in spot.message for spot in found.blind_spots)


def test_owners_and_tags_of_a_view_are_imported(home: Path) -> None:
    chosen = downriver("select", "tag:tier:gold", cwd=home)
    assert "customer_spend" in chosen.stdout
    owned = downriver("select", "owner:ana@example.com", cwd=home)
    assert "customer_spend" in owned.stdout

"""The guide shows all settings with their real defaults."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from downriver.govern.watch import WatchConfig, parse_watch
from downriver.govern.watch.config import (
    AlertChannel,
    EmailChannel,
    FileChannel,
    IgnoreRule,
    QuietHours,
    SlackChannel,
    WebhookChannel,
)
from downriver.impact import parse_policy
from downriver.model.governance import FindingKind

GUIDE = (Path(__file__).parents[4] / "docs" / "guide" / "watch.md").read_text("utf-8")
EMPTY = ("schedules", "ignore", "severities", "quiet_hours", "channels")


def shown() -> dict:
    return yaml.safe_load(re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)[1])


def test_what_the_guide_shows_is_read_and_its_figures_are_the_defaults() -> None:
    watch = parse_watch(shown()["watch"])
    cleared = {name: getattr(WatchConfig(), name) for name in EMPTY}
    assert msgspec.structs.replace(watch, **cleared) == WatchConfig()
    assert len(watch.channels) == 4


def test_the_gate_reads_the_same_file() -> None:
    assert parse_policy({**shown(), "gate": {"max_affected": 2}}).max_affected == 2
    assert parse_policy({**shown(), "max_affected": 2}).max_affected == 2
    assert parse_policy({"watch": {}}) == parse_policy(None)


@pytest.mark.parametrize(
    "kind",
    [
        WatchConfig,
        QuietHours,
        IgnoreRule,
        AlertChannel,
        FileChannel,
        WebhookChannel,
        SlackChannel,
        EmailChannel,
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_setting_is_in_the_guide(kind: type[msgspec.Struct]) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    assert [name for name in names if not re.search(rf"\b{name}\b", GUIDE)] == []


@pytest.mark.parametrize("kind", FindingKind, ids=lambda kind: kind.value)
def test_every_kind_of_finding_is_in_the_guide(kind: FindingKind) -> None:
    assert f"`{kind.value}`" in GUIDE

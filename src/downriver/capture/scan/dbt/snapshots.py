"""Snapshots that a property file defines by the name of a relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.code.dbt_resources import entries, text
from downriver.capture.scan.located_text import LocatedText

if TYPE_CHECKING:
    from collections.abc import Iterator


def list_yaml_snapshots(content: dict[str, Any]) -> Iterator[str]:
    """Yield each snapshot as the template that dbt makes of it, on the line of its name."""
    for entry in entries(content.get("snapshots")):
        name, relation = entry.get("name"), text(entry.get("relation")).strip()
        if isinstance(name, LocatedText) and relation:
            reference = relation if "{{" in relation else f"{{{{ {relation} }}}}"
            lines = "\n" * (name.line - 1)
            query = f"select * from {reference}"  # noqa: S608  # it is parsed and never executed
            yield f"{lines}{{% snapshot {name} %}}{query}{{% endsnapshot %}}"

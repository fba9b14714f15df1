"""Write docs/reference/ from the code: commands, settings, HTTP and Python.

`make docs` runs this before it builds the site. tests/test_docs.py fails when a page is outdated.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import downriver
from downriver import settings
from downriver.cli.app import EXAMPLES, load_command
from downriver.cli.command_list import COMMANDS, SECTIONS, CommandEntry
from downriver.http.app import ENDPOINTS
from downriver.http.openapi import render_openapi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "reference"
_NOTE = "<!-- Generated from the code by docs/generate_reference.py. Do not edit. -->"
_SHARED = 8  # commands that have an option, from which it is described once


def render_pages() -> dict[str, str]:
    """Return the text of every reference page by its file name."""
    pages: dict[str, Callable[[], Iterator[str]]] = {
        "commands.md": _commands,
        "settings.md": _settings,
        "http.md": _http,
        "python.md": _python,
    }
    return {name: "\n".join([_NOTE, "", *render()]) + "\n" for name, render in pages.items()}


def write_pages() -> list[str]:
    """Write the pages that differ from the files, and return their names."""
    written = []
    FOLDER.mkdir(exist_ok=True)
    for name, text in render_pages().items():
        page = FOLDER / name
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")
            written.append(name)
    return written


# Commands


def _commands() -> Iterator[str]:
    yield from (
        "# Commands",
        "",
        "Each section has the commands for one kind of task. `downriver COMMAND --help` prints the",
        "same text. Exit codes: 0 for success, 1 if the command finished and found a problem (an",
        "unreadable line, an altered log, a blocked change), 2 if it could not run. `gate` also",
        "uses 3.",
        "",
        "## Options of many commands",
        "",
        "| option | meaning |",
        "|---|---|",
        *(f"| {names} | {meaning} |" for names, meaning in _shared_options().items()),
        "",
    )
    for section in SECTIONS:
        yield from (f"## {section.title}", "")
        for name, entry in list_commands(section.commands):
            yield from _command(name, load_command(entry))


def list_commands(
    entries: tuple[CommandEntry, ...] = COMMANDS, prefix: str = "downriver"
) -> Iterator[tuple[str, CommandEntry]]:
    """Yield every command that runs, with its full name."""
    for entry in entries:
        name = f"{prefix} {entry.name}"
        if entry.target:
            yield name, entry
        yield from list_commands(entry.commands, name)


def _command(name: str, command: Any) -> Iterator[str]:
    prose, _, examples = (command.help or "").partition(f"\b{EXAMPLES}\n")
    yield from (f"### `{name}`", "", _prose(prose), "")
    if examples:
        yield from ("```text", *(line.strip() for line in examples.splitlines()), "```", "")
    listed = [row for p in command.params if (row := _parameter(p))]
    shared = _shared_options()
    rows = [row for row in listed if shared.get(row[0]) != row[2]]
    if rows:
        yield from ("| argument or option | default | meaning |", "|---|---|---|")
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""
    also = [names.split()[0] for names, _, meaning in listed if shared.get(names) == meaning]
    if also:
        yield from (
            f"Shared options: {', '.join(f'{name.rstrip(chr(96))}`' for name in also)}.",
            "",
        )


@cache
def _shared_options() -> dict[str, str]:
    """Return the options that many commands have with the same meaning."""
    rows = Counter(
        (names, meaning)
        for _, entry in list_commands()
        for parameter in load_command(entry).params
        if parameter.param_type_name == "option"
        for names, default, meaning in [_parameter(parameter) or ("", "", "")]
        if names and not default
    )
    return dict(row for row, count in rows.most_common() if count >= _SHARED)


def _parameter(parameter: Any) -> tuple[str, str, str] | None:
    """Return the cells of a parameter. Typer bundles its own Click, whose classes have no types."""
    if parameter.hidden or "--help" in parameter.opts:
        return None
    metavar = parameter.metavar or parameter.display_type(None).strip("<>")
    if parameter.param_type_name == "argument":
        names = f"`{metavar}`"
    else:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        names += "" if parameter.is_flag else f" {metavar}"
    default = getattr(parameter.default, "value", parameter.default)
    is_empty = default in (None, False, True, (), [], "") or callable(default)
    shown = "" if is_empty else f"`{default}`"
    return _cell(names), _cell(shown), _cell(parameter.help or "")


# Settings


def _settings() -> Iterator[str]:
    yield from (
        "# Settings",
        "",
        "Every setting is an environment variable. The options `--store` and `--lake` of a",
        "command override `DOWNRIVER_STORE` and `DOWNRIVER_LAKE`. The file `downriver.yml`",
        "configures the gate, the checks and the monitor.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    )
    for setting in settings.SETTINGS:
        default = f"`{setting.default}`" if setting.default else ""
        yield f"| `{setting.name}` | {default} | {_cell(setting.meaning)} |"


# HTTP


def _http() -> Iterator[str]:
    document = render_openapi(ENDPOINTS)
    yield from (
        "# HTTP API",
        "",
        "`GET /openapi.json` on a running server returns this reference as an OpenAPI document.",
        "[Errors](../guide/errors.md) describes the body of an error.",
        "",
    )
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        yield from (
            f"## `{endpoint.method} {endpoint.path}`",
            "",
            _prose(_without_query(_doc(endpoint.handler))),
            "",
        )
        role = f"a key with the role `{endpoint.role.name.lower()}`" if endpoint.role else "no key"
        yield from (f"Needs {role}.", "")
        yield from _operation(operation)


def _without_query(text: str) -> str:
    """Return a description without the names of parameters, which the table below it lists."""
    return re.sub(r"\n`\?[^`]*`$", "", re.sub(r": `\?[^`]*`\.", ".", text))


def _operation(operation: dict[str, Any]) -> Iterator[str]:
    parameters = operation.get("parameters", [])
    if parameters:
        yield from ("| parameter | in | required | meaning |", "|---|---|---|---|")
        for parameter in parameters:
            required = "yes" if parameter.get("required") else ""
            meaning = _cell(parameter.get("description", ""))
            yield f"| `{parameter['name']}` | {parameter['in']} | {required} | {meaning} |"
        yield ""
    yield from ("| status | body |", "|---|---|")
    for status, response in operation["responses"].items():
        schema = response.get("content", {}).get("application/json", {}).get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        described = f" `{name}`" if name else ""
        yield f"| {status} | {_cell(response['description'])}{described} |"
    yield ""


# Python


def _python() -> Iterator[str]:
    yield from (
        "# Python API",
        "",
        "Everything here is imported from `downriver`, as in `from downriver import lineage`.",
        "",
    )
    for name in sorted(downriver.__all__, key=str.casefold):
        thing = getattr(downriver, name)
        if inspect.isclass(thing):
            yield from _class(name, thing)
        elif callable(thing):
            yield from (f"## `{name}`", "", "```text", f"{name}{_signature(thing)}", "```", "")
            yield from (_prose(_doc(thing)), "")


def _class(name: str, kind: type) -> Iterator[str]:
    yield from (f"## `{name}`", "", _prose(_doc(kind)), "")
    if issubclass(kind, BaseException):
        return
    yield from _methods(kind, "")
    for member, value in vars(kind).items():
        if isinstance(value, cached_property):
            yield from (f"### `{name}.{member}`", "", _prose(_doc(value)), "")
            yield from _methods(_part(value), f"{member}.")


def _methods(kind: type, prefix: str) -> Iterator[str]:
    members = [
        (member, value)
        for member, value in inspect.getmembers(kind, inspect.isroutine)
        if not isinstance(value, cached_property) and _doc(value)
        if not member.startswith("_") or (prefix and member == "__call__")
    ]
    if not members:
        return
    yield from ("| method | does |", "|---|---|")
    for member, value in members:
        summary = _doc(value).split("\n\n")[0]
        called = prefix.rstrip(".") if member == "__call__" else f"{prefix}{member}"
        yield f"| `{called}{_cell(_signature(value))}` | {_cell(summary)} |"
    yield ""


def _part(value: cached_property[Any]) -> type:
    """Return the class of a part of `Lineage`, which only its annotation names."""
    name = value.func.__annotations__["return"]
    module = import_module(f"downriver.service.{_PART_MODULES[name]}")
    part: type = getattr(module, name)
    return part


_PART_MODULES = {
    "IntegrationApi": "systems.integrations",
    "SystemApi": "systems.capture",
    "VersionApi": "views.versions",
    "ColumnEdgeApi": "views.column_edges",
    "DirectoryApi": "catalog.directory",
    "GraphApi": "views.graph_view",
    "RunApi": "views.runs",
    "SelectionApi": "views.selection",
    "SearchApi": "views.search",
    "MapApi": "views.graph_map",
    "HistoryApi": "views.history",
    "EntityViewApi": "views.entity_view",
    "AdminApi": "admin",
    "CaptureApi": "capture",
    "CheckApi": "trust.checks",
    "ContractApi": "trust.contracts",
    "PrivacyApi": "trust.privacy",
    "QualityApi": "trust.quality",
    "SchemaApi": "trust.schemas",
    "EntityApi": "entities",
    "ExportApi": "export",
    "FlowApi": "registration.flows",
    "GovernApi": "govern",
    "IdentityApi": "catalog.identity",
    "RegistryApi": "catalog.registry",
    "ImpactApi": "impact",
    "RetentionApi": "trust.retention",
    "CheckpointApi": "trust.checkpoints",
    "EvidenceApi": "trust.evidence",
    "GraphDiffApi": "views.graph_diff",
    "TagApi": "trust.tag_changes",
    "TriggerApi": "trust.triggers",
    "TraceApi": "trace",
}


def _signature(thing: Callable[..., Any]) -> str:
    signature = inspect.signature(thing)
    kept = [p for name, p in signature.parameters.items() if name not in ("self", "cls")]
    shown = str(signature.replace(parameters=kept))
    shown = re.sub(r"<\w+ \S+ at 0x[0-9a-f]+>", "…", shown.replace("'", ""))
    return re.sub(r"\bdownriver(?:\.\w+)*\.", "", shown)


def _doc(thing: object) -> str:
    return inspect.getdoc(thing) or ""


def _prose(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", inspect.cleandoc(text)).strip()


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


if __name__ == "__main__":
    for changed in write_pages():
        sys.stderr.write(f"docs/reference/{changed} written\n")

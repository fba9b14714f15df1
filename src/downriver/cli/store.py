"""`downriver status`, `rebuild`, `audit`, `serve` and `keys`: the store and its server."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from downriver import settings
from downriver.cli.output import (
    JsonOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
    print_rows,
    progress_bar,
    write,
)
from downriver.errors import InvalidRequestError
from downriver.model.control_characters import escape_json
from downriver.openlineage.wire import render_time
from downriver.service import Lineage
from downriver.store import MEMORY, Verification

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

_COUNTS = ("events", "datasets", "jobs", "runs", "edges", "columns", "column_edges")


def status(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show the location of the store, and the number of events, datasets, jobs and edges."""
    with Lineage.open(store, create=False) as lineage:
        current = lineage.admin.status()
    if json:
        print_json(current)
        return
    counts = [(name.replace("_", " "), f"{getattr(current.counts, name):,}") for name in _COUNTS]
    print_rows(
        [("store", current.store), *counts, ("last event", current.last_received or "never")]
    )


def rebuild(store: StoreOption = None, json: JsonOption = False) -> None:
    """Compute the catalog again from the log. The result is identical.

    Readers see the old catalog until the new one is complete.
    """
    with Lineage.open(store, create=False) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Rebuilding", total=None)
        total = lineage.admin.rebuild(lambda done, of: bar.update(task, completed=done, total=of))
    if json:
        print_json({"events": total})
        return
    out.print(f"rebuilt from {counted(total, 'event')}")


BackupArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.")]


def backup(file: BackupArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Write the store to one file: its log, API keys, findings and alerts.

    The store may be in use meanwhile. The command also verifies the hash chain of the log.
    """
    with Lineage.open(store, create=False) as lineage, progress_bar("entries") as bar:
        task = bar.add_task("Writing", total=lineage.admin.status().counts.events)
        result = lineage.admin.backup(file, lambda done: bar.update(task, completed=done))
    if json:
        print_json(result)
        return
    out.print(f"{_entries(result)} in {escape(str(file))} · head {_head_of(result)}")


def restore(file: BackupArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Restore a backup into an empty store. If an error occurs, nothing is restored.

    A backup of a SQLite store can be restored to PostgreSQL, and vice versa.
    """
    with Lineage.open(store) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Restoring", total=None)
        result = lineage.admin.restore(
            file, lambda done, of: bar.update(task, completed=done, total=of)
        )
    if json:
        print_json(result)
        return
    out.print(f"{_entries(result)} restored · head {_head_of(result)}")


def _entries(result: Verification) -> str:
    return "1 entry" if result.entries == 1 else f"{result.entries} entries"


def _head_of(result: Verification) -> str:
    return f"{result.entries}:{result.head}"


def verify(
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="HEAD",
            help="Compare with a head that this command printed earlier. This also detects a log "
            "that was cut short or replaced.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Compare with signed checkpoints: a file, or git:PATH for the last commit.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="The public key that signed the checkpoints. Default: the key of this store.",
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute the hash chain of the log and name the first altered entry.

    The exit code is 1 if an entry was altered.
    """
    from downriver.govern.audit.checkpoints import read_checkpoints

    expected = None if expect is None else _parse_head(expect)
    if expect is not None and against is not None:
        raise InvalidRequestError("--expect", "cannot be used together with --against")
    with Lineage.open(store, create=False) as lineage, progress_bar("entries") as bar:
        task = bar.add_task("Verifying", total=lineage.admin.status().counts.events)
        progress = partial(_advance, bar, task)
        if against is None:
            result = lineage.admin.verify(expected=expected, progress=progress)
        else:
            checkpoints = read_checkpoints(against)
            result = lineage.checkpoints.verify(checkpoints, key=key, progress=progress)
    if json:
        print_json(result)
    elif result.ok:
        redacted = f" · {result.redacted} redacted" if result.redacted else ""
        out.print(f"[green]intact[/] · {_entries(result)}{redacted} · head {_head_of(result)}")
    else:
        err.print(f"[bold red]altered[/] · entry {result.altered_seq} {result.reason}")
    if not result.ok:
        raise typer.Exit(1)


def _advance(bar: Progress, task: TaskID, done: int) -> None:
    bar.update(task, completed=done)


def _parse_head(text: str) -> tuple[int, bytes]:
    seq, _, chain = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and int(seq)) or not chain:
        raise InvalidRequestError(
            "--expect",
            f"{text!r} is not a head such as 36:1f3a…, as `downriver audit verify` prints it",
        )
    try:
        return int(seq), bytes.fromhex(chain)
    except ValueError as exc:
        raise InvalidRequestError(
            "--expect",
            f"{text!r} is not a head such as 36:1f3a…, as `downriver audit verify` prints it",
        ) from exc


def event(
    digest: Annotated[
        str, typer.Argument(metavar="SHA256", help="The SHA-256 of the event, as edges show it.")
    ],
    store: StoreOption = None,
) -> None:
    """Print an event as it was received.

    Edges name the events that prove them by SHA-256, in `first_event` and `last_event`.
    """
    with Lineage.open(store, create=False) as lineage:
        content = lineage.trace.find_event(digest)
    sys.stdout.flush()
    if sys.stdout.isatty():
        write(escape_json(content.decode(errors="replace")) + "\n")
    elif hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(content + b"\n")
    else:
        sys.stdout.write(content.decode(errors="replace") + "\n")


def audit_log(
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor", metavar="NAME", help="Show only actions of this key, or of `local`."
        ),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action",
            metavar="ACTION",
            help="Show only this action, such as write, refused or 'create key'.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most N entries.")
    ] = 100,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show writes, refused requests and actions of administrators, the newest first.

    Identical actions of one actor within one minute are one entry with a count. The actor `local`
    is a process that opens the store itself, or a request to a server without keys.
    """
    from downriver.store import AuditFilter

    with Lineage.open(store, create=False) as lineage:
        entries = lineage.admin.audit_log(AuditFilter(actor=actor, action=action, limit=limit))
    if json:
        print_json(entries)
        return
    from rich.table import Table

    table = Table("last", "actor", "action", "target", "count", "entries", "detail", box=None)
    for entry in entries:
        seqs = "" if entry.first_seq is None else f"{entry.first_seq}-{entry.last_seq}"
        texts = (entry.actor or "unknown", entry.action, entry.target)
        row = (_render_second(entry.last_at), *map(escape, texts), str(entry.count), seqs)
        table.add_row(*row, escape(entry.detail))
    out.print(table)


def _render_second(micros: int) -> str:
    """Return a moment without fractions of a second, as tables show it."""
    return render_time(micros - micros % 1_000_000)


class LogFormat(str, Enum):
    """How the server writes its log."""

    TEXT = "text"
    JSON = "json"


def serve(
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="Listen on this port.")
    ] = 5000,
    repo: Annotated[
        Path | None,
        typer.Option(
            "--repo",
            metavar="DIR",
            help="Read the source code of registered assets from this repository.",
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the web UI in the browser.")
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            "--log-format", help="Log warnings as text, or every request as a JSON object."
        ),
    ] = LogFormat.TEXT,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            metavar="FILE",
            help="Serve HTTPS with this certificate (PEM, with its intermediate certificates).",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", help="The private key of the certificate (PEM)."),
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            "--lake",
            metavar="PATH",
            help="Answer from this lake instead of a store, and refuse writes. New versions of the "
            "lake are read as they appear.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Start the HTTP server and its web UI. Any OpenLineage client can send events to it.

    Without API keys the server accepts only requests from this machine, and requests to the host
    names in DOWNRIVER_ALLOWED_HOSTS.

    Examples:
      downriver serve --open
      downriver serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
      downriver serve --lake .downriver/lake
    """
    from downriver.http import TlsFiles, check_bind
    from downriver.http import serve as run

    tls = TlsFiles.parse(tls_cert, tls_key)
    if lake is not None and store is not None:
        raise InvalidRequestError("--lake", "give --lake or --store, not both")
    with _served(lake, store, repo) as lineage:
        check_bind(host, port, keyed=lineage.admin.has_keys())
        url = f"{'http' if tls is None else 'https'}://{host}:{port}"
        err.print(
            f"[bold]downriver[/] on [cyan]{url}[/] · {'store' if lake is None else 'lake'} "
            f"{escape(lineage.store.url)}\nweb UI:       open {url} in a browser"
        )
        if lake is None:
            err.print(f"send events:  OPENLINEAGE_URL={url}  ·  stop with Ctrl-C")
        else:
            err.print("read-only: events are added with `downriver lake`  ·  stop with Ctrl-C")
        run(
            lineage,
            host,
            port,
            on_start=partial(_open_page, url) if open_page else None,
            log_format=log_format.value,
            tls=tls,
        )


_LOOK_AT_LAKE_EVERY = 2.0  # seconds


@contextmanager
def _served(lake: str | None, store: str | None, repo: Path | None) -> Iterator[Lineage]:
    """Open what a server answers from: a lake, or a store."""
    if lake is None:
        with _served_location(store) as location, Lineage.open(location, repository=repo) as opened:
            yield opened
        return
    from downriver.capture.scan import Repository
    from downriver.lake.server.lake_store import LakeStore

    of_lake = LakeStore(lake)
    of_lake.follow(_LOOK_AT_LAKE_EVERY)
    with Lineage(of_lake, None if repo is None else Repository(repo)) as opened:
        yield opened


@contextmanager
def _served_location(store: str | None) -> Iterator[str | None]:
    """Return where to open the store of a server, which its worker processes open, too.

    They cannot open a store in memory. Such a store is in a temporary folder until the server ends.
    """
    if (store or settings.read_text(settings.STORE)) != MEMORY:
        yield store
        return
    with TemporaryDirectory(prefix="downriver-") as folder:
        yield folder


def _open_page(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        err.print(f"no browser could be started; open {url}")


def create(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A name for the key, such as the name of its user."),
    ],
    role: Annotated[
        str,
        typer.Option(
            "--role", metavar="ROLE", help="The role of the key: reader, writer or admin."
        ),
    ] = "writer",
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            metavar="PATTERN",
            help="Limit the key to datasets and jobs of this namespace; * stands for any text. "
            "May be repeated.",
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="TIME",
            help="The key expires after this period, such as 90d, 12h or 4w, or at this time.",
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Create an API key and print it once.

    As soon as a store has a key, every request to its servers needs one.
    """
    namespaces = namespace or []
    with Lineage.open(store) as lineage:
        key = lineage.admin.create_key(name, role, namespaces=namespaces, expires=expires)
    if json:
        print_json({"name": name, "role": role, "namespaces": namespaces, "key": key})
        return
    err.print(f"key for {escape(name)} ({role}); it is shown only once:")
    out.print(key)


def list_keys(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the API keys with their roles and limits, without the keys themselves."""
    with Lineage.open(store, create=False) as lineage:
        keys = lineage.admin.list_keys()
    if json:
        print_json(keys)
        return
    if not keys:
        out.print("no API keys: the server accepts requests from this machine only")
        return
    from rich.table import Table

    columns = ("name", "role", "namespaces", "created", "expires", "revoked")
    table = Table(*columns, box=None, pad_edge=False)
    for key in keys:
        times = (
            "" if moment is None else _render_second(moment)
            for moment in (key.created_at, key.expires_at, key.revoked_at)
        )
        namespaces = escape(", ".join(key.namespaces)) or "all"
        table.add_row(escape(key.name), key.role, namespaces, *times)
    out.print(table)


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the key.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Revoke an API key. Every server of this store rejects it within two seconds."""
    with Lineage.open(store, create=False) as lineage:
        lineage.admin.revoke_key(name)
    if json:
        print_json({"name": name, "revoked": True})
        return
    out.print(f"revoked {escape(name)}")

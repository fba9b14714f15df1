"""All commands in one list, and the one place where errors become exit codes."""

from __future__ import annotations

import sys

import typer

from downriver import __version__
from downriver.cli import (
    agent,
    audit,
    capture,
    certified,
    demo,
    fix,
    gate,
    graph,
    impact,
    incident,
    ingest,
    keys,
    kpis,
    lake,
    mcp,
    paths,
    rebuild,
    run,
    serve,
    spool,
    status,
    tags,
    trace,
    watch,
)
from downriver.cli.output import fail
from downriver.errors import DownriverError

app = typer.Typer(
    name="downriver",
    help="Change a table. See what breaks downriver, before you ship.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("ingest")(ingest.ingest)
app.command("trace")(trace.trace)
app.command("paths")(paths.paths)
app.command("graph")(graph.graph)
app.command("impact")(impact.impact)
app.command("gate")(gate.gate)
app.command("fix")(fix.fix)
app.command("kpis")(kpis.kpis)
app.command("incident")(incident.incident)
app.command("tags")(tags.tags)
app.command("agent")(agent.agent)
app.command("mcp")(mcp.mcp)
app.command("certified")(certified.certified)
app.command("status")(status.status)
app.command("rebuild")(rebuild.rebuild)
app.command("run", context_settings={"ignore_unknown_options": True})(run.run)
app.add_typer(capture.app, name="capture")
app.add_typer(audit.app, name="audit")
app.add_typer(keys.app, name="keys")
app.add_typer(spool.app, name="spool")
app.add_typer(lake.app, name="lake")
app.add_typer(watch.app, name="watch")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"downriver {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    del version


def main() -> None:
    """Run the command line."""
    try:
        app()
    except DownriverError as error:
        fail(error, as_json="--json" in sys.argv)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone: nothing to say, no one to say it to
        sys.exit(0)

"""All commands in one list, and the one place where errors become exit codes."""

from __future__ import annotations

import gc
import sys

import typer

from downriver import __version__
from downriver.cli import agent, demo, graph, mcp, paths, server, store, trace
from downriver.cli.capture import ingest, run, spool, sql
from downriver.cli.govern import certified, incident, kpis, tags, watch
from downriver.cli.impact import fix, gate, impact
from downriver.cli.lake import export, history, pipeline
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
app.command("serve")(server.serve)
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
app.command("certified")(certified.certified)
app.command("agent")(agent.agent)
app.command("mcp")(mcp.mcp)
app.command("status")(store.status)
app.command("rebuild")(store.rebuild)
app.command("run", context_settings={"ignore_unknown_options": True})(run.run)
app.add_typer(sql.app, name="capture")
app.add_typer(store.app, name="audit")
app.add_typer(server.app, name="keys")
app.add_typer(spool.app, name="spool")
app.add_typer(pipeline.app, name="lake")
app.add_typer(watch.app, name="watch")
pipeline.app.command("publish")(export.publish)
pipeline.app.command("export")(export.export)
pipeline.app.command("views")(export.views)
pipeline.app.command("diff")(history.diff)
pipeline.app.command("compact")(history.compact)
pipeline.app.command("expire")(history.expire)
pipeline.app.command("clean")(history.clean)


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
    # Events and queries are many objects and no garbage in cycles: looking often finds none.
    gc.set_threshold(50_000, 20, 20)
    try:
        app()
    except DownriverError as error:
        fail(error, as_json="--json" in sys.argv)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone: nothing to say, no one to say it to
        sys.exit(0)

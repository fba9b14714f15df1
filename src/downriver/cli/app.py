"""The list of commands, and the one place where errors become exit codes.

A command's module is imported when the command runs or shows its own help. The list has the names
and one-line helps, so `downriver --help` and shell completion import no command.
"""

from __future__ import annotations

import gc
import importlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from downriver import __version__
from downriver.cli.output import fail
from downriver.errors import DownriverError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class CommandEntry(NamedTuple):
    """A command: its name, its `module:function` under `downriver.cli`, and a one-line help.

    A command with subcommands is a group. `target` is then the function that runs without a
    subcommand.
    """

    name: str
    target: str
    help: str
    commands: tuple[CommandEntry, ...] = ()
    passes_options_on: bool = False
    default: str = ""  # the command that runs when no argument names a command


COMMANDS: tuple[CommandEntry, ...] = (
    CommandEntry(
        "demo", "demo.command:demo", "Run a sample pipeline on Spark and show its lineage."
    ),
    CommandEntry("serve", "store:serve", "Start the HTTP server."),
    CommandEntry("ingest", "events:ingest", "Store OpenLineage events from files."),
    CommandEntry(
        "import",
        "",
        "Import lineage from another server or catalog.",
        (
            CommandEntry(
                "marquez", "catalogs.marquez:marquez", "Import the events of a Marquez server."
            ),
            CommandEntry("glue", "catalogs.imports:glue", "Import the tables of AWS Glue."),
            CommandEntry("unity", "catalogs.imports:unity", "Import the lineage of Unity Catalog."),
            CommandEntry(
                "atlas", "catalogs.imports:atlas", "Import entities and lineage of Apache Atlas."
            ),
            CommandEntry(
                "datahub", "catalogs.imports:datahub", "Import metadata files of DataHub."
            ),
            CommandEntry(
                "openmetadata",
                "catalogs.imports:openmetadata",
                "Import lineage and tables of OpenMetadata.",
            ),
            CommandEntry("amundsen", "catalogs.imports:amundsen", "Import CSV files of Amundsen."),
            CommandEntry(
                "kubeflow", "catalogs.imports:kubeflow", "Import compiled Kubeflow pipelines."
            ),
            CommandEntry(
                "feast", "catalogs.imports:feast", "Import feature views and services of Feast."
            ),
            CommandEntry(
                "kafka-connect",
                "catalogs.imports:kafka_connect",
                "Import the connectors of Kafka Connect.",
            ),
        ),
    ),
    CommandEntry("trace", "trace:trace", "Show what an entity feeds, or what feeds it."),
    CommandEntry("paths", "trace:paths", "Show the paths from one entity to another."),
    CommandEntry(
        "versions", "systems.versions:versions", "List the versions of a dataset or model."
    ),
    CommandEntry("graph", "graph:graph", "Draw or export the graph around an entity."),
    CommandEntry("diff", "trust.diff:diff", "Show how the graph changed between two moments."),
    CommandEntry(
        "export",
        "",
        "Copy the graph to another system.",
        (
            CommandEntry("neo4j", "catalogs.neo4j:neo4j", "Copy the graph to Neo4j."),
            CommandEntry("datahub", "catalogs.datahub:datahub", "Send lineage to DataHub."),
            CommandEntry("atlas", "catalogs.atlas:atlas", "Send lineage to Apache Atlas."),
        ),
    ),
    CommandEntry("select", "graph:select", "List the datasets and jobs that a selector matches."),
    CommandEntry("same", "graph:same", "Record that two names are one dataset."),
    CommandEntry("cuts", "graph:cuts", "List pairs of names that may be one dataset."),
    CommandEntry("impact", "impact:impact", "Show what a change breaks."),
    CommandEntry("gate", "gate:gate", "Decide by policy whether a change may ship."),
    CommandEntry(
        "policy",
        "",
        "Propose a policy for the gate, or test one on past commits.",
        (
            CommandEntry(
                "init", "policy:propose", "Propose a policy from the metadata of the dbt projects."
            ),
            CommandEntry("test", "policy:replay", "Show what a policy decides about past commits."),
        ),
    ),
    CommandEntry("fix", "gate:fix", "Write a patch for the consumers that a change breaks."),
    CommandEntry("verdicts", "trust.verdicts:verdicts", "List the recorded verdicts of the gate."),
    CommandEntry("kpis", "trust.kpis:kpis", "Show coverage, failures and freshness of the graph."),
    CommandEntry("incident", "trust.incident:incident", "Report what is wrong with an entity."),
    CommandEntry(
        "tag",
        "",
        "Set and remove tags of one entity.",
        (
            CommandEntry("set", "trust.tag:add", "Set tags on a dataset, column or job."),
            CommandEntry("unset", "trust.tag:remove", "Remove tags."),
        ),
    ),
    CommandEntry(
        "tags",
        "",
        "Apply a file of tags, and show which columns a tag reaches.",
        (
            CommandEntry("apply", "trust.tag:apply", "Set the tags that a YAML file declares."),
            CommandEntry("propagate", "trust.tag:declare", "Let tags propagate along columns."),
            CommandEntry("columns", "trust.tags:columns", "Show the tags of columns."),
            CommandEntry("reach", "trust.tags:reach", "Show which columns a tag reaches."),
        ),
        default="reach",
    ),
    CommandEntry("check", "trust.check:check", "Check the lineage against rules, for CI."),
    CommandEntry(
        "certified",
        "trust.tags:certified",
        "Check that the upstream of certified datasets is known.",
    ),
    CommandEntry("quality", "trust.quality:quality", "Show the quality score of a dataset."),
    CommandEntry(
        "privacy",
        "",
        "Report where personal data goes.",
        (
            CommandEntry(
                "report", "trust.privacy:report", "Report where a column with personal data goes."
            ),
        ),
    ),
    CommandEntry(
        "contracts",
        "",
        "Check, apply and list data contracts.",
        (
            CommandEntry("check", "trust.contracts:check", "Check contracts against the data."),
            CommandEntry("apply", "trust.contracts:apply", "Store contracts."),
            CommandEntry("list", "trust.contracts:list_contracts", "List the applied contracts."),
        ),
    ),
    CommandEntry(
        "schema",
        "",
        "Show the versions of a schema and check compatibility.",
        (
            CommandEntry("history", "trust.schema:history", "List the versions of a schema."),
            CommandEntry("diff", "trust.schema:diff", "Compare two versions of a schema."),
            CommandEntry("check", "trust.schema:check", "Check that a schema is compatible."),
        ),
    ),
    CommandEntry(
        "evidence",
        "",
        "Write and verify signed evidence about a dataset.",
        (
            CommandEntry("create", "trust.evidence:create", "Write an evidence pack of a dataset."),
            CommandEntry("verify", "trust.evidence:verify", "Verify a pack without a store."),
            CommandEntry("list", "trust.evidence:list_packs", "List the packs of a dataset."),
            CommandEntry("key", "trust.evidence:show_key", "Print the public key."),
        ),
        default="create",
    ),
    CommandEntry(
        "watch",
        "watch:watch",
        "Watch for drift, failures and late runs.",
        (
            CommandEntry("findings", "watch:findings", "List the open findings."),
            CommandEntry("try", "watch:send_sample_alerts", "Send a sample alert to each channel."),
        ),
    ),
    CommandEntry(
        "triggers",
        "",
        "Start actions downstream of findings.",
        (
            CommandEntry("run", "trust.triggers:run", "Start the actions of open findings."),
            CommandEntry("test", "trust.triggers:preview", "Show what a finding would start."),
            CommandEntry("list", "trust.triggers:list_actions", "List the recorded actions."),
        ),
    ),
    CommandEntry("agent", "agent:agent", "Answer questions about lineage in plain language."),
    CommandEntry(
        "mcp", "agent:mcp", "Serve the Model Context Protocol on standard input and output."
    ),
    CommandEntry(
        "capture",
        "",
        "Read lineage from SQL, dbt, code and other systems.",
        (
            CommandEntry("sql", "capture:sql", "Read lineage from SQL files."),
            CommandEntry("dbt", "capture:dbt", "Read lineage from dbt's target directory."),
            CommandEntry("scan", "capture:scan", "Read lineage from source code."),
            CommandEntry(
                "mlflow", "systems.capture:mlflow", "Read training runs and model versions."
            ),
            CommandEntry(
                "great-expectations",
                "systems.capture:great_expectations",
                "Read results of Great Expectations.",
            ),
            CommandEntry("soda", "systems.capture:soda", "Read results of Soda scans."),
            CommandEntry("deequ", "systems.capture:deequ", "Read results of Deequ."),
            CommandEntry("delta", "systems.capture:delta", "Read the versions of Delta tables."),
            CommandEntry(
                "iceberg", "systems.capture:iceberg", "Read the snapshots of Iceberg tables."
            ),
        ),
    ),
    CommandEntry(
        "consume", "systems.consume:consume", "Read events and lineage from Kafka topics."
    ),
    CommandEntry(
        "integrations",
        "systems.integrations:integrations",
        "List the systems that lineage can come from.",
    ),
    CommandEntry(
        "run",
        "events:run",
        "Run a command and capture the lineage of its PySpark sessions.",
        passes_options_on=True,
    ),
    CommandEntry(
        "spool",
        "",
        "Show or send the events that could not be sent yet.",
        (
            CommandEntry("status", "events:status", "Show how many events are spooled."),
            CommandEntry("flush", "events:flush", "Send the spooled events."),
        ),
    ),
    CommandEntry(
        "lake",
        "",
        "Build and query lineage tables on Spark.",
        (
            CommandEntry("ingest", "lake.pipeline:ingest", "Add events to the lake."),
            CommandEntry("build", "lake.pipeline:build", "Build the tables from the events."),
            CommandEntry(
                "stream", "lake.pipeline:run_stream", "Add events and build, continuously."
            ),
            CommandEntry(
                "status", "lake.pipeline:status", "Show the version and the tables of the lake."
            ),
            CommandEntry("query", "lake.pipeline:query", "Run Spark SQL over the tables."),
            CommandEntry("diff", "lake.versions:diff", "Compare the edges of two versions."),
            CommandEntry("publish", "lake.versions:publish", "Copy the lake's events to a store."),
            CommandEntry("export", "lake.versions:export", "Write Neo4j, Parquet or event files."),
            CommandEntry("views", "lake.versions:views", "Print SQL that creates DuckDB views."),
            CommandEntry("compact", "lake.versions:compact", "Merge small files into larger ones."),
            CommandEntry("expire", "lake.versions:expire", "Remove old events."),
            CommandEntry("clean", "lake.versions:clean", "Remove old versions and unused files."),
        ),
    ),
    CommandEntry("forget", "trust.retention:forget", "Remove a dataset or job from answers."),
    CommandEntry(
        "prune", "trust.retention:prune", "Remove from answers what no recent event mentions."
    ),
    CommandEntry("redact", "trust.retention:redact", "Erase a person's name from facets."),
    CommandEntry("status", "store:status", "Show the location and the size of the store."),
    CommandEntry("rebuild", "store:rebuild", "Rebuild the catalog from the log."),
    CommandEntry("backup", "store:backup", "Write the store to one file."),
    CommandEntry("restore", "store:restore", "Restore a backup into an empty store."),
    CommandEntry(
        "audit",
        "",
        "Verify the log, print its events, and show the audit log.",
        (
            CommandEntry(
                "log",
                "store:audit_log",
                "Show writes, refused requests and actions of administrators.",
            ),
            CommandEntry("verify", "store:verify", "Verify the hash chain of the log."),
            CommandEntry("checkpoint", "trust.audit:checkpoint", "Sign the head of the log."),
            CommandEntry("export", "trust.audit:export", "Write the audit log as JSON or CSV."),
            CommandEntry("event", "store:event", "Print an event as it was received."),
        ),
    ),
    CommandEntry(
        "keys",
        "",
        "Manage the API keys of the server.",
        (
            CommandEntry("create", "store:create", "Create an API key."),
            CommandEntry("list", "store:list_keys", "List the API keys."),
            CommandEntry("revoke", "store:revoke", "Revoke an API key."),
        ),
    ),
)


class DownriverCommand(TyperCommand):
    """A command with adjusted parameters."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return [_adjust(param) for param in super().get_params(ctx)]


class DownriverGroup(TyperGroup):
    """A group of commands with adjusted parameters."""

    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse arguments. The default command gets them unless the first one names a command."""
        names = {*self.commands, *ctx.help_option_names}
        is_default = args[0] not in names if args else not ctx.resilient_parsing
        if self.default and is_default:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return [_adjust(param) for param in super().get_params(ctx)]


def _adjust(param: Any) -> Any:
    """Show the kind of a value in words (`FILE`, not `<path>`), and convert only if needed."""
    if "process_value" not in vars(param):
        param.process_value = partial(_process_value, param, param.process_value)
        param.display_type = partial(_display_type, param, param.display_type)
    return param


_VALUE_NAMES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "file": "FILE"}


def _display_type(param: Any, display_type: Callable[[Any], str], context: Any) -> str:
    """Return the values of an option. An argument shows only its name."""
    shown = display_type(context).strip("<>").removeprefix("list[").removesuffix("]")
    if getattr(param, "is_flag", False):
        return ""
    if param.param_type_name == "argument" and "|" not in shown:
        return ""
    return _VALUE_NAMES.get(shown.removesuffix(" range"), shown)


def _process_value(param: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    # Typer imports pydantic to convert any value, which takes longer than many commands do.
    is_single = param.nargs == 1 and not getattr(param, "multiple", False)
    expected = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    is_converted = type(value) is expected or (value is None and not param.required)
    if is_single and is_converted:
        return value if param.callback is None else param.callback(context, param, value)
    return convert(context, value)


class LazyCommand(TyperCommand):
    """A command by its entry in the list. Its module is imported when it gets arguments."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.name, help=entry.help)
        self._entry = entry

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parse arguments with the real command, which then runs."""
        return load_command(self._entry).make_context(info_name, args, parent, **extra)


def load_command(entry: CommandEntry) -> Any:
    """Import the module of a command and return the command as Typer builds it."""
    builder = typer.Typer(add_completion=False)
    function = _import_function(entry.target)
    text = _unwrap(function.__doc__ or "")
    if entry.commands:
        builder.callback(cls=DownriverGroup, invoke_without_command=True, help=text)(function)
        group = typer.main.get_command(builder)
        _add_commands(group, entry.commands)
        return group
    settings = {"ignore_unknown_options": True} if entry.passes_options_on else None
    builder.command(entry.name, cls=DownriverCommand, context_settings=settings, help=text)(
        function
    )
    return typer.main.get_command(builder)


def _import_function(target: str) -> Callable[..., None]:
    module, _, name = target.partition(":")
    function: Callable[..., None] = getattr(
        importlib.import_module(f"downriver.cli.{module}"), name
    )
    return function


def _unwrap(docstring: str) -> str:
    """Return a docstring with one line a paragraph, so that the help wraps at the terminal."""
    paragraphs = docstring.split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()


def _add_commands(group: Any, entries: Iterable[CommandEntry]) -> None:
    for entry in entries:
        if entry.target:
            group.add_command(LazyCommand(entry))
        else:
            child = DownriverGroup(name=entry.name, help=entry.help, no_args_is_help=True)
            child.default = entry.default
            _add_commands(child, entry.commands)
            group.add_command(child)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"downriver {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Change a table. See what breaks downriver, before you ship."""
    del version


def build_command() -> Any:
    """Return the whole command line."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback(
        cls=DownriverGroup,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_root)
    command = typer.main.get_command(app)
    _add_commands(command, COMMANDS)
    return command


def run() -> None:
    """Run the command line with the arguments of this process."""
    # Events and queries are many objects and few cycles: frequent collections find nothing.
    gc.set_threshold(50_000, 20, 20)
    try:
        build_command()()
    except DownriverError as error:
        fail(error, as_json="--json" in sys.argv)
    except BrokenPipeError:
        sys.stderr.close()  # the pipe is closed, so no error message can be printed
        sys.exit(0)

"""The list of commands, in the sections that `downriver --help` shows."""

from __future__ import annotations

from typing import NamedTuple


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


class CommandSection(NamedTuple):
    """Commands for one kind of task."""

    title: str
    commands: tuple[CommandEntry, ...]


SECTIONS: tuple[CommandSection, ...] = (
    CommandSection(
        "Start",
        (
            CommandEntry(
                "demo", "demo.command:demo", "Run a sample pipeline on Spark and show its lineage."
            ),
            CommandEntry("serve", "store:serve", "Start the HTTP server and the web UI."),
            CommandEntry("status", "store:status", "Show the location and the size of the store."),
        ),
    ),
    CommandSection(
        "Collect lineage",
        (
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
                    CommandEntry(
                        "delta", "systems.capture:delta", "Read the versions of Delta tables."
                    ),
                    CommandEntry(
                        "iceberg",
                        "systems.capture:iceberg",
                        "Read the snapshots of Iceberg tables.",
                    ),
                    CommandEntry("files", "systems.capture:files", "Record the versions of files."),
                ),
            ),
            CommandEntry("ingest", "events:ingest", "Store OpenLineage events from files."),
            CommandEntry(
                "import",
                "",
                "Import lineage from another server or catalog.",
                (
                    CommandEntry(
                        "marquez",
                        "catalogs.marquez:marquez",
                        "Import the events of a Marquez server.",
                    ),
                    CommandEntry("glue", "catalogs.imports:glue", "Import the tables of AWS Glue."),
                    CommandEntry(
                        "unity", "catalogs.imports:unity", "Import the lineage of Unity Catalog."
                    ),
                    CommandEntry(
                        "atlas",
                        "catalogs.imports:atlas",
                        "Import entities and lineage of Apache Atlas.",
                    ),
                    CommandEntry(
                        "datahub", "catalogs.imports:datahub", "Import metadata files of DataHub."
                    ),
                    CommandEntry(
                        "openmetadata",
                        "catalogs.imports:openmetadata",
                        "Import lineage and tables of OpenMetadata.",
                    ),
                    CommandEntry(
                        "amundsen", "catalogs.imports:amundsen", "Import CSV files of Amundsen."
                    ),
                    CommandEntry(
                        "kubeflow",
                        "catalogs.imports:kubeflow",
                        "Import compiled Kubeflow pipelines.",
                    ),
                    CommandEntry(
                        "feast",
                        "catalogs.imports:feast",
                        "Import feature views and services of Feast.",
                    ),
                    CommandEntry(
                        "dbt-artifacts",
                        "catalogs.dbt_artifacts:dbt_artifacts",
                        "Import the tables of the dbt package dbt_artifacts.",
                    ),
                    CommandEntry(
                        "kafka-connect",
                        "catalogs.imports:kafka_connect",
                        "Import the connectors of Kafka Connect.",
                    ),
                ),
            ),
            CommandEntry(
                "consume", "systems.consume:consume", "Read events and lineage from Kafka topics."
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
                "integrations",
                "systems.integrations:integrations",
                "List the systems that lineage can come from.",
            ),
        ),
    ),
    CommandSection(
        "Explore lineage",
        (
            CommandEntry(
                "trace",
                "trace:trace",
                "Show what is downstream or upstream of a table, job or column.",
            ),
            CommandEntry(
                "paths", "trace:paths", "Show the paths from one table, job or column to another."
            ),
            CommandEntry(
                "graph", "graph:graph", "Draw or export the graph around a table, job or column."
            ),
            CommandEntry(
                "select", "graph:select", "List the datasets and jobs that a selector matches."
            ),
            CommandEntry(
                "diff", "trust.diff:diff", "Show how the graph changed between two moments."
            ),
            CommandEntry(
                "versions", "systems.versions:versions", "List the versions of a dataset or model."
            ),
            CommandEntry(
                "agent", "agent:agent", "Answer questions about lineage in plain English."
            ),
            CommandEntry(
                "mcp", "agent:mcp", "Serve lineage to assistants over the Model Context Protocol."
            ),
        ),
    ),
    CommandSection(
        "Check a change",
        (
            CommandEntry("impact", "impact:impact", "Show which consumers a change breaks."),
            CommandEntry("gate", "gate:gate", "Decide by policy whether a change may ship."),
            CommandEntry(
                "fix", "gate:fix", "Write a patch for the consumers that a change breaks."
            ),
            CommandEntry(
                "policy",
                "",
                "Propose a policy for the gate, or test one on past commits.",
                (
                    CommandEntry(
                        "init",
                        "policy:propose",
                        "Propose a policy from the metadata of the dbt projects.",
                    ),
                    CommandEntry(
                        "test", "policy:replay", "Show what a policy decides about past commits."
                    ),
                ),
            ),
            CommandEntry(
                "verdicts", "trust.verdicts:verdicts", "List the recorded verdicts of the gate."
            ),
        ),
    ),
    CommandSection(
        "Monitor",
        (
            CommandEntry(
                "kpis", "trust.kpis:kpis", "Show coverage, failures and freshness of the graph."
            ),
            CommandEntry(
                "incident",
                "trust.incident:incident",
                "Report failures, their likely causes and what is affected.",
            ),
            CommandEntry(
                "watch",
                "watch:watch",
                "Watch for drift, failures and late runs, and send alerts.",
                (
                    CommandEntry("findings", "watch:findings", "List the open findings."),
                    CommandEntry(
                        "try", "watch:send_sample_alerts", "Send a sample alert to each channel."
                    ),
                ),
            ),
            CommandEntry(
                "triggers",
                "",
                "Start actions downstream of what the monitor finds.",
                (
                    CommandEntry(
                        "run", "trust.triggers:run", "Start the actions of open findings."
                    ),
                    CommandEntry(
                        "test", "trust.triggers:preview", "Show what a finding would start."
                    ),
                    CommandEntry(
                        "list", "trust.triggers:list_actions", "List the recorded actions."
                    ),
                ),
            ),
            CommandEntry(
                "quality", "trust.quality:quality", "Show the quality score of a dataset."
            ),
        ),
    ),
    CommandSection(
        "Govern",
        (
            CommandEntry("check", "trust.check:check", "Check the lineage against rules, for CI."),
            CommandEntry(
                "tag",
                "",
                "Set and remove tags of one table, column or job.",
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
                    CommandEntry(
                        "apply", "trust.tag:apply", "Set the tags that a YAML file declares."
                    ),
                    CommandEntry(
                        "propagate", "trust.tag:declare", "Let tags propagate along columns."
                    ),
                    CommandEntry("columns", "trust.tags:columns", "Show the tags of columns."),
                    CommandEntry("reach", "trust.tags:reach", "Show which columns a tag reaches."),
                ),
                default="reach",
            ),
            CommandEntry(
                "certified",
                "trust.tags:certified",
                "Check that certified datasets have complete lineage.",
            ),
            CommandEntry(
                "contracts",
                "",
                "Check, apply and list data contracts.",
                (
                    CommandEntry(
                        "check", "trust.contracts:check", "Check contracts against the data."
                    ),
                    CommandEntry("apply", "trust.contracts:apply", "Store contracts."),
                    CommandEntry(
                        "list", "trust.contracts:list_contracts", "List the applied contracts."
                    ),
                ),
            ),
            CommandEntry(
                "schema",
                "",
                "Show the versions of a schema and check compatibility.",
                (
                    CommandEntry(
                        "history", "trust.schema:history", "List the versions of a schema."
                    ),
                    CommandEntry("diff", "trust.schema:diff", "Compare two versions of a schema."),
                    CommandEntry(
                        "check", "trust.schema:check", "Check that a schema is compatible."
                    ),
                ),
            ),
            CommandEntry(
                "privacy",
                "",
                "Report where personal data goes.",
                (
                    CommandEntry(
                        "report",
                        "trust.privacy:report",
                        "Report where a column with personal data goes.",
                    ),
                ),
            ),
            CommandEntry(
                "evidence",
                "",
                "Write and verify signed evidence about a dataset.",
                (
                    CommandEntry(
                        "create", "trust.evidence:create", "Write an evidence pack of a dataset."
                    ),
                    CommandEntry(
                        "verify", "trust.evidence:verify", "Verify a pack without a store."
                    ),
                    CommandEntry(
                        "list", "trust.evidence:list_packs", "List the packs of a dataset."
                    ),
                    CommandEntry("key", "trust.evidence:show_key", "Print the public key."),
                ),
                default="create",
            ),
        ),
    ),
    CommandSection(
        "Lake and export",
        (
            CommandEntry(
                "lake",
                "",
                "Build and query lineage tables on Spark.",
                (
                    CommandEntry("ingest", "lake.pipeline:ingest", "Add events to the lake."),
                    CommandEntry(
                        "build", "lake.pipeline:build", "Build the tables from the events."
                    ),
                    CommandEntry(
                        "stream", "lake.pipeline:run_stream", "Add events and build, continuously."
                    ),
                    CommandEntry(
                        "status",
                        "lake.pipeline:status",
                        "Show the version and the tables of the lake.",
                    ),
                    CommandEntry("query", "lake.pipeline:query", "Run Spark SQL over the tables."),
                    CommandEntry(
                        "diff", "lake.versions:diff", "Compare the edges of two versions."
                    ),
                    CommandEntry(
                        "publish", "lake.versions:publish", "Copy the lake's events to a store."
                    ),
                    CommandEntry(
                        "export", "lake.versions:export", "Write Neo4j, Parquet or event files."
                    ),
                    CommandEntry(
                        "views", "lake.versions:views", "Print SQL that creates DuckDB views."
                    ),
                    CommandEntry(
                        "compact", "lake.versions:compact", "Merge small files into larger ones."
                    ),
                    CommandEntry("expire", "lake.versions:expire", "Remove old events."),
                    CommandEntry(
                        "clean", "lake.versions:clean", "Remove old versions and unused files."
                    ),
                ),
            ),
            CommandEntry(
                "export",
                "",
                "Copy the graph to Neo4j, DataHub or Apache Atlas.",
                (
                    CommandEntry("neo4j", "catalogs.neo4j:neo4j", "Copy the graph to Neo4j."),
                    CommandEntry("datahub", "catalogs.exports:datahub", "Send lineage to DataHub."),
                    CommandEntry(
                        "atlas", "catalogs.exports:atlas", "Send lineage to Apache Atlas."
                    ),
                ),
            ),
        ),
    ),
    CommandSection(
        "Administer",
        (
            CommandEntry("same", "graph:same", "Record that two names are one dataset."),
            CommandEntry("cuts", "graph:cuts", "List pairs of names that may be one dataset."),
            CommandEntry(
                "forget", "trust.retention:forget", "Remove a dataset or job from answers."
            ),
            CommandEntry(
                "prune",
                "trust.retention:prune",
                "Remove from answers what no recent event mentions.",
            ),
            CommandEntry(
                "redact", "trust.retention:redact", "Erase the name of a person from stored events."
            ),
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
                    CommandEntry(
                        "checkpoint", "trust.audit:checkpoint", "Sign the head of the log."
                    ),
                    CommandEntry(
                        "export", "trust.audit:export", "Write the audit log as JSON or CSV."
                    ),
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
        ),
    ),
)
COMMANDS: tuple[CommandEntry, ...] = tuple(
    entry for section in SECTIONS for entry in section.commands
)

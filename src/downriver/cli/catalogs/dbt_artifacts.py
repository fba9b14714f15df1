"""`downriver import dbt-artifacts`: the tables of the dbt package of that name."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.capture import DryRunOption, show_dbt
from downriver.cli.output import JsonOption, StoreOption
from downriver.service import Lineage
from downriver.service.limits import DBT_NAMESPACE


def dbt_artifacts(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The database, such as postgresql://user@host/db or duckdb:///warehouse.duckdb.",
        ),
    ],
    schema: Annotated[
        str, typer.Option("--schema", metavar="SCHEMA", help="The schema of the tables.")
    ],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="The namespace of the models' tables, such as postgres://host:5432. Default: that "
            "of known tables with the same names, else ADAPTER://PROJECT.",
        ),
    ] = None,
    job_namespace: Annotated[
        str,
        typer.Option("--job-namespace", metavar="NAMESPACE", help="The namespace of the jobs."),
    ] = DBT_NAMESPACE,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import the newest dbt run from the tables of the package dbt_artifacts.

    Models, seeds, snapshots, tests, sources and exposures are read, with the state, times and rows
    of each.
    """
    with Lineage.open(store) as lineage:
        capture = lineage.capture.dbt_artifacts(
            url, schema, namespace=namespace, job_namespace=job_namespace, dry_run=dry_run
        )
    show_dbt(capture, registered=not dry_run, json=json)

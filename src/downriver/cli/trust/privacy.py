"""`downriver privacy`: what personal data reaches, and policies that limit access to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    escape,
    out,
    print_json,
    render_json,
)
from downriver.errors import InvalidRequestError
from downriver.govern.privacy import SqlDialect
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.trust.privacy import PersonalDataset, PrivacyReport

_FEATURES = 10


def report(
    field: Annotated[
        str, typer.Argument(metavar="COLUMN", help="The column where the personal data enters.")
    ],
    ranger: Annotated[
        Path | None,
        typer.Option(
            "--ranger", metavar="FILE", help="Write suggested Apache Ranger tag policies as JSON."
        ),
    ] = None,
    sql: Annotated[
        SqlDialect | None,
        typer.Option(
            "--sql",
            metavar="DIALECT",
            help="Print suggested SQL for postgres, snowflake or databricks, not the report.",
        ),
    ] = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Report which datasets, columns, models and dashboards a column with personal data reaches.

    The report also shows where the values are masked, who owns the data, and the purpose, legal
    basis and retention that tags state.
    """
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.privacy(field)
        policies = lineage.privacy.ranger(answer)
        statements = None if sql is None else lineage.privacy.sql(answer, sql)
    if ranger is not None:
        try:
            ranger.write_text(render_json(policies), "utf-8")
        except OSError as exc:
            raise InvalidRequestError("--ranger", f"{ranger}: {exc.strerror}") from exc
    if json:
        print_json(answer)
    elif statements is not None:
        typer.echo(statements, nl=False)
    else:
        _show(answer, full_names=full_names)


def _show(answer: PrivacyReport, *, full_names: bool) -> None:
    ids = [answer.subject, *(each.dataset for each in answer.datasets)]
    ids += [column.column for each in answer.datasets for column in (*each.columns, *each.masked)]
    ids += [job for each in answer.datasets for job in each.through]
    features = [feature for model in answer.models for feature in model.features]
    ids += [full_id for each in features for full_id in (each.feature, *each.sources)]
    names = DisplayNames(ids, full=full_names)
    names.print_heading()
    out.print(f"{names[answer.subject]} reaches {counted(len(answer.datasets), 'dataset')}")
    for each in answer.datasets:
        _show_dataset(each, names)
    for model in answer.models:
        out.print(f"{names[model.model]} uses {counted(len(model.features), 'feature')}")
        for feature in model.features[:_FEATURES]:
            sources = ", ".join(feature.sources)
            out.print(f"  {names[feature.feature]} from {names.replace_in(sources)}")
    if not answer.complete:
        spots = counted(len(answer.blind_spots), "blind spot")
        out.print(f"[yellow]incomplete[/]: {spots}; --json lists them")


def _show_dataset(each: PersonalDataset, names: DisplayNames) -> None:
    owners = f", owned by {', '.join(each.owners)}" if each.owners else ", without an owner"
    out.print(f"[bold]{names[each.dataset]}[/] {escape(each.type + owners)}")
    for column in each.columns:
        out.print(f"  has     {names[column.column]}")
    for column in each.masked:
        out.print(f"  [green]masked[/]  {names[column.column]}")
    if each.through and not each.columns:
        jobs = ", ".join(names[job] for job in each.through)
        out.print(f"  [yellow]may have[/] the field: no column lineage of {jobs}")
    stated = {
        "purpose": each.purposes,
        "legal basis": each.legal_bases,
        "retention": each.retention,
    }
    for key, values in stated.items():
        if values:
            out.print(f"  {key}: {escape(', '.join(values))}")
    if each.not_stated:
        out.print(f"  [yellow]not stated[/]: {', '.join(each.not_stated)}")

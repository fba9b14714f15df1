"""`downriver evidence`: signed evidence packs of datasets, and their verification."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, counted, err, escape, out, print_json
from downriver.impact import find_author
from downriver.service import Lineage

DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="A dataset: orders, public.orders, or a full id.")
]


def create(
    dataset: DatasetArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Write the pack to this folder.")
    ],
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="TIME", help="Describe the state at this time. Default: now."
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Write a signed evidence pack about a dataset: JSON, HTML, SVG, and a manifest of hashes.

    The log records that the pack was created, and for which version of the dataset.
    """
    from downriver.errors import InvalidRequestError
    from downriver.govern.evidence.pack import write_pack

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InvalidRequestError("--output", f"{output} exists and is not an empty folder")
    with Lineage.open(store, create=False) as lineage:
        signed = lineage.evidence(dataset, as_of=as_of, by=find_author(Path.cwd()))
    write_pack(signed.files, output)
    if json:
        print_json(signed.record)
        return
    record, pack = signed.record, signed.pack
    spots = counted(len(pack.blind_spots), "blind spot")
    state = "complete" if record.complete else f"incomplete, {spots}"
    out.print(f"evidence of {escape(record.dataset)} in {escape(str(output))}")
    out.print(f"  lineage {state}")
    out.print(f"  version {record.version} · as of {record.as_of}")
    out.print(f"  log     {record.entries}:{record.chain}")
    out.print(f"  pack    {record.id}")


def verify(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a pack, or its zip file.")
    ],
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Accept only this public key, as `downriver evidence key` prints it.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Verify a pack without a store: every file, the list of files, and the signature.

    The exit code is 1 if a byte or a file was altered, removed or added. Without --key,
    the command does not check who signed the pack.
    """
    from downriver.govern.evidence.pack import read_pack, verify_pack

    verification = verify_pack(read_pack(folder), key)
    if json:
        print_json(verification)
    elif verification.ok:
        unverified = f"by {verification.key}; use --key to verify that this is the expected key"
        signer = "by the expected key" if verification.trusted else unverified
        files = counted(verification.files, "file")
        out.print(f"[green]intact[/] · {files} · {escape(verification.dataset)}")
        out.print(f"  version {verification.version} · as of {verification.as_of}")
        out.print(f"  signed {escape(signer)}")
    else:
        for fault in verification.faults:
            err.print(f"[bold red]altered[/] · {escape(fault.file)} {escape(fault.reason)}")
    if not verification.ok:
        raise typer.Exit(1)


def list_packs(
    dataset: DatasetArgument, store: StoreOption = None, json: JsonOption = False
) -> None:
    """List the evidence packs of a dataset, the latest first."""
    with Lineage.open(store, create=False) as lineage:
        records = lineage.evidence.list_packs(dataset)
    if json:
        print_json(records)
        return
    if not records.packs:
        out.print(f"no evidence packs of {escape(records.dataset)}")
    for pack in records.packs:
        state = "complete" if pack.complete else "incomplete"
        out.print(
            f"{pack.created_at}  version {pack.version}  {state}  "
            f"{escape(pack.created_by)}  {pack.id}"
        )


def show_key(store: StoreOption = None, json: JsonOption = False) -> None:
    """Print the public key that verifies the packs and checkpoints of this store.

    The private key is created at the first use. Only its owner can read its file.
    """
    with Lineage.open(store, create=False) as lineage:
        key = lineage.evidence.key()
    if json:
        print_json({"key": key.public})
    else:
        out.print(key.public)

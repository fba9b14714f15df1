"""The content of an evidence pack, its manifest, and its verification without a store."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError
from downriver.govern.signing_key import is_signed, parse_public_key
from downriver.model.answers import BlindSpot, Trace
from downriver.model.flows import ColumnDerivation
from downriver.model.governance import Finding, QualityResult
from downriver.model.views.history import SchemaVersion
from downriver.model.views.runs import RunRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.govern.signing_key import SigningKey

PACK_FORMAT = "downriver-evidence/1"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
_LARGEST = 256 * 2**20  # bytes of a file that is verified


class ChainHead(msgspec.Struct, kw_only=True, frozen=True):
    """The end of a log: how many entries it has, and the hash that covers all of them."""

    entries: int
    chain: str


class EvidenceVersion(msgspec.Struct, kw_only=True, frozen=True):
    """The version of a dataset: its schema, the run that wrote it, its version facet.

    `id` is a hash of the other fields. `schema_event` is the event that showed the schema first.
    """

    id: str
    schema_event: str | None
    last_run: str | None
    dataset_version: str | None

    @classmethod
    def of(
        cls, *, schema_event: str | None, last_run: str | None, dataset_version: str | None
    ) -> EvidenceVersion:
        """Return a version with its id."""
        parts = msgspec.json.encode([schema_event, last_run, dataset_version])
        return cls(
            id=hashlib.sha256(parts).hexdigest()[:16],
            schema_event=schema_event,
            last_run=last_run,
            dataset_version=dataset_version,
        )


class EvidenceColumn(msgspec.Struct, kw_only=True):
    """A column with its type and tags, and how each job computes it."""

    name: str
    type: str
    description: str
    tags: list[str]
    derivations: list[ColumnDerivation]


class DatasetFreshness(msgspec.Struct, kw_only=True):
    """The end of the last completed run that wrote a dataset; None if no run is known."""

    dataset: str
    depth: int
    last_updated: str | None
    age_hours: float | None


class ContractVersion(msgspec.Struct, kw_only=True):
    """A contract as events contain it, on the dataset or on the job that writes it."""

    entity: str
    facet: str
    first_seen: str
    last_seen: str
    content: Any


class WaiverRecord(msgspec.Struct, kw_only=True):
    """Rules of the gate that were waived for changes of the dataset."""

    at: str
    changes: list[str]
    waived: list[Any]


class EvidencePack(msgspec.Struct, kw_only=True):
    """Everything that proves the state of a dataset at a moment."""

    format: str
    dataset: str
    type: str
    description: str
    as_of: str
    created_at: str
    created_by: str
    version: EvidenceVersion
    log: ChainHead
    owners: list[str]
    tags: list[str]
    aliases: list[str]
    columns: list[EvidenceColumn]
    freshness: list[DatasetFreshness]
    runs: list[RunRecord]
    quality: list[QualityResult]
    findings: list[Finding]
    schema_history: list[SchemaVersion]
    contract_history: list[ContractVersion]
    waivers: list[WaiverRecord]
    graph: Trace
    complete: bool
    blind_spots: list[BlindSpot]


class ManifestFile(msgspec.Struct, kw_only=True, frozen=True):
    """A file of a pack with its size and hash."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, kw_only=True):
    """The list of files that the signature covers."""

    format: str
    dataset: str
    version: str
    as_of: str
    created_at: str
    log: ChainHead
    key: str
    files: list[ManifestFile]


class EvidenceRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A pack that was made for a dataset. `id` is the SHA-256 of its manifest."""

    id: str = ""
    dataset: str = ""
    version: str = ""
    as_of: str = ""
    created_at: str = ""
    created_by: str = ""
    entries: int = 0
    chain: str = ""
    key: str = ""
    complete: bool = False


class EvidenceRecords(msgspec.Struct, kw_only=True):
    """The recorded packs of a dataset, the latest first."""

    dataset: str
    packs: list[EvidenceRecord]


class PackFault(msgspec.Struct, kw_only=True, frozen=True):
    """A file of a pack that was altered, and the reason."""

    file: str
    reason: str


class PackVerification(msgspec.Struct, kw_only=True):
    """The result of a verification. `trusted`: the pack was signed with the expected key."""

    ok: bool
    trusted: bool
    id: str
    dataset: str
    version: str
    as_of: str
    key: str
    log: ChainHead | None
    files: int
    faults: list[PackFault]


def sign_files(pack: EvidencePack, files: Mapping[str, bytes], key: SigningKey) -> dict[str, bytes]:
    """Return the files of a pack with its manifest and the signature of the manifest."""
    manifest = Manifest(
        format=PACK_FORMAT,
        dataset=pack.dataset,
        version=pack.version.id,
        as_of=pack.as_of,
        created_at=pack.created_at,
        log=pack.log,
        key=key.public,
        files=[
            ManifestFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
            for name, content in sorted(files.items())
        ],
    )
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    return {**files, MANIFEST: content, SIGNATURE: key.sign(content)}


def write_pack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a pack to a new or empty folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidRequestError("--output", f"{folder} is not empty")
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as exc:
        raise InvalidRequestError("--output", f"{folder}: {exc.strerror}") from exc


def zip_pack(files: Mapping[str, bytes]) -> bytes:
    """Return the files of a pack as a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def read_pack(place: Path) -> dict[str, bytes]:
    """Return the files of a pack: a folder, or a zip archive of one."""
    try:
        if place.is_dir():
            paths = sorted(path for path in place.rglob("*") if not path.is_dir())
            return {path.relative_to(place).as_posix(): _read(path) for path in paths}
        with zipfile.ZipFile(place) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _LARGEST:
                raise InvalidRequestError("DIR", f"{place} is larger than {_LARGEST >> 20} MB")
            if len({entry.filename for entry in entries}) < len(entries):
                raise InvalidRequestError("DIR", f"{place} has two files with the same name")
            return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error) as exc:
        raise InvalidRequestError("DIR", f"{place} is neither a folder nor a zip file") from exc
    except OSError as exc:
        raise InvalidRequestError("DIR", f"{place}: {exc.strerror}") from exc


def _read(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST:
        raise InvalidRequestError("DIR", f"{path} is larger than {_LARGEST >> 20} MB")
    return path.read_bytes()


def verify_pack(files: Mapping[str, bytes], key: str | None = None) -> PackVerification:
    """Compare files with their manifest, and the manifest with its signature. Needs no store.

    Without `key`, the key in the manifest is used. This proves that the files belong together, but
    not who signed them.
    """
    wanted = None if key is None else parse_public_key(key, "--key")
    content = files.get(MANIFEST)
    if content is None:
        return _unsigned("", PackFault(file=MANIFEST, reason="is missing"))
    pack_id = hashlib.sha256(content).hexdigest()
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        stated = parse_public_key(manifest.key, "key")
    except (msgspec.DecodeError, InvalidRequestError):
        return _unsigned(
            pack_id, PackFault(file=MANIFEST, reason="was altered: it is not a manifest")
        )
    faults = _signature_faults(content, files.get(SIGNATURE), stated, wanted)
    faults += _file_faults(manifest, files)
    return PackVerification(
        ok=not faults,
        trusted=not faults and wanted is not None,
        id=pack_id,
        dataset=manifest.dataset,
        version=manifest.version,
        as_of=manifest.as_of,
        key=manifest.key,
        log=manifest.log,
        files=len(manifest.files),
        faults=faults,
    )


def _unsigned(pack_id: str, fault: PackFault) -> PackVerification:
    return PackVerification(
        ok=False,
        trusted=False,
        id=pack_id,
        dataset="",
        version="",
        as_of="",
        key="",
        log=None,
        files=0,
        faults=[fault],
    )


def _signature_faults(
    content: bytes, signature: bytes | None, stated: bytes, wanted: bytes | None
) -> list[PackFault]:
    if signature is None:
        return [PackFault(file=SIGNATURE, reason="is missing")]
    if wanted is not None and wanted != stated:
        return [PackFault(file=MANIFEST, reason="contains another key than the expected one")]
    if not is_signed(content, signature, stated):
        reason = f"was altered, or {SIGNATURE} was: the signature does not match"
        return [PackFault(file=MANIFEST, reason=reason)]
    return []


def _file_faults(manifest: Manifest, files: Mapping[str, bytes]) -> list[PackFault]:
    listed = {file.name: file for file in manifest.files}
    faults = []
    for name, file in sorted(listed.items()):
        content = files.get(name)
        if content is None:
            faults.append(PackFault(file=name, reason="is missing"))
        elif hashlib.sha256(content).hexdigest() != file.sha256:
            faults.append(PackFault(file=name, reason="was altered"))
    known = {*listed, MANIFEST, SIGNATURE}
    faults += [PackFault(file=n, reason="was added") for n in sorted(files) if n not in known]
    return faults

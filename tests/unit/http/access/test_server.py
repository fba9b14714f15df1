"""A server as it is deployed: host names, HTTPS, origins, expiry, the audit log and its own log."""

from __future__ import annotations

import datetime as dt
import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from tests.server import free_port
from tests.unit.http.test_app import TestClient, run_event

from downriver.errors import InvalidRequestError
from downriver.http import TlsFiles, build_app, check_bind
from downriver.service import Lineage
from downriver.store import AuditAct, AuditFilter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


# Host names and origins


def test_allowed_hosts_may_call_a_server_without_keys(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = TestClient(build_app(lineage)).get("/v1/me", headers={"Host": "marquez:5000"})
    assert refused.status_code == 401
    assert "DOWNRIVER_ALLOWED_HOSTS" in refused.json()["detail"]
    monkeypatch.setenv("DOWNRIVER_ALLOWED_HOSTS", "marquez, host.docker.internal")
    client = TestClient(build_app(lineage))
    statuses = {
        host: client.get("/v1/me", headers={"Host": host}).status_code
        for host in ("marquez:5000", "MARQUEZ", "host.docker.internal", "localhost", "evil.example")
    }
    assert statuses == {
        "marquez:5000": 200,
        "MARQUEZ": 200,
        "host.docker.internal": 200,
        "localhost": 200,
        "evil.example": 401,
    }
    page = {"Host": "marquez", "Origin": "https://evil.example"}
    assert client.get("/v1/me", headers=page).status_code == 401
    check_bind("0.0.0.0", free_port(), keyed=False)


@pytest.mark.parametrize("hosts", ["*", "http://marquez", "a/b", "user@host"])
def test_what_is_no_host_name_is_not_allowed(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch, hosts: str
) -> None:
    monkeypatch.setenv("DOWNRIVER_ALLOWED_HOSTS", hosts)
    with pytest.raises(InvalidRequestError, match="DOWNRIVER_ALLOWED_HOSTS"):
        build_app(lineage)


def test_other_origins_are_allowed_only_by_name(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = lineage.admin.create_key("page", "reader")
    sent = {"Origin": "https://portal.example", "Authorization": f"Bearer {key}"}
    closed = TestClient(build_app(lineage)).get("/v1/me", headers=sent)
    assert "access-control-allow-origin" not in closed.headers
    monkeypatch.setenv("DOWNRIVER_CORS_ORIGINS", "https://portal.example")
    client = TestClient(build_app(lineage))
    opened = client.get("/v1/me", headers=sent)
    assert opened.headers["access-control-allow-origin"] == "https://portal.example"
    assert "access-control-allow-credentials" not in opened.headers
    other = client.get("/v1/me", headers={**sent, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers
    asked = {"Origin": "https://portal.example", "Access-Control-Request-Method": "GET"}
    assert client.options("/v1/me", headers=asked).status_code == 200
    monkeypatch.setenv("DOWNRIVER_CORS_ORIGINS", "*")
    with pytest.raises(InvalidRequestError, match="DOWNRIVER_CORS_ORIGINS"):
        build_app(lineage)


# Keys


def test_a_key_expires(lineage: Lineage) -> None:
    key = lineage.admin.create_key("short", "reader", expires="1s")
    client = TestClient(build_app(lineage))
    sent = {"Authorization": f"Bearer {key}"}
    assert client.get("/v1/me", headers=sent).status_code == 200
    time.sleep(1.1)
    late = client.get("/v1/me", headers=sent)
    assert late.status_code == 401
    assert "expired" in late.json()["detail"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"expires": "soon"}, "expires"),
        ({"expires": "2020-01-01"}, "expires"),
        ({"namespaces": [""]}, "namespaces"),
        ({"namespaces": ["a\nb"]}, "namespaces"),
    ],
)
def test_keys_that_make_no_sense_are_refused(
    lineage: Lineage, options: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        lineage.admin.create_key("k", "reader", **options)  # type: ignore[arg-type]
    assert raised.value.field == field
    with pytest.raises(InvalidRequestError, match="whole store"):
        lineage.admin.create_key("k", "admin", namespaces=["a"])


def test_admins_create_list_and_revoke_keys(lineage: Lineage) -> None:
    with TestClient(build_app(lineage)) as client:
        first = client.post("/v1/keys", json={"name": "r", "role": "reader"})
        assert first.status_code == 400  # it would lock everybody out
        admin = client.post("/v1/keys", json={"name": "root", "role": "admin"}).json()["key"]
        sent = {"Authorization": f"Bearer {admin}"}
        assert client.get("/v1/keys").status_code == 401
        asked = {"name": "etl", "namespaces": ["etl"], "expires": "90d"}
        created = client.post("/v1/keys", json=asked, headers=sent)
        assert (created.status_code, created.headers["cache-control"]) == (201, "no-store")
        mine = {"Authorization": f"Bearer {created.json()['key']}"}
        assert client.get("/v1/me", headers=mine).json()["namespaces"] == ["etl"]
        listed = client.get("/v1/keys", headers=sent).json()["keys"]
        assert [(key["name"], key["namespaces"]) for key in listed] == [
            ("root", []),
            ("etl", ["etl"]),
        ]
        assert client.delete("/v1/keys/etl", headers=sent).status_code == 200
        assert client.get("/v1/me", headers=mine).status_code == 401
        assert client.delete("/v1/keys/nobody", headers=sent).status_code == 404
        acts = client.get("/v1/audit", headers=sent).json()["entries"]
        done = [(act["actor"], act["action"], act["target"]) for act in acts]
        assert ("root", "create key", "etl") in done
        assert ("root", "revoke key", "etl") in done
        assert ("local", "create key", "root") in done
        assert ("", "refused", "GET /v1/keys") in done


# Audit log


def test_equal_acts_of_a_minute_are_one_entry_and_old_ones_are_removed(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_AUDIT_ENTRIES", "100")
    for _ in range(3):
        lineage.admin.record([AuditAct("ana", "refused", "GET /v1/keys", "why", 2)])
    entries = lineage.admin.audit_log(AuditFilter(actor="ana"))
    assert [(entry.count, entry.detail) for entry in entries] == [(6, "why")]
    lineage.admin.record([AuditAct(f"key {n}", "refused") for n in range(1_000)])
    kept = lineage.admin.audit_log(AuditFilter(limit=10_000))
    assert 100 <= len(kept) < 400
    assert kept[0].actor == "key 999"


def test_a_write_and_its_entry_are_one_transaction(lineage: Lineage) -> None:
    event = json.dumps(run_event("clean", ["raw"], ["orders"])).encode()
    lineage.ingest([event])
    before = lineage.admin.audit_log(AuditFilter())
    assert [(e.actor, e.action, e.first_seq, e.last_seq) for e in before] == [
        ("local", "write", 1, 1)
    ]
    lineage.ingest([event, json.dumps(run_event("more", ["raw"], ["x"])).encode()])
    (entry,) = lineage.admin.audit_log(AuditFilter())
    assert (entry.count, entry.last_seq) == (3, 2)


# HTTPS and the log of the server


def _write_certificate(folder: Path) -> tuple[Path, Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_file, key_file


def test_https_with_a_certificate_and_no_secret_in_the_log(tmp_path: Path) -> None:
    cert_file, key_file = _write_certificate(tmp_path)
    store, port = tmp_path / "store", free_port()
    with Lineage.open(str(store)) as lineage:
        key = lineage.admin.create_key("etl", "writer")
    command = [sys.executable, "-m", "downriver", "serve", "--port", str(port), "--log-format=json"]
    files = ["--tls-cert", str(cert_file), "--tls-key", str(key_file), "--store", str(store)]
    process = subprocess.Popen([*command, *files], stderr=subprocess.PIPE, text=True)
    try:
        trusted = ssl.create_default_context(cafile=str(cert_file))
        url = f"https://localhost:{port}"
        _wait(f"{url}/healthz", trusted)
        known = _request(f"{url}/v1/me", key)
        with urllib.request.urlopen(known, timeout=30, context=trusted) as answer:
            assert answer.headers["Strict-Transport-Security"]
        unknown = _request(f"{url}/v1/me?key=dr_wrong_secret", "dr_wrong_secret")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(unknown, timeout=30, context=trusted)
    finally:
        process.terminate()
        _, printed = process.communicate(timeout=60)
    assert '"path": "/v1/me"' in printed
    assert key not in printed
    assert "dr_wrong_secret" not in printed


def _request(url: str, key: str) -> urllib.request.Request:
    return urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})


def _wait(url: str, context: ssl.SSLContext) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=2, context=context).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server did not start")


def test_tls_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    cert_file, key_file = _write_certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, other_key = _write_certificate(other)
    wrong = [
        (cert_file, None, "--tls-key"),
        (None, key_file, "--tls-cert"),
        (cert_file, tmp_path / "missing", "--tls-key"),
        (key_file, key_file, "--tls-cert"),
        (cert_file, other_key, "--tls-cert"),
    ]
    for certificate, key, field in wrong:
        with pytest.raises(InvalidRequestError) as raised:
            TlsFiles.parse(certificate, key)
        assert raised.value.field == field
    assert TlsFiles.parse(None, None) is None
    assert TlsFiles.parse(cert_file, key_file) == TlsFiles(cert_file, key_file)

"""Tokens of a real issuer process: which are accepted, with which role and namespaces."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.server import free_port

from downriver.errors import InvalidRequestError, UnauthorizedError
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

if os.environ.get("CI") != "true":
    pytest.importorskip("jwt", reason="PyJWT is not installed: NO TOKEN IS TESTED")
    pytest.importorskip("cryptography", reason="cryptography is missing: NO TOKEN IS TESTED")

from tests.unit.http.test_app import TestClient

from downriver.http.access import oidc
from downriver.http.access.oidc import ClaimNames, TokenVerifier

CLAIMS = ClaimNames("downriver_role", "downriver_namespaces")


class IssuerProcess:
    """The issuer, as its clients see it."""

    def __init__(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.oidc_issuer", str(port)],
            cwd=Path(__file__).parents[4],
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/keys", timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the issuer did not start")

    def token(self, kind: str = "rsa", **claims: Any) -> str:
        token: str = self.post("/token", {"kind": kind, "claims": claims})["token"]
        return token

    def post(self, path: str, content: Any) -> Any:
        request = urllib.request.Request(self.url + path, json.dumps(content).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture
def issuer() -> Iterator[IssuerProcess]:
    process = IssuerProcess()
    yield process
    process.stop()


@pytest.fixture
def client(
    issuer: IssuerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    monkeypatch.setenv("DOWNRIVER_OIDC_ISSUER", issuer.url)
    monkeypatch.setenv("DOWNRIVER_OIDC_AUDIENCE", "downriver")
    with Lineage.open(str(tmp_path)) as lineage, TestClient(build_app(lineage)) as opened:
        yield opened


def me(client: TestClient, token: str) -> Any:
    return client.get("/v1/me", headers={"Authorization": f"Bearer {token}"})


def test_role_and_namespaces_come_from_claims(client: TestClient, issuer: IssuerProcess) -> None:
    for kind in ("rsa", "ec"):
        token = issuer.token(kind, downriver_role="writer", downriver_namespaces=["team-a"])
        answer = me(client, token)
        assert answer.status_code == 200, answer.text
        assert answer.json()["role"] == "writer"
        assert answer.json()["namespaces"] == ["team-a"]
        assert answer.json()["key_id"] == "oidc:ana"
    highest = issuer.token(downriver_role=["other", "reader", "admin"])
    assert me(client, highest).json()["role"] == "admin"


def test_without_keys_a_server_with_an_issuer_still_needs_a_token(client: TestClient) -> None:
    assert client.get("/v1/me").status_code == 401
    assert client.get("/v1/me", headers={"Authorization": "Bearer dr_key"}).status_code == 401


INVALID = {
    "expired": {"exp": int(time.time()) - 3600},
    "not valid yet": {"nbf": int(time.time()) + 3600},
    "without an end": {"exp": None},
    "of another issuer": {"iss": "https://other.example"},
    "for another service": {"aud": "another"},
    "without an audience": {"aud": None},
    "without a subject": {"sub": None},
    "without a role": {"downriver_role": None},
    "with an unknown role": {"downriver_role": "root"},
    "of a limited admin": {"downriver_role": "admin", "downriver_namespaces": ["a"]},
    "with no namespace": {"downriver_namespaces": []},
}


def test_tokens_that_are_not_valid_are_refused(client: TestClient, issuer: IssuerProcess) -> None:
    for what, claims in INVALID.items():
        token = issuer.token(**{"downriver_role": "reader", **claims})
        answer = me(client, token)
        assert answer.status_code == 401, what
        assert token not in answer.text


def _part(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_forged_tokens_are_refused(client: TestClient, issuer: IssuerProcess) -> None:
    valid = issuer.token(downriver_role="reader")
    header, claims, signature = valid.split(".")
    key_id = json.loads(base64.urlsafe_b64decode(header + "=="))["kid"]
    admin = json.loads(base64.urlsafe_b64decode(claims + "==")) | {"downriver_role": "admin"}
    unsigned = f"{_part({'alg': 'none', 'kid': key_id})}.{_part(admin)}."
    altered = f"{header}.{_part(admin)}.{signature}"
    # The public key as the secret of HS256: accepted by a server that trusts the header.
    with urllib.request.urlopen(f"{issuer.url}/keys", timeout=30) as answer:
        public = answer.read()
    content = f"{_part({'alg': 'HS256', 'kid': key_id})}.{_part(admin)}"
    shared = f"{content}.{_part(hmac.new(public, content.encode(), hashlib.sha256).digest())}"
    for token in (unsigned, altered, shared, "a.b.c", "..", "x" * 20_000 + ".a.b"):
        assert me(client, token).status_code == 401, token[:40]
    assert me(client, valid).status_code == 200


def test_keys_are_read_again_when_they_rotate(issuer: IssuerProcess, monkeypatch) -> None:
    monkeypatch.setattr(oidc, "_RETRY_SECONDS", 0.0)
    verifier = TokenVerifier(issuer.url, "downriver", CLAIMS)
    verifier.verify(issuer.token(downriver_role="reader"))
    issuer.post("/rotate", {})
    assert verifier.verify(issuer.token(downriver_role="reader")).subject == "oidc:ana"


def test_known_keys_work_while_the_issuer_does_not_answer(
    issuer: IssuerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = TokenVerifier(issuer.url, "downriver", CLAIMS)
    token = issuer.token(downriver_role="reader")
    verifier.verify(token)
    issuer.post("/break", {})
    monkeypatch.setattr(oidc, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(oidc, "_RETRY_SECONDS", 0.0)
    assert verifier.verify(token).subject == "oidc:ana"
    monkeypatch.setattr(oidc, "_STALE_SECONDS", 0.0)
    with pytest.raises(UnauthorizedError, match="does not answer"):
        verifier.verify(token)


def test_an_answer_of_the_issuer_over_the_limit_is_not_read(
    issuer: IssuerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "_LARGEST", 100)
    verifier = TokenVerifier(issuer.url, "downriver", CLAIMS)
    with pytest.raises(UnauthorizedError):
        verifier.verify(issuer.token(downriver_role="reader"))


@pytest.mark.parametrize(
    ("issuer_url", "audience", "field"),
    [
        ("https://id.example", "", "DOWNRIVER_OIDC_AUDIENCE"),
        ("http://id.example", "downriver", "DOWNRIVER_OIDC_ISSUER"),
        ("file:///etc/passwd", "downriver", "DOWNRIVER_OIDC_ISSUER"),
    ],
)
def test_settings_that_are_not_safe_are_refused(
    monkeypatch: pytest.MonkeyPatch, issuer_url: str, audience: str, field: str
) -> None:
    monkeypatch.setenv("DOWNRIVER_OIDC_ISSUER", issuer_url)
    monkeypatch.setenv("DOWNRIVER_OIDC_AUDIENCE", audience)
    with pytest.raises(InvalidRequestError) as raised:
        TokenVerifier.from_settings()
    assert raised.value.field == field


def test_nested_claims_are_found(issuer: IssuerProcess) -> None:
    names = ClaimNames("realm_access.roles", "downriver_namespaces")
    verifier = TokenVerifier(issuer.url, "downriver", names)
    token = issuer.token(realm_access={"roles": ["writer", "offline_access"]})
    assert verifier.verify(token).role.name == "WRITER"

"""An OIDC issuer in a separate process: it signs tokens, rotates its keys and fails on demand.

`python -m tests.oidc_issuer PORT`
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa


def _make_keys(generation: int) -> dict[str, tuple[str, Any]]:
    """Return private keys by id, each with its algorithm."""
    return {
        f"rsa-{generation}": ("RS256", rsa.generate_private_key(65537, 2048)),
        f"ec-{generation}": ("ES256", ec.generate_private_key(ec.SECP256R1())),
    }


class Issuer(BaseHTTPRequestHandler):
    """Answers the two documents of an issuer, and requests of tests for tokens."""

    url = ""
    generation = 1
    keys = _make_keys(1)
    broken = False

    def do_GET(self) -> None:
        if Issuer.broken:
            self.send_error(500)
        elif self.path == "/.well-known/openid-configuration":
            self._answer({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        elif self.path == "/keys":
            self._answer({"keys": [*map(_public, self.keys)]})
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/token":
                self._answer({"token": self._sign(json.loads(body))})
            case "/rotate":
                Issuer.generation += 1
                Issuer.keys = _make_keys(Issuer.generation)
                self._answer({})
            case "/break":
                Issuer.broken = True
                self._answer({})

    def _sign(self, asked: dict[str, Any]) -> str:
        key_id = f"{asked.get('kind', 'rsa')}-{self.generation}"
        algorithm, key = self.keys[key_id]
        now = int(time.time())
        usual = {"iss": self.url, "aud": "downriver", "sub": "ana", "iat": now, "exp": now + 300}
        claims = {**usual, **asked["claims"]}
        stated = {name: value for name, value in claims.items() if value is not None}
        token: str = jwt.encode(stated, key, algorithm, headers={"kid": key_id})
        return token

    def _answer(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


def _public(key_id: str) -> dict[str, Any]:
    algorithm, key = Issuer.keys[key_id]
    kind = jwt.get_algorithm_by_name(algorithm)
    stated = json.loads(kind.to_jwk(key.public_key()))
    return {**stated, "kid": key_id, "alg": algorithm, "use": "sig"}


if __name__ == "__main__":
    port = int(sys.argv[1])
    Issuer.url = f"http://127.0.0.1:{port}"
    ThreadingHTTPServer(("127.0.0.1", port), Issuer).serve_forever()

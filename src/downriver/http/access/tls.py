"""The certificate and private key of a server that answers HTTPS itself."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path


class TlsFiles(NamedTuple):
    """Two PEM files that belong together."""

    certificate: Path
    key: Path

    @classmethod
    def parse(cls, certificate: Path | None, key: Path | None) -> TlsFiles | None:
        """Return the files of the two options, or None without them. Raise if they are unusable."""
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            missing = "--tls-cert" if certificate is None else "--tls-key"
            raise InvalidRequestError(
                missing, "missing: a certificate and its key are used together"
            )
        for option, path in (("--tls-cert", certificate), ("--tls-key", key)):
            try:
                path.open("rb").close()
            except OSError as exc:
                raise InvalidRequestError(option, f"{path}: {exc.strerror}") from exc
        try:
            # An encrypted key would ask for its password on the terminal of the server.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key, password=lambda: b"")
        except (ssl.SSLError, ValueError) as exc:
            raise InvalidRequestError(
                "--tls-cert", f"{certificate} and {key} are not a certificate and its key: {exc}"
            ) from exc
        return cls(certificate, key)

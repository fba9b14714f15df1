"""The Ed25519 key with which a store signs evidence packs and checkpoints of its log."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from downriver import settings
from downriver.errors import InvalidRequestError, MissingDependencyError
from downriver.store.location import find_home

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from downriver.store import Store

FILE = "signing.key"
_PREFIX = "ed25519:"
_KEY_BYTES = 32


class SigningKey(NamedTuple):
    """A private key, and its public key as text: `ed25519:` and base64."""

    private: Ed25519PrivateKey
    public: str

    def sign(self, content: bytes) -> bytes:
        """Return the signature of some bytes: 64 bytes."""
        return self.private.sign(content)


def key_path(store: Store) -> Path:
    """Return where the key is: DOWNRIVER_SIGNING_KEY, else `signing.key` beside the store."""
    given = settings.read_text(settings.SIGNING_KEY)
    if given:
        return Path(given).expanduser()
    location = store.location
    if location is None or "://" in location:
        return find_home() / FILE
    path = Path(location)
    return (path.parent if path.suffix == ".db" else path) / FILE


def load_signing_key(path: Path) -> SigningKey:
    """Return the key of a file. A missing file is created, readable by its owner only."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as exc:
        raise MissingDependencyError("cryptography", "evidence") from exc
    private: object
    try:
        private = serialization.load_pem_private_key(_read_or_create(path), password=None)
    except (ValueError, TypeError) as exc:
        raise InvalidRequestError(
            settings.SIGNING_KEY.name, f"{path} is not a private key"
        ) from exc
    if not isinstance(private, Ed25519PrivateKey):
        raise InvalidRequestError(settings.SIGNING_KEY.name, f"{path} is not an Ed25519 key")
    raw = private.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    return SigningKey(private, _PREFIX + base64.b64encode(raw).decode())


def _read_or_create(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return _create(path)
    except OSError as exc:
        raise InvalidRequestError(settings.SIGNING_KEY.name, f"{path}: {exc.strerror}") from exc


def _create(path: Path) -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    content = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(content)
        try:
            os.link(temporary, path)  # fails if another process created the key meanwhile
        except FileExistsError:
            content = path.read_bytes()
        finally:
            temporary.unlink()
    except OSError as exc:
        raise InvalidRequestError(settings.SIGNING_KEY.name, f"{path}: {exc.strerror}") from exc
    return content


def parse_public_key(text: str, field: str) -> bytes:
    """Return the 32 bytes of a public key that is written `ed25519:BASE64`."""
    try:
        raw = base64.b64decode(text.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidRequestError(field, f"{text!r} is not a public key ({_PREFIX}…)") from exc
    if len(raw) != _KEY_BYTES:
        raise InvalidRequestError(field, f"{text!r} is not a public key ({_PREFIX}…)")
    return raw


def is_signed(content: bytes, signature: bytes, public: bytes) -> bool:
    """Return whether a signature is that of the content by the owner of a public key."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as exc:
        raise MissingDependencyError("cryptography", "evidence") from exc
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except InvalidSignature:
        return False
    return True

"""Bearer tokens of an OIDC issuer: signed JWTs, verified with the issuer's public keys."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from downriver import settings
from downriver.errors import InvalidRequestError, MissingDependencyError, UnauthorizedError
from downriver.http.access.hosts import is_loopback
from downriver.model.access import Scope
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("downriver")

# Signatures with a public key only: neither `none` nor HS256, whose key would be a shared secret.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
_TIMEOUT = 5.0  # seconds for one request to the issuer
_LARGEST = 2**20  # bytes of one answer of the issuer
_MOST_KEYS = 100
_FRESH_SECONDS = 600.0  # after which keys are read again
_STALE_SECONDS = 86_400.0  # maximum age of known keys while the issuer does not answer
_RETRY_SECONDS = 10.0  # between two attempts to find an unknown key
_LEEWAY = 30  # allowed difference of clocks in seconds
_LONGEST_TOKEN = 16_384
_PARTS = 3  # of a signed token: header, claims, signature


class TokenIdentity(NamedTuple):
    """The claims of a valid token."""

    subject: str
    role: KeyRole
    scope: Scope | None
    expires_at: int  # µs since the epoch


class ClaimNames(NamedTuple):
    """The claims with the role and the namespaces. Dots name a claim inside another."""

    role: str
    namespaces: str


def is_token(secret: str) -> bool:
    """Return whether a bearer secret has the form of a signed token. API keys have no dots."""
    return secret.count(".") == _PARTS - 1


class TokenVerifier:
    """Verifies tokens of one issuer for one audience. Thread-safe."""

    def __init__(self, issuer: str, audience: str, claims: ClaimNames) -> None:
        self._issuer = issuer
        self._audience = audience
        self._claims = claims
        self._keys = IssuerKeys(issuer)
        self._jwt = _import_jwt()

    @classmethod
    def from_settings(cls) -> TokenVerifier | None:
        """Return the verifier of the issuer in the settings, or None."""
        issuer = settings.read_text(settings.OIDC_ISSUER)
        audience = settings.read_text(settings.OIDC_AUDIENCE)
        if not issuer:
            return None
        if not audience:
            raise InvalidRequestError(
                settings.OIDC_AUDIENCE.name,
                "missing: without it, tokens that the issuer made for other services would be"
                " accepted",
            )
        if not is_safe_url(issuer):
            raise InvalidRequestError(
                settings.OIDC_ISSUER.name, f"{issuer!r} is not an https:// URL"
            )
        names = ClaimNames(
            settings.read_text(settings.OIDC_ROLE_CLAIM),
            settings.read_text(settings.OIDC_NAMESPACE_CLAIM),
        )
        return cls(issuer, audience, names)

    def verify(self, token: str) -> TokenIdentity:
        """Return the identity in a valid token, or raise."""
        if len(token) > _LONGEST_TOKEN:
            raise UnauthorizedError(f"the token is longer than {_LONGEST_TOKEN} characters")
        claims = self._decode(token)
        role = self._role(claims)
        scope = self._scope(claims)
        if role is KeyRole.ADMIN and scope is not None:
            raise UnauthorizedError(
                f"the token has the role admin and the claim {self._claims.namespaces!r}; an admin"
                " cannot be limited to namespaces"
            )
        return TokenIdentity(
            f"oidc:{claims['sub']}"[:200], role, scope, int(claims["exp"] * 1_000_000)
        )

    def _decode(self, token: str) -> dict[str, Any]:
        try:
            header = self._jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in ALGORITHMS:
                raise UnauthorizedError(
                    f"the token is signed with {str(algorithm)[:20]!r}; accepted are "
                    f"{', '.join(ALGORITHMS)}"
                )
            key = self._keys.find(header.get("kid"), algorithm)
            claims: dict[str, Any] = self._jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except self._jwt.PyJWTError as exc:
            raise UnauthorizedError(f"the token is not valid: {exc}") from exc
        return claims

    def _role(self, claims: Mapping[str, Any]) -> KeyRole:
        stated = _texts(_claim(claims, self._claims.role))
        roles = [role for role in KeyRole if role.name.lower() in stated]
        if not roles:
            raise UnauthorizedError(
                f"the token has no role: its claim {self._claims.role!r} must be reader, writer or"
                " admin"
            )
        return max(roles)

    def _scope(self, claims: Mapping[str, Any]) -> Scope | None:
        stated = _claim(claims, self._claims.namespaces)
        if stated is None:
            return None
        patterns = _texts(stated)
        if not patterns:
            raise UnauthorizedError(
                f"the claim {self._claims.namespaces!r} of the token names no namespace"
            )
        return Scope(tuple(sorted(patterns)))


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its whole name, or by its path of nested claims."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _texts(value: Any) -> set[str]:
    values = value if isinstance(value, list) else [value]
    return {text for text in values if isinstance(text, str) and text}


class IssuerKeys:
    """The public keys of an issuer, read on first use and again when they change."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: list[Any] = []
        self._read_at = self._tried_at = float("-inf")
        self._lock = threading.Lock()

    def find(self, key_id: str | None, algorithm: str) -> Any:
        """Return the key of a token, or raise."""
        key = self._find(key_id, algorithm)
        # An unknown key may be a new one. A token with a known key needs no request.
        if key is None or time.monotonic() - self._read_at > _FRESH_SECONDS:
            self._refresh(wait=key is None)
            key = self._find(key_id, algorithm)
        if time.monotonic() - self._read_at > _STALE_SECONDS:
            raise UnauthorizedError("tokens cannot be verified: the issuer does not answer")
        if key is None:
            raise UnauthorizedError("the token is signed with a key that the issuer does not list")
        return key

    def _find(self, key_id: str | None, algorithm: str) -> Any:
        fitting = [
            key
            for key in self._keys
            if key.algorithm_name == algorithm and (key_id is None or key.key_id == key_id)
        ]
        # Without an id, the key is known only if it is the only one.
        return fitting[0].key if len(fitting) == 1 or (fitting and key_id is not None) else None

    def _refresh(self, *, wait: bool) -> None:
        """Read the keys at most every few seconds, even if many tokens name unknown keys."""
        if not self._lock.acquire(blocking=wait):
            return
        try:
            if time.monotonic() - self._tried_at > _RETRY_SECONDS:
                self._tried_at = time.monotonic()
                self._keys = self._read()
                self._read_at = time.monotonic()
        except (OSError, ValueError) as exc:
            log.warning("the keys of the OIDC issuer %s cannot be read: %s", self._issuer, exc)
        finally:
            self._lock.release()

    def _read(self) -> list[Any]:
        configuration = _fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if configuration.get("issuer") != self._issuer:
            raise ValueError(f"its configuration names {configuration.get('issuer')!r} as issuer")
        url = configuration.get("jwks_uri")
        if not isinstance(url, str):
            raise ValueError("its configuration has no jwks_uri")
        if not is_safe_url(url):
            raise ValueError(f"its jwks_uri {url!r} is not an https:// URL")
        listed = _fetch(url).get("keys")
        if not isinstance(listed, list):
            raise ValueError("its list of keys is not valid")
        return _parse_keys(listed[:_MOST_KEYS])


def _parse_keys(listed: list[Any]) -> list[Any]:
    """Return the public keys for signatures. Keys of unknown types are left out."""
    jwt = _import_jwt()
    keys = []
    for stated in listed:
        if not isinstance(stated, dict) or stated.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(stated)
        except jwt.PyJWTError as exc:
            log.warning("a key of the OIDC issuer is not supported: %s", exc)
            continue
        if key.algorithm_name in ALGORITHMS:
            keys.append(key)
    return keys


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a key must come from the address that the issuer states."""

    def redirect_request(self, *args: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects())


def _fetch(url: str) -> dict[str, Any]:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310
    with _opener.open(request, timeout=_TIMEOUT) as answer:
        body = answer.read(_LARGEST + 1)
    if len(body) > _LARGEST:
        raise ValueError(f"{url}: more than {_LARGEST} bytes")
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError(f"{url}: not a JSON object")
    return content


def is_safe_url(url: str) -> bool:
    """Return whether a URL is https, or http on this machine (for trials)."""
    parts = urlsplit(url)
    if parts.scheme == "http":
        return is_loopback(parts.hostname or "")
    return parts.scheme == "https" and bool(parts.hostname)


def _import_jwt() -> Any:
    try:
        import cryptography  # noqa: F401 — PyJWT needs it for signatures with public keys
        import jwt
    except ModuleNotFoundError as exc:
        raise MissingDependencyError("PyJWT[crypto]", "oidc") from exc
    return jwt

"""Functions that hide the value they are given: hashes, masks, encryption."""

from __future__ import annotations

from sqlglot import exp

_NAMES = frozenset(
    {
        "md5", "md5_hex", "md5_digest", "sha", "sha1", "sha2", "sha256", "sha512", "sha1_hex",
        "sha2_hex", "sha2_binary", "hash", "xxhash64", "murmurhash3_32", "farm_fingerprint",
        "hashbytes", "crc32", "mask", "mask_hash", "mask_first_n", "mask_last_n",
        "mask_show_first_n", "mask_show_last_n", "anonymize", "encrypt", "aes_encrypt", "tokenize",
        "redact", "fnv_hash", "siphash64", "cityhash64", "standard_hash", "checksum", "digest",
    }
)  # fmt: skip
# Which of them have a class of their own differs between the versions of sqlglot.
_KINDS = tuple(
    kind
    for name in ("MD5", "MD5Digest", "SHA", "SHA2", "SHA1Digest", "SHA2Digest", "FarmFingerprint")
    if (kind := getattr(exp, name, None)) is not None
)


def masks(node: exp.Expression) -> bool:
    """Return whether what goes into a function cannot be seen in what comes out."""
    if isinstance(node, _KINDS):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).casefold() in _NAMES

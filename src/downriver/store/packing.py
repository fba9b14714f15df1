"""Bytes at rest: zstd where that is shorter."""

from __future__ import annotations

import threading

import zstandard

_MAGIC = b"\x28\xb5\x2f\xfd"
_WORTH_PACKING = 200
_per_thread = threading.local()  # zstd contexts are not thread-safe


def pack(raw: bytes) -> bytes:
    """Return the bytes to store for `raw`."""
    if len(raw) < _WORTH_PACKING:
        return raw
    packed: bytes = _compressor().compress(raw)
    return packed


def unpack(stored: bytes) -> bytes | None:
    """Return what was packed, or None when the stored bytes are damaged."""
    if not stored.startswith(_MAGIC):
        return stored
    try:
        raw: bytes = _decompressor().decompress(stored)
    except zstandard.ZstdError:
        return None
    return raw


def _compressor() -> zstandard.ZstdCompressor:
    if not hasattr(_per_thread, "compressor"):
        _per_thread.compressor = zstandard.ZstdCompressor(level=1)
    compressor: zstandard.ZstdCompressor = _per_thread.compressor
    return compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    if not hasattr(_per_thread, "decompressor"):
        _per_thread.decompressor = zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor = _per_thread.decompressor
    return decompressor

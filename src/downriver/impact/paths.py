"""Paths of files as different tools tell them."""

from __future__ import annotations

from pathlib import PurePosixPath


def same_file(one: str, other: str) -> bool:
    """Tell whether two paths may be one file, seen from two folders."""
    shorter, longer = sorted(
        (tuple(PurePosixPath(path).parts) for path in (one, other)), key=lambda parts: len(parts)
    )
    return longer[len(longer) - len(shorter) :] == shorter

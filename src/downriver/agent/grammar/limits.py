"""How long a text may be. The time for a sentence can grow with the square of its length."""

from __future__ import annotations

from downriver.errors import InvalidRequestError

LONGEST_TEXT = 20_000  # characters
LONGEST_LINE = 2_000


def check_text(text: str, field: str) -> None:
    """Raise if a text is too long to be read."""
    if len(text) > LONGEST_TEXT:
        raise InvalidRequestError(field, f"longer than {LONGEST_TEXT:,} characters")


def check_lines(text: str, field: str) -> None:
    """Raise if a text or one of its lines is too long to be read."""
    check_text(text, field)
    if any(len(line) > LONGEST_LINE for line in text.splitlines()):
        raise InvalidRequestError(field, f"a line is longer than {LONGEST_LINE:,} characters")

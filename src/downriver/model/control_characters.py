"""Makes control characters in untrusted names visible.

A terminal interprets control characters. Without an escape, a name could move the cursor, change
colours, rename the window or reverse letters, and the output would differ from the stored text.
"""

from __future__ import annotations

import re

BIDIRECTIONAL = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINE_SEPARATORS = (0x2028, 0x2029)
_C0_AND_C1 = (*range(0x20), 0x7F, *range(0x80, 0xA0))
_SURROGATES = range(0xD800, 0xE000)
_SHORT = {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r"}


def _escape(code: int) -> str:
    return _SHORT.get(code) or (rf"\x{code:02x}" if code < 0x100 else rf"\u{code:04x}")


_ALL = (*_C0_AND_C1, *_LINE_SEPARATORS, *BIDIRECTIONAL, *_SURROGATES)
_IN_A_LINE = {code: _escape(code) for code in _ALL}
_IN_A_TEXT = {code: text for code, text in _IN_A_LINE.items() if chr(code) not in "\n\t"}
# JSON escapes the characters below U+0020 itself, and the line breaks between its values stay.
_IN_JSON = {code: rf"\u{code:04x}" for code in _ALL if code >= 0x7F}
_NOT_IN_JSON = re.compile(f"[{re.escape(''.join(map(chr, _IN_JSON)))}]")


def escape_line(text: str) -> str:
    r"""Return text of one line, with control characters as `\x1b`, `\u202e` or `\n`."""
    return text if text.isprintable() else text.translate(_IN_A_LINE)


def escape_text(text: str) -> str:
    r"""Return text of any number of lines, with control characters as `\x1b` or `\u202e`."""
    return text.translate(_IN_A_TEXT)


def escape_json(text: str) -> str:
    """Return JSON of the same value, with control characters as JSON escapes."""
    return _NOT_IN_JSON.sub(lambda match: _IN_JSON[ord(match.group())], text)

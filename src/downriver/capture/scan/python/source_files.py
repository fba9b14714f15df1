"""Python files of a repository. A file that many others import is parsed once."""

from __future__ import annotations

import ast
import re
import warnings
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING

from downriver.capture.code.python_syntax import parse_python
from downriver.capture.scan.python.io_calls import enclosing_functions, list_io_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.python.io_calls import IoCall

# A file without any of these words uses none of the supported libraries.
_CONCERNS_DATA = re.compile(
    r"spark|pandas|airflow|dagster|kedro|luigi|\bdlt\b|sqlmesh|feast|delta|sql|select\s|insert\s|execute|cursor|boto3|google\.cloud"
    r"|_object\(|upload|download|\bread_|\bwrite_|\bload_|\bsave_|\binsert_|\bcopy_|\bopen\(",
    re.IGNORECASE,
)
_MOST_KEPT = 8_000_000  # characters of source; their trees take about 50 times as many bytes


class PythonFile:
    """A Python file. Its attributes are not changed after they are read."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree. Raises SyntaxError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in their strings do not matter here
            return parse_python(self.source, self.path)

    @cached_property
    def calls(self) -> list[IoCall]:
        """The calls that read or write data by their names."""
        return list_io_calls(self.tree)

    @cached_property
    def functions(self) -> dict[ast.Call, list[ast.AST]]:
        """The functions around each call, the innermost first."""
        return enclosing_functions(self.tree)

    @cached_property
    def concerns_data(self) -> bool:
        """Whether the source contains a word of a library that reads or writes data."""
        return _CONCERNS_DATA.search(self.source) is not None


class PythonFiles:
    """The files that were imported last, up to a size."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, PythonFile] = OrderedDict()
        self._size = 0

    def get(self, path: str, read: Callable[[], str | None]) -> PythonFile | None:
        """Return a file; `read` returns its source, or None when it cannot be read."""
        known = self._kept.get(path)
        if known is not None:
            self._kept.move_to_end(path)
            return known
        source = read()
        if source is None:
            return None
        file = self._kept[path] = PythonFile(path, source)
        self._size += len(source)
        while self._size > _MOST_KEPT and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped.source)
        return file

    def find(self, path: str, source: str) -> PythonFile:
        """Return a file with this source, which is kept only if another file imports it."""
        known = self._kept.get(path)
        return known if known is not None and known.source == source else PythonFile(path, source)

"""Reads Python code without running it: datasets it reads and writes, columns it names."""

from downriver.capture.scan.python.module import read_module
from downriver.capture.scan.python.recorder import FileContext, FileText
from downriver.capture.scan.python.source_files import PythonFile, PythonFiles

__all__ = ["FileContext", "FileText", "PythonFile", "PythonFiles", "read_module"]

"""Reads Python code without running it: datasets it reads and writes, columns it names."""

from downriver.capture.scan.python.module import read_module
from downriver.capture.scan.python.recorder import FileContext, FileText

__all__ = ["FileContext", "FileText", "read_module"]

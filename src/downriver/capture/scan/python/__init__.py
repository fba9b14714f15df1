"""Python code read without running it: which data it reads, writes and names."""

from downriver.capture.scan.python.module import read_module
from downriver.capture.scan.python.recorder import FileContext, FileText

__all__ = ["FileContext", "FileText", "read_module"]

"""A repository read without running it: SQL, Python, notebooks, dbt and Feast files."""

from downriver.capture.scan.repository import Repository
from downriver.capture.scan.scanner import Names, Problem, ScanResult, scan_repository, scan_text

__all__ = ["Names", "Problem", "Repository", "ScanResult", "scan_repository", "scan_text"]

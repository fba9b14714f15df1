"""A repository read without running it: SQL, Python, notebooks, dbt and Feast files."""

from downriver.capture.scan.dbt_project import find_projects
from downriver.capture.scan.registration import (
    Registration,
    make_job,
    may_be_at,
    read_code,
    ways_to_find,
)
from downriver.capture.scan.repository import Repository
from downriver.capture.scan.scanner import Names, Problem, ScanResult, scan_repository, scan_text

__all__ = [
    "Names",
    "Problem",
    "Registration",
    "Repository",
    "ScanResult",
    "find_projects",
    "make_job",
    "may_be_at",
    "read_code",
    "scan_repository",
    "scan_text",
    "ways_to_find",
]

"""dbt projects that were not compiled, read from their own files."""

from downriver.capture.scan.dbt.project import DbtProject, find_projects, project_of
from downriver.capture.scan.dbt.properties import PropertyFile, is_property_file

__all__ = ["DbtProject", "PropertyFile", "find_projects", "is_property_file", "project_of"]

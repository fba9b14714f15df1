"""Files, or parts of them, that could not be read: typed, so that rules can decide."""

from __future__ import annotations

from enum import Enum

import msgspec


class UnreadReason(str, Enum):
    """Why a file or statement was not read completely. The value is the name in JSON."""

    # SQL
    SQL_SYNTAX = "sql_syntax"  # no dialect parses the statement
    QUERY_SYNTAX = "query_syntax"  # no dialect parses the statement, a query that alters nothing
    SQL_STATEMENT = "sql_statement"  # parsed, but its effect on tables is not modelled
    DYNAMIC_SQL = "dynamic_sql"  # the statement is built at run time
    PROCEDURE_CALL = "procedure_call"  # the body of the procedure is not in the file
    FOREIGN_CODE = "foreign_code"  # a routine body in another language than SQL
    TEMPLATE = "template"  # Jinja or a placeholder whose value is unknown
    INCLUDE = "include"  # runs another file, as in psql's \\i
    # Other files
    PYTHON_SYNTAX = "python_syntax"
    NOTEBOOK_SYNTAX = "notebook_syntax"
    YAML_SYNTAX = "yaml_syntax"
    DYNAMIC_CODE = "dynamic_code"  # code whose tables, columns or SQL are known only at run time
    MIGRATION_CODE = "migration_code"  # a migration in a form that is not read, as Liquibase XML
    SETTING = "setting"  # a dbt setting or package whose effect is not known
    FILE_TYPE = "file_type"  # a type of file that is not read, with lineage or DDL in its text
    # Any file
    ENCODING = "encoding"  # not UTF-8, nor UTF-16 with a byte order mark
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"  # nested too deeply
    TOO_SLOW = "too_slow"  # takes more processor time than is allowed
    READER_FAULT = "reader_fault"  # an error in Downriver itself
    NOT_FOUND = "not_found"  # removed while reading, or outside the repository
    SKIPPED_FOLDER = "skipped_folder"  # in a folder that a scan leaves out, as build/
    SYMLINK = "symlink"
    SUBMODULE = "submodule"
    UNKNOWN_JOB = "unknown_job"  # read, but no job in the catalog has this code
    UNKNOWN_TABLE = "unknown_table"  # read, but the catalog does not have the table
    BASE_UNREAD = "base_unread"  # the version before the change was not read: nothing to compare

    @property
    def may_alter_tables(self) -> bool:
        """Whether the unread part may change, rename or drop a table."""
        return self not in _HARMLESS

    @property
    def next_step(self) -> str:
        """What the user can do next."""
        rule = "unread_migrations" if self.may_alter_tables else "unread_files"
        return _NEXT_STEPS.get(self, f"Review the file, then add a waiver for rule {rule}.")


_HARMLESS = frozenset(
    {
        UnreadReason.QUERY_SYNTAX,
        UnreadReason.YAML_SYNTAX,
        UnreadReason.DYNAMIC_CODE,
        UnreadReason.SETTING,
        UnreadReason.NOT_FOUND,
        UnreadReason.SKIPPED_FOLDER,
        UnreadReason.SUBMODULE,
        UnreadReason.UNKNOWN_JOB,
        UnreadReason.BASE_UNREAD,
    }
)
_NEXT_STEPS = {
    UnreadReason.SQL_SYNTAX: "Correct the statement, or name its dialect with --dialect.",
    UnreadReason.QUERY_SYNTAX: "Correct the query, or name its dialect with --dialect.",
    UnreadReason.DYNAMIC_SQL: "Replace the dynamic SQL with the statement itself, or add a waiver.",
    UnreadReason.PROCEDURE_CALL: "Put the procedure's statements into the file, or add a waiver.",
    UnreadReason.TEMPLATE: "Render the file and check it with --ddl, or add a waiver.",
    UnreadReason.INCLUDE: "Check the included file with --ddl, or add a waiver.",
    UnreadReason.PYTHON_SYNTAX: "Correct the syntax error.",
    UnreadReason.NOTEBOOK_SYNTAX: "Save the notebook again as JSON.",
    UnreadReason.YAML_SYNTAX: "Correct the syntax error.",
    UnreadReason.SETTING: "Compare the output of `dbt compile` before and after, or add a waiver.",
    UnreadReason.ENCODING: "Save the file as UTF-8.",
    UnreadReason.READER_FAULT: "Report the error to Downriver; review the file, or add a waiver.",
    UnreadReason.TOO_LARGE: "Split the file, or add a waiver.",
    UnreadReason.TOO_SLOW: "Split the file, raise DOWNRIVER_CODE_SECONDS, or add a waiver.",
    UnreadReason.UNKNOWN_TABLE: "Correct the name, or capture the jobs that use the table.",
    UnreadReason.BASE_UNREAD: "Review the change by hand.",
    UnreadReason.UNKNOWN_JOB: "Capture the job with `downriver capture`, then run the gate again.",
}


class Unread(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A file, or one place in it, that could not be read. `detail` quotes the text or the error.

    `line` is 0 for the whole file. `path` is relative to what was read; it is empty for
    SQL that was sent without a file.
    """

    path: str
    line: int
    reason: UnreadReason
    detail: str = ""

    @property
    def may_alter_tables(self) -> bool:
        """Whether the unread part may change, rename or drop a table."""
        return self.reason.may_alter_tables

    @property
    def location(self) -> str:
        """The place as `file:line`, as far as it is known."""
        if not self.path:
            return f"line {self.line}" if self.line else "the statement"
        return f"{self.path}:{self.line}" if self.line else self.path

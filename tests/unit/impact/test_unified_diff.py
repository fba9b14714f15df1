"""A diff, as people paste it, becomes the texts before and after."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downriver.errors import InvalidRequestError
from downriver.impact import FilePair, UploadedFiles, apply_diff

LINES = st.lists(st.sampled_from(["select a", "from b", "", "  where c", "-- note"]), max_size=12)


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(before=LINES, after=LINES)
def test_a_diff_leads_from_the_text_before_to_the_text_after(
    before: list[str], after: list[str]
) -> None:
    diff = "\n".join(difflib.unified_diff(before, after, "a/m.sql", "b/m.sql", lineterm="", n=1))
    if diff:
        pairs = apply_diff(diff, UploadedFiles({"m.sql": text_of(before)}))
        assert pairs == [FilePair("m.sql", text_of(before), text_of(after))]


def test_new_removed_and_renamed_files() -> None:
    diff = """diff --git a/new.sql b/new.sql
new file mode 100644
--- /dev/null
+++ b/new.sql
@@ -0,0 +1 @@
+select 1
--- a/old.sql
+++ /dev/null
@@ -1 +0,0 @@
-select 2
--- a/one.sql
+++ b/two.sql
@@ -1 +1 @@
-select 3
+select 4
\\ No newline at end of file
"""
    code = UploadedFiles({"old.sql": "select 2\n", "one.sql": "select 3\n"})
    assert apply_diff(diff, code) == [
        FilePair("new.sql", None, "select 1\n"),
        FilePair("old.sql", "select 2\n", None),
        FilePair("one.sql", "select 3\n", None),
        FilePair("two.sql", None, "select 4\n"),
    ]


def test_a_diff_of_an_older_version_fits_where_its_lines_are_now() -> None:
    diff = "--- a/m.sql\n+++ b/m.sql\n@@ -1,2 +1,2 @@\n select a\n-from b\n+from c\n"
    code = UploadedFiles({"m.sql": "-- moved\n-- down\nselect a\nfrom b\n"})
    assert apply_diff(diff, code)[0].head == "-- moved\n-- down\nselect a\nfrom c\n"


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        ("alter table t drop column c", "no file"),
        ("--- a/x.sql\n+++ b/x.sql\n@@ -1 +1 @@\n-a\n+b\n", "x.sql is not in"),
        ("--- a/m.sql\n+++ b/m.sql\n@@ -1 +1 @@\n-other\n+b\n", "m.sql:1"),
        ("--- a/m.sql\n+++ b/m.sql\n@@ -1,3 +1,3 @@\n select a\n", "fewer lines"),
    ],
)
def test_a_diff_that_does_not_fit_is_refused_with_its_place(diff: str, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        apply_diff(diff, UploadedFiles({"m.sql": "select a\n"}))

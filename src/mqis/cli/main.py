"""The ``mqis`` command: its subcommands, and the handling of errors."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from io import FileIO, TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mqis.cli.completing import VARIABLE, complete
from mqis.cli.failures import TRACEBACK, is_interrupt, report
from mqis.cli.registry import COMMAND_GROUPS, COMMANDS, CommandEntry
from mqis.wire.errors import MqisError

#: The width of the column of names, the same in every group.
_NAME_WIDTH = max(map(len, COMMANDS))


class _Commands(TyperGroup):
    """The commands of the registry, each imported when it is used.

    The modules that talk to servers take longer to load than many commands take to run. The help
    and the completion of command names therefore come from the registry alone.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            for name in COMMANDS:  # so that a similar name can be suggested
                self.commands.setdefault(name, self)
            return None
        found = _load(COMMANDS[cmd_name])
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(cmd_name)(found)
            found = alone
        from mqis.cli.localpaths import refuse_uris  # noqa: PLC0415 -- the help needs none of it

        command = typer.main.get_command(found)
        command.name = cmd_name
        refuse_uris(cmd_name, command)
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, typer.Abort) as error:  # else typer ends without a word
            if not is_interrupt(error):
                raise
            raise typer.Exit(report(error)) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes plain text: loading rich's panels takes longer than all the rest."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for title, group in COMMAND_GROUPS.items():
            with formatter.section(title):
                rows = [(name.ljust(_NAME_WIDTH), text) for name, (_, text) in group.items()]
                formatter.write_dl(rows)
        with formatter.section("Options"):
            records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
            formatter.write_dl([record for record in records if record])
        self.format_epilog(ctx, formatter)


def _load(entry: CommandEntry) -> Any:
    """Imports a command. What modules define stays, so searching it for garbage is time lost."""
    gc.disable()
    try:
        module = import_module(entry.module)
    finally:
        gc.freeze()
        gc.enable()
    return next(getattr(module, name) for name in entry.attributes if hasattr(module, name))


app = typer.Typer(
    name="mqis",
    cls=_Commands,
    help="The MSMQ directory enterprise: directory, replication, discovery, routing.",
    epilog="'mqis COMMAND --help' explains a command and its options.",
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from mqis.cli.version import version_line  # noqa: PLC0415 -- may ask git

        print(version_line())
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the versions of mqis, Python and Spark, and exit.",
        ),
    ] = False,
) -> None: ...


def main() -> None:
    """Runs the command, and turns every error into one line and an exit status."""
    if VARIABLE in os.environ:
        complete(typer.main.get_command(app))
        return
    try:
        _run()
    except BrokenPipeError:  # the reader of our output has closed the pipe
        _discard_output()
        sys.exit(1)
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if os.environ.get(TRACEBACK):
            raise
        sys.exit(report(error))


def _run() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who called us (>&-): nobody wants to read it
            setattr(sys, name, TextIOWrapper(FileIO(os.devnull, "w"), write_through=True))
        elif isinstance(stream, TextIOWrapper):  # for characters that the encoding lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="mqis")
    finally:
        _flush()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise MqisError(f"the output cannot be written: {os.strerror(error.errno or 0)}") from None


def _discard_output() -> None:
    """Else Python tries to write the rest when it ends, and prints a traceback."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()

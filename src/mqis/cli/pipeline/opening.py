"""Opens tables in a Spark session and the inputs for them; ends a command that is interrupted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from mqis.cli.output import cell, error_console, print_error, print_note
from mqis.cli.pipeline.options import InputOptions, TableOptions
from mqis.config.nodes import load_nodes
from mqis.enterprise.pipeline_input import gather
from mqis.extras import PIPELINE
from mqis.texts import counted

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore

#: As shells report a program that SIGINT ended.
INTERRUPTED = 130
_NONE = InputOptions()


def check_spark() -> None:
    """Raises ``MqisError`` if Spark is not installed."""
    PIPELINE.require("Spark, on which the pipeline runs,")


@contextmanager
def opened_tables(
    place: TableOptions, inputs: InputOptions = _NONE, *, may_be_empty: bool = False
) -> Iterator[TableStore]:
    """Opens the tables in one Spark session, with a progress bar.

    A place of ``inputs`` that cannot be read or, unless it ``may_be_empty``, has nothing to read is
    an error before Spark starts. The amount of data in tables and inputs decides the options that
    Java is started with.
    """
    from mqis.pipeline.locations import input_places  # noqa: PLC0415

    directory, settings = place.directory, place.settings
    places = inputs.journals, inputs.exports, inputs.captures
    for listed in places:
        input_places(listed)
    check_spark()
    from mqis.pipeline.catalogs import table_store  # noqa: PLC0415
    from mqis.pipeline.inputs import PipelineInputs  # noqa: PLC0415
    from mqis.pipeline.session import Amount, Engine, amount_of, session  # noqa: PLC0415
    from mqis.pipeline.watching import watched  # noqa: PLC0415

    if not place.remote:  # a Spark Connect server reads places of its own computer
        PipelineInputs(*places).check(may_be_empty=may_be_empty)
    amount = amount_of(directory, *places)
    if may_be_empty and amount is Amount.LITTLE:  # more is expected
        amount = Amount.SOME
    if place.into:
        settings = {"spark.sql.catalogImplementation": "hive"} | settings
    how = place.master, place.remote, place.tuned, place.memory, settings
    engine = Engine(*how, amount=amount)
    target = error_console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar:
        task = bar.add_task("starting Spark", total=None)
        logging.getLogger().addFilter(is_not_of_py4j)
        with session(engine) as opened:
            if place.ui:
                page = opened.sparkContext.uiWebUrl
                print_note(f"Spark shows its jobs at {page} for as long as this takes")

            def show_progress(what: str, done: int, total: int) -> None:
                bar.update(task, description=what or "computing", completed=done, total=total)

            with watched(opened, show_progress):
                yield table_store(opened, place.into, directory)


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Keeps out what py4j logs before it raises: a command tells an error in its one line.

    Above all Ctrl-C: PySpark's handler then calls Java on the connection on which the interrupted
    call still waits. That fails, and py4j would log two tracebacks.
    """
    return "py4j" not in PurePath(record.pathname).parts


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ends the command with one line and status 130 if the user presses Ctrl-C."""

    @wraps(command)
    def run(*given: Any, **named: Any) -> None:
        try:
            command(*given, **named)
        except BaseException as error:
            if not _came_of_interrupt(error):
                raise
            interrupted("interrupted; each table is either as it was or new")

    return run


def _came_of_interrupt(error: BaseException | None) -> bool:
    """True for Ctrl-C, and for what fails while it ends the command: Java may not answer then."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def interrupted(text: str) -> None:
    """Prints why the command ends, and ends it."""
    print_error(text)
    raise typer.Exit(INTERRUPTED)


_NOTHING = "nothing to read: give --run (the directory of 'mqis up'), "


def gathered(inputs: InputOptions, run: Path | None) -> InputOptions:
    """The given inputs or, with ``--run``, copies of the journals and exports of all servers."""
    if run is None:
        if not (inputs.journals or inputs.exports or inputs.captures):
            raise typer.BadParameter(f"{_NOTHING}--journals, --exports or --captures")
        return inputs
    if inputs.journals or inputs.exports:
        raise typer.BadParameter(
            "--run reads all journals and directories of the run directory; leave --journals and "
            "--exports out, or leave --run out and name the tables with --tables"
        )
    found = gather(run)
    for problem in found.problems:
        print_note(problem)
    servers = counted(len(found.servers), "server")
    error_console().print(cell(f"{run}: read {servers} of {found.enterprise}"), soft_wrap=True)
    journals = "" if found.journals is None else _one(found.journals)
    return replace(inputs, journals=journals, exports=_one(found.exports))


def journals_of(run: Path | None) -> str:
    """The journals themselves, which a stream follows while servers write them."""
    if run is None:
        raise typer.BadParameter(f"{_NOTHING}or --journals")
    return ",".join(_one(Path(node.journal)) for node in load_nodes(run) if node.journal)


def _one(path: Path) -> str:
    """The path as one of a list that commas separate."""
    if "," in str(path):
        raise typer.BadParameter(f"{path}: a comma separates paths; rename the directory")
    return str(path)

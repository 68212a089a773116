"""Opens the tables in a Spark session, and ends a command that is interrupted."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from mqis.cli.output import error_console, print_error
from mqis.cli.pipeline.options import InputOptions, TableOptions
from mqis.wire.errors import MqisError

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore

#: As shells report a program that SIGINT ended.
INTERRUPTED = 130
_NONE = InputOptions()


class NoSparkError(MqisError):
    """Spark is not installed."""


def check_spark() -> None:
    """Raises ``NoSparkError`` if Spark is not installed."""
    try:
        import pyspark  # noqa: F401, PLC0415
    except ImportError:
        raise NoSparkError(
            "the pipeline needs Spark: run 'make pipeline', or install mqis[pipeline]"
        ) from None


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
    from mqis.pipeline.session import Engine, is_large, session  # noqa: PLC0415
    from mqis.pipeline.watching import watched  # noqa: PLC0415

    if not place.remote:  # a Spark Connect server reads places of its own computer
        PipelineInputs(*places).check(may_be_empty=may_be_empty)
    large = is_large(directory, *places)
    if place.into:
        settings = {"spark.sql.catalogImplementation": "hive"} | settings
    how = place.master, place.remote, place.tuned, place.memory, settings
    engine = Engine(*how, large=large)
    target = error_console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar:
        task = bar.add_task("starting Spark", total=None)
        take_interrupts()
        with session(engine) as opened:
            take_interrupts()  # PySpark has set a handler of its own

            def show_progress(done: int, total: int) -> None:
                bar.update(task, description="computing", completed=done, total=total)

            with watched(opened, show_progress):
                yield table_store(opened, place.into, directory)


def take_interrupts() -> None:
    """Lets Ctrl-C raise ``KeyboardInterrupt`` in one place, without a word of the libraries.

    PySpark's handler asks Java to cancel all jobs. It does so on the connection on which the
    interrupted call still waits, so that fails, and py4j logs how. Here the end of the session
    cancels the jobs, and nothing is logged from now on: the command ends with its one line.
    """
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: object) -> NoReturn:
    logging.disable()
    raise KeyboardInterrupt


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ends the command with one line and status 130 if the user presses Ctrl-C."""

    @wraps(command)
    def run(*given: Any, **named: Any) -> None:
        try:
            command(*given, **named)
        except KeyboardInterrupt:
            interrupted("interrupted; each table is either as it was or new")

    return run


def interrupted(text: str) -> None:
    """Prints why the command ends, and ends it."""
    print_error(text)
    raise typer.Exit(INTERRUPTED)

"""Turns whatever ends a command early into one line and an exit status.

A wrong command line is status 2 (typer), an interrupt 130, everything else 1. Also an error that
nobody expected is one line: it says that mqis is wrong and not the user, and how to see where.
"""

from __future__ import annotations

import os

from mqis.wire.errors import MqisError

#: The environment variable that shows where an error comes from.
TRACEBACK = "MQIS_TRACEBACK"
FAILED = 1
#: 128 + SIGINT, as shells report it.
INTERRUPTED = 130


def report(error: BaseException) -> int:
    """Prints one line about the error; returns the exit status."""
    from mqis.cli.output import print_error  # noqa: PLC0415 -- it loads rich, --version does not

    error = first_cause(error)
    if is_interrupt(error):
        print_error("interrupted")
        return INTERRUPTED
    print_error(described(error))
    return FAILED


def first_cause(error: BaseException) -> BaseException:
    """The first error of a group: tasks that ran beside each other fail as a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_interrupt(error: BaseException) -> bool:
    """True for Ctrl-C, also where a prompt or an event loop has turned it into something else."""
    from asyncio import CancelledError  # noqa: PLC0415 -- it is slow to load

    return isinstance(error, KeyboardInterrupt | CancelledError) or isinstance(
        error.__context__, KeyboardInterrupt
    )


def described(error: BaseException) -> str:
    """Returns the text of an error for people."""
    if isinstance(error, MqisError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror if error.errno is None else os.strerror(error.errno)
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return ": ".join((*names, reason))
    if isinstance(error, MemoryError):
        return "out of memory"
    kind = type(error).__name__
    return (
        f"internal error: {kind}: {error}; this is a fault of mqis: repeat the command with "
        f"{TRACEBACK}=1 and report what it prints"
    )

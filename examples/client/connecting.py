"""The command line, the logon and the end that these examples share."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path

from mqis.client import DirectoryClient, LogonCredentials, MqisError, ServerAddress
from mqis.config.passwords import read_password_file


def run(main: Coroutine[None, None, None]) -> None:
    """Runs a program; a fault is one line and exit status 1."""
    try:
        asyncio.run(main)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except (MqisError, OSError, ValueError) as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--server", required=True, help="HOST[:PORT]")
    return made


async def connect(server: str) -> DirectoryClient:
    """Connects with the account of the environment."""
    return await DirectoryClient.connect([ServerAddress.parse(server)], logon=_logon())


def _logon() -> LogonCredentials | None:
    user = os.environ.get("MQIS_USER")
    if not user:
        return None
    domain, _, name = user.rpartition("\\")
    file = os.environ.get("MQIS_PASSWORD_FILE")
    if not file:
        raise ValueError("MQIS_PASSWORD_FILE is not set: it names the file with the password")
    # Refuses a file that others can read, as all commands of mqis do.
    return LogonCredentials(name, domain, read_password_file(Path(file)))

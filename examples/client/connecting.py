"""The command line and the logon that these examples share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from mqis.client import DirectoryClient, LogonCredentials, ServerAddress


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--server", required=True, type=ServerAddress.parse, help="HOST[:PORT]")
    return made


async def connect(server: ServerAddress) -> DirectoryClient:
    """Connects with the account of the environment."""
    return await DirectoryClient.connect([server], logon=_logon())


def _logon() -> LogonCredentials | None:
    user = os.environ.get("MQIS_USER")
    if not user:
        return None
    domain, _, name = user.rpartition("\\")
    password = Path(os.environ["MQIS_PASSWORD_FILE"]).read_text("utf-8").strip()
    return LogonCredentials(name, domain, password)

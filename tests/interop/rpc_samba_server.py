"""Samba's endpoint mapper as a peer, in a temporary directory: 127.0.0.1 port 135.

Two processes: samba-dcerpcd, which starts the mapper, and smbd, whose database of messages that
one needs. Debian's package samba has both.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import DEADLINE_S

DCERPCD = Path("/usr/libexec/samba/samba-dcerpcd")
SMBD = Path("/usr/sbin/smbd")
ADDRESS, PORT = "127.0.0.1", 135

_CONFIGURATION = """[global]
workgroup = DOM
netbios name = PEER
interfaces = 127.0.0.1/8
bind interfaces only = yes
rpc start on demand helpers = false
disable spoolss = yes
load printers = no
log level = 0
"""
_DIRECTORIES = ("lock directory", "state directory", "cache directory", "private dir")
_MORE_DIRECTORIES = ("pid directory", "ncalrpc dir")


class Unavailable(Exception):
    """Samba's server cannot be had here; says why."""


def _listening() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, PORT)) == 0


@contextmanager
def samba_server(directory: Path, start_s: float = DEADLINE_S) -> Iterator[tuple[str, int]]:
    """Runs Samba's server during the block, and yields the address of its endpoint mapper."""
    missing = [str(path) for path in (DCERPCD, SMBD) if not path.exists()]
    if missing:
        raise Unavailable(f"{missing[0]} is not there (Debian: samba)")
    if _listening():
        raise Unavailable(f"something else listens at {ADDRESS} port {PORT}")
    with socket.socket() as probe, socket.socket() as free:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ADDRESS, PORT))
        except OSError as error:
            raise Unavailable(f"{ADDRESS} port {PORT}: {error.strerror}") from None
        free.bind((ADDRESS, 0))
        smb_port = free.getsockname()[1]
    lines = [_CONFIGURATION, f"smb ports = {smb_port}\n"]
    for name in (*_DIRECTORIES, *_MORE_DIRECTORIES):
        place = directory / name.replace(" ", "-")
        place.mkdir()
        lines.append(f"{name} = {place}\n")
    configuration = directory / "smb.conf"
    configuration.write_text("".join(lines))
    log = (directory / "log").open("wb")
    options = ["-s", str(configuration), "-F", "--no-process-group", "--debug-stdout"]
    commands = [[str(DCERPCD), *options, "--libexec-rpcds"], [str(SMBD), *options]]
    processes = [
        # They end with a signal to their whole process group, so each gets one of its own.
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        for command in commands
    ]
    try:
        deadline = time.monotonic() + start_s
        while not _listening():
            if any(process.poll() is not None for process in processes):
                raise Unavailable("Samba's server ended at once; see its log")
            if time.monotonic() > deadline:
                raise Unavailable(f"Samba's server does not listen after {start_s:g} s")
            time.sleep(0.1)
        yield ADDRESS, PORT
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(DEADLINE_S)
        log.close()

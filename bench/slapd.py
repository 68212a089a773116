"""A private slapd: on loopback only, in its own directory, removed at the end.

Its back_mdb flushes every write before it answers, which is the default. Everyone may read and
write, but slapd checks each access against the access list.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from bench.backends import Unavailable
from bench.processes import end
from mqis.testing.ports import free_port

#: Debian installs it outside the usual PATH of users.
_PATH = "/usr/sbin:/usr/local/sbin:/usr/libexec:/usr/bin:/usr/local/bin:/opt/homebrew/sbin"
_SCHEMA = Path("/etc/ldap/schema/core.schema")
_MODULES = Path("/usr/lib/ldap")
_STARTS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Slapd:
    pid: int
    port: int
    version: str


def start(
    directory: Path,
    resources: ExitStack,
    *,
    suffix: str,
    schema: Iterable[str],
    indexed: Iterable[str],
    content: Iterable[str] | None,
    modules: Iterable[str] = ("back_mdb",),
    more: Iterable[str] = (),
) -> Slapd:
    """Fills a database from LDIF and serves it; raises ``Unavailable`` if that is not possible.

    Without ``content`` it starts empty. ``more`` are lines of the database's section.
    """
    slapd, slapadd = (shutil.which(name, path=_PATH) for name in ("slapd", "slapadd"))
    if slapd is None or slapadd is None or not _SCHEMA.exists():
        raise Unavailable("slapd: skipped: not installed (Debian: apt-get install slapd)")
    database = directory / "slapd"
    database.mkdir()
    configuration = directory / "slapd.conf"
    lines = _configuration(database, suffix, schema, indexed, modules=modules, more=more)
    configuration.write_text("\n".join(lines), "utf-8")
    common = ["-f", str(configuration)]
    if content is not None:
        _fill(slapadd, common, directory / "slapd.ldif", content)
    port = free_port()
    log = (directory / "slapd.log").open("wb")
    resources.enter_context(log)
    process = subprocess.Popen(
        [slapd, *common, "-d", "0", "-h", f"ldap://127.0.0.1:{port}/"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    resources.callback(end, process)
    _await(process, port, directory / "slapd.log")
    return Slapd(process.pid, port, _version(slapd))


def contents(directory: Path) -> dict[str, bytes]:
    """A digest of every entry, by name; it includes the number and time of the entry's change.

    It leaves out contextCSN, which a provider writes when it ends.
    """
    slapcat = shutil.which("slapcat", path=_PATH)
    if slapcat is None:
        raise Unavailable("slapd: skipped: slapcat is not installed")
    # Without folding, so that every value is one line.
    command = [slapcat, "-f", str(directory / "slapd.conf"), "-o", "ldif-wrap=no"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        lines = (line.rstrip("\n") for line in process.stdout)
        found = {}
        for named, entry in groupby(lines, key=bool):
            if named:
                name, *values = (line for line in entry if not line.startswith("contextCSN:"))
                found[name] = sha256("\n".join(sorted(values)).encode()).digest()
    if process.returncode:
        raise RuntimeError(f"slapcat failed for {directory.name}")
    return found


def _fill(slapadd: str, common: list[str], source: Path, content: Iterable[str]) -> None:
    with source.open("w", encoding="utf-8") as file:
        file.writelines(content)
    # -w writes contextCSN, which consumers need.
    loaded = subprocess.run(
        [slapadd, *common, "-q", "-w", "-l", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    source.unlink()
    if loaded.returncode:
        raise Unavailable(f"slapd: skipped: slapadd failed: {_last_line(loaded.stderr)}")


def _configuration(
    database: Path,
    suffix: str,
    schema: Iterable[str],
    indexed: Iterable[str],
    *,
    modules: Iterable[str],
    more: Iterable[str],
) -> Iterable[str]:
    return (
        f"include {_SCHEMA}",
        *schema,
        f"pidfile {database}/slapd.pid",
        f"modulepath {_MODULES}",
        *(f"moduleload {module}" for module in modules),
        "allow update_anon",
        "sizelimit unlimited",
        "loglevel none",
        "database mdb",
        f"suffix {suffix}",
        f"directory {database}",
        f"maxsize {1 << 30}",
        "index objectClass eq",
        *(f"index {attribute} eq" for attribute in indexed),
        "access to * by * write",
        *more,
        "",
    )


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise Unavailable(f"slapd: skipped: it did not start: {_last_line(log.read_text('utf-8'))}")


def _version(slapd: str) -> str:
    output = subprocess.run([slapd, "-VV"], capture_output=True, text=True, check=False).stderr
    return next((word for word in output.split() if word[:1].isdigit()), "of unknown version")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]

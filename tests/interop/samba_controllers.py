"""Several Samba domain controllers of one domain, in a network namespace of their own.

Each has an address, so that all use the ports of Active Directory; nothing is seen outside of the
namespace. ``dc1`` is the copy of a provisioned domain, the others join it: ``dc2`` for writing,
``rodc`` for reading only. Changes go from one to another when ``replicate`` is called, not before:
so two controllers can be made to disagree, as they do for hours in an enterprise.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interop.samba_domain import PASSWORD, SCRIPT, TEMPLATE, provisioned
from tests.waiting import DEADLINE_S, wait_until

ADDRESSES = {"dc1": "10.53.0.1", "dc2": "10.53.0.2", "rodc": "10.53.0.3"}
ADMINISTRATOR = "Administrator@corp.example"
MQIS = Path(sys.executable).with_name("mqis")
_LOGON = f"CORP\\Administrator%{PASSWORD}"
_KERBEROS = """[libdefaults]
 default_realm = CORP.EXAMPLE
 dns_lookup_kdc = false
 rdns = false
 dns_canonicalize_hostname = false
[realms]
 CORP.EXAMPLE = {
  kdc = 10.53.0.1:88
 }
"""


class Controllers:
    """The controllers below one directory; ``run`` runs a command where they can be reached."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._holder: subprocess.Popen[bytes] | None = None
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def url(self, *names: str) -> str:
        """The URL of a controller, or of several of which one has to answer."""
        return " ".join(f"ldap://{name}.corp.example" for name in names)

    def open(self) -> None:
        """Makes the namespaces: of the network, and of mounts for the names of the controllers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        names = [f"{at} {name}.corp.example {name}" for name, at in ADDRESSES.items()]
        (self.directory / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
        (self.directory / "resolv.conf").write_text("")
        (self.directory / "krb5.conf").write_text(_KERBEROS)
        steps = [
            "ip link set lo up",
            *(f"ip address add {at}/32 dev lo" for at in ADDRESSES.values()),
            f"mount --bind {self.directory}/hosts /etc/hosts",
            f"mount --bind {self.directory}/resolv.conf /etc/resolv.conf",
            f"touch {self.directory}/open",
            "exec sleep infinity",
        ]  # fmt: skip
        command = ["unshare", "--net", "--mount", "sh", "-e", "-c", "\n".join(steps)]
        self._holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        holder = self._holder
        wait_until(lambda: (self.directory / "open").exists() or holder.poll() is not None, "names")
        if holder.poll() is not None:
            assert holder.stderr is not None
            pytest.skip(f"no namespaces: {holder.stderr.read().decode()}")

    def close(self) -> None:
        for name in list(self._running):
            self.stop(name)
        if self._holder is not None:
            self._holder.kill()
            self._holder.communicate()

    def entered(self, *command: str | Path) -> list[str]:
        """A command as it is run inside the namespaces."""
        assert self._holder is not None
        return ["nsenter", f"--target={self._holder.pid}", "--net", "--mount", *map(str, command)]

    def run(
        self, *command: str | Path, text: str = "", status: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.entered(*command),
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert done.returncode in status, done.stdout + done.stderr
        return done

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ | {"KRB5_CONFIG": f"{self.directory}/krb5.conf"}

    # --- making -----------------------------------------------------------------------------------

    def found(self) -> None:
        """Makes ``dc1`` of the provisioned domain."""
        provisioned()
        subprocess.run([SCRIPT, "copy", TEMPLATE, self.directory / "dc1"], check=True)
        self._configure("dc1")

    def join(self, name: str, *, read_only: bool = False) -> None:
        """Makes another controller of the domain; ``dc1`` has to run."""
        directory = self.directory / name
        (directory / "private").mkdir(parents=True)
        given = {"netbios name": name.upper(), **self._settings(name)}
        options = [f"--option={key}={value}" for key, value in given.items()]
        role = "RODC" if read_only else "DC"
        self.run(
            "samba-tool", "domain", "join", "corp.example", role, "--server=dc1.corp.example",
            "-U", _LOGON, "--dns-backend=NONE", f"--targetdir={directory}", *options,
        )  # fmt: skip
        self._configure(name)

    def preload(self, account: str) -> None:
        """Gives the read-only controller the password of an account, so that it logs that on."""
        conf = self.directory / "rodc/etc/smb.conf"
        command = "samba-tool", "rodc", "preload", account, "--server=dc1.corp.example"
        self.run(*command, "-U", _LOGON, "-s", conf)

    def _settings(self, name: str) -> dict[str, str]:
        directory = self.directory / name
        return {
            "interfaces": f"{ADDRESSES[name]}/32",
            "bind interfaces only": "yes",
            "server services": "rpc, ldap, cldap, kdc",
            "vfs objects": "dfs_samba4 acl_xattr xattr_tdb",
            "xattr_tdb:file": f"{directory}/xattr.tdb",
            "log file": f"{directory}/log/%m.log",
            "pid directory": f"{directory}/run",
            "ncalrpc dir": f"{directory}/run/ncalrpc",
            "winbindd socket directory": f"{directory}/run/winbindd",
            "ntp signd socket directory": f"{directory}/run/ntp",
            "tls enabled": "no",
            "ldap server require strong auth": "no",  # of tools; mqis seals
            "prefork children": "1",
        }

    def _configure(self, name: str) -> None:
        """Puts settings into smb.conf instead of what it has of them."""
        settings = self._settings(name)
        for each in ("log", "run"):
            (self.directory / name / each).mkdir(exist_ok=True)
        conf = self.directory / name / "etc/smb.conf"
        keys = "|".join(re.escape(key) for key in settings)
        kept = re.sub(rf"(?m)^\s*({keys}|tls \w+)\s*=.*\n", "", conf.read_text())
        lines = "".join(f"\n\t{key} = {value}" for key, value in settings.items())
        conf.write_text(kept.replace("[global]", f"[global]{lines}", 1))

    # --- running ----------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        conf, log = self.directory / name / "etc/smb.conf", self.directory / name / "log/stdout"
        with log.open("wb") as output:
            started = subprocess.Popen(
                self.entered("samba", "-s", conf, "-F", "--no-process-group"),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._running[name] = started
        wait_until(lambda: self._listens(name) or started.poll() is not None, f"{name} to listen")
        assert started.poll() is None, log.read_text()

    def _listens(self, name: str) -> bool:
        ports = self.run("ss", "-ltnH").stdout
        return all(f"{ADDRESSES[name]}:{port} " in ports for port in (135, 389, 3268))

    def stop(self, name: str) -> None:
        """Ends a controller at once, as a failure of power does; its databases survive that."""
        process = self._running.pop(name)
        pid = int((self.directory / name / "run/samba.pid").read_text())
        os.kill(pid, 15)
        process.wait(DEADLINE_S)
        wait_until(
            lambda: f"{ADDRESSES[name]}:389 " not in self.run("ss", "-ltnH").stdout, "its end"
        )

    def replicate(self, to: str, of: str, context: str = "DC=corp,DC=example") -> None:
        """Brings all changes that ``of`` has to ``to``, whether that one runs or not."""
        conf = self.directory / to / "etc/smb.conf"
        self.run(
            "samba-tool", "drs", "replicate", "--local", f"{to}.corp.example", f"{of}.corp.example",
            context, "-U", _LOGON, "-s", conf,
        )  # fmt: skip

    def ldap(self, tool: str, name: str, *arguments: str, text: str = "") -> str:
        """Runs a tool of OpenLDAP at a controller, as its administrator."""
        logon = "-x", "-H", self.url(name), "-D", ADMINISTRATOR, "-w", PASSWORD
        return self.run(tool, *logon, *arguments, text=text).stdout

    def logon(self, user: str = ADMINISTRATOR) -> tuple[str, ...]:
        """The options by which commands log on; all accounts have one password."""
        password = self.directory / "password"
        if not password.exists():
            password.touch(0o600)
            password.write_text(PASSWORD)
        return "--user", user, "--password-file", str(password)

    def mqis(
        self, *arguments: str | Path, user: str = ADMINISTRATOR, status: tuple[int, ...] = (0,)
    ) -> str:
        """Runs the installed command; returns what it prints, or its error."""
        done = self.run(MQIS, *arguments, *self.logon(user), status=status)
        return done.stdout or done.stderr


@contextmanager
def controllers(
    directory: Path, *names: str, before_start: Callable[[Path], None]
) -> Iterator[Controllers]:
    """Serves ``dc1``, filled by ``before_start``, and those of these names, which join it.

    Skips where something for it is missing.
    """
    for program in ("samba-tool", "unshare", "nsenter", "ip", "ss"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing (Debian: apt install samba util-linux iproute2)")
    made = Controllers(directory)
    made.open()
    try:
        made.found()
        before_start(directory / "dc1")
        made.start("dc1")
        for name in names:
            made.join(name, read_only=name == "rodc")
            made.start(name)
        yield made
    finally:
        made.close()

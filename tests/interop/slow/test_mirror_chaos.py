"""A mirror of a Samba domain controller while everything goes wrong, and what it has in the end.

Random changes, names that change hands, values that spoil a queue manager and are repaired, mirrors
that are killed, a controller that is stopped, and one that is put back from a copy of its disk.
In the end the store equals the directory: by a fresh import, and by what ``ldapsearch`` prints.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import ORDER
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import read_ldif, write_ldif
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.estate.planted import BERLIN, OU, ROOT, computer, keys, machine, made, sound
from tests.interop.samba_controllers import MQIS, Controllers, controllers
from tests.interop.samba_domain import load_entries
from tests.waiting import wait_until

pytestmark = pytest.mark.interop

SEED, STEPS, KILLS = 20261119, 60, 8
HOSTS = ("WS1", "WS2", "WS3")
#: The attributes that the independent comparison reads, and the properties that stand for them.
QUEUE_ATTRIBUTES = {
    "mSMQLabelEx": (PropId.Q_LABEL, str),
    "mSMQQueueQuota": (PropId.Q_QUOTA, int),
    "mSMQBasePriority": (PropId.Q_BASEPRIORITY, int),
    "mSMQJournal": (PropId.Q_JOURNAL, bool),
    "mSMQTransactional": (PropId.Q_TRANSACTION, bool),
}


class Chaos:
    """The changes, one method each; ``queues`` has the names that exist below each computer."""

    def __init__(self, made: Controllers, random: Random) -> None:
        self.made, self.random = made, random
        self.queues: dict[str, list[str]] = {host: [] for host in HOSTS}
        self.numbers = 0

    def step(self) -> None:
        changes: list[Callable[[], None]] = [
            self.add, self.add, self.relabel, self.relabel, self.set_flags, self.delete,
            self.exchange_queues, self.exchange_accounts, self.move, self.spoil,
        ]  # fmt: skip
        self.random.choice(changes)()

    def modify(self, *records: str) -> None:
        self.made.ldap("ldapmodify", "dc1", text="\n\n".join(records) + "\n")

    def name(self, host: str, queue: str) -> str:
        return f"CN={queue},CN=msmq,CN={host},{OU}"

    def some(self, count: int = 1) -> list[tuple[str, str]]:
        known = [(host, queue) for host, queues in self.queues.items() for queue in queues]
        return self.random.sample(known, count) if len(known) >= count else []

    def add(self) -> None:
        host = self.random.choice(HOSTS)
        self.numbers += 1
        self.queues[host].append(f"q{self.numbers}")
        entry = made(self.name(host, f"q{self.numbers}"), "top", "mSMQQueue")
        self.made.ldap("ldapadd", "dc1", text="".join(write_ldif([entry])))

    def delete(self) -> None:
        for host, queue in self.some():
            self.queues[host].remove(queue)
            self.modify(f"dn: {self.name(host, queue)}\nchangetype: delete")

    def relabel(self) -> None:
        for host, queue in self.some():
            text = f"label {self.random.randrange(1000)}"
            self.modify(_replace(self.name(host, queue), "mSMQLabelEx", text))

    def set_flags(self) -> None:
        for host, queue in self.some():
            flag = self.random.choice(("TRUE", "FALSE"))
            number = str(self.random.randrange(-5, 5))
            at = self.name(host, queue)
            self.modify(_replace(at, "mSMQJournal", flag), _replace(at, "mSMQBasePriority", number))

    def exchange_queues(self) -> None:
        """Two queues of one computer change their names."""
        host = self.random.choice(HOSTS)
        if len(self.queues[host]) > 1:
            one, two = self.random.sample(self.queues[host], 2)
            renames = (one, "aside"), (two, one), ("aside", two)
            self.modify(*(_rename(self.name(host, old), f"CN={new}") for old, new in renames))

    def exchange_accounts(self) -> None:
        """Two computers change the names of their accounts, and their queue managers theirs."""
        one, two = self.random.sample(HOSTS, 2)
        names = {host: self.account(host) for host in (one, two)}
        given = (one, "ASIDE$"), (two, names[one]), (one, names[two])
        at = {host: f"CN={host},{OU}" for host in HOSTS}
        self.modify(*(_replace(at[host], "sAMAccountName", name) for host, name in given))

    def account(self, host: str) -> str:
        (entry,) = self.search(f"CN={host},{OU}", "-s", "base", "sAMAccountName")
        return entry.values("sAMAccountName")[0].decode()

    def move(self) -> None:
        """A queue goes to another queue manager, under its own name."""
        for host, queue in self.some():
            other = self.random.choice([each for each in HOSTS if each != host])
            self.queues[host].remove(queue)
            self.queues[other].append(queue)
            above = f"CN=msmq,CN={other},{OU}"
            self.modify(_rename(self.name(host, queue), f"CN={queue}", above))

    def spoil(self) -> None:
        """A queue manager's key becomes garbage, or is repaired."""
        host = self.random.choice(HOSTS)
        good = keys(300 + HOSTS.index(host))
        value = self.random.choice((b"garbage", good))
        (record,) = write_ldif(
            [AddEntry(f"CN=msmq,CN={host},{OU}", (("mSMQEncryptKey", (value,)),))], version=False
        )
        self.modify(record.strip().replace("changetype: add", _KEY))

    def search(self, base: str, *arguments: str) -> list[AddEntry]:
        text = self.made.ldap("ldapsearch", "dc1", "-LLL", "-b", base, *arguments)
        found = read_ldif(text.encode().splitlines(keepends=True), "ldapsearch")
        return [entry for entry in found if isinstance(entry, AddEntry)]


_KEY = "changetype: modify\nreplace: mSMQEncryptKey"


def _replace(name: str, attribute: str, value: str) -> str:
    return f"dn: {name}\nchangetype: modify\nreplace: {attribute}\n{attribute}: {value}"


def _rename(name: str, leaf: str, above: str = "") -> str:
    moved = f"\nnewsuperior: {above}" if above else ""
    return f"dn: {name}\nchangetype: modrdn\nnewrdn: {leaf}\ndeleteoldrdn: 1{moved}"


def test_whatever_happens_the_store_is_equal_in_the_end(tmp_path: Path) -> None:
    def fill(directory: Path) -> None:
        hosts = [computer(host, f"10.1.0.{n}") for n, host in enumerate(HOSTS[1:], 20)]
        below = [machine(host, 70 + n, BERLIN) for n, host in enumerate(HOSTS[1:])]
        load_entries(directory, (*sound(), *hosts, *below))

    random = Random(SEED)
    with controllers(tmp_path / "samba", before_start=fill) as made:
        chaos, store = Chaos(made, random), tmp_path / "estate.db"
        databases, copy = made.directory / "dc1/private", tmp_path / "copy"
        killed = set(random.sample(range(STEPS), KILLS))
        process = _follow(made, store)
        try:
            for step in range(STEPS):
                chaos.step()
                if step in killed:
                    process.kill()
                    process.wait()
                    process = _follow(made, store)
                if step == STEPS // 3:
                    made.stop("dc1")
                    _copy(databases, copy)
                    kept = {host: list(queues) for host, queues in chaos.queues.items()}
                    made.start("dc1")
                if step == STEPS * 2 // 3:  # the disk of an earlier day is put back
                    process.terminate()
                    process.wait()
                    # So far nothing was missed: not one difference.
                    made.mqis("mirror", made.url("dc1"), "--store", store, "--compare")
                    process = _follow(made, store)
                    made.stop("dc1")
                    shutil.rmtree(databases)
                    _copy(copy, databases)
                    chaos.queues = kept
                    made.start("dc1")
        finally:
            process.terminate()
            process.wait()
        # Numbers of changes do not tell that the controller was put back; a comparison does.
        made.mqis("mirror", made.url("dc1"), "--store", store, "--compare", status=(0, 1))
        again = made.mqis("mirror", made.url("dc1"), "--store", store, "--compare", "--json")
        assert '"differences": []' in again, f"seed {SEED}"
        made.mqis("import", made.url("dc1"), "--store", tmp_path / "fresh.db")
        assert held(store) == held(tmp_path / "fresh.db"), f"seed {SEED}"
        assert queues_held(store) == queues_shown(chaos), f"seed {SEED}"


def _copy(source: Path, target: Path) -> None:
    """Copies databases with their owners; there are sockets beside them."""
    subprocess.run(["cp", "-a", source, target], check=True)


def _follow(made: Controllers, store: Path) -> subprocess.Popen[bytes]:
    command = MQIS, "mirror", made.url("dc1"), "--store", store, "--interval", "1"
    process = subprocess.Popen(
        made.entered(*command, *made.logon()), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if not store.exists():
        wait_until(lambda: store.exists() or process.poll() is not None, "the store")
    return process


def held(store: Path) -> dict[str, dict[int, object]]:
    """All objects of a store with the values that say something."""
    with closing(open_store(str(store))) as found, found.read() as view:
        return {
            f"{kind.label} {obj.id}": {k: v.value for k, v in obj.properties.items() if v.value}
            for kind in ORDER
            for obj in view.objects(kind)
        }


def queues_held(store: Path) -> dict[Guid, tuple[str, list[object]]]:
    with closing(open_store(str(store))) as found, found.read() as view:
        return {
            obj.id: (
                (obj.path or "").partition("\\")[2],
                [obj.value(propid) or None for propid, _ in QUEUE_ATTRIBUTES.values()],
            )
            for obj in view.objects(ObjectType.QUEUE)
        }


def queues_shown(chaos: Chaos) -> dict[Guid, tuple[str, list[object]]]:
    """The queues as ldapsearch prints them; a quota that is not set is the greatest one."""
    shown = {}
    for entry in chaos.search(
        ROOT, "(objectClass=mSMQQueue)", "objectGUID", "cn", *QUEUE_ATTRIBUTES
    ):
        values: list[object] = []
        for attribute, (_, kind) in QUEUE_ATTRIBUTES.items():
            text = (entry.values(attribute) or (b"",))[0].decode()
            value = text == "TRUE" if kind is bool else int(text or 0) if kind is int else text
            values.append((1 if value is True else value) or None)
        if values[1] is None:
            values[1] = 0xFFFFFFFF
        name = entry.values("cn")[0].decode().lower()
        shown[Guid(entry.values("objectGUID")[0])] = (name, values)
    return shown

"""Measures import, check and mirror of estates of 3 to 500 sites, beside ldapsearch.

slapd serves them: it answers faster than a domain controller, so that what mqis takes itself shows.
An estate has what estates have: a star of sites with gates, servers and their settings, names with
umlauts, blanks and semicolons, names that are longer than an entry's may be, garbled values, users
with certificates.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter_ns, sleep

from bench import slapdforest
from bench.backends import ROOT, Unavailable
from bench.enterprise import label
from bench.results import Aim, Results, Row
from bench.run import Run
from bench.sambadomain import OPEN_TO_ALL, OPEN_TO_USERS
from bench.slapdforest import SlapdForest
from mqis.protocol.activedirectory.queuename import split_name
from mqis.runtime.activedirectory.reading import PAGE_SIZE
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.names import DistinguishedName

QUEUES_OF_A_MACHINE = 20
LDAPSEARCH, IMPORT, MIRROR = "ldapsearch", "mqis import", "mqis mirror, first run"
IMPORT_SHARE, MIRROR_TIMES, MOST_MB = 0.5, 2.0, 300
DOMAIN = "DC=corp,DC=example"
CONFIGURATION = f"CN=Configuration,{DOMAIN}"
_SITES = f"CN=Sites,{CONFIGURATION}"
_SERVICES = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"
_COMPUTERS = f"CN=Computers,{DOMAIN}"
_LOOK_S = 0.02
_TIME = b"20260102030405.0Z"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an estate, and how often it is measured."""

    sites: int
    queues: int
    rounds: int

    @property
    def objects(self) -> int:
        """The queues and their machines."""
        return self.queues + -(-self.queues // QUEUES_OF_A_MACHINE)

    def __str__(self) -> str:
        return f"{self.sites} sites, {self.queues:,} queues"


SIZES = Size(3, 1_000, 3), Size(50, 10_000, 3), Size(500, 100_000, 1)
_QUICK = (Size(3, 100, 1),)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took."""

    seconds: float
    cpu_s: float
    megabytes: float


def measure(run: Run, results: Results) -> None:
    for size in _QUICK if run.quick else SIZES:
        run.say(f"activedirectory: slapd with an estate of {size}")
        with ExitStack() as resources:
            directory = run.directory / f"estate{size.sites}"
            try:
                served = slapdforest.start(
                    directory,
                    resources,
                    domain=DOMAIN,
                    configuration=CONFIGURATION,
                    entries=estate(size.sites, size.queues),
                )
            except Unavailable as reason:
                results.notes.append(str(reason))
                return
            _tell(results, size, _measured(run, served, directory, size))


def _measured(run: Run, served: SlapdForest, directory: Path, size: Size) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {}
    for number in range(size.rounds):
        for name, command in _commands(served, directory, number).items():
            run.say(f"activedirectory: {size.sites} sites: {name}")
            costs.setdefault(name, []).append(_cost(command, directory / "output"))
        _expect(directory / f"import{number}.db", size.queues)
    return costs


def _tell(results: Results, size: Size, costs: dict[str, list[Cost]]) -> None:
    rates = {name: size.objects / median(c.seconds for c in each) for name, each in costs.items()}
    memory = {name: max(cost.megabytes for cost in each) for name, each in costs.items()}
    for name, each in costs.items():
        peer = None if name == LDAPSEARCH else LDAPSEARCH
        results.rows.append(
            Row(
                f"{size} at slapd, whole processes",
                name,
                rates[name],
                seconds=median(cost.seconds for cost in each),
                cpu_us=median(cost.cpu_s for cost in each) / size.objects * 1e6,
                peer=peer,
                ratio=rates[name] / rates[LDAPSEARCH] if peer else None,
            )
        )
        spread = ", ".join(f"{cost.seconds:.2f} ({cost.cpu_s:.2f})" for cost in each)
        note = f"{size.sites} sites: {name}: {spread} s (CPU), {memory[name]:.0f} MB at most"
        results.notes.append(note)
    share, times = rates[IMPORT] / rates[LDAPSEARCH], rates[IMPORT] / rates[MIRROR]
    most = max(megabytes for name, megabytes in memory.items() if name != LDAPSEARCH)
    first = f"mirror's first run <= {MIRROR_TIMES:.0f}x an import, {size}"
    results.aims += [
        Aim(
            f"import >= {IMPORT_SHARE}x ldapsearch, {size}", f"{share:.2f}x", share >= IMPORT_SHARE
        ),
        Aim(first, f"{times:.2f}x", times <= MIRROR_TIMES),
        Aim(f"<= {MOST_MB} MB, {size}", f"{most:.0f} MB", most <= MOST_MB),
    ]


def _commands(served: SlapdForest, directory: Path, number: int) -> dict[str, list[str]]:
    mqis = [sys.executable, "-m", "mqis.cli.main"]
    places = {name: str(directory / f"{name}{number}.db") for name in ("import", "mirror")}
    dump = ["ldapsearch", "-x", "-LLL", "-H", served.direct, "-b", DOMAIN]
    classes = ("mSMQQueue", "mSMQConfiguration", "computer", "site", "mSMQSiteLink", "user")
    filter_ = "".join(f"(objectClass={name})" for name in classes)
    return {
        LDAPSEARCH: [*dump, "-E", f"pr={PAGE_SIZE}/noprompt", f"(|{filter_})", "*"],
        IMPORT: [*mqis, "import", served.url, "--store", places["import"]],
        "mqis estate check": [*mqis, "estate", "check", served.url, "--json"],
        MIRROR: [
            *mqis, "mirror", served.url, "--store", places["mirror"], "--once", "--json",
        ],
    }  # fmt: skip


def _cost(command: Sequence[str], output: Path) -> Cost:
    """Runs a process; ``estate check`` ends with 1 if it finds something."""
    with output.open("wb") as file, (output.parent / "errors").open("w+b") as errors:
        start = perf_counter_ns()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=errors
        )
        peak_kb, ended = 0, 0
        while not ended:
            peak_kb = max(peak_kb, _peak_kb(process.pid))
            sleep(_LOOK_S)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = (perf_counter_ns() - start) / 1e9
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in ((0, 1) if "check" in command else (0,)):
            errors.seek(0)
            raise RuntimeError(f"{command[:4]} failed: {errors.read().decode()[-400:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak_kb * 1024 / 1e6)


def _peak_kb(pid: int) -> int:
    """The most memory that a process had; its ru_maxrss may be that of this process."""
    status = Path(f"/proc/{pid}/status").read_text()
    lines = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(line.split()[1]) for line in lines), 0)  # none: it has ended


def _expect(store: Path, queues: int) -> None:
    command = [sys.executable, "-m", "mqis.cli.main", "check", "--store", str(store), "--json"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(told.stdout)["objects"]["queue"]
    if found != queues:
        raise RuntimeError(f"{found} queues were imported instead of {queues}")


# --- the estate -----------------------------------------------------------------------------------


def estate(sites: int, queues: int) -> Iterator[AddEntry]:
    """All entries, those above others first. Machine ``n`` is in site ``n`` modulo ``sites``."""
    yield _entry(DOMAIN, "domainDNS", objectGUID=_guid("domain", 0), dc=b"corp")
    for name in (CONFIGURATION, f"CN=Schema,{CONFIGURATION}", f"CN=Services,{CONFIGURATION}",
                 _SITES, _COMPUTERS, f"CN=Users,{DOMAIN}"):  # fmt: skip
        yield _entry(name, "container")
    yield _entry(
        f"CN=NTDS Settings,{CONFIGURATION}", "nTDSDSA", invocationId=_guid("invocation", 0)
    )
    yield _entry(_SERVICES, "mSMQEnterpriseSettings", objectGUID=_guid("enterprise", 0),
                 mSMQVersion=b"200", **_TIMES)  # fmt: skip
    machines = max(-(-queues // QUEUES_OF_A_MACHINE), sites)
    for number in range(sites):
        yield _entry(
            _site(number),
            "site",
            objectGUID=_guid("site", number),
            nTSecurityDescriptor=OPEN_TO_ALL,
        )
    for number in range(machines):
        yield from _machine(number, sites)
    for number in range(1, sites):
        yield _link(number)
    for number in range(queues):
        yield _queue(number)
    for number in range(sites):
        yield _entry(
            f"CN=user{number},CN=Users,{DOMAIN}",
            "user",
            objectGUID=_guid("user", number),
            sAMAccountName=b"user%d" % number,
            objectSid=_sid(number),
            mSMQDigests=b"0123456789abcdef",
        )


def _machine(number: int, sites: int) -> Iterator[AddEntry]:
    account = f"HOST{number:05}"
    computer = f"CN={account},{_COMPUTERS}"
    host = f"{account.lower()}.corp.example"
    is_router = number < sites
    yield _entry(
        computer,
        "user", "computer",
        objectGUID=_guid("computer", number),
        objectSid=_sid(100_000 + number),
        sAMAccountName=f"{account}$".encode(),
        userAccountControl=b"4096",
        dNSHostName=host.encode(),
        servicePrincipalName=(f"HOST/{account}".encode(), f"HOST/{host}".encode()),
    )  # fmt: skip
    yield _entry(
        f"CN=msmq,{computer}",
        "mSMQConfiguration",
        objectGUID=_guid("machine", number),
        mSMQSites=_guid("site", number % sites),
        mSMQRoutingServices=b"TRUE" if is_router else b"FALSE",
        mSMQServiceType=b"1" if is_router else b"0",
        nTSecurityDescriptor=OPEN_TO_ALL,
        **_TIMES,
    )


def _queue(number: int) -> AddEntry:
    host = number // QUEUES_OF_A_MACHINE
    leaf, rest = split_name(queue_name(number))
    above = DistinguishedName.parse(f"CN=msmq,CN=HOST{host:05},{_COMPUTERS}")
    more = {"mSMQQueueNameExt": rest.encode()} if rest else {}
    return _entry(
        str(above.child("CN", leaf)),
        "mSMQQueue",
        objectGUID=_guid("queue", number),
        parentGUID=_guid("machine", host),
        mSMQLabelEx=label(number).encode(),
        mSMQQueueQuota=b"1000",
        mSMQBasePriority=b"99999" if number % 1000 == 7 else b"0",
        mSMQQueueType=(number % 50 + 1).to_bytes(16, "big"),
        nTSecurityDescriptor=OPEN_TO_ALL if number % 100 == 9 else OPEN_TO_USERS,
        **_TIMES,
        **more,
    )


def queue_name(number: int) -> str:
    """One of ten names has what MS-MQMQ does not allow, one of fifty is longer than an entry's."""
    plain = f"queue{number}"
    if number % 50 == 3:
        return plain + "x" * 80
    return {1: f"größe {number}", 2: f"a;b={number}"}.get(number % 20, plain)


def _link(number: int) -> AddEntry:
    """From site 0 to another one; the gates are their routing servers."""
    ends, gates = (
        [_named(_guid(kind, n), name(n)) for n in (0, number)]
        for kind, name in (("site", _site), ("machine", _router))
    )
    names = _guid("site", 0).hex() + _guid("site", number).hex()
    return _entry(
        f"CN={names},{_SERVICES}",
        "mSMQSiteLink",
        objectGUID=_guid("link", number),
        mSMQSite1=ends[0],
        mSMQSite2=ends[1],
        mSMQSiteGates=tuple(gates),
        mSMQCost=b"1",
        nTSecurityDescriptor=OPEN_TO_ALL,
    )


def _site(number: int) -> str:
    return f"CN=Site{number:03},{_SITES}"


def _router(number: int) -> str:
    return f"CN=msmq,CN=HOST{number:05},{_COMPUTERS}"


def _named(guid: bytes, name: str) -> bytes:
    return f"<GUID={Guid(guid)}>;{name}".encode()


@cache
def _kind(name: str) -> bytes:
    return name.encode().ljust(12, b"\0")[:12]


def _guid(kind: str, number: int) -> bytes:
    return _kind(kind) + number.to_bytes(4, "big")


def _sid(rid: int) -> bytes:
    head = bytes([1, 5]) + bytes(5) + bytes([5])
    return head + b"".join(n.to_bytes(4, "little") for n in (21, 1, 2, 3, 1000 + rid))


_TIMES = {"whenCreated": _TIME, "whenChanged": _TIME}


def _entry(name: str, *classes: str, **attributes: bytes | tuple[bytes, ...]) -> AddEntry:
    rows = ((k, v if isinstance(v, tuple) else (v,)) for k, v in attributes.items())
    own = tuple(each.encode() for each in ("top", *classes))
    leaf = () if "dc" in attributes else (("cn", (DistinguishedName.parse(name).leaf.encode(),)),)
    fixed = ("objectClass", own), ("distinguishedName", (name.encode(),)), ("uSNChanged", (b"7",))
    return AddEntry(name, (*fixed, *leaf, *rows))

"""A slapd with the entries of an Active Directory: as fast a peer as LDAP has, and any size.

slapd has no schema of Active Directory, no object identifiers as names (``<GUID=...>``) and no
controls of its own. So the attributes are declared here, references are stored with identifiers
(``<GUID=...>;CN=...``), and a small gate before slapd replaces identifiers in requests by names and
leaves out controls that change nothing. Answers pass the gate as they are. What slapd cannot do
stays impossible: following changes by DirSync, deleted entries, rights.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import md5
from pathlib import Path

from bench import slapd
from bench.sambadomain import OPEN_TO_ALL
from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.protocol.activedirectory.recipients import FORMAT_NAME
from mqis.protocol.activedirectory.schema import needed_names
from mqis.protocol.activedirectory.view import NameKey
from mqis.testing.ports import free_port
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.controls import EXTENDED_DN, SD_FLAGS, SHOW_DELETED
from mqis.wire.ldap.ldif import write_ldif
from mqis.wire.ldap.messages import LdapMessage, MessageStream
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.ldap.requests import SearchRequest

#: Subclasses after their superclasses; entries name all of theirs.
_CLASSES = {
    "domainDNS": "top", "placeholder": "top", "container": "top", "site": "top",
    "subnet": "top", "server": "top", "serversContainer": "top", "nTDSDSA": "top",
    "crossRef": "top", "user": "top", "computer": "user", "mSMQConfiguration": "top",
    "mSMQQueue": "top", "mSMQEnterpriseSettings": "top", "mSMQSiteLink": "top",
    "mSMQSettings": "top", "mSMQMigratedUser": "top", "msMQ-Custom-Recipient": "top",
    "group": "top", "lostAndFound": "top",
}  # fmt: skip
_NUMBERS = {"uSNChanged", "highestCommittedUSN", "userAccountControl"}
#: Declared by slapd itself.
_KNOWN = {"objectClass", "cn", "dc", "description", "distinguishedName", "name"}
_MORE = {
    "objectSid", "sAMAccountName", "dNSHostName", "servicePrincipalName", "networkAddress",
    "mSMQUserSid", "memberOf", "siteObject", "serverReference", "nCName", "systemFlags",
    "invocationId", "dsServiceName", "parentGUID", "objectGUID", "isDeleted", "serverName",
    "configurationNamingContext", "defaultNamingContext", "rootDomainNamingContext",
    "schemaNamingContext", "name", "mSMQRoutingService", "mSMQServices",
    FORMAT_NAME,
}  # fmt: skip
_OCTETS, _NUMBER = (
    "EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40",
    "EQUALITY integerMatch ORDERING integerOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27",
)
#: Attributes whose values are the names of other entries; classes that slapd has otherwise.
_REFERENCES = {"mSMQSite1", "mSMQSite2", "mSMQSiteGates"}
_INSTEAD = {
    b"person": b"", b"organizationalPerson": b"", b"domain": b"",
    b"organizationalUnit": b"placeholder",
}  # fmt: skip
_ARC = "1.3.6.1.4.1.99999"
_IDLE_CONTROLS = {EXTENDED_DN, SD_FLAGS, SHOW_DELETED}
_INDEXED = "objectClass", "mSMQDigests"


@dataclass(frozen=True, slots=True)
class SlapdForest:
    """One domain of a forest that is served: ``url`` by the gate, ``direct`` by slapd itself."""

    url: str
    direct: str
    pid: int

    def options(self) -> ConnectingOptions:
        return ConnectingOptions((self.url,))


def start(
    directory: Path,
    resources: ExitStack,
    *,
    domain: str,
    configuration: str,
    entries: Iterable[AddEntry],
    usn: int = 1000,
) -> SlapdForest:
    """Serves a domain and the configuration; raises ``Unavailable`` where slapd is missing.

    ``entries`` come in the order of the tree; they are read once.
    """
    directory.mkdir(parents=True, exist_ok=True)
    root = configuration.partition(",")[2]
    invocation = f"CN=NTDS Settings,{configuration}"
    given = {
        "defaultNamingContext": domain,
        "configurationNamingContext": configuration,
        "rootDomainNamingContext": root,
        "schemaNamingContext": f"CN=Schema,{configuration}",
        "dsServiceName": invocation,
        "dNSHostName": ".".join(part.partition("=")[2] for part in f"DC=dc1,{domain}".split(",")),
        "highestCommittedUSN": str(usn),
    }
    lines = ["dn:", *(f"{key}: {value}" for key, value in given.items()), ""]
    (directory / "root.ldif").write_text("\n".join(lines))
    names: dict[Guid, str] = {}
    served = slapd.start(
        directory,
        resources,
        suffix=f'"{root}"' if domain.endswith(root) else f'"{domain}"',
        schema=[*_schema(), f"rootDSE {directory}/root.ldif"],
        indexed=("mSMQDigests", "uSNChanged"),
        content=_written(entries, names),
    )
    port = _gate(served.port, names, resources)
    return SlapdForest(f"ldap://127.0.0.1:{port}", f"ldap://127.0.0.1:{served.port}", served.pid)


def completed(entries: Sequence[AddEntry], others: Iterable[AddEntry] = ()) -> Iterator[AddEntry]:
    """Entries with what a directory works out itself, and placeholders above them.

    ``others`` are entries that stand elsewhere in the forest: references tell their identifiers.
    """
    places = {DistinguishedName.parse(each.name): each for each in entries}
    for name in list(places):
        for number in range(1, len(name.parts)):
            above = DistinguishedName(name.parts[number:])
            if len(above.parts) > 1 and above.parts[0] != name.parts[0]:
                row = ("objectClass", (b"top", b"placeholder"))
                places.setdefault(above, AddEntry(str(above), (row,)))
    guids = {
        name.key: next(iter(each.values("objectGUID")), _made_guid(name))
        for name, each in places.items()
    }
    for each in others:
        name = DistinguishedName.parse(each.name)
        guids[name.key] = next(iter(each.values("objectGUID")), _made_guid(name))
    for name, each in sorted(places.items(), key=lambda pair: len(pair[0].parts)):
        yield _completed(each, name, guids)


def _made_guid(name: DistinguishedName) -> bytes:
    return md5(str(name).casefold().encode(), usedforsecurity=False).digest()


def _completed(
    entry: AddEntry, name: DistinguishedName, guids: Mapping[NameKey, bytes]
) -> AddEntry:
    given = {
        attribute: tuple(map(partial(_extended, guids), values))
        if attribute in _REFERENCES
        else values
        for attribute, values in entry.attributes
    }
    classes = (_INSTEAD.get(each, each) for each in given["objectClass"])
    given["objectClass"] = tuple(filter(None, classes))
    leaf = name.parts[0]
    more = {
        leaf.attribute.lower(): leaf.value.encode(),
        "distinguishedName": entry.name.encode(),
        "objectGUID": guids[name.key],
        "parentGUID": guids.get(name.parent.key, b""),
        "uSNChanged": b"7",
        "whenCreated": b"20260102030405.0Z",
        "whenChanged": b"20260102030405.0Z",
        "nTSecurityDescriptor": OPEN_TO_ALL,
    }
    rows = {**{key: (value,) for key, value in more.items() if value}, **given}
    return AddEntry(entry.name, tuple(rows.items()))


def _extended(guids: Mapping[NameKey, bytes], value: bytes) -> bytes:
    found = guids.get(DistinguishedName.parse(value.decode()).key)
    return value if found is None else f"<GUID={Guid(found)}>;".encode() + value


def _written(entries: Iterable[AddEntry], names: dict[Guid, str]) -> Iterator[str]:
    """Takes note of the names of entries that requests may call by their identifiers."""
    for entry in entries:
        for raw in entry.values("objectGUID"):
            names[Guid(raw)] = entry.name
        # slapadd takes entries, and no changes.
        text = "".join(write_ldif([entry], version=False))
        yield text.replace("changetype: add\n", "", 1)


def _schema() -> Iterator[str]:
    attributes = sorted(({*needed_names()} | _MORE | _NUMBERS) - _KNOWN - _CLASSES.keys())
    for number, name in enumerate(attributes, 1):
        syntax = _NUMBER if name in _NUMBERS else _OCTETS
        yield f"attributetype ( {_ARC}.1.{number} NAME '{name}' {syntax} )"
    may = " $ ".join((*attributes, "cn", "dc", "ou", "member", "description", "distinguishedName"))
    for number, (name, above) in enumerate(_CLASSES.items(), 1):
        yield (
            f"objectclass ( {_ARC}.2.{number} NAME '{name}' SUP {above} STRUCTURAL MAY ( {may} ) )"
        )


# --- the gate -------------------------------------------------------------------------------------


def _gate(port: int, names: Mapping[Guid, str], resources: ExitStack) -> int:
    """Serves a port before that of slapd, in a thread, until the end; returns it."""
    own, loop = free_port(), asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to = await asyncio.open_connection("127.0.0.1", port)
        answers = asyncio.create_task(_copy(there, writer))
        stream = MessageStream()
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                stream.feed(data)
                for message, _ in stream.messages():
                    to.write(_plain(message, names).encode())
                await to.drain()
        to.close()
        await answers

    served = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", own))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def stop() -> None:
        loop.call_soon_threadsafe(served.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)

    resources.callback(stop)
    return own


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 18):
            writer.write(data)
            await writer.drain()
    writer.close()


def _plain(message: LdapMessage, names: Mapping[Guid, str]) -> LdapMessage:
    """A request as slapd takes it."""
    kept = tuple(each for each in message.controls if each.oid not in _IDLE_CONTROLS)
    asked = message.operation
    if isinstance(asked, SearchRequest) and asked.base.startswith("<GUID="):
        guid = Guid.parse(asked.base[len("<GUID=") : -1])
        # Nothing has the name of an identifier that nobody has.
        asked = replace(asked, base=names.get(guid, f"CN={guid},DC=nowhere"))
    return replace(message, operation=asked, controls=kept)

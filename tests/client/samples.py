"""A value for every attribute of every element, and what it is on the wire; the tables to go by."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from mqis.client import elements as e
from mqis.client.mapping import python_name
from mqis.wire.guid import Guid
from mqis.wire.propvariant import PropVariant, VarType

SPEC = Path(__file__).parents[2] / "docs" / "spec"


def table(name: str) -> list[dict[str, str]]:
    with (SPEC / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


MAP = [row for row in table("mqds-client-map.csv") if not row["object_type"].startswith("enum:")]
ENUMS = [row for row in table("mqds-client-map.csv") if row["object_type"].startswith("enum:")]
MODEL = table("mqdmpr-model.csv")

KINDS: dict[str, type[e.DirectoryElement]] = {kind.__name__: kind for kind in e.ELEMENTS}


def guid(number: int) -> Guid:
    return Guid.from_big_endian(number.to_bytes(16, "big"))


ONE, TWO, THREE = guid(0xA1), guid(0xB2), guid(0xC3)

#: Attribute: its value, and its value on the wire where that is another one.
SAMPLES: dict[str, dict[str, tuple[Any, Any]]] = {
    "QueueManager": {
        "Identifier": (ONE, ONE),
        "ComputerName": ("c14", "c14"),
        "ConnectedNetworkIdentifierList": ((ONE, TWO), (ONE, TWO)),
        "OutRoutingServerIdentifierList": ((TWO,), (TWO,)),
        "InRoutingServerIdentifierList": ((THREE,), (THREE,)),
        "QueueManagerQuota": (1_000_000, 1_000_000),
        "JournalQuota": (2_000_000, 2_000_000),
        "QueueManagerVersion": ("4.2", "4.2"),
        "CreateTime": (1_700_000_000, 1_700_000_000),
        "ModifyTime": (1_700_000_001, 1_700_000_001),
        "ForeignSystem": (True, 1),
        "OperatingSystemType": (e.OperatingSystemType.WIN_SERVER, 0x400),
        "Security": (b"descriptor", b"descriptor"),
        "PublicSigningKeyList": (b"signing", b"signing"),
        "PublicEncryptionKeyList": (b"encryption", b"encryption"),
        "FullPath": ("CN=c14", "CN=c14"),
        "SiteIdentifierList": ((THREE, ONE), (THREE, ONE)),
        "OutRoutingServerFullPathList": (("CN=a", "CN=b"), ("CN=a", "CN=b")),
        "InRoutingServerFullPathList": (("CN=c",), ("CN=c",)),
        "RoutingServer": (True, 1),
        "DirectoryServer": (True, 1),
        "SupportingServer": (False, 0),
        "QualifiedComputerName": ("c14.example", "c14.example"),
        "Clustered": (True, 1),
        # The two that share PROPID_QM_SERVICE with RoutingServer: 0x1 + 0x4 + 0x10.
        "RemoteAccessServer": (True, 0x15),
        "DirectoryServerType": (e.DirectoryServerType.PRIMARY_SITE_CONTROLLER, 0x15),
    },
    "Queue": {
        "Identifier": (ONE, ONE),
        "Type": (TWO, TWO),
        "Pathname": ("c14\\orders", "c14\\orders"),
        "Journaling": (True, 1),
        "Quota": (5000, 5000),
        "BasePriority": (-3, -3),
        "JournalQuota": (6000, 6000),
        "Label": ("Orders", "Orders"),
        "CreateTime": (1_700_000_000, 1_700_000_000),
        "ModifyTime": (1_700_000_001, 1_700_000_001),
        "Authentication": (True, 1),
        "PrivacyLevel": (e.PrivacyLevel.BODY, 2),
        "Transactional": (False, 0),
        "PartitionIdentifier": (THREE, THREE),
        "Security": (b"descriptor", b"descriptor"),
        "FullPath": ("CN=orders", "CN=orders"),
        "QualifiedPathname": ("c14.example\\orders", "c14.example\\orders"),
        "Scope": (e.Scope.ENTERPRISE, 1),
    },
    "Enterprise": {
        "Name": ("Meridian", "Meridian"),
        "WeakenedSecurity": (True, 1),
        "CryptographicProvider": (
            e.CryptographicProvider.ENHANCED,
            "Microsoft Enhanced Cryptographic Provider v1.0",
        ),
        "Identifier": (ONE, ONE),
        "DefaultTimeToLive": (345_600, 345_600),
        "OldDirectory": (True, 3),
        "Security": (b"descriptor", b"descriptor"),
    },
    "Site": {
        "Name": ("Leiden", "Leiden"),
        "Identifier": (ONE, ONE),
        "PrimarySiteController": ("lei-dir1", "lei-dir1"),
        "IntraSiteReplicationInterval": (20, 20),
        "InterSiteReplicationInterval": (600, 600),
        "Security": (b"descriptor", b"descriptor"),
        "PublicSigningKeyList": (b"signing", b"signing"),
        "FullPath": ("CN=Leiden", "CN=Leiden"),
        "MigratedFromMsmq10": (True, 1),
        "ForeignSite": (False, 0),
    },
    "RoutingLink": {
        "Site1Identifier": (ONE, ONE),
        "Site2Identifier": (TWO, TWO),
        "Cost": (1_000_009, 1_000_009),
        "Identifier": (THREE, THREE),
        "SiteGateIdentifierList": ((ONE, THREE), (ONE, THREE)),
        "Site1FullPath": ("CN=one", "CN=one"),
        "Site2FullPath": ("CN=two", "CN=two"),
        "Description": ("leased line", "leased line"),
        "FullPath": ("A1B2", "A1B2"),
        "ActualCost": (10, 10),
    },
    "ConnectedNetwork": {
        "Name": ("Corporate IP", "Corporate IP"),
        "Identifier": (ONE, ONE),
        "Security": (b"descriptor", b"descriptor"),
    },
    "User": {
        "SecurityIdentifier": (b"\x01\x01sid", b"\x01\x01sid"),
        "Certificates": (b"certificates", b"certificates"),
        "CertificateDigestList": ((TWO,), (TWO,)),
        "Identifier": (ONE, ONE),
    },
}


def populated(kind: str, *without: str) -> Any:
    """An element with every attribute that a table has."""
    values = {
        python_name(name): value
        for name, (value, _) in SAMPLES[kind].items()
        if name not in without
    }
    return KINDS[kind](**values)


def rows(kind: str, operation: str) -> list[dict[str, str]]:
    return [r for r in MAP if r["object_type"] == kind and r["operation"] == operation]


def variant_type(row: dict[str, str]) -> VarType:
    words = row["vartype"].split("|")
    text = "|".join(reversed(words))
    return next(vt for vt in VarType if str(vt) == text)


def on_the_wire(row: dict[str, str]) -> PropVariant:
    """The sample of an attribute as the property of that row."""
    names = row["attribute"].split("+")
    name = "DirectoryServerType" if len(names) > 1 else names[0]
    return PropVariant(variant_type(row), SAMPLES[row["object_type"]][name][1])


def properties(kind: str, operation: str, *without: int) -> dict[int, PropVariant]:
    """The properties that, by the tables, an event carries for a populated element."""
    return {
        int(row["propid"]): on_the_wire(row)
        for row in rows(kind, operation)
        if int(row["propid"]) not in without
    }

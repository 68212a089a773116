"""Whom an authority believes what, request by request."""

from __future__ import annotations

from itertools import count

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.protocol.replication.trust import Standing, standing_of
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeReply, ChangeRequest
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import KEYS
from tests.protocol.replication.enterprise import Enterprise, guid_of

MIN = SequenceNumber.MIN
SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
DENIED = HResult.MQ_ERROR_ACCESS_DENIED & 0xFFFFFFFF
NUMBERS = count(1_000_000)
Given = dict[int, PropVariant]


@pytest.fixture
def enterprise() -> Enterprise:
    return built()


def built(settings: ReplicationSettings | None = None) -> Enterprise:
    made = Enterprise(settings)
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("third", "C")
    made.add_bsc("bsc", "psc")
    made.add_bsc("second", "psc")
    made.run(30)
    return made


def update(guid: Guid, partition: Guid, properties: Given) -> DirectoryChange:
    listed = tuple(properties.items())
    return DirectoryChange(Command.UPDATE, None, guid, partition, MIN, MIN, MIN, listed)


def asked(  # noqa: PLR0917
    enterprise: Enterprise,
    sender: str,
    to: str,
    change: DirectoryChange,
    requester: str = "",
    psc: str | None = None,
) -> int | None:
    """The answer to a request that ``sender`` brings; None if there is none."""
    enterprise.sent.clear()
    number = next(NUMBERS)
    request = ChangeRequest(SITE_B, change.partition, number, requester or sender, psc, change)
    enterprise.inject(sender, to, request)
    replies = [m for m in enterprise.messages(ChangeReply, sender=to) if m.request_id == number]
    return replies[0].result if replies else None


def bits(value: int) -> Given:
    return props({PropId.QM_SERVICE: value})


def key() -> Given:
    return props({PropId.QM_SIGN_PK: KEYS})


@pytest.mark.req("SEC-2-05")
def test_standings(enterprise: Enterprise) -> None:
    with enterprise.nodes["pec"].store.read() as view:
        found = {name: standing_of(view, name) for name in ("PEC", "psc", "bsc", "stranger")}
    assert found == {
        "PEC": Standing.ENTERPRISE,
        "psc": Standing.PRIMARY,
        "bsc": Standing.BACKUP,
        "stranger": Standing.BACKUP,
    }


@pytest.mark.req("SEC-2-06")
def test_a_backup_that_speaks_for_the_pec_is_not_heard(enterprise: Enterprise) -> None:
    """It names itself as the PSC that passes the request on."""
    change = update(guid_of("bsc"), SITE_B, bits(4))
    assert asked(enterprise, "bsc", "psc", change, "pec", "bsc") is None
    assert asked(enterprise, "bsc", "psc", change, "second", "bsc") is None
    assert "asks in the name of" in enterprise.nodes["psc"].refusals()[-1]


@pytest.mark.req("SEC-2-06")
def test_a_psc_is_believed_about_its_own_site_and_no_other(enterprise: Enterprise) -> None:
    takeover: Given = props({PropId.S_PSC: "psc"})
    other = update(SITE_C, ENTERPRISE_PARTITION, takeover)
    assert asked(enterprise, "psc", "pec", other, "pec", "psc") is None
    assert asked(enterprise, "psc", "pec", other) == DENIED
    own = update(SITE_B, ENTERPRISE_PARTITION, takeover)
    assert asked(enterprise, "psc", "pec", own) == HResult.MQ_OK


@pytest.mark.req("SEC-2-06")
def test_a_backup_changes_its_own_key_and_nobody_elses(enterprise: Enterprise) -> None:
    assert asked(enterprise, "bsc", "psc", update(guid_of("bsc"), SITE_B, key())) == HResult.MQ_OK
    assert asked(enterprise, "bsc", "psc", update(guid_of("second"), SITE_B, key())) == DENIED


def test_ordinary_properties_of_a_server_pass(enterprise: Enterprise) -> None:
    quota: Given = props({PropId.QM_QUOTA: 7})
    for machine in ("psc", "bsc", "second"):
        change = update(guid_of(machine), SITE_B, quota)
        assert asked(enterprise, "bsc", "psc", change) == HResult.MQ_OK


def test_powers_pass_where_the_settings_let_them() -> None:
    enterprise = built(ReplicationSettings(forwarded_powers=True))
    change = update(guid_of("second"), SITE_B, bits(1))
    assert asked(enterprise, "bsc", "psc", change) == HResult.MQ_OK


def test_the_pec_is_believed(enterprise: Enterprise) -> None:
    change = update(guid_of("second"), SITE_B, bits(3))
    assert asked(enterprise, "pec", "psc", change) == HResult.MQ_OK


@pytest.mark.req("SEC-1-03")
def test_a_certificate_that_a_backup_brings_has_its_own_digest(enterprise: Enterprise) -> None:
    certificate = bytes.fromhex("300430020500")
    properties = (
        pair(PropId.U_SID, bytes.fromhex("010100000000000512000000")),
        pair(PropId.U_DIGEST, (guid_of("another"),)),
        pair(PropId.U_SIGN_CERT, certificate),
    )
    change = DirectoryChange(
        Command.CREATE, "", None, ENTERPRISE_PARTITION, MIN, MIN, MIN, properties
    )
    refused = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE & 0xFFFFFFFF
    assert asked(enterprise, "psc", "pec", change) == refused
    assert list_users(enterprise) == []


def list_users(enterprise: Enterprise) -> list[object]:
    with enterprise.nodes["pec"].store.read() as view:
        return list(view.objects(ObjectType.USER))

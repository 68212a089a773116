"""PROPID_QM_SERVICE: four attributes in one bit set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import DirectoryObject
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import C14, MACHINE, SITE_A, ui1, ui4

BSC, PSC, PEC = ServiceBits.BSC, ServiceBits.PSC, ServiceBits.PEC


def machine(stored: dict[int, PropVariant]) -> DirectoryObject:
    return DirectoryObject(MACHINE, C14, SITE_A, SequenceNumber(1), stored)


@pytest.mark.req("MQDS-3.1.4.21.8.3-07", "MQDS-3.1.4.21.8.1-08")
@pytest.mark.parametrize(
    ("bits", "service"),
    [
        (0x00, ServiceAttributes()),
        (0x01, ServiceAttributes(routing=True)),
        (0x10, ServiceAttributes(remote_access=True)),
        (0x02, ServiceAttributes(directory_server=True, role=BSC)),
        (0x04, ServiceAttributes(directory_server=True, role=PSC)),
        (0x08, ServiceAttributes(directory_server=True, role=PEC)),
        (
            0x15,
            ServiceAttributes(routing=True, remote_access=True, directory_server=True, role=PSC),
        ),
    ],
)
def test_bits(bits: int, service: ServiceAttributes) -> None:
    assert ServiceAttributes.from_bits(bits) == service
    assert service.bits == bits


@pytest.mark.req("MQDS-3.1.4.21.8.3-07")
@pytest.mark.parametrize(
    ("bits", "role"), [(0x06, PSC), (0x0A, PEC), (0x0C, PEC), (0x0E, PEC), (0xFFFFFFFF, PEC)]
)
def test_of_several_roles_the_highest_wins(bits: int, role: ServiceBits) -> None:
    service = ServiceAttributes.from_bits(bits)
    assert service.role is role
    assert service.bits & 0x0E == role


@pytest.mark.req("MQDS-3.1.4.21.8.1-08")
def test_a_server_that_stands_alone_shows_no_bit() -> None:
    alone = ServiceAttributes(routing=True).with_directory_server(True)
    assert alone == ServiceAttributes(routing=True, directory_server=True)
    assert alone.bits == 0x01


@pytest.mark.req("MQDS-3.1.4.21.8.2-06")
@pytest.mark.parametrize("before", [0x00, 0x04, 0x1D])
def test_directory_server_flag(before: int) -> None:
    service = ServiceAttributes.from_bits(before)
    on, off = service.with_directory_server(True), service.with_directory_server(False)
    assert (on.directory_server, on.role) == (True, None)
    assert (off.directory_server, off.role) == (False, None)
    assert on.bits == off.bits == before & 0x11


@given(st.integers(0, 0xFFFFFFFF), st.booleans(), st.none() | st.booleans())
def test_what_is_stored_is_what_it_was(bits: int, routing: bool, alone: bool | None) -> None:
    service = ServiceAttributes.from_bits(bits).with_routing(routing)
    if alone is not None:
        service = service.with_directory_server(alone)
    assert ServiceAttributes.of(machine(service.as_properties())) == service


def test_stored_form() -> None:
    assert ServiceAttributes.from_bits(0x04).as_properties() == {210: ui4(4), 228: ui1(1)}
    assert ServiceAttributes().with_directory_server(True).as_properties() == {
        210: ui4(0),
        228: ui1(1),
    }
    assert ServiceAttributes.of(machine({})) == ServiceAttributes()

"""Listening addresses of servers: one per server, one for all, and ports that are in use."""

from __future__ import annotations

import socket
from dataclasses import astuple
from pathlib import Path

import pytest

from mqis.enterprise.placing import Ports, ServerPorts, assign, own_addresses_work

NAMES = ["a", "b", "c"]
own_addresses = pytest.mark.skipif(not own_addresses_work(), reason="loopback has one address here")


@own_addresses
def test_each_has_an_address_of_its_own_and_it_stays(tmp_path: Path) -> None:
    first = assign(tmp_path, NAMES)
    addresses = [place.address for place in first.places.values()]
    assert len(set(addresses)) == 3
    assert all(address.startswith("127.") for address in addresses)
    assert assign(tmp_path, NAMES, first.places).places == first.places
    more = assign(tmp_path, [*NAMES, "d"], first.places).places
    assert more["a"] == first.places["a"]
    assert more["d"].address not in addresses
    assert more["d"].address.rpartition(".")[0] == addresses[0].rpartition(".")[0]


@own_addresses
def test_another_directory_has_another_network(tmp_path: Path) -> None:
    one, two = (assign(tmp_path / name, NAMES).places["a"].address for name in ("x", "y"))
    assert one != two


@own_addresses
def test_a_busy_port_is_replaced_and_told(tmp_path: Path) -> None:
    place = assign(tmp_path, NAMES).places["b"]
    with socket.create_server((place.address, place.ports.queue)):
        second = assign(tmp_path, NAMES)
    found = second.places["b"]
    assert found.address == place.address
    assert found.ports.queue != place.ports.queue
    told = f"b: queue port {place.address}:{place.ports.queue} is busy; took {found.ports.queue}"
    assert told in second.notes
    assert len(second.notes) == 1 + len([n for n in second.notes if "privileged" in n])


def test_one_address_for_all_means_blocks_of_ports(tmp_path: Path) -> None:
    found = assign(tmp_path, NAMES, own=False)
    assert {place.address for place in found.places.values()} == {"127.0.0.1"}
    ports = [port for place in found.places.values() for port in astuple(place.ports)]
    assert len(set(ports)) == len(ports) == 15
    assert all(1024 < port < 32_768 for port in ports)
    assert found.notes == ()


def test_a_udp_port_is_tried_as_one(tmp_path: Path) -> None:
    """Somebody else's TCP port of the same number is not in the way, a UDP port is."""
    known = ServerPorts("127.0.0.1", assign(tmp_path, ["a"], own=False).places["a"].ports)
    with socket.create_server((known.address, known.ports.discovery)):
        assert assign(tmp_path, ["a"], {"a": known}).places["a"] == known
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((known.address, known.ports.discovery))
        moved = assign(tmp_path, ["a"], {"a": known}).places["a"].ports
    assert moved.discovery != known.ports.discovery
    assert moved == Ports(
        known.ports.rpc,
        known.ports.mapper,
        known.ports.queue,
        moved.discovery,
        known.ports.monitor,
    )

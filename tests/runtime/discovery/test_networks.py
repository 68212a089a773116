"""The networks of this computer, as its own tool tells them."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys

import pytest

from mqis.runtime.discovery.networks import LocalNetwork, local_networks, network_of


@pytest.mark.req("MQSD-3.1.4.1-02")
def test_all_networks_that_are_up() -> None:
    if sys.platform != "linux" or shutil.which("ip") is None:
        pytest.skip("no ip command (iproute2) to compare with")
    done = subprocess.run(["ip", "-j", "-4", "addr", "show", "up"], capture_output=True, check=True)
    wanted = {
        entry["local"]: entry.get("broadcast", "255.255.255.255")
        for link in json.loads(done.stdout)
        for entry in link.get("addr_info", ())
        if "LOOPBACK" not in link["flags"]
    }
    found = {network.address: network.broadcast for network in local_networks()}
    assert found == (wanted or {"127.0.0.1": "127.255.255.255"})


def test_every_loopback_address_has_a_network() -> None:
    assert network_of("127.3.4.5") == LocalNetwork("127.3.4.5", "127.255.255.255")
    assert network_of("127.3.4.5").loopback
    assert network_of("203.0.113.1") == LocalNetwork("203.0.113.1", "255.255.255.255")


def test_the_address_tells_whether_a_network_is_loopback() -> None:
    """Its broadcast address does not: without one it is the limited one."""
    assert LocalNetwork("127.0.0.1", "255.255.255.255").loopback
    assert not LocalNetwork("192.0.2.1", "127.255.255.255").loopback


def test_where_no_ioctl_tells_the_hosts_name_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(socket, "gethostbyname_ex", lambda _: ("h", [], ["127.0.0.1", "10.0.0.9"]))
    assert local_networks() == [LocalNetwork("10.0.0.9", "255.255.255.255")]

    def unknown(_name: str) -> None:
        raise socket.gaierror("unknown")

    monkeypatch.setattr(socket, "gethostbyname_ex", unknown)
    assert local_networks() == [LocalNetwork("127.0.0.1", "127.255.255.255")]

"""What programs build on: the names of ``mqis.client``, the logon, and refusals that help."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

import mqis.client
from mqis.client import (
    DirectoryClient,
    Enterprise,
    LogonCredentials,
    Queue,
    QueueManager,
    RequestRefusedError,
    RoutingLink,
    ServerAddress,
    Site,
    User,
)
from mqis.client.elements import DirectoryElement
from mqis.client.requests import equal, lookup
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials


def documented(name: str) -> Iterator[tuple[str, object]]:
    """A public name, and the methods and properties of a class of this package."""
    found = getattr(mqis.client, name)
    yield name, found
    if inspect.isclass(found) and found.__module__.startswith("mqis.client"):
        for key, value in vars(found).items():
            held = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not key.startswith("_") and inspect.isfunction(held):
                yield f"{name}.{key}", held


@pytest.mark.parametrize("name", mqis.client.__all__)
def test_every_public_name_has_a_sentence(name: str) -> None:
    """The reference of ``make site`` shows them. A dataclass without one shows its signature."""
    for each, found in documented(name):
        text = inspect.cleandoc(getattr(found, "__doc__", None) or "")
        assert text, each
        assert not text.startswith(f"{name}("), each
        assert text.partition("\n\n")[0].rstrip()[-1] in ".:", each


def unconnected() -> DirectoryClient:
    """A client that has to refuse before it would connect."""
    settings = mqis.client.SessionSettings()
    known = mqis.client.KnownServers.of([ServerAddress("nowhere.invalid")])
    return DirectoryClient(mqis.client.DirectoryConnection(known, settings))


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (Queue, "pathname"),
        (QueueManager, "computer_name"),
        (Site, "name"),
        (RoutingLink, "identifier"),
        (User, "certificate_digest_list"),
    ],
)
def test_reading_without_a_key_is_refused(kind: type[DirectoryElement], key: str) -> None:
    with pytest.raises(RequestRefusedError, match=rf"such as {key}; search\(\) yields all"):
        asyncio.run(unconnected().read(kind))


def test_the_enterprise_needs_no_key() -> None:
    with pytest.raises(mqis.client.NoServerError):
        asyncio.run(unconnected().read(Enterprise))


def test_a_wrong_key_is_told_with_the_right_ones() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        lookup(Site, [equal("pathname", "Berlin")], ["name"])
    text = str(refused.value)
    assert text.startswith("a site cannot be looked up by pathname; it can by foreign_site, ")
    assert " name," in text


def test_a_logon_sets_both_and_excludes_them() -> None:
    logon = LogonCredentials("alice", "LAB", "secret")
    provider = PyspnegoInitiator(logon)
    other = Credentials(provider, AuthType.NTLM, AuthLevel.PRIVACY, "host")
    for wrong in ({"credentials": other}, {"gss": provider}):
        with pytest.raises(ValueError, match="a logon sets credentials and gss"):
            asyncio.run(DirectoryClient.connect([ServerAddress("x")], logon=logon, **wrong))

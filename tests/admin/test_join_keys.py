"""Whose key a server has to know before it joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from mqis.admin import join as joining
from mqis.admin.join import Wanted, join
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.server_identity import Role
from mqis.runtime.node.signer import MachineKey
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

PEC = Guid(bytes(15) + b"\x01")
KEY = MachineKey.generate().public


@dataclass
class Shown:
    id: Guid
    values: dict[PropId, PropVariant | None]


@dataclass
class Fresh:
    """A PEC that has just been started, and publishes its key after so many looks."""

    looks: int
    asked: int = 0
    made: list[str] = field(default_factory=list)

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        return PEC

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId]) -> Shown:
        if object_type is ObjectType.SITE or name == "psc2":
            raise DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, "not here")
        values: dict[PropId, PropVariant | None] = {
            PropId.E_PECNAME: prop(PropId.E_PECNAME, "pec1"),
            PropId.E_NAME: prop(PropId.E_NAME, "pec1"),
        }
        return Shown(PEC, values)

    def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: dict[int, PropVariant],
        descriptor: bytes | None,
    ) -> Guid | None:
        self.made.append(path or "")
        return Guid(bytes(15) + b"\x02")

    def security(self, object_type: ObjectType, name: str, information: int) -> bytes:
        self.asked += 1
        if self.asked <= self.looks:
            raise DirectoryError(HResult.MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST, "no key yet")
        return KEY.to_bytes()

    def set_security(
        self, object_type: ObjectType, name: str, information: int, data: bytes
    ) -> None:
        raise AssertionError("nothing is to be set")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_LOOK_S", 0.0)


def wanted(*, keys_required: bool) -> Wanted:
    return Wanted("psc2", Role.PSC, "Leiden", "pec1", KEY, keys_required=keys_required)


@pytest.mark.req("SEC-3-01")
@pytest.mark.parametrize("looks", [0, 3])
def test_who_requires_signatures_waits_for_the_key_of_who_he_believes(looks: int) -> None:
    directory = Fresh(looks)
    [seed] = join(directory, wanted(keys_required=True)).seeds
    assert seed.key == KEY
    assert directory.asked == looks + 1


@pytest.mark.req("SEC-3-01")
def test_without_that_key_nothing_is_created() -> None:
    directory = Fresh(looks=1000)
    with pytest.raises(MqisError, match="pec1 has no signing key in the directory"):
        join(directory, wanted(keys_required=True))
    assert directory.made == []


def test_who_requires_nothing_does_not_wait() -> None:
    directory = Fresh(looks=1000)
    [seed] = join(directory, wanted(keys_required=False)).seeds
    assert seed.key is None
    assert directory.asked == 1


@dataclass
class Closed(Fresh):
    """A PEC that shows this caller no sites."""

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId]) -> Shown:
        if object_type is ObjectType.SITE:
            raise DirectoryError(HResult.MQ_ERROR_ACCESS_DENIED, "not for you")
        return super().get(object_type, name, chosen)


def test_a_site_that_may_not_be_read_is_not_made_again() -> None:
    directory = Closed(looks=0)
    with pytest.raises(DirectoryError, match="not for you"):
        join(directory, wanted(keys_required=False))
    assert directory.made == []

"""Object security over a socket: the three getters, the two setters, keys behind the same calls."""

from __future__ import annotations

import re

import pytest

from mqis.protocol.directory.descriptors import descriptor_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    KeyAlgorithm,
    MqdsPublicKey,
    ProviderType,
    PublicKeys,
    RsaPublicKey,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl, to_sddl
from tests import distinct
from tests.protocol.directory.world import (
    ALICE,
    BASE_KEY,
    C14,
    CN,
    DELETED,
    ENTERPRISE,
    ENTERPRISE_ID,
    LINK,
    LINK_AB,
    MACHINE,
    NET,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    SITE_F,
    USER,
    World,
    blob,
)
from tests.runtime.directory.serving import (
    ADMIN,
    NOW,
    OK,
    SIGNATURE_SIZE,
    Caller,
    scenario,
    serving,
)

OWNER, GROUP, DACL, SACL, KEYX, SIGN = 1, 2, 4, 8, 0x4000_0000, 0x8000_0000
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
NOT_FOUND = HResult.MQDS_OBJECT_NOT_FOUND
WRONG_TYPE = HResult.MQDS_WRONG_OBJ_TYPE
LINK_PATH = SITE_A.big_endian.hex() + SITE_B.big_endian.hex()
#: Of each type: path, GUID, the property that holds its descriptor.
PLACES: dict[ObjectType, tuple[str, Guid, int]] = {
    QUEUE: ("C14\\orders", ORDERS, 1101),
    MACHINE: ("C14", C14, 1201),
    SITE: ("Alpha", SITE_A, 1301),
    CN: ("Net", NET, 1501),
    ENTERPRISE: ("Corp", ENTERPRISE_ID, 1601),
}


def secured() -> World:
    """Every object has all parts of a descriptor, every machine and site has keys: its own."""
    world = World()
    for object_type, (_, _, propid) in PLACES.items():
        for obj in everyone(world, object_type):
            own = blob(parse_sddl(FULL[obj.id]).to_bytes())
            world.update_event(obj, {propid: own})
    for machine in everyone(world, MACHINE):
        keys = {238: blob(ENCRYPTION_KEYS[machine.id]), 239: blob(SIGNING_KEYS[machine.id])}
        world.update_event(machine, keys)
    for site in everyone(world, SITE):
        world.update_event(site, {1302: blob(SIGNING_KEYS[site.id])})
    return world


def everyone(world: World, object_type: ObjectType) -> list[DirectoryObject]:
    with world.store.read() as view:
        return list(view.objects(object_type))


def _number(obj: DirectoryObject) -> int:
    return int.from_bytes(obj.id.big_endian, "big")


_ALL = [obj for object_type in PLACES for obj in everyone(World(), object_type)]
#: Of each object: its descriptor, its lists of keys, the first of each list.
FULL = {obj.id: distinct.sddl(_number(obj)) for obj in _ALL}
ENCRYPTION_KEYS = {obj.id: distinct.encryption_keys(_number(obj)) for obj in _ALL}
SIGNING_KEYS = {obj.id: distinct.signing_keys(_number(obj)) for obj in _ALL}


def first_key(keys: bytes) -> RsaPublicKey:
    return PublicKeys.from_bytes(keys).keys[0].rsa()


def parts_of(sddl: str, information: int) -> str:
    """The parts of a descriptor that ``information`` selects, in SDDL."""
    parts = re.fullmatch("(O:.+)(G:.+)(D:.+)(S:.+)", sddl)
    assert parts is not None
    return "".join(part for at, part in enumerate(parts.groups()) if information >> at & 1)


async def get(
    caller: Caller, object_type: int, target: str | Guid, information: int, length: int = 4096
) -> dscomm.SecurityGot:
    auth = caller.auth
    if isinstance(target, str):
        by_path = dscomm.GetSecurity(object_type, target, information, length, auth, SIGNATURE_SIZE)
        return await caller.call(dscomm.GET_OBJECT_SECURITY, by_path)
    by_guid = dscomm.GetSecurityGuid(object_type, target, information, length, auth, SIGNATURE_SIZE)
    return await caller.call(dscomm.GET_OBJECT_SECURITY_GUID, by_guid)


async def get_as_machine(
    caller: Caller, object_type: int, target: Guid, information: int, length: int = 4096
) -> dscomm.SecurityGot:
    request = dscomm.GetMachineSecurity(
        object_type, target, information, length, 5, caller.auth, SIGNATURE_SIZE
    )
    return await caller.call(dscomm.QM_GET_OBJECT_SECURITY, request)


async def put(
    caller: Caller, object_type: int, target: str | Guid, information: int, data: bytes | None
) -> int:
    if isinstance(target, str):
        by_path = dscomm.SetSecurity(object_type, target, information, data)
        return (await caller.call(dscomm.SET_OBJECT_SECURITY, by_path)).result
    by_guid = dscomm.SetSecurityGuid(object_type, target, information, data)
    return (await caller.call(dscomm.SET_OBJECT_SECURITY_GUID, by_guid)).result


def _sddl(got: dscomm.SecurityGot) -> str:
    assert got.result == OK
    return to_sddl(SecurityDescriptor.from_bytes(got.descriptor[: got.length_needed]))


class TestGet:
    @pytest.mark.req(
        "MQDS-3.1.4.11-03",
        "MQDS-3.1.4.11-04",
        "MQDS-2.2.4-01",
        "MQDS-3.1.4.12-01",
        "MQDS-3.1.4.15-06",
    )
    @pytest.mark.parametrize("object_type", list(PLACES))
    @pytest.mark.parametrize("information", [OWNER, GROUP, DACL, SACL, OWNER | DACL, 15])
    @scenario
    async def test_just_the_parts_that_were_asked_for(
        self, object_type: ObjectType, information: int
    ) -> None:
        """Of every object of the type; no two have a part in common."""
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            for obj in everyone(served.world, object_type):
                sddl = parts_of(FULL[obj.id], information)
                assert _sddl(await get(caller, object_type, obj.path or "", information)) == sddl
                assert _sddl(await get(caller, object_type, obj.id, information)) == sddl
                as_machine = await get_as_machine(caller, object_type, obj.id, information)
                assert _sddl(as_machine) == sddl

    @pytest.mark.req("MQDS-3.1.4.11-11", "MQDS-3.1.4.11-01", "MQDS-3.1.4.12-01", "MQDS-2.2.4-01")
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_length(self, transfer: SyntaxId) -> None:
        """0 is how clients ask for the size; what is too long is padded with zeros."""
        async with (
            serving(secured()) as served,
            served.caller(ADMIN, transfers=[transfer]) as caller,
        ):
            for target in ("C14", C14):
                probe = await get(caller, MACHINE, target, 7, 0)
                too_small = HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
                assert (probe.result, probe.descriptor) == (too_small, b"")
                needed = probe.length_needed
                less = await get(caller, MACHINE, target, 7, needed - 1)
                assert (less.result, less.length_needed) == (too_small, needed)
                assert less.descriptor == bytes(needed - 1)
                exact = await get(caller, MACHINE, target, 7, needed)
                assert (exact.result, exact.length_needed) == (OK, needed)
                more = await get(caller, MACHINE, target, 7, needed + 9)
                assert (more.result, more.length_needed) == (OK, needed)
                assert more.descriptor == exact.descriptor + bytes(9)

    @pytest.mark.req("MQDS-3.1.4.15-06")
    @scenario
    async def test_a_machine_gets_the_selected_parts_under_the_same_length_rule(self) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            probe = await get_as_machine(caller, MACHINE, C14, DACL, 0)
            assert probe.result == HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
            needed = probe.length_needed
            got = await get_as_machine(caller, MACHINE, C14, DACL, needed + 9)
            assert (got.result, got.length_needed) == (OK, needed)
            assert _sddl(got) == parts_of(FULL[C14], DACL)

    @pytest.mark.req("MQDS-3.1.4.11-02")
    @pytest.mark.parametrize(
        "information", [0, 16, KEYX | SIGN, KEYX | OWNER, SIGN | DACL, 0x2000_0000, 0xFFFF_FFFF]
    )
    @scenario
    async def test_masks_that_mean_nothing(self, information: int) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            for target in ("C14", C14):
                got = await get(caller, MACHINE, target, information)
                assert (got.result, got.length_needed) == (INVALID, 0)
            assert await put(caller, MACHINE, C14, information, b"x") == INVALID

    @pytest.mark.req("MQDS-3.1.4.11-05")
    @scenario
    async def test_the_first_encryption_key(self) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            for machine in everyone(served.world, MACHINE):
                for target in (machine.path or "", machine.id):
                    got = await get(caller, MACHINE, target, KEYX)
                    data = got.descriptor[: got.length_needed]
                    assert data[:8] == bytes.fromhex("06020000 00a40000")
                    key = first_key(ENCRYPTION_KEYS[machine.id])
                    assert RsaPublicKey.from_bytes(data).modulus == key.modulus
                    assert RsaPublicKey.from_bytes(data).exponent == key.exponent

    @pytest.mark.req("MQDS-3.1.4.11-06", "MQDS-3.1.4.13-02")
    @pytest.mark.parametrize("object_type", [MACHINE, SITE])
    @scenario
    async def test_the_first_signing_key(self, object_type: ObjectType) -> None:
        """Its header says signing, whatever the stored one says; no length before it."""
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            for obj in everyone(served.world, object_type):
                for target in (obj.path or "", obj.id):
                    got = await get(caller, object_type, target, SIGN)
                    data = got.descriptor[: got.length_needed]
                    assert data[:8] == bytes.fromhex("06020000 00240000")
                    key = first_key(SIGNING_KEYS[obj.id])
                    assert RsaPublicKey.from_bytes(data).modulus == key.modulus

    @pytest.mark.req("MQDS-3.1.4.11-05", "MQDS-3.1.4.11-06")
    @scenario
    async def test_objects_without_keys(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            for object_type, information in ((MACHINE, KEYX), (MACHINE, SIGN), (SITE, SIGN)):
                got = await get(caller, object_type, PLACES[object_type][0], information)
                assert got.result == HResult.MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST

    @pytest.mark.parametrize(
        ("object_type", "information"),
        [
            pytest.param(QUEUE, SIGN, marks=pytest.mark.departs("MQDS-3.1.4.11-07")),
            pytest.param(CN, SIGN, marks=pytest.mark.departs("MQDS-3.1.4.11-07")),
            pytest.param(ENTERPRISE, SIGN, marks=pytest.mark.departs("MQDS-3.1.4.11-07")),
            pytest.param(QUEUE, KEYX, marks=pytest.mark.req("MQDS-3.1.4.11-08")),
            pytest.param(SITE, KEYX, marks=pytest.mark.req("MQDS-3.1.4.11-08")),
            pytest.param(ENTERPRISE, KEYX, marks=pytest.mark.req("MQDS-3.1.4.11-08")),
        ],
    )
    @pytest.mark.req("MQDS-3.1.4.15-07")
    @scenario
    async def test_types_without_keys(self, object_type: ObjectType, information: int) -> None:
        """Returned, not raised as a fault."""
        path, guid, _ = PLACES[object_type]
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            assert (await get(caller, object_type, path, information)).result == INVALID
            assert (await get(caller, object_type, guid, information)).result == INVALID
            got = await get_as_machine(caller, object_type, guid, information)
            assert got.result == INVALID

    @pytest.mark.req("MQDS-3.1.4.11-09", "MQDS-3.1.4.12-01", "MQDS-3.1.4.15-06")
    @pytest.mark.parametrize("information", [OWNER, DACL, SIGN, KEYX])
    @pytest.mark.parametrize(("object_type", "guid"), [(USER, ALICE), (LINK, LINK_AB)])
    @scenario
    async def test_types_without_permissions(
        self, object_type: ObjectType, guid: Guid, information: int
    ) -> None:
        """The type is looked at before the key bits."""
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            assert (await get(caller, object_type, "x", information)).result == WRONG_TYPE
            assert (await get(caller, object_type, guid, information)).result == WRONG_TYPE
            got = await get_as_machine(caller, object_type, guid, information)
            assert got.result == WRONG_TYPE

    @pytest.mark.departs("MQDS-3.1.4.11-10")
    @pytest.mark.req("MQDS-3.1.4.15-07")
    @pytest.mark.parametrize("number", [DELETED, 9, 58])
    @scenario
    async def test_other_types(self, number: int) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            assert (await get(caller, number, "C14", DACL)).result == INVALID
            assert (await get(caller, number, C14, DACL)).result == INVALID
            assert (await get_as_machine(caller, number, C14, DACL)).result == INVALID

    @pytest.mark.req("MQDS-3.1.4.11-04", "MQDS-3.1.4.12-01", "MQDS-3.1.4.15-06")
    @scenario
    async def test_objects_that_are_not_there(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            assert (await get(caller, QUEUE, "C14\\no", DACL)).result == NOT_FOUND
            assert (await get(caller, QUEUE, OTHER, DACL)).result == NOT_FOUND
            assert (await get_as_machine(caller, QUEUE, OTHER, DACL)).result == NOT_FOUND


def _selected(sddl: str, information: int) -> str:
    """As ``parts_of``; the audit list may be missing."""
    whole = sddl if "S:(" in sddl else f"{sddl}S:-"
    return parts_of(whole, information).removesuffix("S:-")


class TestSet:
    @pytest.mark.parametrize(
        "object_type",
        [
            pytest.param(QUEUE, marks=pytest.mark.req("MQDS-3.1.4.13-05")),
            pytest.param(MACHINE, marks=pytest.mark.req("MQDS-3.1.4.13-07")),
            pytest.param(SITE, marks=pytest.mark.req("MQDS-3.1.4.13-08")),
            pytest.param(CN, marks=pytest.mark.req("MQDS-3.1.4.13-09")),
            pytest.param(ENTERPRISE, marks=pytest.mark.departs("MQDS-3.1.4.13-10")),
        ],
    )
    @pytest.mark.parametrize("information", [OWNER, GROUP, DACL, SACL, 15])
    @pytest.mark.req("MQDS-3.1.4.13-01", "MQDS-3.1.4.14-01")
    @scenario
    async def test_the_selected_parts_change(
        self, object_type: ObjectType, information: int
    ) -> None:
        """The other parts stay, and so does every other object."""
        path, guid, _ = PLACES[object_type]
        sddl = "O:WDG:WDD:(A;;0x20;;;BA)"
        for target in (path, guid):
            async with serving(secured()) as served, served.caller(ADMIN) as caller:
                before = served.world.one(object_type)
                others = [o for o in everyone(served.world, object_type) if o != before]
                last = served.world.last(before.partition)
                given = parse_sddl(sddl).to_bytes()
                assert await put(caller, object_type, target, information, given) == OK
                obj = served.world.one(object_type)
                shown = to_sddl(descriptor_of(obj))
                given_parts = parts_of(f"{sddl}S:-", information).removesuffix("S:-")
                assert _selected(shown, information) == given_parts
                stayed = parts_of(FULL[obj.id], ~information)
                assert _selected(shown, ~information) == stayed
                assert [o for o in everyone(served.world, object_type) if o != obj] == others
                assert obj.seq == last.increment()
                if object_type in (QUEUE, MACHINE):
                    assert served.world.show(obj, 110 if object_type is QUEUE else 218) == NOW

    @scenario
    async def test_generic_rights_become_the_types_own(self) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            generic = parse_sddl("D:(A;;GA;;;WD)").to_bytes()
            assert await put(caller, SITE, "Alpha", DACL, generic) == OK
            assert _sddl(await get(caller, SITE, "Alpha", DACL)) == "D:(A;;0xf0037;;;WD)"

    @pytest.mark.req("MQDS-3.1.4.13-06")
    @pytest.mark.parametrize(("information", "propid"), [(KEYX, 238), (SIGN, 239)])
    @scenario
    async def test_keys_of_a_machine(self, information: int, propid: int) -> None:
        """A list of one, under the base provider's name, header included."""
        key = RsaPublicKey.of(0xABCDEF0123456789, 65537, KeyAlgorithm.CALG_RSA_SIGN)
        data = MqdsPublicKey(key).to_bytes()
        other = {238: 239, 239: 238}[propid]
        for target in ("C14", C14):
            async with serving(secured()) as served, served.caller(ADMIN) as caller:
                untouched = served.world.show(served.world.one(MACHINE), other)
                others = [m for m in everyone(served.world, MACHINE) if m.id != C14]
                assert await put(caller, MACHINE, target, information, data) == OK
                machine = served.world.one(MACHINE)
                stored = served.world.show(machine, propid)
                assert isinstance(stored, bytes)
                (only,) = PublicKeys.from_bytes(stored).keys
                assert (only.provider_name, only.provider_type) == (
                    BASE_PROVIDER,
                    ProviderType.PROV_RSA_FULL,
                )
                assert only.blob == key.to_bytes()
                assert served.world.show(machine, other) == untouched
                assert [m for m in everyone(served.world, MACHINE) if m.id != C14] == others

    @pytest.mark.req("MQDS-3.1.4.13-08", "MQDS-3.1.4.13-02")
    @scenario
    async def test_the_key_of_a_site_goes_in_with_a_length_and_comes_out_without(self) -> None:
        key = RsaPublicKey.of(0xABCDEF0123456789, 65537, KeyAlgorithm.CALG_RSA_SIGN)
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            assert await put(caller, SITE, "Beta", SIGN, MqdsPublicKey(key).to_bytes()) == OK
            got = await get(caller, SITE, "Beta", SIGN)
            assert got.descriptor[: got.length_needed] == key.to_bytes()
            for site, guid in (("Alpha", SITE_A), ("Far", SITE_F)):
                got = await get(caller, SITE, site, SIGN)
                kept = RsaPublicKey.from_bytes(got.descriptor[: got.length_needed])
                assert kept.modulus == first_key(SIGNING_KEYS[guid]).modulus

    @pytest.mark.req("MQDS-2.2.20-02", "MQDS-3.1.4.13-02")
    @scenario
    async def test_keys_that_are_none(self) -> None:
        key = RsaPublicKey.of(0xABCDEF0123456789, 65537)
        bare, whole = key.to_bytes(), MqdsPublicKey(key).to_bytes()
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            for wrong in (bare, whole[:-1], whole + b"\0", whole[:4] + b"\7" + whole[5:]):
                assert await put(caller, MACHINE, C14, SIGN, wrong) == INVALID
            assert served.world.snapshot() == before

    @pytest.mark.parametrize(
        ("object_type", "information"),
        [
            pytest.param(QUEUE, SIGN, marks=pytest.mark.req("MQDS-3.1.4.13-05")),
            pytest.param(QUEUE, KEYX, marks=pytest.mark.req("MQDS-3.1.4.13-05")),
            (SITE, KEYX),
            (CN, SIGN),
            (ENTERPRISE, SIGN),
            (ENTERPRISE, KEYX),
        ],
    )
    @pytest.mark.req("MQDS-3.1.4.15-07")
    @scenario
    async def test_types_without_keys(self, object_type: ObjectType, information: int) -> None:
        data = MqdsPublicKey(BASE_KEY).to_bytes()
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            for target in PLACES[object_type][:2]:
                assert await put(caller, object_type, target, information, data) == INVALID

    @pytest.mark.req("MQDS-3.1.4.14-01")
    @pytest.mark.parametrize("number", [USER, LINK, DELETED, 9, 58])
    @scenario
    async def test_types_that_have_none_to_set(self, number: int) -> None:
        """Never a success that loses the write."""
        given = parse_sddl("D:(A;;0x20;;;BA)").to_bytes()
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            before = served.world.snapshot()
            for target in ("x", ALICE):
                assert await put(caller, number, target, DACL, given) == WRONG_TYPE
            assert served.world.snapshot() == before

    @pytest.mark.req("MQDS-3.1.4.13-03")
    @pytest.mark.parametrize("information", [OWNER, DACL, SIGN, KEYX])
    @scenario
    async def test_nothing_to_set(self, information: int) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            for data in (None, b""):
                assert await put(caller, MACHINE, C14, information, data) == INVALID

    @pytest.mark.parametrize("damaged", [b"\1", b"\0" * 20])
    @scenario
    async def test_damaged_descriptors(self, damaged: bytes) -> None:
        async with serving(secured()) as served, served.caller(ADMIN) as caller:
            code = HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR
            assert await put(caller, QUEUE, ORDERS, DACL, damaged) == code

    @scenario
    async def test_objects_that_are_not_there(self) -> None:
        given = parse_sddl("D:(A;;0x20;;;BA)").to_bytes()
        async with serving() as served, served.caller(ADMIN) as caller:
            assert await put(caller, QUEUE, OTHER, DACL, given) == NOT_FOUND
            assert await put(caller, QUEUE, "C14\\no", DACL, given) == NOT_FOUND

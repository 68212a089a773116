"""Becoming a server, a user or an owner by asking."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from uuid import UUID

import pytest

from mqis.protocol.directory.guard import Allowance
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts
from mqis.wire.mqds.keys import BASE_PROVIDER, MqdsPublicKey, PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ANONYMOUS, EVERYONE, Sid
from tests.hostile.attacker import (
    DENIED,
    ILLEGAL_VALUE,
    MACHINE,
    NO_MACHINE,
    NOT_FOUND,
    OK,
    QUEUE,
    SITE,
    TOO_MUCH,
    USER,
    Attacker,
    Properties,
)
from tests.interop.mqds_impacket import (
    BLOB_,
    CLSID,
    LPWSTR_,
    UI1,
    UI4,
    VECTOR_CLSID,
    disconnect_all,
    variant,
)
from tests.interop.rpc_threads import in_thread
from tests.protocol.directory.world import (
    C14,
    C15,
    SITE_A,
    SITE_B,
    World,
    blob,
    certificates,
    guid,
    guids,
    text,
    ui4,
)
from tests.runtime.directory.serving import ALICE, BOB, Served, serving

CERTIFICATE = bytes.fromhex("3004 3002 0500")
KEY = RsaPublicKey.of((1 << 511) + 9, 65537)
KEYS = PublicKeys((PublicKey.of(KEY, BASE_PROVIDER),)).to_bytes()
SIGN_KEY, OWNER = 0x8000_0000, 1
ROUTING, BSC, PSC, PEC = 1, 2, 4, 8
ALPHA, BETA = UUID(int=0xA), UUID(int=0xB)
#: A call names at least one property.
PLAIN = {108: variant(LPWSTR_, "x")}
#: What MS-MQDS gives Everyone on a new machine.
FULL_CONTROL = "(A;;0xF00F7;;;WD)"


def secured(sddl: str) -> bytes:
    return parse_sddl(sddl).to_bytes()


def make_world() -> World:
    """bob owns C14 and its queue, may create machines in Alpha, and everybody reads the rest."""
    world = World()
    world.update_event(
        world.get(ObjectType.MACHINE, C14), {1201: blob(secured(f"O:{BOB.sid}D:{FULL_CONTROL}"))}
    )
    world.update_event(
        world.one(ObjectType.QUEUE), {1101: blob(secured(f"O:{BOB.sid}D:(A;;0xF003F;;;WD)"))}
    )
    creates = blob(secured(f"O:BAD:(A;;0x24;;;{BOB.sid})(A;;0x20020;;;WD)"))
    world.update_event(world.get(ObjectType.SITE, SITE_A), {1301: creates})
    # Even SET_SITE_PROPERTIES does not make anybody the authority of a site.
    sets = blob(secured(f"O:BAD:(A;;0x30;;;{BOB.sid})(A;;0x20020;;;WD)"))
    world.update_event(world.get(ObjectType.SITE, SITE_B), {1301: sets})
    world.update_event(
        world.one(ObjectType.ENTERPRISE), {1601: blob(secured("O:BAD:(A;;0x20027;;;WD)"))}
    )
    server = {203: text("BSC9"), 201: guid(SITE_A), 210: ui4(BSC), 239: blob(b"")}
    world.create_event(
        ObjectType.MACHINE, {**server, 1201: blob(secured(f"O:{BOB.sid}D:{FULL_CONTROL}"))}
    )
    return world


@pytest.fixture
def served() -> Iterator[Served]:
    with in_thread(serving(make_world())) as found:
        yield found
        disconnect_all()


@pytest.fixture
def bob(served: Served) -> Attacker:
    return Attacker(served.port, "bob")


@pytest.fixture
def admin(served: Served) -> Attacker:
    return Attacker(served.port, "admin")


def registration(sid: Sid, certificate: bytes = CERTIFICATE, digest: bytes = b"") -> Properties:
    named = UUID(bytes_le=digest or md5(certificate).digest())
    return {
        701: variant(BLOB_, sid.to_bytes()),
        702: variant(BLOB_, certificate),
        705: variant(VECTOR_CLSID, [named]),
    }


def certificate(number: int, size: int = 300) -> bytes:
    inner = number.to_bytes(4, "big").rjust(size, b"\x05")
    body = b"\x30\x82" + len(inner).to_bytes(2, "big") + inner
    return b"\x30\x82" + len(body).to_bytes(2, "big") + body


def users_of(served: Served, sid: Sid) -> int:
    """The number of certificates that the directory has for an account."""
    with served.world.store.read() as view:
        found = list(view.having(ObjectType.USER, PropId.U_SID, sid.to_bytes()))
    lists = [user.value(PropId.U_SIGN_CERT) for user in found]
    return sum(len(UserSignCerts.from_bytes(x).certificates) for x in lists if isinstance(x, bytes))


# --- users ----------------------------------------------------------------------------------------


@pytest.mark.req("SEC-1-01")
def test_a_certificate_cannot_be_registered_in_another_users_name(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    """alice has one certificate; whoever adds another signs messages as she."""
    assert bob.create(USER, None, registration(ALICE.sid, certificate(1))) == DENIED
    newcomer = Sid.parse("S-1-5-21-1-2-3-4711")
    assert bob.create(USER, None, registration(newcomer)) == DENIED
    assert bob.create(USER, None, registration(EVERYONE)) == DENIED  # a group that bob is in
    assert (users_of(served, ALICE.sid), users_of(served, newcomer)) == (1, 0)
    assert bob.create(USER, None, registration(BOB.sid)) == OK
    assert admin.create(USER, None, registration(newcomer)) == OK


@pytest.mark.req("SEC-1-01")
def test_another_users_certificates_cannot_be_replaced(served: Served, bob: Attacker) -> None:
    alices = UUID(int=0x701)
    stolen = {702: variant(BLOB_, certificate(2))}
    assert bob.change(USER, alices, stolen) == DENIED
    assert Attacker(served.port, "alice").change(USER, alices, stolen) == OK


@pytest.mark.req("SEC-1-02")
@pytest.mark.parametrize("sid", [ANONYMOUS, EVERYONE, ALICE.sid, BOB.sid], ids=str)
def test_an_anonymous_caller_cannot_become_a_user(served: Served, sid: Sid) -> None:
    nobody = Attacker(served.port)
    before = users_of(served, sid)
    assert nobody.create(USER, None, registration(sid, certificate(3))) == DENIED
    assert users_of(served, sid) == before


@pytest.mark.req("SEC-1-02")
@pytest.mark.parametrize("sid", [ANONYMOUS, EVERYONE, ALICE.sid], ids=str)
def test_an_anonymous_caller_neither_changes_nor_deletes_a_user(served: Served, sid: Sid) -> None:
    """Not even an object that came with replication and names the anonymous account itself."""
    stored = {
        701: blob(sid.to_bytes()),
        702: blob(certificates(CERTIFICATE)),
        705: guids(Guid(md5(CERTIFICATE).digest())),
    }
    user = served.world.create_event(ObjectType.USER, stored)
    nobody, name = Attacker(served.port), UUID(bytes_le=user.id.raw)
    assert nobody.change(USER, name, {702: variant(BLOB_, certificate(5))}) != OK
    assert nobody.delete(USER, name) != OK
    assert served.world.get(ObjectType.USER, user.id) == user


@pytest.mark.req("SEC-1-03")
def test_a_certificate_cannot_take_the_digest_of_another(served: Served, bob: Attacker) -> None:
    """Receivers look a signer up by the digest: alice's would lead to bob's certificate."""
    alices = md5(CERTIFICATE).digest()
    own = certificate(4)
    assert bob.create(USER, None, registration(BOB.sid, own, alices)) == ILLEGAL_VALUE
    listed = UserSignCerts((UserSignCert(alices, Guid.NULL, own),)).to_bytes()
    assert bob.create(USER, None, registration(BOB.sid, listed, alices)) == ILLEGAL_VALUE
    own_digest = md5(own).digest()
    assert bob.create(USER, None, registration(BOB.sid, listed, own_digest)) == ILLEGAL_VALUE
    assert users_of(served, BOB.sid) == 0
    assert bob.create(USER, None, registration(BOB.sid, own)) == OK
    with served.world.store.read() as view:
        [mine] = view.having(ObjectType.USER, PropId.U_SID, BOB.sid.to_bytes())
    digests = {705: variant(VECTOR_CLSID, [UUID(bytes_le=alices)])}
    assert bob.change(USER, UUID(bytes_le=mine.id.raw), digests) == ILLEGAL_VALUE


@pytest.mark.req("SEC-1-04")
def test_a_user_cannot_fill_the_directory_with_certificates(served: Served, bob: Attacker) -> None:
    served.configure(allowance=Allowance(max_certificates=3, max_certificate_bytes=5_000))
    results = [bob.create(USER, None, registration(BOB.sid, certificate(n))) for n in range(5)]
    assert results == [OK, OK, OK, TOO_MUCH, TOO_MUCH]
    large = Attacker(served.port, "alice")
    assert large.create(USER, None, registration(ALICE.sid, certificate(9, 6_000))) == TOO_MUCH


@pytest.mark.req("SEC-1-05")
def test_a_caller_cannot_fill_the_directory_with_objects(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    with served.world.store.read() as view:
        owned = view.count_created(BOB.sid.to_bytes())
    served.configure(allowance=Allowance(max_owned=owned + 2))
    results = [bob.create(QUEUE, f"C14\\q{n}", PLAIN) for n in range(4)]
    assert results == [OK, OK, TOO_MUCH, TOO_MUCH]
    assert bob.create(MACHINE, "another", {201: variant(CLSID, ALPHA)}) == TOO_MUCH
    assert bob.delete(QUEUE, "C14\\q0") == OK
    assert bob.create(QUEUE, "C14\\q9", PLAIN) == OK
    assert [admin.create(QUEUE, f"C14\\a{n}", PLAIN) for n in range(8)] == [OK] * 8


# --- servers --------------------------------------------------------------------------------------

SERVICES: list[tuple[str, Properties]] = [
    ("controller", {210: variant(UI4, BSC)}),
    ("primary site controller", {210: variant(UI4, PSC)}),
    ("primary enterprise controller", {210: variant(UI4, PEC)}),
    ("router", {210: variant(UI4, ROUTING)}),
    ("server for dependent clients", {229: variant(UI1, 1)}),
    ("directory server", {228: variant(UI1, 1)}),
]


@pytest.mark.req("SEC-2-02")
@pytest.mark.parametrize("service", [pytest.param(service, id=name) for name, service in SERVICES])
def test_a_workstation_cannot_be_made_a_server_by_its_owner(
    served: Served, bob: Attacker, admin: Attacker, service: Properties
) -> None:
    assert bob.change(MACHINE, "C14", {214: variant(UI4, 7)}) == OK  # a quota is the owner's
    before = served.world.get(ObjectType.MACHINE, C14)
    assert bob.change(MACHINE, "C14", service) == DENIED
    assert bob.change(MACHINE, UUID(int=0x14), service) == DENIED
    assert served.world.get(ObjectType.MACHINE, C14) == before
    assert admin.change(MACHINE, "C14", service) == OK


@pytest.mark.req("SEC-2-01")
@pytest.mark.parametrize("service", [pytest.param(service, id=name) for name, service in SERVICES])
def test_a_server_cannot_be_created_with_the_right_to_create_machines(
    served: Served, bob: Attacker, service: Properties
) -> None:
    site = {201: variant(CLSID, ALPHA)}
    assert bob.create(MACHINE, "rogue", {**site, **service}) == DENIED
    assert served.world.find(ObjectType.MACHINE, "rogue") is None
    assert bob.create(MACHINE, "desk", site) == OK


@pytest.mark.req("SEC-2-01")
def test_a_machine_cannot_stand_in_a_second_site_without_a_right_there(
    served: Served, bob: Attacker
) -> None:
    both = {222: variant(VECTOR_CLSID, [ALPHA, BETA])}
    assert bob.create(MACHINE, "two-faced", both) == DENIED
    assert bob.change(MACHINE, "C14", {201: variant(CLSID, BETA)}) == DENIED
    assert served.world.find(ObjectType.MACHINE, "two-faced") is None


@pytest.mark.req("SEC-2-01")
def test_the_machine_that_a_site_names_as_its_authority_cannot_be_created_by_anybody(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    """PSC1 has no machine object yet: whoever makes it gives it his own key."""
    rogue = {201: variant(CLSID, ALPHA), 239: variant(BLOB_, KEYS)}
    assert bob.create(MACHINE, "psc1", rogue) == DENIED
    assert bob.create(MACHINE, "PEC0", rogue) == DENIED
    assert admin.create(MACHINE, "psc1", rogue) == OK


@pytest.mark.req("SEC-2-04")
def test_a_server_cannot_be_given_another_key_by_who_may_write_its_machine(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    """BSC9 grants Everyone full control, as MS-MQDS has new machines do."""
    key = MqdsPublicKey(KEY).to_bytes()
    before = served.world.find(ObjectType.MACHINE, "BSC9")
    assert bob.secure(MACHINE, "BSC9", SIGN_KEY, key) == DENIED
    assert bob.change(MACHINE, "BSC9", {239: variant(BLOB_, KEYS)}) == DENIED
    assert bob.change(MACHINE, "BSC9", {210: variant(UI4, 0)}) == DENIED
    assert bob.delete(MACHINE, "BSC9") == DENIED
    assert served.world.find(ObjectType.MACHINE, "BSC9") == before
    assert bob.secure(MACHINE, "C14", SIGN_KEY, key) == OK  # a workstation's key is its owner's
    assert admin.secure(MACHINE, "BSC9", SIGN_KEY, key) == OK


@pytest.mark.req("SEC-2-03")
def test_the_authority_of_a_site_cannot_be_chosen_with_rights_on_the_site(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    """bob has SET_SITE_PROPERTIES at Beta, and CREATE_SITE at the enterprise."""
    assert bob.change(SITE, "Beta", {303: variant(VECTOR_CLSID, [UUID(int=0x14)])}) == OK
    assert bob.change(SITE, "Alpha", {303: variant(VECTOR_CLSID, [UUID(int=0x14)])}) == DENIED
    before = served.world.get(ObjectType.SITE, SITE_B)
    assert bob.change(SITE, "Beta", {304: variant(LPWSTR_, "C14")}) == DENIED
    assert bob.secure(SITE, "Beta", SIGN_KEY, MqdsPublicKey(KEY).to_bytes()) == DENIED
    assert served.world.get(ObjectType.SITE, SITE_B) == before
    assert bob.create(SITE, "Mine", {304: variant(LPWSTR_, "C14")}) == DENIED
    assert bob.create(SITE, "Mine", {1302: variant(BLOB_, KEYS)}) == DENIED
    assert bob.create(SITE, "Mine", {311: variant(UI1, 0)}) == OK
    assert admin.change(SITE, "Beta", {304: variant(LPWSTR_, "C15")}) == OK


# --- owners and places ----------------------------------------------------------------------------


@pytest.mark.req("SEC-6-01")
def test_a_queue_cannot_be_moved_to_a_machine_of_somebody_else(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    closed = blob(secured("O:BAD:(A;;0x20020;;;WD)"))
    served.world.update_event(served.world.get(ObjectType.MACHINE, C15), {1201: closed})
    there, nowhere = {115: variant(CLSID, UUID(int=0x15))}, {115: variant(CLSID, UUID(int=0x16))}
    assert bob.change(QUEUE, "C14\\orders", there) == DENIED
    assert bob.change(QUEUE, "C14\\orders", nowhere) == NO_MACHINE
    assert served.world.one(ObjectType.QUEUE).value(115) == C14
    assert admin.change(QUEUE, "C14\\orders", there) == OK


@pytest.mark.req("SEC-6-02")
def test_a_queue_cannot_be_created_in_somebody_elses_name(
    served: Served, bob: Attacker, admin: Attacker
) -> None:
    """The owner is blamed for a queue, and counted for it; its audit list fills a log."""
    alices = secured(f"O:{ALICE.sid}D:(A;;0x20;;;WD)")
    audited = secured(f"O:{BOB.sid}D:(A;;0x20;;;WD)S:(AU;SAFA;0xF003F;;;WD)")
    assert bob.create(QUEUE, "C14\\framed", PLAIN, alices) == DENIED
    assert bob.create(QUEUE, "C14\\noisy", PLAIN, audited) == DENIED
    assert bob.secure(QUEUE, "C14\\orders", OWNER, secured(f"O:{ALICE.sid}")) == DENIED
    assert served.world.find(ObjectType.QUEUE, "C14\\framed") is None
    own = secured(f"O:{BOB.sid}D:(A;;0x20;;;WD)")
    assert bob.create(QUEUE, "C14\\mine", PLAIN, own) == OK
    assert admin.create(QUEUE, "C14\\given", PLAIN, alices) == OK
    assert admin.create(QUEUE, "C14\\watched", PLAIN, audited) == OK


@pytest.mark.req("SEC-6-03")
def test_names_cannot_be_guessed_by_who_may_not_read_them(served: Served, bob: Attacker) -> None:
    """An object that bob may not read gives the same answers as one that is not there."""
    hidden = blob(secured("O:BAD:"))
    served.world.update_event(served.world.one(ObjectType.QUEUE), {1101: hidden})
    served.world.update_event(served.world.get(ObjectType.MACHINE, C15), {1201: hidden})

    def answers(queue: str, machine: str) -> list[int]:
        return [
            bob.change(QUEUE, queue, {108: variant(LPWSTR_, "x")}),
            bob.delete(QUEUE, queue),
            bob.secure(QUEUE, queue, 4, secured("D:(A;;0x20;;;WD)")),
            bob.delete(MACHINE, machine),
            bob.create(QUEUE, f"{machine}\\new", PLAIN),
        ]

    assert answers("C14\\orders", "C15") == answers("C14\\nothing", "C99")
    assert answers("C14\\orders", "C15") == [NOT_FOUND] * 4 + [NO_MACHINE]

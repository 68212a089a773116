"""Measures codecs, compared with the standard library and impacket where these do the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from uuid import UUID

from bench.enterprise import DESCRIPTOR
from bench.measure import Sample, contest, timed_together
from bench.results import Results, Row
from bench.run import Bench, Run
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import ENHANCED_PROVIDER, PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.propertybag import PropertyBag, decode_properties, encode_properties
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.reader import Reader
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer

BATCH = 500

Codec = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Duel:
    """A codec and, if there is one, another library's. Each call works on ``size`` bytes."""

    name: str
    size: int
    ours: Codec
    peer_name: str | None = None
    peer: Codec | None = None
    #: The number of values that one call encodes or decodes.
    values: int = 1


def _run(run: Run) -> Results:
    results = Results()
    for table, duels in (
        ("identifiers and numbers", _numbers()),
        ("properties", _properties()),
        ("security descriptor, 4 entries", _descriptors(results)),
        ("MQDSPUBLICKEYS, 2 keys", _keys()),
    ):
        run.say(f"codecs: {table}")
        for duel in duels:
            results.rows += _measure_duel(run, table, duel)
    return results


BENCH = Bench("codecs", "decoding and encoding, values and megabytes per second", _run)


def _measure_duel(run: Run, table: str, duel: Duel) -> list[Row]:
    contenders = {duel.name: _timed(run, duel, duel.ours)}
    size = duel.size / duel.values
    if duel.peer is None or duel.peer_name is None:
        return [Row.of(table, duel.name, contest(run.rounds, contenders)[duel.name], size=size)]
    theirs = f"{duel.name}: {duel.peer_name}"
    contenders[theirs] = _timed(run, duel, duel.peer)
    samples = contest(run.rounds, contenders)
    peer = duel.peer_name, samples[theirs]
    return [
        Row.of(table, duel.name, samples[duel.name], peer=peer, size=size),
        Row.of(table, theirs, samples[theirs], size=size),
    ]


def _timed(run: Run, duel: Duel, codec: Codec) -> Callable[[], Sample]:
    repeat = range(max(1, BATCH // duel.values))

    def batch() -> int:
        for _ in repeat:
            codec()
        return len(repeat) * duel.values

    return lambda: timed_together(batch, run.sample_s / 2)


# --- values ---------------------------------------------------------------------------------------


def _numbers() -> list[Duel]:
    count = 100
    guids = bytes(range(16)) * count
    numbers = bytes.fromhex("0000000000abcdef") * count
    seq = SequenceNumber(0xABCDEF)
    big_endian = Struct(">Q")

    def decode_guids() -> None:
        reader = Reader(guids)
        for _ in range(count):
            reader.guid()

    def decode_uuids() -> None:
        for at in range(0, len(guids), 16):
            UUID(bytes_le=guids[at : at + 16])

    def decode_numbers() -> None:
        reader = Reader(numbers)
        for _ in range(count):
            SequenceNumber.decode(reader)

    def unpack_numbers() -> None:
        for at in range(0, len(numbers), 8):
            big_endian.unpack_from(numbers, at)

    def encode_numbers() -> None:
        writer = Writer()
        for _ in range(count):
            seq.encode(writer)

    def pack_numbers() -> None:
        buffer = bytearray()
        for _ in range(count):
            buffer += big_endian.pack(0xABCDEF)

    return [
        Duel("GUID decode", len(guids), decode_guids, "uuid.UUID", decode_uuids, count),
        Duel("number decode", len(numbers), decode_numbers, "struct", unpack_numbers, count),
        Duel("number encode", len(numbers), encode_numbers, "struct", pack_numbers, count),
    ]


def change_of_20() -> dict[int, PropVariant]:
    """The properties of a typical replicated change: most small, two names, one descriptor."""
    guid = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
    small: list[tuple[VarType, int]] = [
        (VarType.UI1, 1),
        (VarType.UI4, 0xFFFFFFFF),
        (VarType.I2, -3),
        (VarType.I4, 946_684_800),
        (VarType.UI2, 7),
    ]
    values = [
        *(PropVariant(vt, value) for vt, value in small * 2),
        *(PropVariant(VarType.CLSID, guid) for _ in range(4)),
        PropVariant(VarType.LPWSTR, "SERVER00042\\queue0004242"),
        PropVariant(VarType.LPWSTR, "orders of customer 4242"),
        PropVariant(VarType.BLOB, DESCRIPTOR.to_bytes()),
        PropVariant(VarType.BLOB, bytes(8)),
        PropVariant(VarType.VECTOR_CLSID, (guid, guid)),
        PropVariant(VarType.VECTOR_UI1, bytes(16)),
    ]
    assert len(values) == 20
    return dict(enumerate(values, start=101))


def _properties() -> list[Duel]:
    change = change_of_20()
    variants = list(change.values())
    types = [variant.vt for variant in variants]
    bag = encode_properties(change)
    size = len(bag)

    def pack() -> bytes:
        writer = Writer()
        for variant in variants:
            variant.encode(writer)
        return writer.getvalue()

    packed = pack()

    def unpack() -> list[PropVariant]:
        reader = Reader(packed)
        return [PropVariant.decode(reader, vt) for vt in types]

    assert unpack() == variants
    return [
        Duel("PROPVARIANT decode, 20 in a row", len(packed), unpack, values=20),
        Duel("PROPVARIANT encode, 20 in a row", len(packed), pack, values=20),
        Duel("bag of 20: encode", size, lambda: encode_properties(change)),
        Duel("bag of 20: decode and check all", size, lambda: decode_properties(bag)),
        Duel("bag of 20: open, read all", size, lambda: dict(PropertyBag(bag))),
        Duel("bag of 20: open, read one", size, lambda: PropertyBag(bag)[115]),
    ]


def _descriptors(results: Results) -> list[Duel]:
    data = DESCRIPTOR.to_bytes()
    decode, encode = (lambda: SecurityDescriptor.from_bytes(data)), DESCRIPTOR.to_bytes
    try:
        from impacket.ldap.ldaptypes import SR_SECURITY_DESCRIPTOR  # noqa: PLC0415
    except ImportError:
        results.notes.append("impacket: skipped: it is not installed (make bench installs it)")
        return [Duel("decode", len(data), decode), Duel("encode", len(data), encode)]
    theirs = SR_SECURITY_DESCRIPTOR(data=data)
    # impacket must decode it rightly to be a peer. It writes the parts in another order.
    assert SecurityDescriptor.from_bytes(theirs.getData()) == DESCRIPTOR
    return [
        Duel("decode", len(data), decode, "impacket", lambda: SR_SECURITY_DESCRIPTOR(data=data)),
        Duel("encode", len(data), encode, "impacket", theirs.getData),
    ]


def _keys() -> list[Duel]:
    modulus = (1 << 1023) | 1
    keys = PublicKeys(
        (
            PublicKey.of(RsaPublicKey.of(modulus >> 512 | 1, 65_537)),
            PublicKey.of(RsaPublicKey.of(modulus, 65_537), ENHANCED_PROVIDER),
        )
    )
    data = keys.to_bytes()
    assert PublicKeys.from_bytes(data) == keys
    return [
        Duel("decode", len(data), lambda: PublicKeys.from_bytes(data)),
        Duel("encode", len(data), keys.to_bytes),
    ]

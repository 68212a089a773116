"""GUIDs and context handles, which every interface uses, as single items of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import ClassVar

from mqis.wire.guid import Guid
from mqis.wire.ndr.description import Codec, Description, Flat, flat_codec
from mqis.wire.ndr.stream import Decoder, Dialect, Encoder

_FIELDS_LITTLE = Struct("<IHH8s")
_FIELDS_BIG = Struct(">IHH8s")
_HANDLE_LITTLE = Struct("<I16s")
_HANDLE_BIG = Struct(">I16s")


_new = object.__new__
_set_raw = vars(Guid)["raw"].__set__


def _guid(raw: bytes) -> Guid:
    """Makes a GUID without checking the length again, which the layout has fixed."""
    guid = _new(Guid)
    _set_raw(guid, raw)
    return guid


def guid_from_big_endian_stub(item: bytes) -> Guid:
    """Swaps the first three fields of the structure; the last eight octets stay."""
    return Guid(_FIELDS_LITTLE.pack(*_FIELDS_BIG.unpack(item)))


@dataclass(frozen=True, eq=False)
class GuidDescription(Description[Guid]):
    """A GUID (MS-DTYP 2.3.4.2): {u32, u16, u16, u8[8]}, hence alignment 4."""

    def compile(self, dialect: Dialect) -> Codec:
        def dump(_encoder: Encoder, value: Guid) -> bytes:
            return value.raw

        def load(_decoder: Decoder, item: bytes, _offset: int) -> Guid:
            return _guid(item)

        def load_big(_decoder: Decoder, item: bytes, _offset: int) -> Guid:
            return guid_from_big_endian_stub(item)

        loader = load_big if dialect.big_endian else load
        return flat_codec(dialect, Flat("16s", 16, dump, loader), 4)


GUID = GuidDescription()


@dataclass(frozen=True, slots=True)
class ContextHandle:
    """A reference to a server's state: 20 bytes in either syntax, all zero for none."""

    uuid: Guid
    attributes: int = 0

    NULL: ClassVar[ContextHandle]

    def __bool__(self) -> bool:
        return bool(self.uuid) or self.attributes != 0


ContextHandle.NULL = ContextHandle(Guid.NULL)


@dataclass(frozen=True, eq=False)
class ContextHandleDescription(Description[ContextHandle]):
    """ndr_context_handle (C706 14.3.13 and appendix N): u32 attributes, UUID."""

    def compile(self, dialect: Dialect) -> Codec:
        def dump(_encoder: Encoder, value: ContextHandle) -> bytes:
            return _HANDLE_LITTLE.pack(value.attributes, value.uuid.raw)

        def load(_decoder: Decoder, item: bytes, _offset: int) -> ContextHandle:
            attributes, uuid = _HANDLE_LITTLE.unpack(item)
            return ContextHandle(_guid(uuid), attributes)

        def load_big(_decoder: Decoder, item: bytes, _offset: int) -> ContextHandle:
            attributes, uuid = _HANDLE_BIG.unpack(item)
            return ContextHandle(guid_from_big_endian_stub(uuid), attributes)

        loader = load_big if dialect.big_endian else load
        return flat_codec(dialect, Flat("20s", 20, dump, loader), 4)


CONTEXT_HANDLE = ContextHandleDescription()

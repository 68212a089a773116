"""NDR: the encoding of remote call parameters.

A type is described once, from the parts below, and compiled for NDR20 (C706 chapter 14) and NDR64
(MS-RPCE 2.2.5). ``Parameters`` is the stub of a request or response.

    @dataclass(frozen=True)
    class Search: ...                            # with the fields path, ids and limit

    SEARCH = Parameters(
        Search,
        path=Unique(WSTRING),
        count=Range(U32, 1, 128),                # not a field of Search: filled in and checked
        ids=Conformant(U32, size_is="count"),
        limit=Ref(U32),
    )
    SEARCH.decode(SEARCH.encode(search, Syntax.NDR64), Syntax.NDR64) == search
"""

from mqis.wire.ndr.arrays import Conformant, ConformantVarying, Fixed, Varying
from mqis.wire.ndr.context_handles import CONTEXT_HANDLE, GUID, ContextHandle
from mqis.wire.ndr.description import Count, Description, Given
from mqis.wire.ndr.parameters import Parameters
from mqis.wire.ndr.pointers import Full, Lazy, Ref, To, Unique
from mqis.wire.ndr.propvariant_codec import PROPVARIANT, PROPVARIANT_TYPE
from mqis.wire.ndr.scalars import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    ENUM16,
    ENUM32,
    FLOAT,
    HYPER,
    I8,
    I16,
    I32,
    I64,
    INT3264,
    U8,
    U16,
    U32,
    U64,
    UHYPER,
    UINT3264,
    WCHAR,
    Enum,
    Range,
)
from mqis.wire.ndr.stream import (
    BAD_STUB_DATA,
    ENUM_OUT_OF_RANGE,
    INVALID_TAG,
    MAX_COUNT,
    MAX_DEPTH,
    NULL_REF_POINTER,
    NdrError,
    Syntax,
)
from mqis.wire.ndr.strings import (
    ASTRING,
    LENIENT_WSTRING,
    WSTRING,
    ConformantString,
    VaryingString,
)
from mqis.wire.ndr.structures import Struct
from mqis.wire.ndr.unions import NO_DEFAULT, Choice, Union

__all__ = [
    "ASTRING",
    "BAD_STUB_DATA",
    "BOOLEAN",
    "BYTE",
    "CHAR",
    "CONTEXT_HANDLE",
    "DOUBLE",
    "ENUM16",
    "ENUM32",
    "ENUM_OUT_OF_RANGE",
    "FLOAT",
    "GUID",
    "HYPER",
    "I8",
    "I16",
    "I32",
    "I64",
    "INT3264",
    "INVALID_TAG",
    "LENIENT_WSTRING",
    "MAX_COUNT",
    "MAX_DEPTH",
    "NO_DEFAULT",
    "NULL_REF_POINTER",
    "PROPVARIANT",
    "PROPVARIANT_TYPE",
    "U8",
    "U16",
    "U32",
    "U64",
    "UHYPER",
    "UINT3264",
    "WCHAR",
    "WSTRING",
    "Choice",
    "Conformant",
    "ConformantString",
    "ConformantVarying",
    "ContextHandle",
    "Count",
    "Description",
    "Enum",
    "Fixed",
    "Full",
    "Given",
    "Lazy",
    "NdrError",
    "Parameters",
    "Range",
    "Ref",
    "Struct",
    "Syntax",
    "To",
    "Union",
    "Unique",
    "Varying",
    "VaryingString",
]

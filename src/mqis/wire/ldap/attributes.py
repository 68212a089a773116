"""Attributes with their values, as requests and answers carry them (RFC 4511 4.1.7)."""

from __future__ import annotations

from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import SET, BerReader

#: The values of one attribute.
Values = tuple[bytes, ...]
#: Attributes with their values, in the order in which they are written.
AttributeRows = tuple[tuple[str, Values], ...]


# PartialAttribute ::= SEQUENCE { type AttributeDescription, vals SET OF OCTET STRING }
def encode_attribute(name: str, values: Values) -> bytes:
    return ber.sequence(ber.text(name), ber.element(SET, *map(ber.octet_string, values)))


def decode_attribute(reader: BerReader) -> tuple[str, Values]:
    row = reader.enter("an attribute")
    name, found, values = row.text("the name of an attribute"), row.enter("values", SET), []
    while found.tag >= 0:
        values.append(found.octets("a value"))
    row.expect_end("an attribute")
    return name, tuple(values)


def encode_attributes(rows: AttributeRows) -> bytes:
    return ber.sequence(*(encode_attribute(name, values) for name, values in rows))


def decode_attributes(reader: BerReader) -> AttributeRows:
    rows, found = reader.enter("attributes"), []
    while rows.tag >= 0:
        found.append(decode_attribute(rows))
    return tuple(found)

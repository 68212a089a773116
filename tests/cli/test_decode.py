"""``mqis decode``: every structure, every form of input, every way to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.cli.decode import parse_hex
from mqis.wire.decoders import DECODERS
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.keys import MqdsPublicKey, PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propertybag import encode_properties
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import NDR20, Operation
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_bodies import Bind, ContextElement, Fault, Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import Sid
from tests.cli.commands import process, run

GUID_TEXT = "a1b2c3d4-0001-0002-0304-05060708090a"
GUID = Guid.parse(GUID_TEXT)
KEY = RsaPublicKey.of(0xC0FFEE << 1000, 65_537)


def decoded(*arguments: str, stdin: bytes | None = None) -> dict[str, Any]:
    """The values by protocol."""
    result = run("decode", "--json", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return {entry["protocol"]: entry["value"] for entry in json.loads(result.stdout)["decoded"]}


# --- vectors of the layout notes ------------------------------------------------------------------


def test_a_sequence_number() -> None:
    """Number 256, most significant byte first, unlike everything else."""
    assert decoded("00 00 00 00 00 00 01 00")["seqnum"] == "0000000000000100"


def test_a_guid() -> None:
    digits = "D4 C3 B2 A1 01 00 02 00 03 04 05 06 07 08 09 0A"
    assert decoded(digits)["guid"] == GUID_TEXT


def test_a_sid_in_a_process() -> None:
    data = "01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00"
    done = process("decode", "--protocol", "sid", data)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == ["sid: SID", "└── S-1-5-32-544"]


# --- the other structures -------------------------------------------------------------------------


def test_a_descriptor() -> None:
    sddl = "O:BAG:SYD:P(A;;GA;;;BA)"
    value = decoded("-p", "descriptor", parse_sddl(sddl).to_bytes().hex())["descriptor"]
    assert value["sddl"] == sddl
    assert value["descriptor"]["owner"] == "S-1-5-32-544"
    assert value["descriptor"]["control"] == ["DACL_PRESENT", "DACL_PROTECTED", "SELF_RELATIVE"]
    assert value["descriptor"]["dacl"]["aces"][0]["type"] == "ACCESS_ALLOWED"


def test_properties() -> None:
    bag = encode_properties(
        props(
            {
                PropId.Q_LABEL: "orders",
                PropId.Q_QMID: GUID,
                99: PropVariant(VarType.BLOB, b"\x01\x02"),
            }
        )
    )
    assert decoded("-p", "properties", bag.hex())["properties"] == {
        "99": {"vt": "VT_BLOB", "value": "0102"},
        "PROPID_Q_LABEL": {"vt": "VT_LPWSTR", "value": "orders"},
        "PROPID_Q_QMID": {"vt": "VT_CLSID", "value": GUID_TEXT},
    }


def test_public_keys() -> None:
    (key,) = decoded("-p", "publickeys", PublicKeys((PublicKey.of(KEY),)).to_bytes().hex())[
        "publickeys"
    ]
    assert key["provider_name"] == "Microsoft Base Cryptographic Provider v1.0"
    assert key["rsa"]["exponent"] == 65_537
    assert key["rsa"]["modulus"] == f"0x{KEY.modulus:x}"


def test_one_public_key() -> None:
    value = decoded("-p", "publickey", MqdsPublicKey(KEY).to_bytes().hex())["publickey"]
    assert value["key"]["key_algorithm"] == "CALG_RSA_KEYX"


def test_certificates() -> None:
    data = UserSignCerts.wrap(b"\x30\x00", GUID).to_bytes()
    (certificate,) = decoded("-p", "certificates", data.hex())["certificates"]["certificates"]
    assert certificate["identifier"] == GUID_TEXT
    assert certificate["certificate"] == "3000"


def test_addresses() -> None:
    data = AddressList((TaAddress.ip("10.1.2.3"),)).to_bytes()
    assert decoded("-p", "addresses", data.hex())["addresses"] == [
        {"text": "IP 10.1.2.3", "address_type": 1, "address": "0a010203"}
    ]


def test_an_hresult() -> None:
    value = decoded("-p", "hresult", "06 00 0e c0")["hresult"]
    assert value["name"] == "MQ_ERROR_INVALID_PARAMETER"
    assert value["failure"] is True


# --- RPC ------------------------------------------------------------------------------------------

HANDLE = ContextHandle(Guid(bytes(range(1, 17))))


def a_request(
    operation: Operation[Any, Any], value: object, auth: AuthTrailer | None = None
) -> bytes:
    body = Request(0, operation.opnum, operation.request.encode(value, Syntax.NDR20))
    return encode_pdu(body, call_id=3, flags=FIRST_LAST, auth=auth)


GET_PROPS = a_request(
    dscomm.GET_PROPS,
    dscomm.GetProps(1, "m\\q", (PropId.Q_LABEL,), (VarType.NULL,), HANDLE, 128),
)


def test_a_bind() -> None:
    elements = (ContextElement(0, dscomm.SYNTAX, (NDR20,)),)
    token = AuthTrailer(10, 6, 1, b"NTLMSSP\0")
    flags = FIRST_LAST | PfcFlags.SUPPORT_HEADER_SIGN
    data = encode_pdu(Bind(5840, 5840, 0, elements), call_id=1, flags=flags, auth=token)
    (pdu,) = decoded("-p", "rpc", data.hex())["rpc"]
    assert pdu["type"] == "BIND"
    assert pdu["flags"] == ["FIRST", "LAST", "SUPPORT_HEADER_SIGN"]
    assert pdu["byte_order"] == "little"
    assert pdu["body"]["contexts"][0]["abstract"]["uuid"] == str(dscomm.SYNTAX.uuid)
    assert pdu["auth"]["token"] == b"NTLMSSP\0".hex()


def test_pdus_one_behind_the_other() -> None:
    answer = encode_pdu(Response(0, b"\1\2"), call_id=3, flags=FIRST_LAST)
    fault = encode_pdu(Fault(0, 0x1C010003), call_id=4, flags=FIRST_LAST)
    found = decoded("-p", "rpc", (GET_PROPS + answer + fault).hex())["rpc"]
    assert [pdu["type"] for pdu in found] == ["REQUEST", "RESPONSE", "FAULT"]
    assert found[1]["body"]["stub"] == "0102"
    assert [pdu["call_id"] for pdu in found] == [3, 3, 4]


def test_a_request_with_its_stub() -> None:
    value = decoded("-p", "dscomm", GET_PROPS.hex())["dscomm"]
    assert value["operation"] == "S_DSGetProps"
    assert value["call"]["path"] == "m\\q"
    assert value["call"]["ids"] == [PropId.Q_LABEL]
    sites = a_request(dscomm2.GET_COMPUTER_SITES, dscomm2.GetComputerSites("ams-app1", HANDLE, 128))
    value = decoded("-p", "dscomm2", sites.hex())["dscomm2"]
    assert value["call"]["path"] == "ams-app1"


@pytest.mark.parametrize(
    ("protocol", "data", "offset", "reason"),
    [
        ("rpc", GET_PROPS[:10], 10, "a PDU has at least 16 bytes, not 10"),
        ("rpc", GET_PROPS + GET_PROPS[:-1], len(GET_PROPS) + 8, "frag_length"),
        ("rpc", GET_PROPS[:2] + b"\x63" + GET_PROPS[3:], 2, "packet type 99 is not"),
        ("dscomm", encode_pdu(Response(0, b""), call_id=1, flags=3), 2, "this PDU is not a req"),
        ("dscomm", encode_pdu(Request(0, 99, b""), call_id=1, flags=3), 22, "dscomm has no op"),
        (
            "dscomm",
            encode_pdu(Request(0, 11, b"\0\0\0\0"), call_id=1, flags=3),
            24,
            "0 is outside",
        ),
        (
            "dscomm",
            encode_pdu(
                Request(0, 11, bytes(8)), call_id=1, flags=3, auth=AuthTrailer(10, 6, 1, b"x")
            ),
            24,
            "the stub is encrypted",
        ),
    ],
)
def test_pdus_that_do_not_parse(protocol: str, data: bytes, offset: int, reason: str) -> None:
    result = run("decode", "--json", "-p", protocol, data.hex())
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["offset"] == offset, error
    assert error["reason"].startswith(reason)


# --- text and lists -------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "utf-16-le"])
def test_a_server_list(encoding: str) -> None:
    text = "HQ;\\10srv1.example.com,11srv2"
    value = decoded("-p", "serverlist", text.encode(encoding).hex())["serverlist"]
    assert value["site_name"] == "HQ"
    assert [server["name"] for server in value["servers"]] == ["srv1.example.com", "srv2"]
    specs = decoded("-p", "serverlist", "01a\0".encode(encoding).hex())["serverlist"]
    assert specs == [{"name": "a", "supports_ip": False, "supports_ipx": True}]


def test_a_server_list_counts_bytes() -> None:
    """The parser counts characters; the offset that is told is one of the bytes."""
    decode = next(decoder.decode for decoder in DECODERS if decoder.name == "serverlist")
    with pytest.raises(WireError) as caught:
        decode("HQ;\\1Xsrv".encode("utf-16-le"))
    assert caught.value.offset == 10


@given(st.binary(max_size=80))
def test_every_decoder_takes_bytes_or_raises_a_wire_error(data: bytes) -> None:
    for decoder in DECODERS:
        try:
            decoder.decode(data)
        except WireError as error:
            assert 0 <= error.offset <= max(len(data), 4)  # noqa: PT017


def test_decoders_have_different_names() -> None:
    assert len({decoder.name for decoder in DECODERS}) == len(DECODERS)


# --- without a protocol ---------------------------------------------------------------------------


def test_all_that_take_the_bytes_are_shown() -> None:
    data = Sid.parse("S-1-5-32-544").to_bytes()
    assert decoded(data.hex()).keys() == {"guid", "sid"}
    text = run("decode", data.hex()).stdout
    assert "guid: GUID, 16 bytes" in text
    assert "S-1-5-32-544" in text


def test_bytes_that_nothing_takes() -> None:
    result = run("decode", "0e00c0")
    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == "mqis: no decoder accepts these 3 bytes"
    assert len(lines) == 3 + len(DECODERS)
    assert any(line.split()[:2] == ["descriptor", "2"] for line in lines)


def test_bytes_that_nothing_takes_as_json() -> None:
    result = run("decode", "--json", "0e00c0")
    assert result.exit_code == 1
    attempts = json.loads(result.stdout)["error"]["attempts"]
    assert [attempt["protocol"] for attempt in attempts] == [d.name for d in DECODERS]
    assert attempts[0] == {
        "protocol": "guid",
        "offset": 0,
        "reason": "GUID needs 16 bytes, 3 left",
    }


def test_bytes_that_the_protocol_refuses() -> None:
    done = process("decode", "-p", "sid", "--json", "0101000000000005")
    assert done.returncode == 1
    assert done.stderr.decode() == "mqis: offset 8: u32 needs 4 bytes, 0 left\n"
    assert json.loads(done.stdout) == {
        "error": {"protocol": "sid", "offset": 8, "reason": "u32 needs 4 bytes, 0 left"}
    }


def test_bytes_behind_the_structure_are_refused() -> None:
    result = run("decode", "-p", "seqnum", "00" * 9)
    assert result.exit_code == 1
    assert result.stderr.startswith("mqis: offset 8: 1 bytes after the end of SEQUENCE_NUMBER")


def test_a_protocol_that_is_none() -> None:
    result = run("decode", "-p", "guide", "00")
    assert result.exit_code == 2


# --- forms of input -------------------------------------------------------------------------------

DATA = bytes(range(20))
WIRESHARK = (
    "0000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f   ........ ........\n"
    "0010  10 11 12 13                                        ....\n"
)
HEXDUMP = (
    "00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|\n"
    "00000010  10 11 12 13                                       |....|\n00000014\n"
)
XXD = (
    "00000000: 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................\n"
    "00000010: 1011 1213                                ....\n"
)


@pytest.mark.parametrize(
    "text",
    [
        DATA.hex(),
        DATA.hex().upper(),
        DATA.hex(" "),
        DATA.hex(":"),
        DATA.hex(",") + "\n",
        "0x" + DATA.hex(),
        ", ".join(f"0x{byte:02x}" for byte in DATA),
        "".join(f"\\x{byte:02x}" for byte in DATA),
        WIRESHARK,
        HEXDUMP,
        XXD,
        "0000  00 01 02 03 04 05 06 07 08 09\n000a  0a 0b 0c 0d 0e 0f 10 11 12 13\n",
    ],
)
def test_hexadecimal(text: str) -> None:
    assert parse_hex(text) == DATA


def test_a_dump_is_one_only_if_its_offsets_are_right() -> None:
    """Two long words could be an offset and bytes; here they are bytes."""
    assert parse_hex("a1b2c3d4  01000200") == bytes.fromhex("a1b2c3d401000200")
    assert parse_hex("0000  0102") == b"\x01\x02"


@pytest.mark.parametrize("text", ["", "xyz", "123", "hello world", GUID_TEXT, "0000  zz"])
def test_what_is_not_hexadecimal(text: str) -> None:
    assert parse_hex(text) is None


def test_files_and_stdin(tmp_path: Path) -> None:
    binary, text = tmp_path / "a.bin", tmp_path / "a.hex"
    binary.write_bytes(GUID.raw)
    text.write_text(GUID.raw.hex(" "), encoding="ascii")
    for result in (
        decoded(str(binary)),
        decoded(str(text)),
        decoded("-", stdin=GUID.raw),
        decoded("-", stdin=GUID.raw.hex().encode()),
    ):
        assert result["guid"] == GUID_TEXT


def test_input_that_is_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for argument, message in (
        ("nonsense", "'nonsense' is neither hexadecimal nor a file"),
        (str(tmp_path), "is neither hexadecimal nor a file"),
        (str(empty), "there are no bytes to decode"),
        ("z" * 5000, "is neither hexadecimal nor a file"),
    ):
        error = run("decode", argument).exception
        assert isinstance(error, MqisError), argument
        assert message in str(error)


def test_long_hexadecimal_is_not_a_file_name() -> None:
    data = UserSignCerts.wrap(b"\x30" * 600, GUID).to_bytes()
    assert "certificates" in decoded(data.hex())


# --- LDAP -----------------------------------------------------------------------------------------


def test_ldap_messages() -> None:
    message = "30 05 02 01 07 42 00"
    found = decoded(f"{message} {message}", "--protocol", "ldap")["ldap"]
    assert [each["id"] for each in found] == [7, 7]
    (ldap,) = (each for each in DECODERS if each.name == "ldap")
    for data in (b"", bytes.fromhex("30050201")):
        with pytest.raises(WireError, match="not complete"):
            ldap.decode(data)


def test_ldif() -> None:
    text = b"dn: CN=a\ncn: *)(\n"
    (entry,) = decoded(text.hex(), "--protocol", "ldif")["ldif"]
    assert entry["name"] == "CN=a"

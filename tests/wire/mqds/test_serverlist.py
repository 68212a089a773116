r"""Server specification lists and server lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.mqds import serverlist
from mqis.wire.mqds.serverlist import (
    ServerList,
    ServerSpec,
    format_server_specs,
    parse_server_specs,
)
from tests.strategies.mqds import server_lists, server_specs

SRV1 = ServerSpec("srv1.x.com", supports_ip=True, supports_ipx=False)
SRV2 = ServerSpec("srv2.x.com", supports_ip=True, supports_ipx=True)


@pytest.mark.req("MQDS-2.2.16-01")
@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("10srv1.x.com", (SRV1,)),
        ("10srv1.x.com,11srv2.x.com", (SRV1, SRV2)),
        ("01a", (ServerSpec("a", supports_ip=False, supports_ipx=True),)),
        ("00a,00a", (ServerSpec("a", supports_ip=False),) * 2),
        ("1011", (ServerSpec("11"),)),
        ("10a b;c", (ServerSpec("a b;c"),)),
    ],
)
def test_specification_list(text: str, servers: tuple[ServerSpec, ...]) -> None:
    assert parse_server_specs(text) == servers
    assert format_server_specs(servers) == text


@pytest.mark.req("MQDS-2.2.16-01")
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        (",", 0),
        ("10a,", 4),
        (",10a", 0),
        ("10a,,10b", 4),
        ("10a, 10b", 4),
        ("20a", 0),
        ("1", 1),
        ("12a", 1),
        ("10", 2),
        ("srv1", 0),
        ("10a,11", 6),
        ("１0a", 0),  # a digit one, but not that one
        ("10a\0", 2),
    ],
)
def test_what_is_not_a_specification_list(text: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        parse_server_specs(text)
    assert caught.value.offset == offset


@pytest.mark.req("MQDS-2.2.16-01")
def test_no_specification_list_without_servers() -> None:
    with pytest.raises(ValueError, match="at least one"):
        format_server_specs(())


@pytest.mark.req("MQDS-2.2.17-01")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("HQ;\\10srv1.x.com", ServerList("HQ", (SRV1,))),
        ("HQ;\\10srv1.x.com,11srv2.x.com", ServerList("HQ", (SRV1, SRV2))),
        ("Filiale Köln;\\01a", ServerList("Filiale Köln", (ServerSpec("a", False, True),))),
    ],
)
def test_server_list_has_one_backslash(text: str, value: ServerList) -> None:
    assert text.count("\\") == 1
    assert ServerList.parse(text) == value
    assert str(value) == text


@pytest.mark.req("MQDS-2.2.17-01")
def test_a_site_without_servers_is_the_part_before_them() -> None:
    assert str(ServerList("HQ", ())) == "HQ;\\"
    assert ServerList.parse("HQ;\\") == ServerList("HQ", ())


@pytest.mark.req("MQDS-2.2.17-01")
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("HQ", 2),
        ("HQ;", 3),
        ("HQ\\10a", 6),
        ("HQ;10a", 6),
        (";\\10a", 0),
        ("H;Q;\\10a", 0),
        ("H\\Q;\\10a", 0),
        ("HQ;\\\\10a", 4),
        ("HQ;\\,", 4),
        ("HQ;\\10a,", 8),
        ("HQ;\\10a,12b", 9),
        ("HQ;\\10a,10", 10),
    ],
)
def test_what_is_not_a_server_list(text: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        ServerList.parse(text)
    assert caught.value.offset == offset


@pytest.mark.parametrize("name", ["", "a,b", "a\0", "x" * (serverlist.MAX_NAME_CHARACTERS + 1)])
def test_server_names_that_could_not_be_read_again(name: str) -> None:
    with pytest.raises(ValueError, match="server name"):
        ServerSpec(name)


@pytest.mark.parametrize("name", ["", "a;b", "a\\b", "a\0", "x" * 256])
def test_site_names_that_could_not_be_read_again(name: str) -> None:
    with pytest.raises(ValueError, match="site name"):
        ServerList(name, (SRV1,))


def test_limits() -> None:
    name, limit = "x" * serverlist.MAX_NAME_CHARACTERS, serverlist.MAX_SERVERS
    assert parse_server_specs("10" + name)[0].name == name
    with pytest.raises(WireError, match="256 characters, at most 255"):
        parse_server_specs("10" + name + "x")
    assert len(parse_server_specs(",".join(["10a"] * limit))) == limit
    with pytest.raises(WireError, match="more than 4096 servers"):
        parse_server_specs(",".join(["10a"] * (limit + 1)))
    with pytest.raises(ValueError, match="at most 4096 servers"):
        format_server_specs((SRV1,) * (limit + 1))
    with pytest.raises(ValueError, match="at most 4096 servers"):
        ServerList("HQ", (SRV1,) * (limit + 1))


@given(st.lists(server_specs(), min_size=1, max_size=5).map(tuple))
def test_specification_list_round_trip(servers: tuple[ServerSpec, ...]) -> None:
    assert parse_server_specs(format_server_specs(servers)) == servers


@given(server_lists())
def test_server_list_round_trip(value: ServerList) -> None:
    assert ServerList.parse(str(value)) == value


@given(st.text(st.sampled_from("01a,;\\\0 "), max_size=12) | st.text(max_size=12))
def test_any_text_parses_or_raises_wire_error(text: str) -> None:
    try:
        value = ServerList.parse(text)
    except WireError:
        pass
    else:
        assert str(value) == text
    try:
        servers = parse_server_specs(text)
    except WireError:
        return
    assert format_server_specs(servers) == text

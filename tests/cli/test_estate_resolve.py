"""``mqis estate resolve``: the format names behind a queue alias or a distribution list."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone
from tests.cli.commands import run

LIST_CLASSES = (b"top", b"group")


class Lists:
    """SRV1 with two queues, and a place for aliases and lists."""

    def __init__(self) -> None:
        self.server = ScriptedDomain.of()
        computer = self.server.add_computer("SRV1")
        self.machine = f"CN=msmq,{computer}"
        self.server.put(self.machine, objectClass=(b"top", b"mSMQConfiguration"))
        self.orders, self.bills = self.queue("orders"), self.queue("bills")

    def queue(self, name: str) -> Guid:
        at = f"CN={name},{self.machine}"
        return self.server.put(at, objectClass=(b"top", b"mSMQQueue"))

    def place(self, name: str) -> str:
        return f"CN={name},CN=Users,{self.server.root}"

    def alias(
        self, name: str, format_name: bytes = b"", kind: bytes = b"msMQ-Custom-Recipient"
    ) -> str:
        given = {"msMQ-Recipient-FormatName": format_name} if format_name else {}
        self.server.put(self.place(name), objectClass=(b"top", kind), **given)
        return self.place(name)

    def group(self, name: str, *members: str, classes: tuple[bytes, ...] = LIST_CLASSES) -> Guid:
        named = [member.encode() for member in members]
        return self.server.put(self.place(name), objectClass=classes, member=named)

    def member(self, queue: str) -> str:
        return f"CN={queue},{self.machine}"

    def resolve(self, name: object, status: int = 0) -> Any:
        async def resolved() -> Any:
            async with self.server as server:
                given = ["estate", "resolve", server.url, str(name), "--method", "anonymous"]
                return await asyncio.to_thread(run, *given, *([] if status else ["--json"]))

        done = asyncio.run(resolved())
        assert done.exit_code == status, done.output
        return done.stderr if status else json.loads(done.stdout)["format_names"]


@pytest.mark.req("MQDSSM-2.3-01", "MQDSSM-3.1.6.8-01")
def test_an_alias_stands_for_the_format_name_of_its_own_entry() -> None:
    lists = Lists()
    one = lists.alias("one", b"DIRECT=OS:srv1.corp.example\\orders")
    two = lists.alias("two", b"DIRECT=TCP:10.1.2.3\\private$\\bills")
    assert lists.resolve(one) == ["DIRECT=OS:srv1.corp.example\\orders"]
    assert lists.resolve(two) == ["DIRECT=TCP:10.1.2.3\\private$\\bills"]
    assert "there is no entry" in lists.resolve(lists.place("three"), status=2)


@pytest.mark.req("MQDSSM-2.3-02")
@pytest.mark.parametrize(
    ("text", "sound"),
    [
        (b"PUBLIC=b92cc7c8-0b1e-434b-b7ad-a1b791e457dd", True),
        (b"PRIVATE=b92cc7c8-0b1e-434b-b7ad-a1b791e457dd\\0000000a", True),
        (b"DIRECT=HTTPS://host/msmq/orders", True),
        (b"DIRECT=OS:", False),
        (b"PUBLIC=b92cc7c8", False),
        (b"PRIVATE=b92cc7c8-0b1e-434b-b7ad-a1b791e457dd", False),
        (b"DL=b92cc7c8-0b1e-434b-b7ad-a1b791e457dd", False),
        (b"orders", False),
        (b"DIRECT=OS:" + b"x" * 300, False),
    ],
)
def test_an_alias_is_direct_public_or_private(text: bytes, sound: bool) -> None:
    lists = Lists()
    name = lists.alias("one", text)
    if sound:
        assert lists.resolve(name) == [text.decode()]
    else:
        assert "msMQ-Recipient-FormatName" in lists.resolve(name, status=2)


@pytest.mark.req("MQDSSM-3.1.6.8-02")
def test_an_alias_without_a_format_name_is_told_so() -> None:
    lists = Lists()
    told = lists.resolve(lists.alias("one"), status=2)
    assert "msMQ-Recipient-FormatName is missing" in told
    assert "E_ADS_PROPERTY_NOT_FOUND" in told


@pytest.mark.req("MQDSSM-3.1.6.9-01", "MQDSSM-3.1.6.9-02", "MQDSSM-3.1.6.9-03", "MQDSSM-3.1.6.9-04")
def test_a_list_stands_for_what_its_members_stand_for() -> None:
    lists = Lists()
    alias = lists.alias("alias", b"DIRECT=OS:far\\q")
    lists.group("inner", lists.member("bills"))
    all_ = lists.group("all", lists.member("orders"), alias, lists.place("inner"))
    expected = [f"PUBLIC={lists.orders}", "DIRECT=OS:far\\q", f"PUBLIC={lists.bills}"]
    assert lists.resolve(f"DL={all_}") == expected
    assert lists.resolve(f"DL={all_}@other.example") == expected  # the domain is not used
    assert lists.resolve(lists.place("all")) == expected
    assert lists.resolve(f"DL={lists.group('none')}") == []
    assert "there is no entry" in lists.resolve(f"DL={Guid(b'?' * 16)}", status=2)


@pytest.mark.req("MQDSSM-3.1.6.9-03")
def test_an_alias_in_a_list_that_leads_nowhere_fails_the_list() -> None:
    lists = Lists()
    guid = lists.group("all", lists.member("orders"), lists.alias("bare"))
    assert "MQ_ERROR_DS_ERROR" in lists.resolve(f"DL={guid}", status=2)


@pytest.mark.req("MQDSSM-3.1.6.9-05")
def test_a_member_of_another_kind_fails_the_list_and_is_named() -> None:
    lists = Lists()
    lists.server.add_user("ann", b"sid")
    guid = lists.group("all", lists.member("orders"), lists.place("ann"))
    told = lists.resolve(f"DL={guid}", status=2)
    assert "MQ_ERROR_DS_ERROR" in told
    assert "CN=ann,CN=Users" in " ".join(told.split())
    gone = lists.group("some", lists.member("orders"), lists.place("gone"))
    assert "MQDS_OBJECT_NOT_FOUND" in lists.resolve(f"DL={gone}", status=2)

    def refuse(message: LdapMessage) -> ScriptedAnswer | None:
        asked = message.operation
        wanted = isinstance(asked, SearchRequest) and asked.base == lists.member("orders")
        code = ResultCode.INSUFFICIENT_ACCESS_RIGHTS
        return [SearchDone(LdapResult(code))] if wanted else None

    lists.server.on_message = refuse
    assert "MQ_ERROR_DS_ERROR" in lists.resolve(f"DL={guid}", status=2)


@pytest.mark.req("MQDSSM-3.1.6.9-06")
@pytest.mark.parametrize("kind", [b"msMQ-Custom-Recipient", b"mSMQ-CUSTOM-Recipient"])
def test_the_class_is_the_last_value_without_regard_to_case(kind: bytes) -> None:
    lists = Lists()
    alias = lists.alias("alias", b"DIRECT=OS:far\\q", kind)
    odd = lists.place("odd")
    lists.server.put(odd, objectClass=(b"top", b"group", b"person"))
    assert lists.resolve(f"DL={lists.group('all', alias)}") == ["DIRECT=OS:far\\q"]
    assert "is person" in lists.resolve(f"DL={lists.group('more', odd)}", status=2)


@pytest.mark.req("MQDSSM-3.1.6.9-07")
def test_lists_that_contain_each_other_end() -> None:
    lists = Lists()
    one = lists.group("one", lists.member("orders"), lists.place("two"), lists.place("one"))
    two = lists.group("two", lists.place("one"), lists.member("bills"))
    both = [f"PUBLIC={lists.orders}", f"PUBLIC={lists.bills}"]
    assert lists.resolve(f"DL={one}") == both
    assert lists.resolve(f"DL={two}") == both
    for level in range(40):
        below = lists.place(f"level{level - 1}") if level else lists.member("orders")
        deep = lists.group(f"level{level}", below)
    assert "lists in 32 lists" in lists.resolve(f"DL={deep}", status=2)


@pytest.mark.req("MQDSSM-3.1.6.9-08")
def test_members_come_in_ranges() -> None:
    lists = Lists()
    lists.server.range_limit = 3
    queues = [lists.queue(f"q{number}") for number in range(8)]
    guid = lists.group("all", *(lists.member(f"q{number}") for number in range(8)))
    assert lists.resolve(f"DL={guid}") == [f"PUBLIC={queue}" for queue in queues]


@pytest.mark.req("MQDSSM-3.1.6.9-09")
def test_a_group_of_message_queuing_is_a_list() -> None:
    lists = Lists()
    lists.group("inner", lists.member("bills"), classes=(b"top", b"msMQ-Group"))
    guid = lists.group("all", lists.place("inner"))
    assert lists.resolve(f"DL={guid}") == [f"PUBLIC={lists.bills}"]

"""Attacks on the console: by another user of this computer, by a visitor who wants to read more
than their account may, and by who only wants to keep others out.

The servers run in this process, the console is a process of its own, and the attacker has sockets.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import unescape
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from pathlib import Path
from threading import Event
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mqis.client.directory import DirectoryClient
from mqis.client.remote import RemoteUser, connect
from mqis.client.servers import ServerAddress
from mqis.views.console.server_places import Places
from mqis.web.connections import Bounded
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sddl import parse_sddl
from tests.cli.commands import run
from tests.waiting import DEADLINE_S
from tests.web.asking import Visitor, eventually
from tests.web.enterprise import (
    ALICE,
    ALICES_PASSWORD,
    BOB,
    BOBS_PASSWORD,
    PEC,
    Enterprise,
)

SECRET_PATH, SECRET_LABEL = "ams-app1\\salaries", "who earns what"
#: Authenticated users may read it, but not its permissions.
SHY_PATH = "ams-app1\\shy"
ADMINISTRATORS_ONLY = "O:BAG:BAD:P(A;;GA;;;BA)"
PAGES = (
    "/",
    "/map",
    "/replication",
    "/directory",
    "/directory?type=machine",
    "/journal",
    "/pipeline",
    "/pipeline/report.html",
    "/statistics",
    "/live",
    "/login",
)


# --- an enterprise with secrets, and a console ----------------------------------------------------


@dataclass(frozen=True)
class Attacked:
    enterprise: Enterprise
    process: subprocess.Popen[str]
    url: str
    file: Path
    secret: str
    shy: str
    open: str
    visitors: dict[str, Visitor] = field(default_factory=dict)

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def visitor(self, user: str = "", password: str = "") -> Visitor:
        """One login for each of them: more in a minute would be refused."""
        if user not in self.visitors:
            self.visitors[user] = Visitor(self.url)
            assert not user or self.visitors[user].log_in(user, password).status == 303
        return self.visitors[user]


@pytest.fixture(scope="module")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    made = Enterprise(tmp_path_factory.mktemp("attacked"))
    made.start()
    yield made
    made.stop()


async def create(enterprise: Enterprise, path: str, label: str, sddl: str) -> str:
    address = ServerAddress("127.0.0.1", enterprise.servers[PEC].ready.port)
    properties: dict[int, PropVariant] = props({PropId.Q_LABEL: label})
    async with await connect([address], RemoteUser("alice", "LAB"), ALICES_PASSWORD) as client:
        descriptor = parse_sddl(sddl).to_bytes()
        made = await client.create(ObjectType.QUEUE, path, properties, descriptor)
    assert isinstance(made, Guid)
    return str(made)


@contextmanager
def console_process(run: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    words = ["console", "--run", str(run), "--port", "0", "--json", *options]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    with (run / "console.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mqis.cli.main", *words],
            env=inherited,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        assert select.select([process.stdout], [], [], DEADLINE_S)[0]
        told = json.loads(process.stdout.readline())
        yield process, told["url"], Path(told["token_file"])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def attacked(enterprise: Enterprise) -> Iterator[Attacked]:
    secret = enterprise.run(create(enterprise, SECRET_PATH, SECRET_LABEL, ADMINISTRATORS_ONLY))
    shy = "D:P(A;;GA;;;BA)(A;;0x20;;;AU)"
    shy_id = enterprise.run(create(enterprise, SHY_PATH, "shy", shy))
    everyones = "D:P(A;;GA;;;BA)(A;;GR;;;WD)"
    open_id = enterprise.run(create(enterprise, "ams-app1\\open", "open", everyones))
    tables = enterprise.home / "tables"
    tables.mkdir()
    (tables / "report.html").write_text(f"<p>{SECRET_LABEL}", encoding="utf-8")
    with console_process(enterprise.home) as (process, url, file):
        yield Attacked(enterprise, process, url, file, secret, shy_id, open_id)


def ask(
    port: int,
    path: str,
    method: str = "GET",
    *,
    body: bytes | None = None,
    source: str = "127.0.0.1",
    **headers: str,
) -> tuple[int, HTTPMessage, str]:
    """One request, with nothing but what is given."""
    with closing(HTTPConnection("127.0.0.1", port, 30, source_address=(source, 0))) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode("utf-8", "replace")


# --- the token ------------------------------------------------------------------------------------


@pytest.mark.req("SEC-9-02")
@pytest.mark.parametrize("path", PAGES)
def test_another_user_of_this_computer_reads_nothing_without_the_token(
    attacked: Attacked, path: str
) -> None:
    status, headers, text = ask(attacked.port, path)
    assert status == 403
    assert "Set-Cookie" not in headers or "token" not in headers["Set-Cookie"]
    for name in ("ams-app1", "Meridian", SECRET_LABEL):
        assert name not in text
    assert "mqis console" in text, "it is said where the address is"


@pytest.mark.req("SEC-9-02")
def test_a_login_without_the_token_is_not_even_tried(attacked: Attacked) -> None:
    """With everything else that a form takes."""
    stranger = Visitor(attacked.url.partition("?")[0])
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', stranger.get("/login").html)
    fields = {"user": BOB, "password": BOBS_PASSWORD, "server": PEC}
    answer = stranger.post("/login", {**fields, "csrf": csrf[1] if csrf else ""})
    assert (answer.status, "token is needed" in answer.text) == (403, True)


@pytest.mark.req("SEC-9-02")
def test_others_cannot_read_the_token(attacked: Attacked) -> None:
    assert attacked.file.parent == attacked.enterprise.home
    assert attacked.file.stat().st_mode & 0o777 == 0o600
    assert attacked.file.read_text(encoding="ascii") == f"{attacked.url}\n"
    assert len(attacked.token) >= 43
    process = Path(f"/proc/{attacked.process.pid}")
    for told in ("cmdline", "environ"):
        assert attacked.token.encode() not in (process / told).read_bytes()
    ask(attacked.port, f"/map?token={attacked.token}")
    assert attacked.token not in (attacked.enterprise.home / "console.log").read_text()


@pytest.mark.req("SEC-9-02")
def test_an_old_token_opens_nothing(attacked: Attacked) -> None:
    """Each start has one of its own, and takes its file away when it ends."""
    with console_process(attacked.enterprise.home) as (process, url, file):
        port = urlsplit(url).port
        assert port is not None
        assert ask(port, f"/?token={attacked.token}")[0] == 403
        assert file.exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        assert not file.exists()


@pytest.mark.req("SEC-9-02")
def test_a_file_that_lies_in_wait_does_not_get_the_token(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    """A link where the file will be, to one that somebody else can read."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "nodes.json").write_bytes((enterprise.home / "nodes.json").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    trap = tmp_path / "trap"
    trap.touch(0o644)
    (run / f"console-{port}.url").symlink_to(trap)
    with running_console(ConsoleSettings(Places(run), port=port)):
        assert trap.read_bytes() == b""
        assert (run / f"console-{port}.url").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("SEC-9-02")
def test_guessed_tokens_are_refused_and_keep_nobody_out(attacked: Attacked) -> None:
    log = attacked.enterprise.home / "console.log"
    before = len(log.read_text())
    guesses = ["", "x", attacked.token[:-1], attacked.token + "x", "%00", "%ff", "x" * 9000]
    guesses += [f"{number:043}" for number in range(40)]
    for guess in guesses:
        assert ask(attacked.port, f"/?token={guess}")[0] == 403
    told = [line for line in log.read_text()[before:].splitlines() if "wrong token" in line]
    assert 0 < len(told) <= 10, "not so many lines as guesses"
    assert "127.0.0.1" in told[0]
    assert attacked.token[:-1] not in log.read_text()
    assert ask(attacked.port, f"/?token={attacked.token}")[0] == 303


@pytest.mark.req("SEC-9-02")
def test_the_token_stays_in_no_address(attacked: Attacked) -> None:
    status, headers, _ = ask(attacked.port, f"/map?from=a&token={attacked.token}&to=b")
    assert (status, headers["Location"]) == (303, "/map?from=a&to=b")
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    cookie = headers["Set-Cookie"]
    assert attacked.token not in cookie
    flags = cookie.lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    status, headers, _ = ask(attacked.port, f"//evil.example/?token={attacked.token}")
    assert headers["Location"] == "/evil.example/", "and leads to no other computer"
    wrong = cookie.partition(";")[0][:-1]
    assert ask(attacked.port, "/", Cookie=wrong)[0] == 403


@pytest.mark.req("SEC-9-02")
def test_a_page_of_another_name_cannot_use_the_token(attacked: Attacked) -> None:
    status, headers, _ = ask(attacked.port, f"/?token={attacked.token}", Host="evil.example")
    assert status == 421
    assert "token" not in headers.get("Set-Cookie", "")


# --- what a visitor may read ----------------------------------------------------------------------


def queues(visitor: Visitor) -> set[str]:
    """All that the directory lists, page by page."""
    found: set[str] = set()
    for page in range(1, 20):
        answer = visitor.get(f"/directory?type=queue&page={page}")
        listed = re.findall(r'href="/directory/queue/[0-9a-f-]{36}">([^<]+)</a>', answer.html)
        found |= {unescape(name) for name in listed}
        if 'rel="next"' not in answer.html:
            return found
    raise AssertionError("there is no end to it")


async def over_rpc(
    enterprise: Enterprise, user: RemoteUser | None, password: str | None
) -> set[str]:
    address = ServerAddress("127.0.0.1", enterprise.servers[PEC].ready.port)
    if user is None:
        client = await DirectoryClient.connect([address])
    else:
        client = await connect([address], user, password)
    async with client:
        return {str(row[0].value) async for row in client.lookup([PropId.Q_PATHNAME], [], [])}


@pytest.mark.req("SEC-9-01")
@pytest.mark.parametrize(
    ("name", "password"), [("", ""), (BOB, BOBS_PASSWORD), (ALICE, ALICES_PASSWORD)]
)
def test_the_console_lists_what_rpc_lists(attacked: Attacked, name: str, password: str) -> None:
    user = RemoteUser(name.partition("\\")[2], "LAB") if name else None
    listed = attacked.enterprise.run(over_rpc(attacked.enterprise, user, password or None))
    assert queues(attacked.visitor(name, password)) == listed
    assert (SECRET_PATH in listed) is (name == ALICE)
    assert (SHY_PATH in listed) is (name != "")


@pytest.mark.req("SEC-9-01")
@pytest.mark.parametrize(("name", "password"), [("", ""), (BOB, BOBS_PASSWORD)])
def test_an_object_that_the_visitor_may_not_read_is_not_there(
    attacked: Attacked, name: str, password: str
) -> None:
    visitor = attacked.visitor(name, password)
    secret, nobody = attacked.secret, "11111111-2222-3333-4444-555555555555"
    for page in ("/directory/queue/{}", "/directory/queue/{}?server=ber-dir1"):
        hidden, absent = visitor.get(page.format(secret)), visitor.get(page.format(nobody))
        assert (hidden.status, absent.status) == (404, 404)
        assert hidden.text.replace(secret, nobody) == absent.text, "nobody can tell that it exists"
    for query in (f"q={secret}", "q=salaries", f"q={quote(SECRET_LABEL)}"):
        assert "0 queues" in visitor.get(f"/directory?{query}").text
    administrator = attacked.visitor(ALICE, ALICES_PASSWORD)
    assert SECRET_LABEL in administrator.get(f"/directory/queue/{secret}").text
    assert "1 queue with" in administrator.get("/directory?q=salaries").text


@pytest.mark.req("SEC-9-01")
def test_sites_that_the_visitor_may_not_read_are_not_on_the_map(attacked: Attacked) -> None:
    """Authenticated users may read the sites of this enterprise, others may not."""
    anonymous = attacked.visitor().get("/map?from=ams-desk1&to=chi-app1").html
    assert "There is no site that you may read" in anonymous
    assert "Amsterdam" not in anonymous
    assert "Amsterdam" in attacked.visitor(BOB, BOBS_PASSWORD).get("/map").html


@pytest.mark.req("SEC-9-01")
def test_permissions_are_for_those_who_may_read_them(attacked: Attacked) -> None:
    page = f"/directory/queue/{attacked.shy}"
    shown = attacked.visitor(BOB, BOBS_PASSWORD).get(page)
    assert shown.status == 200
    assert "S-1-5-32-544" not in shown.text
    assert "not allowed to read the permissions" in shown.text
    assert "S-1-5-32-544" in attacked.visitor(ALICE, ALICES_PASSWORD).get(page).text


@pytest.mark.req("SEC-9-02")
def test_who_has_no_account_learns_no_name_of_one(attacked: Attacked) -> None:
    """They would know whom to guess passwords of."""
    page = f"/directory/queue/{attacked.open}"
    anonymous = attacked.visitor().get(page)
    assert anonymous.status == 200
    assert "S-1-5-21-" in anonymous.text
    assert "alice" not in anonymous.text
    assert ALICE in attacked.visitor(BOB, BOBS_PASSWORD).get(page).text


def records(visitor: Visitor, query: str) -> list[str]:
    listed = visitor.get(f"/journal?server={PEC}&{query}")
    assert listed.status == 200
    return re.findall(rf'href="/journal/{PEC}/(\d+)"', listed.html)


@pytest.mark.req("SEC-9-01")
def test_the_journal_tells_nothing_of_what_the_visitor_may_not_read(attacked: Attacked) -> None:
    administrator = attacked.visitor(ALICE, ALICES_PASSWORD)
    about = f"kind=change&object={attacked.secret}"
    eventually(lambda: bool(records(administrator, about)))
    numbers = records(administrator, about)
    told = [administrator.get(f"/journal/{PEC}/{number}").text for number in numbers]
    assert any(SECRET_LABEL in text for text in told), "what is to be kept is there"
    messages = records(administrator, "kind=message&state=queued")
    by_name = f"/journal?server={PEC}&object={quote(SECRET_PATH)}"
    assert administrator.get(by_name).status == 200
    for name, password in (("", ""), (BOB, BOBS_PASSWORD)):
        visitor = attacked.visitor(name, password)
        assert records(visitor, about) == []
        listed = visitor.get(f"/journal?server={PEC}&heartbeats=yes").html
        assert attacked.secret not in listed
        assert SECRET_PATH not in listed
        assert visitor.get(by_name).status == 400
        assert visitor.get(by_name).text.replace("salaries", "nothing") == (
            visitor.get(by_name.replace("salaries", "nothing")).text
        ), "as if there were no such object"
        for number in numbers:
            assert visitor.get(f"/journal/{PEC}/{number}").status == 404
        for number in messages:  # which carry objects of anybody
            text = visitor.get(f"/journal/{PEC}/{number}").text
            assert SECRET_LABEL not in text
            assert "administrators" in text


@pytest.mark.req("SEC-9-01")
def test_what_a_change_set_is_for_those_who_may_read_the_permissions(attacked: Attacked) -> None:
    """The body of the change has the descriptor in it."""
    bob = attacked.visitor(BOB, BOBS_PASSWORD)
    about = f"kind=change&object={attacked.shy}"
    eventually(lambda: bool(records(bob, about)))
    text = bob.get(f"/journal/{PEC}/{records(bob, about)[-1]}").text
    assert "Only users who may read the object and its permissions" in text
    assert "security" not in text.split("Body, decoded")[1].lower()


@pytest.mark.req("SEC-12-07")
def test_who_asked_for_a_change_is_for_administrators(attacked: Attacked) -> None:
    """Others would know whom to guess passwords of, and who works when; a filter tells as much."""
    about = f"kind=change&state=local&object={attacked.open}"
    administrator = attacked.visitor(ALICE, ALICES_PASSWORD)
    eventually(lambda: bool(records(administrator, f"{about}&peer=alice")))
    (number, *_) = records(administrator, f"{about}&peer=alice")
    assert ALICE in administrator.get(f"/journal/{PEC}/{number}").text
    for name, password in (("", ""), (BOB, BOBS_PASSWORD)):
        visitor = attacked.visitor(name, password)
        assert number in records(visitor, about), "the record itself may be seen"
        assert records(visitor, f"{about}&peer=alice") == []
        assert ALICE not in visitor.get(f"/journal?server={PEC}&{about}").text
        shown = visitor.get(f"/journal/{PEC}/{number}")
        assert (shown.status, ALICE in shown.text.split("Body, decoded")[0]) == (200, False)


@pytest.mark.req("SEC-12-09")
def test_an_export_of_a_server_shows_what_its_user_may_read(
    attacked: Attacked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, password = tmp_path / "export.jsonl", tmp_path / "password"
    password.write_text(BOBS_PASSWORD)
    password.chmod(0o600)
    monkeypatch.setenv("MQIS_USER", BOB)
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(password))
    server = f"127.0.0.1:{attacked.enterprise.servers[PEC].ready.port}"
    refused = run("export", file, "--server", server)
    assert "may not read the permissions of" in str(refused.exception), "it makes none up"
    assert not file.exists()
    done = run("export", file, "--server", server, "--no-permissions")
    assert done.exit_code == 0, done.output
    text = file.read_text()
    assert json.dumps(SHY_PATH)[1:-1] in text
    assert json.dumps(SECRET_PATH)[1:-1] not in text
    assert attacked.secret not in text


@pytest.mark.req("SEC-9-01")
@pytest.mark.parametrize(("name", "password"), [("", ""), (BOB, BOBS_PASSWORD)])
def test_the_report_of_the_pipeline_is_for_administrators(
    attacked: Attacked, name: str, password: str
) -> None:
    visitor = attacked.visitor(name, password)
    answer = visitor.get("/pipeline/report.html")
    assert (answer.status, SECRET_LABEL in answer.html) == (403, False)
    assert visitor.get("/pipeline/table/lag").status == 403
    shown = attacked.visitor(ALICE, ALICES_PASSWORD).get("/pipeline/report.html")
    assert SECRET_LABEL in shown.html


# --- what a visitor may change --------------------------------------------------------------------


@pytest.mark.req("SEC-2-07")
@pytest.mark.parametrize(
    ("kind", "find", "word", "value"),
    [
        ("queue", "ams-app1%5Cpayments", "label", "mine now"),
        ("machine", "ams-dir1", "service", "16"),
        ("machine", "ams-desk1", "sign_pks", "00"),
        ("site", "Berlin", "psc", "ams-desk1"),
        ("enterprise", "", "long_live", "1"),
    ],
)
def test_a_change_that_rpc_denies_is_denied_through_the_console(
    attacked: Attacked, kind: str, find: str, word: str, value: str
) -> None:
    bob = attacked.visitor(BOB, BOBS_PASSWORD)
    listed = bob.get(f"/directory?type={kind}&q={find}").html
    found = re.search(rf'href="(/directory/{kind}/[0-9a-f-]{{36}})"', listed)
    assert found is not None
    before = properties(bob, found[1])
    csrf = bob.get(found[1]).csrf
    fields = {"property": word, "value": value, "csrf": csrf}
    answer = bob.post(f"{found[1]}/set", fields)
    assert (answer.status, "MQ_ERROR_ACCESS_DENIED" in answer.text) == (403, True), answer.text
    name = unquote(find) or "Meridian"
    assert bob.post(f"{found[1]}/delete", {"csrf": csrf, "typed": name}).status == 403
    assert properties(bob, found[1]) == before


def properties(visitor: Visitor, page: str) -> str:
    return visitor.get(page).html.split('id="properties"')[1].split("</table>")[0]


@pytest.mark.req("SEC-2-07")
def test_an_object_that_may_not_be_read_cannot_be_changed_by_its_identifier(
    attacked: Attacked,
) -> None:
    bob = attacked.visitor(BOB, BOBS_PASSWORD)
    csrf = bob.get("/directory/create").csrf
    page = f"/directory/queue/{attacked.secret}"
    fields = {"property": "label", "value": "mine now", "csrf": csrf}
    assert bob.post(f"{page}/set", fields).status == 404
    assert bob.post(f"{page}/delete", {"csrf": csrf}).status == 404
    assert SECRET_LABEL in attacked.visitor(ALICE, ALICES_PASSWORD).get(page).text


# --- budgets --------------------------------------------------------------------------------------


@contextmanager
def bounded(enterprise: Enterprise, **values: float) -> Iterator[str]:
    """A console in this process whose bounds a test can reach."""
    settings = replace(ConsoleSettings(Places(enterprise.home), port=0, live_every_s=0.2), **values)  # type: ignore[arg-type]
    with running_console(settings) as url:
        yield url


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@pytest.mark.req("SEC-7-09")
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127"], ids=["silent", "half"])
def test_silent_connections_keep_nobody_out(attacked: Attacked, sent: bytes) -> None:
    """More than the console has places, none of which ever asks for anything."""
    with ExitStack() as stack:
        for _ in range(300):
            raw = stack.enter_context(
                socket.create_connection(("127.0.0.1", attacked.port), DEADLINE_S)
            )
            raw.sendall(sent)
        assert attacked.visitor().get("/login").status == 200


def connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(url)), DEADLINE_S)


def ends(raw: socket.socket) -> bool:
    """Returns whether the console closes the connection."""
    raw.settimeout(DEADLINE_S)
    try:
        while raw.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.req("SEC-7-09")
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\nuser=",
    ],
    ids=["silent", "half a head", "half a form"],
)
def test_who_sends_no_request_is_cut_off(enterprise: Enterprise, sent: bytes) -> None:
    with bounded(enterprise, request_s=0.5) as url:
        cookie = Visitor(url).cookie.encode()
        sent = sent.replace(b"127.0.0.1\r\n", b"127.0.0.1\r\nCookie: " + cookie + b"\r\n")
        with connected(url) as raw:
            raw.sendall(sent)
            assert ends(raw)


@pytest.mark.req("SEC-7-09")
def test_who_sends_a_byte_now_and_then_is_cut_off(enterprise: Enterprise) -> None:
    with bounded(enterprise, request_s=0.5) as url, connected(url) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nX: ")
        with pytest.raises(ConnectionError):
            trickle(raw)


def trickle(raw: socket.socket) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        raw.sendall(b"y")
        time.sleep(0.05)


@pytest.mark.req("SEC-7-09")
def test_who_reads_nothing_is_cut_off(
    enterprise: Enterprise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file, asked for again and again, never read."""
    lost, connection_lost = Event(), Bounded.connection_lost

    def losing(connection: Bounded, error: Exception | None) -> None:
        connection_lost(connection, error)
        lost.set()

    bounds = {"read_s": 0.2, "requests_per_address": 10_000}
    with bounded(enterprise, **bounds) as url, socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(DEADLINE_S)
        raw.connect(("127.0.0.1", port_of(url)))
        head = b"GET /static/cytoscape.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        monkeypatch.setattr(Bounded, "connection_lost", losing)
        raw.sendall(head * 40)
        assert lost.wait(DEADLINE_S), "never cut off"
        assert received(raw) < 40 * 300_000


def received(raw: socket.socket) -> int:
    total = 0
    try:
        while got := raw.recv(1 << 20):
            total += len(got)
    except ConnectionError:
        pass
    return total


@pytest.mark.req("SEC-7-09")
def test_an_address_has_so_many_requests_a_second(enterprise: Enterprise) -> None:
    with bounded(enterprise, requests_per_address=2) as url:
        port, visitor = port_of(url), Visitor(url)
        statuses = [ask(port, "/static/icon.svg")[0] for _ in range(60)]
        assert set(statuses) == {200, 429}
        assert visitor.get("/login").status == 200, "who has the token is not counted with others"
        assert ask(port, "/static/icon.svg", source="127.0.0.2")[0] == 200, "nor another address"


@pytest.mark.req("SEC-7-09")
def test_an_address_has_so_many_live_pages(enterprise: Enterprise) -> None:
    with bounded(enterprise, most_live_per_address=2) as url, ExitStack() as stack:
        cookie = Visitor(url).cookie

        def listen(source: str) -> HTTPResponse:
            connection = HTTPConnection("127.0.0.1", port_of(url), 30, source_address=(source, 0))
            stack.callback(connection.close)
            connection.request("GET", "/live", headers={"Cookie": cookie})
            return connection.getresponse()

        assert [listen("127.0.0.1").status for _ in range(3)] == [200, 200, 503]
        assert listen("127.0.0.2").status == 200


@pytest.mark.req("SEC-7-09")
def test_an_address_has_so_many_connections(enterprise: Enterprise) -> None:
    """Live pages never end: they take all places of their address, and none of others."""
    limits = {"most_connections_per_address": 2, "most_live_per_address": 10}
    with bounded(enterprise, **limits) as url, ExitStack() as stack:
        cookie = Visitor(url).cookie
        for _ in range(2):
            connection = HTTPConnection("127.0.0.1", port_of(url), 30)
            stack.callback(connection.close)
            connection.request("GET", "/live", headers={"Cookie": cookie})
            assert connection.getresponse().status == 200
        with pytest.raises((ConnectionError, OSError)):
            ask(port_of(url), "/login", Cookie=cookie)
        assert ask(port_of(url), "/login", source="127.0.0.2", Cookie=cookie)[0] == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For 127.0.0.1, signed by itself."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "console")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    home = tmp_path_factory.mktemp("tls")
    (home / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (home / "key.pem").write_bytes(pem)
    return home / "cert.pem", home / "key.pem"


@pytest.mark.req("SEC-7-09")
def test_silent_connections_count_before_tls_is_agreed_on(
    enterprise: Enterprise, certificate: tuple[Path, Path]
) -> None:
    file, key = certificate
    settings = ConsoleSettings(
        Places(enterprise.home), port=0, certificate=file, key=key, request_s=2
    )
    settings = replace(settings, most_connections_per_address=4)
    context = ssl.create_default_context(cafile=file)
    context.check_hostname = False
    with running_console(settings) as url, ExitStack() as stack:
        silent = [stack.enter_context(connected(url)) for _ in range(8)]
        silent[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection = HTTPSConnection("127.0.0.1", port_of(url), timeout=DEADLINE_S, context=context)
        with closing(connection):
            connection.request("GET", f"/login?{urlsplit(url).query}")
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Location"]) == (303, "/login")
            assert "secure" in answer.headers["Set-Cookie"].lower()
        assert all(ends(raw) for raw in silent)

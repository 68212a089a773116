"""Invalid requests get clear pages with the right status, never a traceback."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from mqis.config.errors import NodesError
from mqis.config.nodes import Nodes, save_nodes
from mqis.server.monitoring.status import PartitionStatus, ServerStatus
from mqis.views.console.server_places import Places
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.errors import MqisError
from tests.waiting import DEADLINE_S
from tests.web.asking import Visitor, eventually
from tests.web.enterprise import ALICE, PEC

NULL = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(autouse=True)
def no_page_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A traceback would be in the log of the guard."""
    caplog.set_level(logging.ERROR)
    yield
    assert [r for r in caplog.records if r.name.startswith("mqis.web")] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/directory?type=nothing", 404),
        ("/directory?type=deleted", 404),
        ("/directory?server=nobody", 404),
        (f"/directory/queue/{NULL}", 404),
        ("/directory/queue/zzz", 404),
        ("/directory/deleted/" + NULL, 404),
        ("/directory/queue/..%2f..%2fetc%2fpasswd", 404),
        ("/journal?server=nobody", 404),
        ("/journal?state=odd", 400),
        ("/journal?object=odd", 400),
        (f"/journal/{PEC}/abc", 404),
        (f"/journal/{PEC}/-1", 404),
        (f"/journal/{PEC}/{'9' * 200}", 404),
        ("/journal/nobody/1", 404),
        ("/pipeline/table/nothing", 404),
        ("/pipeline/table/..%2f..%2fetc", 404),
        ("/pipeline/..%2freport.html", 404),
        ("/pipeline/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/static/..%2f..%2f..%2f..%2fetc%2fpasswd", 404),
        ("/map?server=nobody", 404),
    ],
)
def test_what_is_not_there(administrator: Visitor, path: str, status: int) -> None:
    answer = administrator.get(path)
    assert answer.status == status
    assert "Traceback" not in answer.html
    assert "root:" not in answer.html


def test_a_wrong_method_is_said(visitor: Visitor) -> None:
    answer = visitor.post("/map", {})
    assert answer.status == 405
    assert "does not accept this kind of request" in answer.text
    assert visitor.ask("HEAD", "/map").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8180", "", "127.0.0.1.evil.example"]
)
def test_another_name_gets_nothing(visitor: Visitor, host: str) -> None:
    answer = visitor.get("/directory", Host=host)
    assert answer.status == 421
    assert "ams-app1" not in answer.html


def test_names_that_are_allowed(settings: ConsoleSettings, visitor: Visitor) -> None:
    assert visitor.get("/login", Host="localhost:1").status == 200
    with running_console(replace(settings, hosts=("console.example",))) as url:
        assert Visitor(url).get("/login", Host="console.example").status == 200


def test_forms_are_bounded(visitor: Visitor) -> None:
    csrf = visitor.get("/login").csrf
    assert visitor.post("/login", {"user": "x" * 70_000}).status == 413
    assert visitor.post("/login", {"user": "x" * 5000, "csrf": csrf}).status == 413
    many = {f"field{n}": "" for n in range(200)}
    assert visitor.post("/login", {**many, "csrf": csrf}).status == 400
    assert visitor.ask("POST", "/login", b"\xff\xfe=%ff").status == 400


def test_a_form_that_never_comes_is_refused_all_the_same(visitor: Visitor) -> None:
    head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{visitor.port}\r\n"
    for length, statuses in (("100000", (413,)), ("6x", (400, 413))):
        with socket.create_connection((visitor.host, visitor.port or 0), 10) as raw:
            raw.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
            assert int(raw.recv(4096).split()[1]) in statuses


def test_a_body_without_a_length_is_bounded(visitor: Visitor) -> None:
    head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{visitor.port}\r\n"
    with socket.create_connection((visitor.host, visitor.port or 0), 10) as raw:
        head += f"Cookie: {visitor.cookie}\r\nTransfer-Encoding: chunked\r\n\r\n"
        raw.sendall(head.encode())
        chunk = b"8000\r\n" + b"a" * 0x8000 + b"\r\n"
        raw.sendall(chunk * 3)
        assert raw.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("raw", [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9\r\n\r\n", b"\0" * 100])
def test_what_is_no_http_is_refused(visitor: Visitor, raw: bytes) -> None:
    with socket.create_connection((visitor.host, visitor.port or 0), 10) as connection:
        connection.sendall(raw + b"\r\n\r\n")
        got = connection.recv(4096)
    assert got == b"" or got.startswith(b"HTTP/1.1 4")
    assert visitor.get("/login").status == 200


def test_a_long_address_is_refused(visitor: Visitor) -> None:
    assert visitor.get("/directory?q=" + "x" * 60_000).status in (400, 414, 431)
    assert visitor.get("/directory?q=" + "x" * 8_000).status == 200


def test_cookies_that_are_none_of_ours(visitor: Visitor) -> None:
    visitor.cookies["mqis_console"] = "../../etc"
    assert "Reading only" in visitor.get("/").text
    assert len(visitor.cookies["mqis_console"]) == 43


# --- where it listens -----------------------------------------------------------------------------


@pytest.mark.parametrize("listen", ["0.0.0.0", "10.1.2.3", "::", "localhost"])
def test_others_can_connect_only_if_somebody_says_so(
    settings: ConsoleSettings, listen: str
) -> None:
    with pytest.raises(MqisError, match="--allow-remote"):
        replace(settings, listen=listen)


def test_others_have_to_log_in_to_read(settings: ConsoleSettings) -> None:
    open_to_all = replace(settings, listen="0.0.0.0", allow_remote=True, hosts=("127.0.0.1",))
    with running_console(open_to_all) as url:
        visitor = Visitor(url.replace("0.0.0.0", "127.0.0.1"))
        for path in ("/", "/map", "/directory", "/journal", "/live", "/pipeline/report.html"):
            answer = visitor.get(path)
            assert answer.status == 303, path
            assert answer.location.startswith("/login?next=")
        assert visitor.log_in(ALICE).status == 303
        assert visitor.get("/map").status == 200


def test_a_busy_port_is_told(settings: ConsoleSettings, visitor: Visitor) -> None:
    assert visitor.port is not None
    with (
        pytest.raises(MqisError, match="--port N"),
        running_console(replace(settings, port=visitor.port)),
    ):
        pass
    with running_console(replace(settings, port=visitor.port, any_port=True)) as url:
        assert Visitor(url).port != visitor.port


def test_an_enterprise_without_servers(settings: ConsoleSettings, tmp_path: Path) -> None:
    save_nodes(tmp_path, Nodes("Empty", ()))
    with running_console(replace(settings, places=Places(tmp_path))) as url:
        for path, expected in (("/", 200), ("/map", 404), ("/directory", 404), ("/login", 200)):
            assert Visitor(url).get(path).status == expected


# --- what is behind it ----------------------------------------------------------------------------


def test_a_run_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NodesError, match="mqis up"):
        Places(tmp_path)


def test_a_run_directory_that_breaks_meanwhile(settings: ConsoleSettings, tmp_path: Path) -> None:
    source = settings.places.run
    assert source is not None
    nodes = tmp_path / "nodes.json"
    nodes.write_bytes((source / "nodes.json").read_bytes())
    with running_console(replace(settings, places=Places(tmp_path))) as url:
        visitor = Visitor(url)
        assert visitor.get("/replication").status == 200
        nodes.write_text("{", encoding="utf-8")
        answer = visitor.get("/replication")
        assert answer.status == 503
        assert "cannot be read" in answer.text
        assert visitor.get("/login").status == 503


def test_a_store_that_is_no_store(settings: ConsoleSettings, tmp_path: Path) -> None:
    (tmp_path / "odd.db").write_bytes(b"this is no database" * 100)
    with running_console(
        replace(settings, places=Places(stores=(str(tmp_path / "odd.db"),)))
    ) as url:
        visitor = Visitor(url)
        assert visitor.get("/directory").status == 503
        assert "not an mqis store" in visitor.get("/map").text
        assert visitor.get("/replication").status == 200


def test_a_damaged_journal_is_shown_as_far_as_it_goes(
    settings: ConsoleSettings, tmp_path: Path
) -> None:
    journal = settings.places.named(PEC).journal
    assert journal is not None
    segment = sorted(journal.glob("segment-*.mqj"))[0]
    data = bytearray(segment.read_bytes())
    data[-10] ^= 0xFF
    (tmp_path / segment.name).write_bytes(data)
    with running_console(replace(settings, places=Places(journals=(tmp_path,)))) as url:
        answer = Visitor(url).get("/journal")
        assert answer.status == 200
        assert f"{segment.name}: offset" in answer.text
        (tmp_path / segment.name).write_bytes(b"rubbish" * 50)
        assert Visitor(url).get("/journal").status == 503


def test_a_server_that_is_not_there(settings: ConsoleSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with running_console(replace(settings, places=Places(servers=(f"127.0.0.1:{port}",)))) as url:
        visitor = Visitor(url)
        assert visitor.get("/directory").status == 303, "only who logs in there can read it"
        answer = visitor.log_in(server=f"127.0.0.1:{port}")
        assert answer.status == 502
        assert "no directory server answers" in answer.text


def test_a_server_alone_shows_itself_to_who_logs_in(settings: ConsoleSettings) -> None:
    rpc = settings.places.named(PEC).rpc
    assert rpc is not None
    with running_console(replace(settings, places=Places(servers=(rpc,)))) as url:
        visitor = Visitor(url)
        assert visitor.log_in(server=rpc).status == 303
        listed = visitor.get("/directory?q=ams-app1%5Cpayments")
        assert "1 queue" in listed.text
        page = listed.html.split('href="/directory/queue/')[1].split('"')[0]
        shown = visitor.get(f"/directory/queue/{page}")
        assert "full control" in shown.text
        assert "cost 30" in visitor.get("/map?from=ams-desk1&to=chi-app1").text
        assert "20 machines" in visitor.get("/").text


# --- live -----------------------------------------------------------------------------------------


class Monitor(BaseHTTPRequestHandler):
    """Answers as a server does, with whatever a test wants."""

    body: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Not into the output of the tests."""


@contextmanager
def monitored(body: bytes) -> Iterator[ThreadingHTTPServer]:
    Monitor.body = body
    server = ThreadingHTTPServer(("127.0.0.1", 0), Monitor)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def status(last: int, counters: dict[str, float] | None = None) -> bytes:
    numbers = f"{last:016x}", f"{0:016x}", f"{0:016x}"
    partition = PartitionStatus(NULL, "enterprise", "s1", True, *numbers, "normal", 0)
    told = ServerStatus("s1", "pec", "A", "E", 1, 1.0, (partition,), (), counters or {"calls": 7})
    return json.dumps(told.to_json()).encode()


def stream(url: str) -> tuple[HTTPConnection, HTTPResponse]:
    visitor = Visitor(url)
    connection = HTTPConnection(visitor.host, visitor.port, timeout=DEADLINE_S)
    connection.request("GET", "/live", headers={"Cookie": visitor.cookie})
    return connection, connection.getresponse()


def until(answer: HTTPResponse, text: str) -> None:
    for _ in range(2000):
        line = answer.readline().decode()
        assert line, f"the stream ended before {text!r}"
        if text in line:
            return
    raise AssertionError(f"no {text!r}")


def test_a_server_that_dies_while_somebody_looks(settings: ConsoleSettings) -> None:
    with monitored(status(5)) as server:
        monitor = f"http://127.0.0.1:{server.server_address[1]}"
        places = Places(monitors=(monitor,))
        with running_console(replace(settings, places=places)) as url:
            connection, answer = stream(url)
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            until(answer, "0000000000000005")
            Monitor.body = status(6)
            until(answer, "0000000000000006")
            Monitor.body = b"<html>not at all a status"
            until(answer, "not answer")
            Monitor.body = status(7)
            until(answer, "0000000000000007")
            server.shutdown()
            server.server_close()
            until(answer, "not answer")
            connection.close()
            assert Visitor(url).get("/replication").status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"server": "x"}',
        b"\xff",
        status(1).replace(b'"0000000000000001"', b'"odd"'),
        status(1).replace(b'"0000000000000001"', b"17"),
        status(1).replace(b'"partitions": [', b'"partitions": [7, '),
        status(1).replace(b'"calls": 7', b'"calls": "many"'),
        b"[" * 200_000,
    ],
)
def test_a_monitor_that_talks_rubbish(settings: ConsoleSettings, body: bytes) -> None:
    with monitored(body) as server:
        places = Places(monitors=(f"http://127.0.0.1:{server.server_address[1]}",))
        with running_console(replace(settings, places=places)) as url:
            for path in ("/", "/replication", "/statistics"):
                answer = Visitor(url).get(path)
                assert answer.status == 200
                assert "not answer" in answer.text


def test_so_many_may_listen(settings: ConsoleSettings) -> None:
    with running_console(replace(settings, most_live=2)) as url:
        listening = [stream(url) for _ in range(2)]
        connection, refused = stream(url)
        assert refused.status == 503
        assert refused.headers["Retry-After"]
        connection.close()
        for open_connection, answer in listening:
            assert answer.status == 200
            open_connection.sock.shutdown(socket.SHUT_RDWR)
            open_connection.close()
        eventually(lambda: _may_listen(url))  # places are given back when it is noticed


def _may_listen(url: str) -> bool:
    connection, answer = stream(url)
    connection.close()
    return answer.status == 200

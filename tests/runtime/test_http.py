"""The server of documents: who gets what, and who is not waited for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

import pytest

from mqis.runtime.http import MAX_REQUEST, HttpAnswer, HttpServer
from tests.waiting import DEADLINE_S, until

Work = Callable[[int], Awaitable[None]]


async def page() -> HttpAnswer:
    return HttpAnswer.json({"a": 1})


async def broken() -> HttpAnswer:
    raise RuntimeError("secret-of-the-server")


async def endless() -> HttpAnswer:
    await asyncio.sleep(3600)
    return HttpAnswer(b"")


def serving(work: Work, *, max_connections: int = 4, timeout_s: float = DEADLINE_S) -> None:
    async def run() -> None:
        documents = {"/page": page, "/broken": broken, "/endless": endless}
        server = HttpServer(documents, max_connections=max_connections, timeout_s=timeout_s)
        async with server:
            await work(await server.listen("127.0.0.1", 0))

    asyncio.run(run())


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    got = await reader.read()
    writer.close()
    return got


async def ask(
    port: int, path: str, method: str = "GET", host: str = "127.0.0.1"
) -> tuple[int, dict[str, str], bytes]:
    got = await exchange(port, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split(" ")[1]), headers, body


def test_a_document() -> None:
    async def work(port: int) -> None:
        status, headers, body = await ask(port, "/page?x=/y")
        assert (status, json.loads(body)) == (HTTPStatus.OK, {"a": 1})
        assert headers["Content-Type"] == "application/json"
        assert int(headers["Content-Length"]) == len(body)
        assert (headers["Connection"], headers["Cache-Control"]) == ("close", "no-store")

    serving(work)


def test_its_head_alone() -> None:
    async def work(port: int) -> None:
        status, headers, body = await ask(port, "/page", "HEAD")
        assert (status, body) == (HTTPStatus.OK, b"")
        assert headers["Content-Length"] == str(len(HttpAnswer.json({"a": 1}).body))

    serving(work)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/", HTTPStatus.NOT_FOUND),
        ("GET", "/page/", HTTPStatus.NOT_FOUND),
        ("GET", "/../page", HTTPStatus.NOT_FOUND),
        ("GET", "//page", HTTPStatus.NOT_FOUND),
        ("GET", "page", HTTPStatus.BAD_REQUEST),
        ("POST", "/page", HTTPStatus.METHOD_NOT_ALLOWED),
        ("get", "/page", HTTPStatus.METHOD_NOT_ALLOWED),
        ("POST", "/none", HTTPStatus.NOT_FOUND),
        ("GET", "/broken", HTTPStatus.INTERNAL_SERVER_ERROR),
        ("GET", "/endless", HTTPStatus.SERVICE_UNAVAILABLE),
    ],
)
def test_what_is_not_given(method: str, path: str, expected: int) -> None:
    async def work(port: int) -> None:
        status, headers, body = await ask(port, path, method)
        assert status == expected
        assert b"secret" not in body
        assert ("Allow" in headers) is (status == HTTPStatus.METHOD_NOT_ALLOWED)

    serving(work, timeout_s=1.0)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_page_of_another_name_reads_nothing_here(host: str) -> None:
    async def work(port: int) -> None:
        assert (await ask(port, "/page", host=host))[0] == HTTPStatus.MISDIRECTED_REQUEST

    serving(work)


@pytest.mark.parametrize("host", ["127.0.0.1:9364", "localhost", "LOCALHOST:1", "[::1]:80"])
def test_names_of_this_computer(host: str) -> None:
    async def work(port: int) -> None:
        assert (await ask(port, "/page", host=host))[0] == HTTPStatus.OK

    serving(work)


def test_a_server_for_others_answers_to_any_name() -> None:
    async def run() -> None:
        async with HttpServer({"/page": page}) as server:
            port = await server.listen("0.0.0.0", 0)
            assert (await ask(port, "/page", host="dir1.example"))[0] == HTTPStatus.OK

    asyncio.run(run())


@pytest.mark.req("SEC-7-08")
@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"GET /page HTTP/1.1\r\n",
        b"x" * (MAX_REQUEST + 2) + b"\r\n\r\n",
        b"GET /page HTTP/1.1\r\nX: " + b"y" * MAX_REQUEST + b"\r\n\r\n",
    ],
    ids=["nothing", "half", "endless line", "too much"],
)
def test_who_does_not_ask_properly_is_not_waited_for(request_: bytes) -> None:
    async def work(port: int) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                assert await exchange(port, request_) == b""
        except ConnectionResetError:
            pass
        assert (await ask(port, "/page"))[0] == HTTPStatus.OK

    serving(work, timeout_s=1.0)


@pytest.mark.parametrize(
    "first", [b"\r\n\r\n", b"GET\r\n\r\n", b"GET /page\r\n\r\n", b"\xff\r\n\r\n"]
)
def test_what_is_no_request_is_told_so(first: bytes) -> None:
    async def work(port: int) -> None:
        assert (await exchange(port, first)).startswith(b"HTTP/1.1 400 ")

    serving(work)


def test_no_more_requests_at_a_time_than_it_may_have() -> None:
    async def work(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for _, writer in held:
            writer.write(b"GET /endless HTTP/1.1\r\n\r\n")

        async def answered(wanted: bool) -> bool:
            try:
                status, _, _ = await ask(port, "/page")
            except (ConnectionError, IndexError):
                return not wanted
            assert status == HTTPStatus.OK
            return wanted

        await until(partial(answered, False), "a refusal, when both are being answered")
        for _, writer in held:
            writer.close()
        await until(partial(answered, True), "an answer, when the server has given up on them")

    serving(work, max_connections=2, timeout_s=4)


def test_who_has_asked_nothing_makes_room() -> None:
    async def work(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
        assert (await ask(port, "/page"))[0] == HTTPStatus.OK
        async with asyncio.timeout(DEADLINE_S):
            assert await held[0][0].read() == b"", "the first of them was cut off"
        for _, writer in held:
            writer.close()

    serving(work, max_connections=2, timeout_s=3600)


def test_who_was_answered_leaves_room() -> None:
    """Else the answered ones would cost somebody the connection who is about to ask."""

    async def work(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(4):
            assert (await ask(port, "/page"))[0] == HTTPStatus.OK
        writer.write(b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in await reader.readline()
        writer.close()

    serving(work, max_connections=2)


def test_closing_does_not_wait_for_those_who_read_nothing() -> None:
    async def run() -> None:
        server = HttpServer({"/endless": endless}, timeout_s=3600)
        port = await server.listen("127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.01)
        async with asyncio.timeout(DEADLINE_S):
            await server.close()
        writer.close()

    asyncio.run(run())


def test_connections_without_an_answer_are_counted() -> None:
    """Those that made room, those whose request is too long, and none that was answered."""

    async def run() -> None:
        async with HttpServer({"/page": page}, max_connections=2, timeout_s=DEADLINE_S) as server:
            port = await server.listen("127.0.0.1", 0)
            assert (await ask(port, "/page"))[0] == HTTPStatus.OK
            assert (await ask(port, "/none"))[0] == HTTPStatus.NOT_FOUND
            await until(lambda: not server._connections)
            assert server.unanswered == 0
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            await until(lambda: server.unanswered == 1)
            assert await silent[0][0].read() == b""
            silent[1][1].write(b"x" * (2 * MAX_REQUEST))
            await until(lambda: server.unanswered == 2)
            for _, writer in silent:
                writer.close()

    asyncio.run(run())

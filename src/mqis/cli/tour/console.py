"""The console in the live tour: it opens first, so that people can watch the steps there.

The last step reads its pages.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from urllib.parse import urljoin
from urllib.request import HTTPCookieProcessor, OpenerDirector, ProxyHandler, build_opener

from mqis.cli.tour.guide import Guide
from mqis.cli.tour.reading import ShownPage, read_page
from mqis.cli.tour.site import Tour
from mqis.config.nodes import NodePlace
from mqis.enterprise.status import MemberState
from mqis.texts import duration


@asynccontextmanager
async def opened_console(guide: Guide, tour: Tour) -> AsyncIterator[str]:
    """Starts the console and prints its address, which is yielded; it ends with the block."""
    guide.step("Console", "the enterprise in the browser, live: watch the next steps there")
    with ExitStack() as stack:
        url = await asyncio.to_thread(_start, stack, tour)
        page = await asyncio.to_thread(_read, _opener(), url)
        name = tour.plan.enterprise.name
        guide.confirm_equal(f"{name} is at the address below", page.heading, name)
        guide.line(f"   {url}", "bold green")
        yield url


async def read_console(guide: Guide, tour: Tour, url: str, seconds: float, *, once: bool) -> None:
    """Reads the console's pages as a person does; unless ``once``, waits for a signal then.

    ``seconds`` is the duration of the steps before.
    """
    guide.step("Console again", "its pages after all of this")
    opener = _opener()
    page = await asyncio.to_thread(_read, opener, url)
    status = await tour.converged()
    guide.confirm_equal(
        f"it says what the servers say: {page.verdict}",
        (page.verdict, page.tone, status.findings),
        (status.summary, "good", ()),
    )
    guide.confirm_equal(
        "it lists every server; all are up, and one was restarted",
        [tuple(row.values())[:4] for row in page.tables["Servers"]],
        [(node.name, node.role.upper(), node.site, _state(node)) for node in tour.nodes],
    )
    replicas = await asyncio.to_thread(_read, opener, urljoin(url, "/replication"))
    guide.confirm_equal(
        "its page of replication shows every partition equal at every server",
        matrix(replicas),
        {server.name: 4 for server in tour.plan.servers},
    )
    guide.line("")
    guide.line(f"The tour took {duration(seconds)}; every line with a tick was checked.", "bold")
    if not once:
        _invite(guide, tour, url)
        tour.staying = True
        await tour.ended.wait()


def _opener() -> OpenerDirector:
    return build_opener(ProxyHandler({}), HTTPCookieProcessor())


def _start(stack: ExitStack, tour: Tour) -> str:
    from mqis.views.console.server_places import Places  # noqa: PLC0415
    from mqis.web.console_settings import ConsoleSettings  # noqa: PLC0415
    from mqis.web.serving import running_console  # noqa: PLC0415

    settings = ConsoleSettings(Places(tour.run), tour.run / "tables", port=0)
    return stack.enter_context(running_console(settings))


def _read(opener: OpenerDirector, url: str) -> ShownPage:
    with opener.open(url, timeout=30) as answer:
        return read_page(answer.read().decode("utf-8"))


def _state(node: NodePlace) -> str:
    """The state of a server that is up, as the console tells it."""
    text = MemberState.READY.text
    return f"{text} restarted {node.restarts} ×" if node.restarts else text


def matrix(page: ShownPage) -> dict[str, int]:
    """The number of partitions that the matrix calls the authority's or equal, by server."""
    counts: Counter[str] = Counter()
    for row in page.tables.get("Partitions by servers", ()):
        for head, text in row.items():
            if text.startswith(("authority", "equal")):
                counts[head.split()[0]] += 1
    return dict(counts)


def _invite(guide: Guide, tour: Tour, url: str) -> None:
    secret = tour.run / "passwords" / tour.plan.administrator.name
    guide.line("")
    guide.line(f"The console stays up: {url}", "bold green")
    guide.line(f"  log in as {tour.user} with the password in {secret}")
    guide.line("To look around yourself, in another shell:", "bold")
    at = f"--run {tour.run}"
    for command in (
        f"mqis status {at}",
        f"mqis kill ber-dir2 {at}",
        f"mqis logs --follow {at}",
        f"mqis lookup queue -s {tour.directory / 'enterprise.db'} --where 'label=Audit trail'",
    ):
        guide.line(f"  {command}", "cyan")
    guide.line("Ctrl-C ends the console and the servers.")

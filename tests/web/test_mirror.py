"""The console on the store of ``mqis mirror``: it shows everything, and offers no change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.stores import open_store
from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.guid import Guid
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored
from tests.web.asking import Visitor

SAID = "This is a mirror of an Active Directory, equal to dc1.corp.example up to change"


class ShownMirror:
    """A mirror that has followed two changes, and a visitor of its console."""

    def __init__(self, visitor: Visitor, orders: Guid) -> None:
        self.visitor = visitor
        self.page = f"/directory/queue/{orders}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Iterator[ShownMirror]:
    directory = tmp_path_factory.mktemp("mirror")
    store, journal = directory / "estate.db", directory / "estate-journal"
    known: list[Guid] = []

    async def follow(estate: MirroredEstate) -> None:
        with closing(open_store(str(store), create=True)) as opened:
            await estate.follow(opened, journal)
            estate.label(estate.orders, b"<b>Orders</b> *()\\")
            estate.delete(estate.bills)
            await estate.follow(opened, journal)
        known.append(estate.orders)

    mirrored(follow)
    places = Places(stores=(str(store),), journals=(journal,))
    guest = Guest.parse("administrator")
    with running_console(ConsoleSettings(places, tables, port=0, guest=guest)) as url:
        yield ShownMirror(Visitor(url), known[0])


def test_map_hygiene_and_history(shown: ShownMirror) -> None:
    get = shown.visitor.get
    assert SAID in get("/").text
    assert "no authority is in sight" not in get("/").text
    assert "2 sites, 1 links, 1 machines" in get("/map").text
    assert "Berlin - Paris" in get("/map").text
    assert "everyone may send to the queue" in get("/pipeline").text
    orders = get(shown.page)
    assert "<b>Orders" not in orders.html
    history = orders.text.partition("Journal records of the object")[2]
    assert history.index("update queue") < history.index("create queue")
    assert "dc1.corp.example" in history
    assert "delete queue" in get("/journal").text


def test_what_a_mirror_cannot_do_is_hidden_or_refused(shown: ShownMirror) -> None:
    get, post = shown.visitor.get, shown.visitor.post
    assert "New queue" not in get("/directory").text
    assert SAID in get(shown.page).text
    assert "<form" not in get(shown.page).html.partition('id="change"')[2]
    assert SAID in get("/login").text
    for page in ("/directory/create", "/undelete", f"{shown.page}/delete"):
        assert get(page).location.startswith("/login")
    before = get(shown.page).text
    for action in ("/directory/create", f"{shown.page}/set", f"{shown.page}/delete", "/undelete"):
        answer = post(action, {"property": "label", "value": "forged", "csrf": "0" * 32})
        assert answer.status in (303, 403)
    assert get(shown.page).text == before

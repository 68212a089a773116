"""Deletes in the console: dependents shown first, slips refused unless the name is typed."""

from __future__ import annotations

from contextlib import closing

from mqis.config.stores import open_store
from mqis.wire.mqds.objecttype import ObjectType
from tests.web.asking import Visitor
from tests.web.enterprise import PEC, Enterprise


def page_of(enterprise: Enterprise, kind: ObjectType, path: str) -> str:
    url = enterprise.servers[PEC].config.store.url
    with closing(open_store(url)) as store, store.read() as view:
        found = view.find(kind, path)
    assert found is not None
    return f"/directory/{kind.label}/{found.id}"


def test_the_page_shows_what_hangs_on_a_machine(visitor: Visitor, enterprise: Enterprise) -> None:
    visitor.log_in()
    page = page_of(enterprise, ObjectType.MACHINE, "ams-app1")
    shown = visitor.get(f"{page}/delete")
    assert shown.status == 200
    assert "queues would be orphaned and will be deleted first" in shown.text
    assert "queue ams-app1\\" in shown.text
    assert 'name="typed"' not in shown.html


def test_a_site_with_servers_takes_its_name(visitor: Visitor, enterprise: Enterprise) -> None:
    visitor.log_in()
    page = page_of(enterprise, ObjectType.SITE, "Berlin")
    shown = visitor.get(f"{page}/delete")
    assert "2 directory servers will be expelled" in shown.text
    assert 'name="typed"' in shown.html
    for typed in ({}, {"typed": ""}, {"typed": "Bern"}):
        answer = visitor.submit(f"{page}/delete", f"{page}/delete", typed)
        assert answer.status == 409, typed
        assert "site Berlin is not deleted" in answer.text
        assert 'name="typed"' in answer.html, "the form is there again"
    assert visitor.get(page).status == 200
    for kind, name in ((ObjectType.ENTERPRISE, "Meridian"), (ObjectType.MACHINE, PEC)):
        page = page_of(enterprise, kind, name)
        assert visitor.submit(f"{page}/delete", f"{page}/delete", {}).status == 409
        assert visitor.get(page).status == 200

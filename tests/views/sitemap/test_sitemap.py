"""The model of the map: places, regions, captions, and the picture of it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import combinations
from random import Random
from xml.etree import ElementTree

import pytest

from mqis.protocol.routing.model import Link, RoutingObject, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.sitemap import build
from mqis.views.sitemap.build import MapRequest, site_map
from mqis.views.sitemap.captions import ZOOMS, CaptionBox, zooms_of
from mqis.views.sitemap.model import SiteMap
from mqis.views.sitemap.picture import RouteCase, picture
from tests.strategies.routing import named
from tests.web.network import EstatePlan

SVG = "{http://www.w3.org/2000/svg}"


def estate(sites: int, links: int) -> Snapshot:
    plan = EstatePlan(sites, links)
    objects: list[RoutingObject] = [
        RoutingSite(named(f"site{n}"), plan.name(n), (named(f"gate{n}"),)) for n in range(sites)
    ]
    objects += [
        RoutingQueueManager(named(f"gate{n}"), f"gate{n}", (named(f"site{n}"),), True)
        for n in range(sites)
    ]
    objects += [
        Link(named(f"link{a}-{b}"), named(f"site{a}"), named(f"site{b}"), 1 + (a + b) % 50)
        for a, b in plan.pairs()
    ]
    return Snapshot.make(objects)


@pytest.fixture(scope="module")
def large() -> SiteMap:
    return site_map(estate(300, 600))


def gap(places: list[tuple[float, float]]) -> float:
    return min(math.dist(a, b) for a, b in combinations(places, 2))


# --- places and regions ---------------------------------------------------------------------------


def test_many_sites_have_regions_that_lie_apart(large: SiteMap) -> None:
    assert 5 <= len(large.regions) <= 60
    for a, b in combinations(large.regions, 2):
        assert math.dist((a.x, a.y), (b.x, b.y)) >= a.radius + b.radius
    discs = {region.id: region for region in large.regions}
    for site in large.sites:
        disc = discs[site.region]
        assert math.dist((site.x, site.y), (disc.x, disc.y)) <= disc.radius + 0.2
    assert sum(region.sites for region in large.regions) == 300
    assert gap([(site.x, site.y) for site in large.sites]) > 30, "no dot lies on another"


def test_everything_lies_inside(large: SiteMap) -> None:
    discs = [(each.x, each.y, each.radius) for each in large.sites]
    discs += [(each.x, each.y, each.radius) for each in large.regions]
    for x, y, radius in discs:
        assert radius <= x <= large.width - radius
        assert radius <= y <= large.height - radius


def test_links_between_regions_are_summed(large: SiteMap) -> None:
    region_of = {site.id: site.region for site in large.sites}
    between = [link for link in large.links if region_of[link.source] != region_of[link.target]]
    assert sum(each.links for each in large.region_links) == len(between) > 0


def test_sites_keep_their_places_when_links_are_off(large: SiteMap) -> None:
    snapshot = estate(300, 600)
    off = frozenset(list(snapshot.links)[:5])
    found = site_map(snapshot, MapRequest(off=off))
    assert [(s.x, s.y) for s in found.sites] == [(s.x, s.y) for s in large.sites]
    assert sum(link.off for link in found.links) == 5


def test_the_same_estate_gives_the_same_picture_in_every_process() -> None:
    """Sets of bytes have another order in each process; the picture must not depend on it."""
    code = (
        "from tests.views.sitemap.test_sitemap import estate, picture, RouteCase; import hashlib; "
        "text = picture(RouteCase.of(estate(90, 160))); "
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed}
        command = [sys.executable, "-c", code]
        found.add(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
    assert len(found) == 1


@pytest.mark.parametrize("shape", ["star", "lonely", "pairs"])
def test_odd_networks_have_a_map_too(shape: str) -> None:
    sites = [named(f"s{n}") for n in range(200)]
    links: list[RoutingObject] = []
    if shape == "star":
        links = [Link(named(f"k{n}"), sites[0], sites[n], 1) for n in range(1, 200)]
    elif shape == "pairs":
        links = [Link(named(f"k{n}"), sites[n], sites[n + 1], 1) for n in range(0, 200, 2)]
    found = site_map(Snapshot.make([*(RoutingSite(site, "x") for site in sites), *links]))
    assert gap([(site.x, site.y) for site in found.sites]) > 30
    assert len(found.regions) <= 60
    assert found.width < 8000
    assert found.height < 8000


def test_too_many_sites_are_told_and_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MOST_DRAWN", 10)
    snapshot = estate(20, 30)
    found = site_map(snapshot)
    assert not found.drawn
    assert len(found.sites) == 20, "the tables have them"
    drawn = ElementTree.fromstring(picture(RouteCase.of(snapshot)))
    assert "there are too many sites to draw" in texts(drawn)
    assert len(list(drawn.iter(f"{SVG}circle"))) == 0


# --- captions -------------------------------------------------------------------------------------


def test_captions_that_are_shown_never_overlap() -> None:
    random = Random(5)
    places = [(random.uniform(0, 900), random.uniform(0, 900)) for _ in range(60)]
    names = [CaptionBox(place, 70, 15, 10, n) for n, place in enumerate(places)]
    wholes = [CaptionBox(place, 110, 45, 10, n) for n, place in enumerate(places)]
    named, whole = zooms_of(names, wholes)
    for zoom in ZOOMS:
        shown = [
            (wholes if whole[n] <= zoom else names)[n].at(zoom)
            for n in range(60)
            if named[n] <= zoom
        ]
        for a, b in combinations(shown, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    assert named[59] == ZOOMS[0], "the most important caption is always shown"
    assert sum(zoom <= 1 for zoom in named) > 40
    assert all(first <= second for first, second in zip(named, whole, strict=True))


def test_few_sites_have_all_their_captions() -> None:
    found = site_map(estate(12, 18))
    assert found.regions == ()
    assert all(site.lines_from <= 1 for site in found.sites)


def test_the_names_of_busy_sites_come_first(large: SiteMap) -> None:
    early = [site.links for site in large.sites if site.name_from <= 0.25]
    late = [site.links for site in large.sites if site.name_from > 0.5]
    assert early
    assert late
    assert sum(early) / len(early) > sum(late) / len(late)


# --- the picture ----------------------------------------------------------------------------------


def texts(drawn: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in drawn.iter(f"{SVG}text")]


def test_names_from_anywhere_are_text_and_nothing_else() -> None:
    odd = '<script>"&\x1b\ud800'
    site, other = named("a"), named("b")
    objects: list[RoutingObject] = [
        RoutingSite(site, odd, (named("gate"),)),
        RoutingSite(other, "", ()),
        RoutingQueueManager(named("gate"), odd, (site,), True),
        Link(named("1"), site, other, 3, (), odd),
        Link(named("2"), site, other, 5),
        Link(named("3"), site, other, 0),
    ]
    drawn = ElementTree.fromstring(picture(RouteCase.of(Snapshot.make(objects))))

    assert '<script>"&\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}' in texts(drawn)
    assert "1 link cannot be used and is not drawn" in texts(drawn)
    assert "no gate" in texts(drawn)
    assert len({path.get("d") for path in drawn.iter(f"{SVG}path")}) == 3, "parallel, and the arrow"
    assert ElementTree.fromstring(picture(RouteCase.of(Snapshot({}, {}, {})))).tag == f"{SVG}svg"


def test_a_name_of_any_length_is_cut_off_in_the_picture() -> None:
    snapshot = Snapshot.make([RoutingSite(named("a"), "x" * 5000)])
    (site,) = site_map(snapshot).sites
    assert site.caption == "x" * 31 + "…"
    assert len(site.name) == 5000, "the text has all of it"

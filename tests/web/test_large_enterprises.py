"""Pages of 13, 100 and 1,000 sites: exceptions first, counts for the rest, filters and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.asking import Visitor
from tests.web.large import BY_CLOCK, Large, running

SIZES = (13, 100, 1000)


@dataclass(frozen=True)
class Opened:
    large: Large
    visitor: Visitor
    url: str

    def html(self, path: str) -> str:
        answer = self.visitor.get(path)
        assert answer.status == 200, answer.text
        return answer.html


@pytest.fixture(scope="module", params=SIZES)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    large = Large(request.param)
    with ExitStack() as stack:
        home: Path = stack.enter_context(running(large, tmp_path_factory.mktemp("large")))
        settings = ConsoleSettings(
            Places(home), port=0, guest=Guest.parse("administrator"), sample_every_s=600
        )
        url = stack.enter_context(running_console(settings))
        yield Opened(large, Visitor(url), url)


def rows_of(html: str, label: str) -> list[str]:
    """The rows of the body of a table, by the label of its region."""
    table = html.partition(f'aria-label="{label}">')[2].partition("</table>")[0]
    return re.findall(r"<tr>.*?</tr>", table.partition("<tbody>")[2], re.DOTALL)


def text_of(row: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


def test_replicas_that_are_not_equal_come_first(opened: Opened) -> None:
    large, html = opened.large, opened.html("/replication")
    late = range(large.sites - 5, large.sites - 2)
    apart = sum(large.partitions - (site < large.partitions) for site in late)
    number = re.search(r"([\d,]+) replicas are not equal to their authorities", html)
    assert number is not None
    assert int(number[1].replace(",", "")) == apart
    rows = rows_of(html, "Replicas that are not equal")
    assert 0 < len(rows) <= 20
    assert all(re.search(r"\d behind", text_of(row)) for row in rows)
    unseen = large.away if large.partitions == large.sites else 0
    assert (f"No authority is in sight of {unseen} partitions" in html) is bool(unseen)
    worst = text_of(rows[0]).split()
    assert worst[0] in {large.server(site) for site in late}, "a row for each server, not replica"
    names = {large.site(site) for site in range(large.partitions)}
    assert {word.strip(",") for word in worst} & names
    assert f'href="/servers/{large.server(late[0])}"' in html


def test_partitions_are_counted_and_paged(opened: Opened) -> None:
    large, html = opened.large, opened.html("/replication")
    pages = -(-large.partitions // 25)
    more = [opened.html(f"/replication?page={page}") for page in range(2, pages + 1)]
    assert len(rows_of(html, "Partitions")) == min(large.partitions, 25)
    assert 'class="matrix"' not in html, "no column for each of many servers"
    texts = [text_of(row) for page in (html, *more) for row in rows_of(page, "Partitions")]
    assert len(texts) == large.partitions
    (first,) = (text for text in texts if text.startswith(f"{large.site(1)} {large.server(1)} "))
    assert re.search(r"\d+ in step", first)
    # A number as people read it: the last nine decimal digits.
    assert f"...{(BY_CLOCK + 1) % 10**9:,}" in first
    assert not re.search(r">0*cf14013ff9", html), "no bare hexadecimal digits"
    assert len(html) < 200_000


def test_the_filter_shows_every_replica_of_few_servers(opened: Opened) -> None:
    large = opened.large
    name, site = large.server(1), large.site(2)
    html = opened.html(f"/replication?server={name}&partition={site}")
    cells = re.findall(r'data-cell="(\S+) ', html)
    assert set(cells) == {name}
    assert site in html
    other = opened.html("/replication?server=nobody&partition=nothing")
    assert "no server tells of such a partition" in other
    assert "data-live=" not in html.partition('aria-label="Replicas">')[2]


def test_servers_are_listed_with_the_faulty_first(opened: Opened) -> None:
    large = opened.large
    overview = rows_of(opened.html("/"), "Servers")
    assert len(overview) == min(large.sites, 5 if large.sites > 20 else large.sites)
    html = opened.html("/servers")
    rows = [text_of(row) for row in rows_of(html, "List of servers")]
    assert len(rows) == min(large.sites, 100)
    assert {row.split()[0] for row in rows[:2]} == {large.server(large.sites - n) for n in (1, 2)}
    assert all("does not answer" in row for row in rows[:2])
    assert all("behind" in row for row in rows[2:5])
    last = opened.html(f"/servers?page={-(-large.sites // 100)}")
    assert rows_of(last, "List of servers")
    (one,) = rows_of(opened.html(f"/servers?q={large.server(0)}"), "List of servers")[:1]
    assert text_of(one).startswith(large.server(0))


def test_counters_are_summed_for_many_servers(opened: Opened) -> None:
    large = opened.large
    html = opened.html("/statistics")
    (calls,) = [text_of(row) for row in rows_of(html, "Counters") if "calls" in row]
    up = large.sites - large.away
    assert calls.split() == [
        "calls",
        f"{1000 * sum(range(up)):,}",
        f"{1000 * (up - 1):,}",
        large.server(up - 1),
    ]
    alone = opened.html(f"/statistics?q={large.server(up - 1)}")
    (row,) = [text_of(row) for row in rows_of(alone, "Counters") if "calls" in row]
    assert row.split()[:2] == ["calls", f"{1000 * (up - 1):,}"]


def test_the_page_of_a_server(opened: Opened) -> None:
    large = opened.large
    late = large.sites - 3
    html = opened.html(f"/servers/{large.server(late)}")
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", html))
    assert facts["site"] == large.site(late)
    assert facts["role"] == "PSC"
    assert facts["version"] == "1.0.0"
    assert facts["memory"] == f"{90 + late % 40} MiB"
    assert facts["disk left"] == "800 MiB (journal), 12 GiB (store)"
    assert facts["up for"].endswith(" days")
    first = text_of(rows_of(html, "Partitions")[0])
    assert f"{large.lag(late)} behind" in first
    assert 0 < len(rows_of(html, "Neighbours")) <= 20
    assert "&lt;b&gt;the journal&lt;/b&gt; is not written" in html, "log lines are text"
    gone = opened.html(f"/servers/{large.server(large.sites - 1)}")
    assert "does not answer" in gone
    assert opened.visitor.get("/servers/nobody").status == 404

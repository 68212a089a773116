"""``mqis status`` on a narrow screen, of few and of many servers: exceptions first."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from mqis.cli.status import as_tables
from mqis.enterprise.collected_status import compare
from mqis.enterprise.polling import Polled
from mqis.enterprise.roster import Roster, RosterEntry
from mqis.enterprise.status import EnterpriseStatus
from mqis.server.monitoring.status import NeighbourStatus, PartitionStatus, ServerStatus

MONITOR = "http://127.0.0.1:1"
#: The number of an authority that began by its clock.
BY_CLOCK = 0xCF14013FF9C3


def member(number: int, sites: int, last: int, *, answers: bool = True) -> Polled:
    """A PSC of one of some sites, each with a replica of every partition."""
    name = f"vie-dir{number}"
    entry = RosterEntry(name, "psc", f"Site{number}", monitor=MONITOR)
    if not answers:
        return Polled(entry, None, False, f"does not answer at {MONITOR}")
    partitions = tuple(
        PartitionStatus(
            f"{site:08x}-0000-0000-0000-000000000000",
            f"Site{site}",
            f"vie-dir{site}",
            site == number,
            *(f"{BY_CLOCK if site == number else last:016x}", f"{0:016x}", f"{0:016x}"),
            *("normal", 0),
        )
        for site in range(sites)
    )
    peers = (NeighbourStatus("z", True, 3, {}),)
    return Polled(entry, ServerStatus(name, "psc", "A", "E", 1, 1.0, partitions, peers, {}), True)


def enterprise(servers: int, *, sites: int = 3, behind: int = 0, away: int = 0) -> EnterpriseStatus:
    found = [
        member(
            number,
            sites,
            BY_CLOCK - 2 if servers - away - behind <= number < servers - away else BY_CLOCK,
            answers=number < servers - away,
        )
        for number in range(servers)
    ]
    return compare(Roster("Acme", None, ()), found, {}, 100.0)


def shown(found: EnterpriseStatus, width: int = 80, **options: Any) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(as_tables(found, width, **options))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("servers", [2, 6, 13, 100, 1000])
def test_it_fits_eighty_columns_and_breaks_no_word(servers: int) -> None:
    found = enterprise(servers, behind=min(7, servers - 1), away=0)
    lines = shown(found)
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) < 45
    words = {word for line in lines for word in line.split()}
    assert {"partition", "Site0", "vie-dir0"} <= words
    assert not {"authori", "ty", "autho", "rity"} & words


def test_few_servers_have_a_column_each_where_there_is_room() -> None:
    lines = shown(enterprise(2))
    (header,) = (line for line in lines if line.startswith("partition"))
    assert header.split() == ["partition", "last", "vie-dir0", "vie-dir1"]
    assert any(line.split()[-2:] == ["authority", "in"] or "authority" in line for line in lines)


def test_replicas_that_do_not_fit_are_counted_and_those_that_differ_named() -> None:
    lines = shown(enterprise(13, behind=2, away=1))
    text = " ".join(" ".join(line.split()) for line in lines)
    assert "vie-dir10, vie-dir11: 2 behind; 9 in step; vie-dir12: unknown" in text
    assert "vie-dir12 former psc does not answer 0 s" in text
    # The last digits of a long number, in groups of three.
    assert f"...{BY_CLOCK % 10**9:,}" in text


def test_of_many_servers_only_those_are_listed_of_which_something_is_to_be_said() -> None:
    found = enterprise(1000, behind=7, away=2)
    lines = shown(found)
    listed = [line.split()[0] for line in lines if re.match(r"vie-dir\d+ +(former )?psc", line)]
    assert listed == [f"vie-dir{number}" for number in range(991, 1000)]
    assert "991 more servers are up and in step: --all shows them" in lines
    everything = shown(found, 200, everything=True)
    assert len([line for line in everything if line.startswith("vie-dir")]) >= 1000


def test_chosen_servers_alone() -> None:
    lines = shown(enterprise(100, behind=3), chosen={"vie-dir5", "vie-dir98"})
    listed = [line.split()[0] for line in lines if re.match(r"vie-dir\d+ +(former )?psc", line)]
    assert listed == ["vie-dir5", "vie-dir98"]
    (header,) = (line for line in lines if line.startswith("partition"))
    assert header.split() == ["partition", "last", "vie-dir5", "vie-dir98"]


@pytest.mark.parametrize("servers", [13, 100, 1000])
def test_the_verdict_is_one_sentence_with_counts_and_three_examples(servers: int) -> None:
    found = enterprise(servers, behind=7, away=5)
    text = found.verdict.summary
    fine = servers - 12
    away = [f"vie-dir{number}" for number in range(servers - 5, servers)]
    late = [f"vie-dir{number}" for number in range(servers - 12, servers - 5)]
    assert text == (
        f"{fine} of {servers:,} servers are fine; {', '.join(away[:3])} and 2 more do not answer; "
        f"7 servers have other numbers than their authorities: {', '.join(late[:3])} and 4 more"
    )
    assert len(found.verdict.to_json()["findings"]) == 8

"""The overview's charts and the colours of states, without a page."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from mqis.enterprise.status import (
    EnterpriseStatus,
    MatrixCell,
    MemberState,
    MemberStatus,
    ReplicaStatus,
)
from mqis.server.monitoring.status import NeighbourStatus
from mqis.views.console.charts import StatusChart, chart_page
from mqis.views.console.samples import Measure, SampleHistory
from mqis.views.console.tones import (
    Tone,
    tone_of_cell,
    tone_of_counter,
    tone_of_neighbour,
    tone_of_replica,
    tone_of_server,
    tone_of_verdict,
)

NOON = 1_800_014_400.0  # 2027-01-15 12:00:00 UTC
EVERY_S = 10.0


def replica(behind: int | None = 0, **values: Any) -> ReplicaStatus:
    known: dict[str, Any] = {"authority": False, "state": "normal", **values}
    numbers = "0" * 16, "0" * 16, 0
    return ReplicaStatus(
        "p", "Delft", "a", known.pop("authority"), known.pop("state"), *numbers, behind, **known
    )


def server(
    name: str,
    behind: int | None = 0,
    state: MemberState = MemberState.READY,
    queued: Any = 0,
    replicas: tuple[ReplicaStatus, ...] | None = None,
    **counters: Any,
) -> MemberStatus:
    if replicas is None and behind is not None:
        replicas = (replica(behind, authority=name == "a"),)
    peers = (NeighbourStatus("x", False, queued, {}),) if counters else ()
    known = name, "psc", "Delft", "", 1, 0, state, None, ""
    return MemberStatus(*known, replicas, peers, counters)


def taken(at: float, *servers: MemberStatus) -> EnterpriseStatus:
    return EnterpriseStatus("Acme", NOON + at, None, servers)


def filled(*statuses: EnterpriseStatus, most: int = 360) -> SampleHistory:
    history = SampleHistory(EVERY_S, most)
    for status in statuses:
        history.add(status)
    return history


def charts(history: SampleHistory, server: str = "") -> dict[str, StatusChart]:
    found = chart_page(history.samples(), EVERY_S, server).charts
    return {chart.key: chart for chart in found}


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.req("SEC-12-17")
def test_the_history_is_limited_and_takes_a_sample_now_and_then() -> None:
    history = filled(*(taken(at, server("a", calls=1)) for at in range(0, 1000, 3)), most=20)
    times = [sample.time - NOON for sample in history.samples()]
    assert len(times) == 20
    assert times[-1] >= 990
    assert all(later - earlier >= EVERY_S for earlier, later in pairwise(times))
    assert not history.is_due(NOON + times[-1] + 9)
    assert history.is_due(NOON + times[-1] + 10)


def test_a_poll_that_overlaps_another_changes_nothing() -> None:
    """A page and the sampler poll at the same time, and the slower one began first."""
    history = filled(*(taken(10 * n, server("a", calls=1)) for n in range(5)))
    history.add(taken(38, server("a", calls=1)))
    assert [sample.time - NOON for sample in history.samples()] == [0, 10, 20, 30, 40]


def test_a_clock_that_is_set_back_starts_the_history_again() -> None:
    history = filled(taken(0, server("a", changes_made=1)), taken(-3600, server("a")))
    assert [sample.time for sample in history.samples()] == [NOON - 3600]


def test_changes_are_counted_by_the_second_also_over_a_restart() -> None:
    made = (100, 120, 5)
    statuses = (taken(10 * n, server("a", changes_made=m)) for n, m in enumerate(made))
    values = [sample.total(Measure.CHANGES) for sample in filled(*statuses).samples()]
    assert str(values[0]) == "nan"
    assert values[1:] == [2.0, 0.5]


def test_numbers_that_an_authority_skipped_are_no_changes() -> None:
    jumped = replica(1_048_579, jumps=1, skipped=1_048_576)
    (sample,) = filled(taken(0, server("b", replicas=(jumped,)))).samples()
    assert sample.total(Measure.LAG) == 3.0


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), -1, 1e300, "7", None, 1 << 2000])
@pytest.mark.req("SEC-12-17")
def test_numbers_that_cannot_be_are_not_known(odd: object) -> None:
    statuses = (
        taken(at, server("a", queued=odd, sessions=odd, changes_made=odd)) for at in (0, 10)
    )
    found = charts(filled(*statuses))
    assert [found[key].now for key in ("changes", "waiting", "sessions")] == ["unknown"] * 3
    assert found["sessions"].line == ""
    assert "No server reports this" in found["sessions"].text


def test_a_number_that_is_not_known_any_more_is_not_made_up() -> None:
    away = server("b", None, MemberState.DOWN)
    chart = charts(filled(taken(0, server("b", 4, calls=1)), taken(10, away)))["lag"]
    assert (chart.now, chart.unit, chart.dot) == ("unknown", "", "")
    assert chart.text == "Not known now; at most 4 in the last 5 min, at 12:00:00 UTC (b)."


# --- charts ---------------------------------------------------------------------------------------


def test_a_chart_is_told_in_words() -> None:
    history = filled(
        taken(0, server("a", changes_made=0), server("b", 7, queued=2, sessions=1)),
        taken(60, server("a", changes_made=30), server("b", 3, queued=4, sessions=2)),
    )
    found = charts(history)
    assert found["lag"].text == (
        "Now 3 changes behind (b); at most 7 in the last 5 min, at 12:00:00 UTC (b)."
    )
    assert (found["lag"].now, found["lag"].top, found["lag"].tone) == ("3", "10", Tone.LATE)
    assert found["changes"].text.startswith("Now 0.5 a second; at most 0.5")
    assert (found["waiting"].now, found["sessions"].now) == ("4", "2")
    assert (found["lag"].begin, found["lag"].end) == ("11:56:00 UTC", "12:01:00 UTC")
    alone = charts(history, "a")
    assert alone["lag"].text == "Now 0 changes behind; never more in the last 5 min."
    assert alone["waiting"].now == "0"


def test_the_curve_has_the_values_and_a_gap_where_nothing_is_known() -> None:
    lags = (0, 10, None, 5)
    history = filled(*(taken(100 * n, server("b", lag, calls=1)) for n, lag in enumerate(lags)))
    chart = charts(history)["lag"]
    assert chart.line == "M0 120 M200 0 M600 60", "samples 100 s apart are not joined either"
    joined = filled(*(taken(10 * n, server("b", lag, calls=1)) for n, lag in enumerate((0, 4, 2))))
    chart = charts(joined)["lag"]
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", chart.line)]
    assert heights == [120, 24, 72]
    assert chart.area.endswith("Z")
    assert chart.dot == "M600 72h0"


def test_a_time_without_a_server_is_marked() -> None:
    down = server("b", None, MemberState.DOWN)
    up = server("b", calls=1)
    states = (up, down, down, up)
    history = filled(*(taken(100 * n, server("a"), each) for n, each in enumerate(states)))
    ((left, width),) = charts(history)["lag"].outages
    assert left == pytest.approx(190)
    assert left + width == pytest.approx(410)
    assert charts(filled(taken(0, server("a"), up)))["lag"].outages == ()


def test_a_lag_that_stays_turns_red() -> None:
    def after(seconds: int, first: int) -> Tone:
        lags = (first, *[1] * (seconds // 10))
        return charts(filled(*(taken(10 * n, server("b", k)) for n, k in enumerate(lags))))[
            "lag"
        ].tone

    assert after(100, 1) is Tone.LATE
    assert after(400, 1) is Tone.BAD
    assert charts(filled(taken(0, server("b", 0))))["lag"].tone is Tone.PLAIN


def test_the_table_is_short_and_has_the_newest_first() -> None:
    page = chart_page(
        filled(*(taken(10 * n, server("b", n)) for n in range(200))).samples(), EVERY_S
    )
    assert 10 <= len(page.rows) <= 12
    assert page.rows[0][:2] == ("12:33:10 UTC", "199")
    assert chart_page((), EVERY_S).charts == ()


# --- colours --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "tone"),
    [
        (MemberState.READY, Tone.GOOD),
        (MemberState.STARTING, Tone.LATE),
        (MemberState.STOPPED, Tone.LATE),
        (MemberState.FAILED, Tone.BAD),
        (MemberState.DOWN, Tone.BAD),
        (MemberState.UNREADABLE, Tone.BAD),
        (MemberState.STORED, Tone.PLAIN),
    ],
)
def test_a_server_that_failed_is_red_and_one_that_was_stopped_amber(
    state: MemberState, tone: Tone
) -> None:
    assert tone_of_server(server("a", state=state)) is tone


@pytest.mark.parametrize(
    ("shown", "tone"),
    [
        (replica(0, authority=True), Tone.INFO),
        (replica(0), Tone.GOOD),
        (replica(3, behind_s=20.0), Tone.LATE),
        (replica(3, behind_s=301.0), Tone.BAD),
        (replica(0, ahead=2), Tone.BAD),
        (replica(0, state="sync0"), Tone.LATE),
        (replica(None), Tone.LATE),
    ],
)
def test_the_colour_of_a_replica(shown: ReplicaStatus, tone: Tone) -> None:
    assert tone_of_replica(shown) is tone


def test_the_verdict_colours_the_sentence() -> None:
    good = server("a"), server("b")
    assert tone_of_verdict(taken(0, *good).verdict) is Tone.GOOD
    assert tone_of_verdict(taken(0, good[0], server("b", 2)).verdict) is Tone.LATE
    assert (
        tone_of_verdict(taken(0, *good, server("c", state=MemberState.STOPPED)).verdict)
        is Tone.LATE
    )
    assert (
        tone_of_verdict(taken(0, *good, server("c", state=MemberState.FAILED)).verdict) is Tone.BAD
    )
    assert tone_of_verdict(taken(0, server("b")).verdict) is Tone.LATE, "no authority is in sight"
    lacking = server("c", replicas=())
    assert tone_of_verdict(taken(0, *good, lacking).verdict) is Tone.LATE
    assert tone_of_cell(MatrixCell(lacking, None)) is Tone.LATE


def test_counters_and_neighbours_that_want_attention() -> None:
    assert tone_of_counter("commit_failures", 1) is Tone.BAD
    assert tone_of_counter("logon_failures", 1) is Tone.LATE
    assert tone_of_counter("logon_failures", 0) is Tone.PLAIN
    assert tone_of_counter("calls", 9) is Tone.PLAIN
    assert tone_of_neighbour(NeighbourStatus("b", False, 4, {})) is Tone.LATE
    assert tone_of_neighbour(NeighbourStatus("b", True, 4, {})) is Tone.PLAIN

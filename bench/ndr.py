"""Measures marshalling of a call with twenty properties, against impacket's NDR."""

from __future__ import annotations

from collections.abc import Callable

from bench.measure import Sample, contest, timed_together
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run

BATCH = 20
AIM = 20


def _run(run: Run) -> Results:
    run.say("ndr: marshalling")
    try:
        from tests.wire.ndr import impacket_call as both  # noqa: PLC0415
    except ImportError as error:
        return Results(notes=[f"ndr: skipped: {error} (make bench installs it)"])
    data = both.our_marshal()
    # impacket must decode it rightly to be a peer. (It cannot read its own output, which is aligned
    # differently.)
    assert both.impacket_values(both.impacket_unmarshal(data)) == both.PROPERTIES
    results = Results()
    table = f"S_DSCreateObject with {len(both.PROPERTIES)} properties, NDR20, {len(data)} bytes"
    for name, ours, peer in (
        ("marshal", both.our_marshal, both.impacket_marshal),
        (
            "unmarshal",
            lambda: both.our_unmarshal(data),
            lambda: both.impacket_unmarshal(data),
        ),
    ):
        other = f"{name}: impacket"
        samples = contest(run.rounds, {name: _timed(run, ours), other: _timed(run, peer)})
        against = ("impacket", samples[other])
        results.rows += [
            Row.of(table, name, samples[name], peer=against, size=len(data)),
            Row.of(table, other, samples[other], size=len(data)),
        ]
        found = ratio(samples[name], samples[other])
        results.aims.append(Aim(f">= {AIM}x impacket, {name}", f"{found:.1f}x", found >= AIM))
    return results


BENCH = Bench("ndr", "stubs of a call with twenty properties", _run)


def _timed(run: Run, operation: Callable[[], object]) -> Callable[[], Sample]:
    def batch() -> int:
        for _ in range(BATCH):
            operation()
        return BATCH

    return lambda: timed_together(batch, run.sample_s)

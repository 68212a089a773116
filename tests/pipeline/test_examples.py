"""The examples run; what takes an ingest of its own is in ``commands``."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from examples.pipeline import ask
from mqis.wire.journal import RecordState
from mqis.wire.journal.record import decode_body
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import DirectoryChange
from tests.pipeline.conftest import Enterprise
from tests.pipeline.test_sources import whole_records


def test_questions_of_ones_own(
    spark: SparkSession, enterprise: Enterprise, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask.main(enterprise.journals)
    local = [
        (server, entry.record)
        for server, entry in whole_records(enterprise)
        if entry.record.state is RecordState.LOCAL
    ]
    hours = Counter((server, record.time_us // 3_600_000_000) for server, record in local)
    most = sorted(hours.values(), reverse=True)[:5]
    assert [row.changes for row in found["busiest"]] == most
    given = []
    for server, record in local:
        change = decode_body(record)
        assert isinstance(change, DirectoryChange)
        label = dict(change.properties).get(PropId.Q_LABEL)
        if label is not None:
            given.append((-record.time_us, server, label.value))
    assert [row.label for row in found["labels"]] == [label for _, _, label in sorted(given)[:5]]
    assert str(found["labels"][0].label) in capsys.readouterr().out

"""Journals of a healthy enterprise: nothing is told about them.

``tests/data/pipeline/tour.tar.xz`` has the journals and exports of the five servers of a tour, of a
version without records of skipped numbers. The PEC made the machines of two sites for their PSCs,
which took office behind numbers by their clocks; a machine was deleted and brought back; a backup
controller was killed and synchronised its whole partition.

Part of ``make engines``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.pipeline.report.content import ReportContent, read_content
from mqis.pipeline.report.findings import Urgency, findings
from mqis.pipeline.runs import ingest, lag
from mqis.pipeline.tables import TableDirectory

TOUR = Path(__file__).parents[2] / "data" / "pipeline" / "tour.tar.xz"


@pytest.fixture(scope="module")
def toured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableDirectory:
    directory = tmp_path_factory.mktemp("tour")
    shutil.unpack_archive(TOUR, directory)
    tables = TableDirectory(spark, directory / "tables")
    read = ingest(tables, str(directory / "journals"), str(directory / "exports"))
    assert (read.servers, read.errors, read.evidence) == (5, 0, 0)
    lag(tables)
    return tables


@pytest.fixture(scope="module")
def content(toured: TableDirectory) -> ReportContent:
    return read_content(toured)


def test_nothing_was_skipped_or_repeated(content: ReportContent) -> None:
    assert content.tables["gaps"] == []


def test_the_report_is_in_order(content: ReportContent) -> None:
    assert {finding.urgency for finding in findings(content)} == {Urgency.FINE}


def test_the_full_synchronisation_is_a_round_and_no_fault(content: ReportContent) -> None:
    full = {
        (row["server"], row["peer"]): row["sync0_rounds"]
        for row in content.tables["rounds"]
        if row["sync0_rounds"]
    }
    assert full["ber-dir2", "ber-dir1"] == 1
    # The others are copies that two new PSCs took before they went into service.
    assert {server for server, _ in full} == {"ber-dir1", "ber-dir2", "chi-dir1"}

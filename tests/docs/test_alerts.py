"""docs/alerts.md has each alert of the rules, and nothing else."""

from __future__ import annotations

import re

from mqis.server.monitoring.metrics.all_metrics import METRICS, MetricKind
from mqis.views.doctor import archive_lag, store_checks
from tests.alert_rules import alerts
from tests.docs.documents import ROOT

PAGE = ROOT / "docs" / "alerts.md"


def test_each_alert_has_its_section_in_the_same_order() -> None:
    headings = re.findall(r"^### (\w+)$", PAGE.read_text("utf-8"), re.M)
    assert headings == [alert.name for alert in alerts()]


def test_each_section_says_something() -> None:
    sections = re.split(r"^#+ .*$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    named = [text for text in sections if text.strip()]
    assert len(named) >= len(alerts())
    assert min(len(text.split()) for text in named) > 10


def test_each_alert_says_how_grave_it_is_and_leads_to_its_section() -> None:
    for alert in alerts():
        assert alert.severity in ("critical", "warning"), alert.name
        assert alert.annotation("runbook_url") == f"docs/alerts.md#{alert.name.lower()}"
        assert alert.annotation("summary")
        assert alert.annotation("description").endswith("."), alert.name


def test_rules_ask_for_metrics_of_the_catalogue() -> None:
    known = {metric.exported for metric in METRICS}
    known |= {f"{m.name}_bucket" for m in METRICS if m.kind is MetricKind.HISTOGRAM}
    asked = {metric for alert in alerts() for metric in alert.metrics}
    assert {name for name in asked if name.startswith("mqis_")} - known == set()


def test_limits_are_those_of_the_doctor() -> None:
    rules = {alert.name: alert.text for alert in alerts()}
    assert f"mqis_disk_free_bytes < {store_checks._LITTLE} " in rules["MqisDiskLow"]
    assert f"mqis_disk_free_bytes < {store_checks._NONE}\n" in rules["MqisDiskFull"]
    assert f"mqis_archive_lag_seconds > {archive_lag._LATE_S}\n" in rules["MqisArchiveBehind"]
    assert f"mqis_outbox_records > {store_checks._WAITING}\n" in rules["MqisOutboxGrows"]

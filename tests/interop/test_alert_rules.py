"""The alert rules, judged by promtool: each fires for its fault alone, none for healthy servers.

The healthy servers are at the limits: a rule that fires one step too early fails here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.alert_rules import RULES, alerts

pytestmark = pytest.mark.interop

#: Minutes of each series, and the minute at which the rules are judged.
_LONG, _AT = 120, 90
_DAY = 86_400
Labels = Mapping[str, str]


def steady(value: float) -> str:
    return f"{value}x{_LONG}"


def rising(by: float) -> str:
    """A counter that grows by so much each minute."""
    return f"0+{by}x{_LONG}"


#: (metric, labels beside job and instance) -> values of a healthy server.
HEALTHY: dict[tuple[str, str], str] = {
    ("up", ""): steady(1),
    ("process_start_time_seconds", ""): f"5x40 6x40 7x{_LONG}",  # twice within 80 minutes
    ("process_open_fds", ""): steady(80),
    ("process_max_fds", ""): steady(100),
    ("mqis_server_serving", ""): steady(1),
    ("mqis_server_info", 'role="psc"'): steady(1),
    ("mqis_verdict_findings", 'grade="red",kind="problem"'): steady(0),
    ("mqis_verdict_findings", 'grade="red",kind="contents"'): steady(0),
    ("mqis_verdict_findings", 'grade="amber",kind="server"'): steady(0),
    ("mqis_verdict_findings", 'grade="amber",kind="resync"'): steady(0),
    ("mqis_disk_free_bytes", 'place="store"'): steady(1 << 30),
    ("mqis_disk_free_bytes", 'place="journal"'): steady(1 << 40),
    ("mqis_signing_key_written_timestamp_seconds", ""): steady(_AT * 60 - 365 * _DAY),
    ("mqis_certificate_expiry_timestamp_seconds", 'setting="store.ca_file"'): steady(
        _AT * 60 + 30 * _DAY
    ),
    ("mqis_partition_contents_different", 'partition="Delft"'): steady(0),
    ("mqis_partition_contents_changed", 'partition="Delft"'): steady(0),
    ("mqis_partition_authority", 'partition="Delft"'): steady(0),
    ("mqis_partition_last_sequence", 'partition="Delft"'): f"0x8 0+7x{_LONG}",
    ("mqis_partition_last_sequence", 'partition="Ghent"'): steady(3),
    ("mqis_partition_missing_changes", 'partition="Delft"'): steady(0),
    ("mqis_replication_lag_seconds", 'partition="Delft",neighbour="psc2"'): steady(300),
    # Six for two partitions: what a server does that joins, and that is promoted thereafter.
    ("mqis_replication_sync0_rounds_total", ""): f"0x60 2x10 4x10 6x{_LONG}",
    ("mqis_replication_forward_timeouts_total", ""): steady(9),
    ("mqis_transport_queue_oldest_seconds", 'peer="psc2"'): steady(900),
    ("mqis_transport_queue_oldest_seconds", 'peer="other"'): steady(90_000),
    ("mqis_store_commit_failures_total", ""): steady(9),
    ("mqis_store_flush_duration_seconds_bucket", 'le="0.5"'): rising(100),
    ("mqis_store_flush_duration_seconds_bucket", 'le="1.0"'): rising(100),
    ("mqis_store_flush_duration_seconds_bucket", 'le="+Inf"'): rising(100),
    ("mqis_journal_failed", ""): steady(0),
    ("mqis_journal_faults", ""): steady(0),
    ("mqis_outbox_records", ""): steady(10_000),
    ("mqis_archive_lag_seconds", ""): steady(3600),
    ("mqis_authentication_failures_total", ""): rising(1),
    ("mqis_access_denied_total", ""): rising(6),
    ("mqis_rpc_connections_refused_total", 'endpoint="directory"'): rising(2),
    ("mqis_rpc_connections_evicted_total", 'endpoint="directory"'): rising(1),
    ("mqis_transport_connections_refused_total", ""): rising(3),
    ("mqis_replication_refusals_total", 'reason="stranger"'): f"0x80 3x{_LONG}",
    ("mqis_replication_refusals_total", 'reason="outdated"'): rising(50),
    ("mqis_replication_refusals_total", 'reason="clock"'): steady(9),
    ("mqis_replication_refusals_total", 'reason="own_partition"'): steady(9),
    ("mqis_replication_refusals_total", 'reason="wrong_source"'): steady(9),
    ("mqis_replication_refusals_total", 'reason="inconsistent"'): steady(9),
    ("mqis_transport_messages_refused_total", ""): rising(1),
    ("mqis_changes_over_budget_total", 'budget="bytes"'): steady(9),
    ("mqis_routing_read_failures_total", ""): steady(9),
    ("mqis_routing_exhausted_messages_total", ""): steady(9),
}
#: The second server is the authority, and always nine minutes ahead.
_AUTHORITY = {
    ("mqis_partition_authority", 'partition="Delft"'): steady(1),
    ("mqis_partition_last_sequence", 'partition="Delft"'): rising(7),
}


@dataclass(frozen=True)
class Fault:
    """Series of the first server that replace healthy ones, and the labels of the alert."""

    series: Mapping[tuple[str, str], str]
    labels: Labels = field(default_factory=dict)
    #: The alert is about a partition of the enterprise and names no server.
    wide: bool = False


def one(metric: str, labels: str, values: str) -> Fault:
    shown = {key: value.strip('"') for key, value in re.findall(r'(\w+)=("[^"]*")', labels)}
    return Fault({(metric, labels): values}, shown)


_DELFT = 'partition="Delft"'
FAULTS = {
    "MqisServerDown": one("up", "", steady(0)),
    "MqisServerRestarts": one("process_start_time_seconds", "", f"5x80 6x1 7x1 8x{_LONG}"),
    "MqisNotServing": one("mqis_server_serving", "", steady(0)),
    "MqisVerdictRed": Fault(
        {("mqis_verdict_findings", 'grade="red",kind="problem"'): steady(1)}, {"kind": "problem"}
    ),
    "MqisVerdictAmber": Fault(
        {("mqis_verdict_findings", 'grade="amber",kind="resync"'): f"0x25 1x{_LONG}"},
        {"kind": "resync"},
    ),
    "MqisDiskLow": one("mqis_disk_free_bytes", 'place="store"', steady((1 << 30) - 1)),
    "MqisDiskFull": one("mqis_disk_free_bytes", 'place="journal"', steady((1 << 26) - 1)),
    "MqisOpenFilesHigh": one("process_open_fds", "", steady(81)),
    "MqisSigningKeyOld": one(
        "mqis_signing_key_written_timestamp_seconds", "", steady(_AT * 60 - 365 * _DAY - 1)
    ),
    "MqisCertificateExpiresSoon": one(
        "mqis_certificate_expiry_timestamp_seconds",
        'setting="store.ca_file"',
        steady(_AT * 60 + 30 * _DAY - 1),
    ),
    "MqisCertificateExpires": one(
        "mqis_certificate_expiry_timestamp_seconds",
        'setting="store.ca_file"',
        steady(_AT * 60 + 3 * _DAY - 1),
    ),
    "MqisContentsDiffer": one("mqis_partition_contents_different", _DELFT, steady(1)),
    "MqisContentsChanged": one("mqis_partition_contents_changed", _DELFT, steady(1)),
    "MqisTwoAuthorities": Fault(
        {("mqis_partition_authority", _DELFT): steady(1)},
        {"partition": "Delft"},
        wide=True,
    ),
    "MqisNoAuthority": Fault({}, {"partition": "Delft"}, wide=True),
    "MqisReplicaBehind": one(
        "mqis_partition_last_sequence",
        _DELFT,
        f"0+7x60 {7 * 60}x{_LONG}",
    ),
    "MqisNeighbourBehind": one(
        "mqis_replication_lag_seconds", 'partition="Delft",neighbour="psc2"', steady(301)
    ),
    "MqisChangesMissing": one("mqis_partition_missing_changes", _DELFT, steady(1)),
    "MqisFullResyncRepeats": one(
        "mqis_replication_sync0_rounds_total", "", f"0x50 2x10 4x10 6x10 7x{_LONG}"
    ),
    "MqisForwardTimeouts": one(
        "mqis_replication_forward_timeouts_total", "", f"9x{_AT - 10} 10x{_LONG}"
    ),
    "MqisMessagesStuck": one("mqis_transport_queue_oldest_seconds", 'peer="psc2"', steady(901)),
    "MqisCommitsFail": one("mqis_store_commit_failures_total", "", f"9x{_AT - 3} 10x{_LONG}"),
    "MqisStoreSlow": Fault(
        {
            ("mqis_store_flush_duration_seconds_bucket", 'le="0.5"'): rising(98),
        }
    ),
    "MqisJournalFailed": one("mqis_journal_failed", "", steady(1)),
    "MqisJournalDamaged": one("mqis_journal_faults", "", steady(1)),
    "MqisOutboxGrows": one("mqis_outbox_records", "", steady(10_001)),
    "MqisArchiveBehind": one("mqis_archive_lag_seconds", "", steady(3601)),
    "MqisLogonsFail": one("mqis_authentication_failures_total", "", rising(2)),
    "MqisAccessDenied": one("mqis_access_denied_total", "", rising(7)),
    "MqisConnectionsRefused": Fault(
        {("mqis_rpc_connections_evicted_total", 'endpoint="directory"'): rising(2)}
    ),
    "MqisSessionsRefused": one("mqis_transport_connections_refused_total", "", rising(4)),
    "MqisStrangersRefused": one(
        "mqis_replication_refusals_total", 'reason="stranger"', f"0x80 6x{_LONG}"
    ),
    "MqisReplicationRefused": one(
        "mqis_replication_refusals_total", 'reason="clock"', f"9x80 10x{_LONG}"
    ),
    "MqisSignaturesRefused": one("mqis_transport_messages_refused_total", "", rising(2)),
    "MqisBudgetUsedUp": one("mqis_changes_over_budget_total", 'budget="bytes"', f"9x80 10x{_LONG}"),
    "MqisRoutingUnreadable": one(
        "mqis_routing_read_failures_total", "", f"9x{_AT - 10} 10x{_LONG}"
    ),
    "MqisRoutingLoop": one("mqis_routing_exhausted_messages_total", "", f"9x80 10x{_LONG}"),
}
#: Faults that pass before their alert: nobody has to act.
PASSING = {
    "MqisServerDown": one("up", "", f"1x{_AT - 2} 0x{_LONG}"),
    "MqisNotServing": one("mqis_server_serving", "", f"1x{_AT - 10} 0x{_LONG}"),
    "MqisVerdictAmber": one(
        "mqis_verdict_findings", 'grade="amber",kind="resync"', f"0x{_AT - 60} 1x{_LONG}"
    ),
    "MqisChangesMissing": one("mqis_partition_missing_changes", _DELFT, f"0x{_AT - 15} 3x{_LONG}"),
    "MqisReplicaBehind": one(
        "mqis_partition_last_sequence",
        _DELFT,
        f"0+7x{_AT - 14} {7 * (_AT - 14)}x{_LONG}",
    ),
}


def series(
    enterprise: str, server: str, replaced: Mapping[tuple[str, str], str]
) -> Iterator[dict[str, str]]:
    assert replaced.keys() <= HEALTHY.keys(), "a fault of a metric that no healthy server has"
    for (metric, labels), values in (HEALTHY | dict(replaced)).items():
        named = [f'job="mqis",instance="{enterprise}-{server}"', labels]
        if metric == "mqis_server_info":
            named.append(f'enterprise="{enterprise}"')
        yield {"series": f"{metric}{{{','.join(filter(None, named))}}}", "values": values}


def firing(enterprise: str, name: str, fault: Fault) -> dict[str, object]:
    """The sample of an alert that fires."""
    severity = {alert.name: alert.severity for alert in alerts()}[name]
    labels = {"alertname": name, "alertstate": "firing", "severity": severity, **fault.labels}
    if not fault.wide:
        labels |= {"job": "mqis", "instance": f"{enterprise}-a"}
    if fault.wide or name == "MqisReplicaBehind":
        labels["enterprise"] = enterprise
    shown = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
    return {"labels": f"ALERTS{{{shown}}}", "value": 1}


def case(faults: Mapping[str, Fault], expected: Sequence[str] = ()) -> dict[str, object]:
    """A test of promtool: an enterprise of two servers for each fault, and all that fires."""
    given: list[dict[str, str]] = []
    for name, fault in faults.items():
        given += series(name, "a", fault.series)
        given += series(name, "b", {} if name == "MqisNoAuthority" else _AUTHORITY)
    samples = [firing(name, name, faults[name]) for name in expected]
    asked = {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{_AT}m", "exp_samples": samples}
    return {"interval": "1m", "input_series": given, "promql_expr_test": [asked]}


def judged(directory: Path, *cases: dict[str, object], rules: Path = RULES) -> str:
    """The complaints of promtool; empty if the rules do what the cases say."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    content = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": cases}
    file = directory / "test.yml"
    file.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    done = subprocess.run(
        [program, "test", "rules", file], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_no_alert_for_healthy_servers_and_faults_that_pass(tmp_path: Path) -> None:
    assert judged(tmp_path, case({"Healthy": Fault({}), **PASSING})) == ""


def test_each_fault_fires_its_alert_alone(tmp_path: Path) -> None:
    assert judged(tmp_path, case(FAULTS, list(FAULTS))) == ""


#: The refusals of a role exchange of 14 minutes, which began so many minutes ago.
EXCHANGES = range(0, 100, 3)
_REASONS = ("own_partition", "wrong_source", "inconsistent")


def refusals(reason: str, values: str) -> Fault:
    return one("mqis_replication_refusals_total", f'reason="{reason}"', values)


@pytest.mark.parametrize("reason", _REASONS)
def test_an_exchange_of_roles_fires_nothing(reason: str, tmp_path: Path) -> None:
    """The alert fired for a quarter of an hour after every promotion."""
    cases = []
    for ago in EXCHANGES:
        before, rises = max(_AT - ago, 0), 14
        values = f"9x{before} 10+1x{rises - 1} {9 + rises}x{_LONG}"
        cases.append(case({"Exchange": refusals(reason, values)}))
    assert judged(tmp_path, *cases) == ""


@pytest.mark.parametrize("reason", _REASONS)
def test_refusals_that_go_on_fire(reason: str, tmp_path: Path) -> None:
    name = "MqisReplicationRefused"
    lasting = case({name: refusals(reason, f"9x50 10+1x{_LONG}")}, [name])
    again = case({name: refusals(reason, f"9x40 10x40 11x{_LONG}")}, [name])
    assert judged(tmp_path, lasting, again) == ""


def test_every_alert_has_a_fault() -> None:
    assert [alert.name for alert in alerts()] == list(FAULTS)


def test_texts_name_labels_that_the_alert_has() -> None:
    for alert in alerts():
        fault = FAULTS[alert.name]
        known = set(fault.labels) | ({"enterprise"} if fault.wide else {"instance"})
        assert alert.labels <= known, alert.name


def test_promtool_notices_a_rule_that_never_fires(tmp_path: Path) -> None:
    """The judge itself: without this, an empty answer of promtool would prove nothing."""
    broken = tmp_path / "alerts.yml"
    text = RULES.read_text("utf-8")
    broken.write_text(text.replace("mqis_journal_failed == 1", "mqis_journal_failed == 2"))
    name = "MqisJournalFailed"
    fault = case({name: FAULTS[name]}, [name])
    assert name in judged(tmp_path, fault, rules=broken)

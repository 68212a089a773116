"""The Grafana dashboard as a list of panels, from which deploy/grafana/mqis.json is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqis.server.monitoring.metrics.all_metrics import METRICS, Metric, MetricKind

_I = 'instance=~"$instance"'
_RATE = "$__rate_interval"
_WIDTH, _HEIGHT, _IN_ROW = 8, 8, 3
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel; ``queries`` are pairs of expression and legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...] = field(default_factory=tuple)


def _rate(metric: str, by: str = "instance", legend: str = "") -> tuple[str, str]:
    shown = legend or " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return f"sum by ({by}) (rate({metric}{{{_I}}}[{_RATE}]))", shown


def _now(metric: str, legend: str = "{{instance}}") -> tuple[str, str]:
    return f"{metric}{{{_I}}}", legend


def _quantile(metric: str, quantile: float, by: str = "instance") -> tuple[str, str]:
    shown = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    buckets = f"sum by (le, {by}) (rate({metric}_bucket{{{_I}}}[{_RATE}]))"
    return f"histogram_quantile({quantile}, {buckets})", f"p{quantile * 100:g} {shown}"


ROWS = (
    Row(
        "Servers",
        (
            Panel(
                "Running servers",
                "short",
                ((f"sum(mqis_server_serving{{{_I}}})", "serving"),),
                "stat",
            ),
            Panel("Server information", "short", (_now("mqis_server_info", ""),), "table"),
            Panel("What runs", "short", (_now("mqis_build_info", ""),), "table"),
            Panel("Memory", "bytes", (_now("process_resident_memory_bytes"),)),
            Panel("CPU", "percentunit", (_rate("process_cpu_seconds_total"),)),
            Panel("Open files", "short", (_now("process_open_fds"),)),
            Panel(
                "Findings of the verdict",
                "short",
                (
                    (
                        f"sum by (instance, grade, kind) (mqis_verdict_findings{{{_I}}}) > 0",
                        "{{instance}} {{grade}}: {{kind}}",
                    ),
                ),
                text="What /health of each server finds. Empty: all are green.",
            ),
            Panel(
                "Free space",
                "bytes",
                (_now("mqis_disk_free_bytes", "{{place}} of {{instance}}"),),
            ),
            Panel(
                "Age of keys, certificates until they expire",
                "s",
                (
                    (
                        f"time() - mqis_signing_key_written_timestamp_seconds{{{_I}}}",
                        "key of {{instance}}",
                    ),
                    (
                        f"mqis_certificate_expiry_timestamp_seconds{{{_I}}} - time()",
                        "{{setting}} of {{instance}} expires in",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "RPC",
        (
            Panel("Calls", "reqps", (_rate("mqis_rpc_calls_total", "interface, operation"),)),
            Panel(
                "Duration of calls",
                "s",
                (
                    _quantile("mqis_rpc_call_duration_seconds", 0.5, "operation"),
                    _quantile("mqis_rpc_call_duration_seconds", 0.99, "operation"),
                ),
            ),
            Panel(
                "Failed calls",
                "reqps",
                (_rate("mqis_rpc_call_failures_total", "operation, result"),),
            ),
            Panel("Faults", "reqps", (_rate("mqis_rpc_faults_total", "instance, status"),)),
            Panel(
                "Connections",
                "short",
                (
                    _now("mqis_rpc_connections", "{{instance}} {{endpoint}}"),
                    _rate(
                        "mqis_rpc_connections_accepted_total", legend="new a second {{instance}}"
                    ),
                    _rate(
                        "mqis_rpc_connections_refused_total", legend="refused a second {{instance}}"
                    ),
                ),
            ),
            Panel(
                "Logons and refusals",
                "ops",
                (
                    _rate("mqis_authentication_attempts_total", legend="logons {{instance}}"),
                    _rate(
                        "mqis_authentication_failures_total", legend="failed logons {{instance}}"
                    ),
                    _rate(
                        "mqis_authentication_unjudged_total", legend="logons too early {{instance}}"
                    ),
                    _rate("mqis_access_denied_total", legend="denied calls {{instance}}"),
                    _rate(
                        "mqis_changes_over_budget_total", legend="changes over budget {{instance}}"
                    ),
                ),
            ),
            Panel("Callbacks", "reqps", (_rate("mqis_rpc_callbacks_total"),)),
        ),
    ),
    Row(
        "Store",
        (
            Panel(
                "Commits",
                "ops",
                (
                    _rate("mqis_store_commits_total"),
                    _rate("mqis_store_commit_failures_total", legend="failed {{instance}}"),
                ),
            ),
            Panel(
                "Operations per commit",
                "short",
                (
                    (
                        (
                            f"rate(mqis_store_operations_total{{{_I}}}[{_RATE}]) / "
                            f"rate(mqis_store_commits_total{{{_I}}}[{_RATE}])"
                        ),
                        "mean {{instance}}",
                    ),
                    _quantile("mqis_store_commit_operations", 0.99),
                ),
            ),
            Panel(
                "Duration of flushes",
                "s",
                (
                    _quantile("mqis_store_flush_duration_seconds", 0.5),
                    _quantile("mqis_store_flush_duration_seconds", 0.99),
                ),
            ),
            Panel("Waiting operations", "short", (_now("mqis_store_waiting_operations"),)),
        ),
    ),
    Row(
        "Replication",
        (
            Panel(
                "Replicas behind their authority",
                "short",
                (
                    (
                        (
                            "max by (partition) (mqis_partition_last_sequence) - on (partition) "
                            f"group_right mqis_partition_last_sequence{{{_I}}}"
                        ),
                        "{{partition}} at {{instance}}",
                    ),
                ),
                text="The highest number of any server minus that of this one. Servers are not "
                "scraped at the same moment, so a change or two may show without any lag.",
            ),
            Panel(
                "Changes that neighbours have not acknowledged",
                "short",
                (_now("mqis_replication_lag_changes", "{{partition}} to {{neighbour}}"),),
            ),
            Panel(
                "Age of the oldest unacknowledged change",
                "s",
                (_now("mqis_replication_lag_seconds", "{{partition}} to {{neighbour}}"),),
            ),
            Panel(
                "Changes known to be missing",
                "short",
                (_now("mqis_partition_missing_changes", "{{partition}} at {{instance}}"),),
            ),
            Panel(
                "Contents that are not as they should be",
                "short",
                (
                    _now(
                        "mqis_partition_contents_different",
                        "{{partition}} at {{instance}} differs from a peer",
                    ),
                    _now(
                        "mqis_partition_contents_changed",
                        "{{partition}} at {{instance}} was changed outside mqis",
                    ),
                ),
            ),
            Panel(
                "Partitions being synchronised",
                "short",
                (_now("mqis_partition_synchronizing", "{{partition}} at {{instance}}"),),
            ),
            Panel("Changes", "ops", (_rate("mqis_replication_changes_total", "instance, origin"),)),
            Panel(
                "Synchronisation",
                "ops",
                (
                    _rate("mqis_replication_sync_requests_total", legend="requests {{instance}}"),
                    _rate("mqis_replication_sync_rounds_total", legend="rounds {{instance}}"),
                    _rate("mqis_replication_syncs_served_total", legend="served {{instance}}"),
                ),
            ),
            Panel(
                "Full synchronisation (sync0)",
                "short",
                (
                    _now("mqis_replication_sync0_rounds_total", "begun {{instance}}"),
                    _now("mqis_replication_sync0_completed_total", "completed {{instance}}"),
                ),
            ),
            Panel(
                "Refusals", "ops", (_rate("mqis_replication_refusals_total", "instance, reason"),)
            ),
            Panel(
                "Forwarded changes",
                "ops",
                (
                    _rate(
                        "mqis_replication_forwarded_changes_total", legend="forwarded {{instance}}"
                    ),
                    _rate(
                        "mqis_replication_forward_failures_total", legend="not made {{instance}}"
                    ),
                    _rate(
                        "mqis_replication_forward_timeouts_total", legend="no answer {{instance}}"
                    ),
                    _rate("mqis_replication_relayed_requests_total", legend="relayed {{instance}}"),
                    _rate(
                        "mqis_replication_unanswered_requests_total", legend="given up {{instance}}"
                    ),
                ),
            ),
            Panel(
                "Duration of forwarded changes",
                "s",
                (
                    _quantile("mqis_replication_forward_duration_seconds", 0.5),
                    _quantile("mqis_replication_forward_duration_seconds", 0.99),
                ),
            ),
            Panel(
                "Neighbours",
                "short",
                (
                    _now("mqis_replication_neighbour_connected", "{{instance}} with {{neighbour}}"),
                    _now(
                        "mqis_replication_waiting_changes",
                        "{{instance}}: changes for {{neighbour}}",
                    ),
                ),
            ),
            Panel(
                "Authorities",
                "short",
                ((f"mqis_partition_authority{{{_I}}} == 1", "{{partition}}: {{instance}}"),),
                "table",
            ),
            Panel(
                "Purged up to",
                "short",
                (_now("mqis_partition_purged_sequence", "{{partition}} at {{instance}}"),),
            ),
            Panel("Restarts of replication", "short", (_now("mqis_replication_restarts_total"),)),
        ),
    ),
    Row(
        "Transport",
        (
            Panel(
                "Sessions",
                "short",
                (
                    _now("mqis_transport_sessions"),
                    _rate(
                        "mqis_transport_sessions_opened_total",
                        legend="opened a second {{instance}}",
                    ),
                    _rate(
                        "mqis_transport_connections_refused_total",
                        legend="refused a second {{instance}}",
                    ),
                ),
            ),
            Panel(
                "Messages",
                "ops",
                (
                    _rate("mqis_transport_messages_sent_total", legend="sent {{instance}}"),
                    _rate("mqis_transport_messages_received_total", legend="received {{instance}}"),
                    _rate(
                        "mqis_transport_messages_acknowledged_total",
                        legend="acknowledged {{instance}}",
                    ),
                ),
            ),
            Panel(
                "Refused and undelivered messages",
                "ops",
                (
                    _rate(
                        "mqis_transport_messages_duplicate_total", legend="duplicate {{instance}}"
                    ),
                    _rate("mqis_transport_messages_refused_total", legend="refused {{instance}}"),
                    _rate("mqis_transport_messages_expired_total", legend="expired {{instance}}"),
                    _rate(
                        "mqis_transport_messages_undelivered_total",
                        legend="undelivered {{instance}}",
                    ),
                ),
            ),
            Panel(
                "Bytes",
                "Bps",
                (
                    _rate("mqis_transport_sent_bytes_total", legend="sent {{instance}}"),
                    _rate("mqis_transport_received_bytes_total", legend="received {{instance}}"),
                ),
            ),
            Panel(
                "Queues",
                "short",
                (_now("mqis_transport_queue_messages", "{{instance}} to {{peer}}"),),
            ),
            Panel(
                "Bytes in queues",
                "bytes",
                (_now("mqis_transport_queue_bytes", "{{instance}} to {{peer}}"),),
            ),
            Panel(
                "Age of the oldest message",
                "s",
                (_now("mqis_transport_queue_oldest_seconds", "{{instance}} to {{peer}}"),),
            ),
            Panel(
                "Change notifications",
                "ops",
                (_rate("mqis_notifications_total", "instance, outcome"),),
            ),
        ),
    ),
    Row(
        "Routing and discovery",
        (
            Panel(
                "Routing tables",
                "ops",
                (
                    _rate("mqis_routing_table_builds_total", legend="computed {{instance}}"),
                    _rate(
                        "mqis_routing_read_failures_total",
                        legend="directory unreadable {{instance}}",
                    ),
                ),
            ),
            Panel("Sites in the routing table", "short", (_now("mqis_routing_table_sites"),)),
            Panel(
                "Messages passed on",
                "ops",
                (
                    _rate("mqis_routing_relayed_messages_total", legend="passed on {{instance}}"),
                    _rate(
                        "mqis_routing_exhausted_messages_total", legend="too many hops {{instance}}"
                    ),
                ),
            ),
            Panel(
                "Discovery", "reqps", (_rate("mqis_discovery_requests_total", "instance, outcome"),)
            ),
        ),
    ),
    Row(
        "Journal",
        (
            Panel(
                "Newest record",
                "short",
                (
                    _now("mqis_journal_lsn", "written {{instance}}"),
                    _now("mqis_journal_durable_lsn", "on the disk {{instance}}"),
                ),
            ),
            Panel("Bytes written", "Bps", (_rate("mqis_journal_written_bytes_total"),)),
            Panel(
                "Outbox",
                "short",
                (
                    _now("mqis_outbox_records"),
                    _now("mqis_journal_failed", "cannot be written {{instance}}"),
                ),
            ),
            Panel("Faults of the journal's files", "short", (_now("mqis_journal_faults"),)),
        ),
    ),
)


def dashboard(metrics: Sequence[Metric] = METRICS) -> dict[str, Any]:
    """The dashboard. A metric that no row above shows gets a panel of its own at the end."""
    rest = tuple(_panel_of(metric) for metric in metrics if not _is_shown(metric))
    rows = (*ROWS, Row("More", rest)) if rest else ROWS
    return {
        "title": "mqis",
        "uid": "mqis",
        "description": "The servers of an MSMQ directory enterprise.",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "tags": ["mqis"],
        "templating": {"list": [_datasources(), _instances()]},
        "panels": list(_panels(rows)),
    }


def _is_shown(metric: Metric) -> bool:
    name = re.compile(rf"\b{metric.exported}(_bucket)?\b")
    panels = (panel for row in ROWS for panel in row.panels)
    return any(name.search(expression) for panel in panels for expression, _ in panel.queries)


def _panel_of(metric: Metric) -> Panel:
    """A panel made from the catalogue alone."""
    labels = ("instance", *metric.labels)
    by = ", ".join(labels)
    if metric.kind is MetricKind.COUNTER:
        query = _rate(metric.exported, by)
    elif metric.kind is MetricKind.HISTOGRAM:
        query = _quantile(metric.name, 0.99, by)
    else:
        query = _now(metric.exported, " ".join(f"{{{{{label}}}}}" for label in labels))
    unit = "s" if metric.name.endswith("_seconds") else "short"
    title = metric.name.removeprefix("mqis_").replace("_", " ").capitalize()
    return Panel(title, unit, (query,), text=metric.help)


def _datasources() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }


def _instances() -> dict[str, Any]:
    query = "label_values(mqis_build_info, instance)"
    return {
        "name": "instance",
        "label": "Server",
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": query, "refId": "instances"},
        "definition": query,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }


def _panels(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    top, number = 0, 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": top, "w": _WIDTH * _IN_ROW, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": place, "panels": []}
        top += 1
        for index, panel in enumerate(row.panels):
            number += 1
            x, y = index % _IN_ROW * _WIDTH, top + index // _IN_ROW * _HEIGHT
            yield _panel(panel, number, {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT})
        top += -(-len(row.panels) // _IN_ROW) * _HEIGHT


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    table = panel.kind == "table"
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {} if table else {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATASOURCE,
                "expr": expression,
                "legendFormat": legend,
                **({"format": "table", "instant": True} if table else {}),
            }
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }

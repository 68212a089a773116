"""GET /metrics of servers that have been used in every way, and what is written about it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage
from socket import AF_INET, SOCK_DGRAM, socket

import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.server.monitoring.metrics.all_metrics import METRICS, Metric, MetricKind
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.runtime.ldap.certificates import server_context
from tests.server.monitoring.pair import Pair, client_of, pair, scrape
from tests.waiting import DEADLINE_S
from tools.dashboard import dashboard

ROOT = Path(__file__).resolve().parents[3]
DASHBOARD = ROOT / "deploy" / "grafana" / "mqis.json"
DOCUMENT = ROOT / "docs" / "metrics.md"


async def _use(both: Pair) -> None:
    """Calls that succeed, that fail, that are no calls; a change here, there and forwarded."""
    await both.create(both.psc, "pec1\\forwarded")
    await both.create(both.pec, "pec1\\own")
    async with client_of(both.pec) as client:
        with suppress(DirectoryError):
            await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="pec1\\nothing")
    port = both.pec.ready.port
    async with await RpcClient.connect("127.0.0.1", port, [dscomm.SYNTAX]) as rpc:
        with suppress(RpcFault):
            await rpc.call(dscomm.SYNTAX, dscomm.GET_PROPS.opnum, b"no stub")
    initiator = PyspnegoInitiator(Secret("nobody", "", "wrong"))
    credentials = Credentials(initiator, AuthType.NTLM, AuthLevel.PRIVACY, "127.0.0.1")
    with suppress(RpcFault, RpcConnectionError, DirectoryError):
        address = ServerAddress("127.0.0.1", port)
        await DirectoryClient.connect([address], credentials=credentials)
    with socket(AF_INET, SOCK_DGRAM) as asking:
        asking.sendto(b"no request", ("127.0.0.1", both.pec.ready.discovery_port or 0))
    await both.converged()


async def _scraped(tmp_path: Path) -> dict[str, str]:
    discovery: dict[str, object] = {"enabled": True, "port": 0}
    rpc: dict[str, object] = {"mapper": True, "mapper_port": 0}
    server_context(tmp_path)  # of no use for this store, but its expiry shows
    store: dict[str, object] = {"ca_file": str(tmp_path / "ca.pem")}
    (tmp_path / "archive").mkdir()
    kept: dict[str, object] = {"archive": str(tmp_path / "archive")}
    values = {"discovery": discovery, "rpc": rpc, "store": store, "replication": kept}
    async with pair(tmp_path, **values) as both:
        await _use(both)
        return {"pec1": await scrape(both.pec), "psc2": await scrape(both.psc)}


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return asyncio.run(_scraped(tmp_path_factory.mktemp("metrics")))


def families(text: str) -> dict[str, Family]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(text: str, name: str, **labels: str) -> float:
    samples = (s for family in families(text).values() for s in family.samples)
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def test_it_is_what_the_catalogue_says(scraped: dict[str, str]) -> None:
    for text in scraped.values():
        found = families(text)
        for metric in METRICS:
            family = found[metric.name]
            assert (family.type, family.documentation) == (metric.kind.value, metric.help)
            labels = {frozenset(sample.labels) - {"le"} for sample in family.samples}
            assert labels <= {frozenset(metric.labels)}, metric.name
        names = {metric.name for metric in METRICS}
        assert {name for name in found if name.startswith("mqis_")} == names


def test_histograms_add_up(scraped: dict[str, str]) -> None:
    for family in families(scraped["pec1"]).values():
        if family.type != "histogram":
            continue
        last: dict[frozenset[tuple[str, str]], float] = {}
        for sample in family.samples:
            labels = frozenset((k, v) for k, v in sample.labels.items() if k != "le")
            if sample.name.endswith("_bucket"):
                assert sample.value >= last.get(labels, 0.0)
                last[labels] = sample.value
            elif sample.name.endswith("_count"):
                assert sample.value == last[labels]


def test_names_follow_the_conventions() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"mqis(_[a-z0-9]+)+", metric.name), metric.name
        assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket")), metric.name
        assert not re.search(r"milli|_ms\b|_kb\b|minutes", metric.name), metric.name
        assert metric.help.endswith("."), metric.name
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_what_was_done_is_counted(scraped: dict[str, str]) -> None:
    pec, psc = scraped["pec1"], scraped["psc2"]
    created = {"interface": "dscomm", "operation": "S_DSCreateObject", "endpoint": "directory"}
    assert value(pec, "mqis_rpc_calls_total", **created) == 3
    assert value(pec, "mqis_rpc_call_duration_seconds_count", **created) == 3
    assert value(pec, "mqis_rpc_faults_total", status="bad_stub_data") == 1
    missing = {"operation": "S_DSGetProps", "result": "MQDS_OBJECT_NOT_FOUND"}
    assert value(pec, "mqis_rpc_call_failures_total", **missing) == 1
    assert value(pec, "mqis_authentication_failures_total") == 1
    assert value(psc, "mqis_authentication_failures_total") == 0
    assert value(psc, "mqis_replication_forwarded_changes_total") == 1
    assert value(psc, "mqis_replication_forward_duration_seconds_count") == 1
    assert value(psc, "mqis_replication_forward_timeouts_total") == 0
    assert value(pec, "mqis_replication_changes_total", origin="requested") == 1
    assert value(psc, "mqis_replication_changes_total", origin="applied") >= 2
    assert value(psc, "mqis_replication_sync_rounds_total") >= 1
    assert value(pec, "mqis_replication_syncs_served_total") >= 1
    assert value(pec, "mqis_partition_last_sequence", partition="Delft") == value(
        psc, "mqis_partition_last_sequence", partition="Delft"
    )
    assert value(pec, "mqis_partition_authority", partition="Delft") == 1
    assert value(psc, "mqis_partition_authority", partition="Delft") == 0
    assert value(pec, "mqis_replication_neighbour_connected", neighbour="psc2") == 1
    assert value(pec, "mqis_store_commits_total") <= value(pec, "mqis_store_operations_total")
    assert value(pec, "mqis_store_flush_duration_seconds_count") > 0
    assert value(pec, "mqis_transport_sent_bytes_total") > 0
    assert value(pec, "mqis_journal_lsn") > 0
    assert value(pec, "mqis_discovery_requests_total", outcome="malformed") == 1
    assert value(pec, "mqis_server_info", server="pec1", role="pec", site="Delft") == 1
    assert value(pec, "mqis_journal_faults") == 0
    lsn = value(pec, "mqis_journal_durable_lsn") + value(pec, "mqis_outbox_records")
    assert lsn >= value(pec, "mqis_journal_lsn"), "a record is nowhere"


def test_files_of_the_server(scraped: dict[str, str], tmp_path: Path) -> None:
    pec, psc = scraped["pec1"], scraped["psc2"]
    for place in ("store", "journal", "archive"):
        free = value(pec, "mqis_disk_free_bytes", place=place)
        assert free == pytest.approx(disk_usage(tmp_path).free, rel=0.5)
    now = time.time()
    ages = [now - value(text, "mqis_signing_key_written_timestamp_seconds") for text in (pec, psc)]
    assert all(0 <= age < DEADLINE_S for age in ages)
    expiry = value(pec, "mqis_certificate_expiry_timestamp_seconds", setting="store.ca_file")
    assert expiry - now == pytest.approx(86_400, abs=DEADLINE_S)


# --- the dashboard and the document ---------------------------------------------------------------


def queries() -> Iterator[str]:
    content = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in content["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in content["templating"]["list"]:
        yield variable.get("definition", "")


def named() -> set[str]:
    return {name for q in queries() for name in re.findall(r"\b(?:mqis|process|python)_\w+", q)}


def test_the_dashboard_asks_for_what_servers_export(scraped: dict[str, str]) -> None:
    """With values, not only by name: a panel that never shows anything is none."""
    exported = {
        sample.name
        for text in scraped.values()
        for family in families(text).values()
        for sample in family.samples
    }
    assert named() - exported == set()


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name.removesuffix("_bucket") for name in named()}
    assert {metric.exported for metric in METRICS} - shown == set()


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (MetricKind.GAUGE, 'mqis_new_thing{instance=~"$instance"}'),
        (
            MetricKind.COUNTER,
            (
                "sum by (instance, site) "
                '(rate(mqis_new_thing_total{instance=~"$instance"}[$__rate_interval]))'
            ),
        ),
        (
            MetricKind.HISTOGRAM,
            (
                "histogram_quantile(0.99, sum by (le, instance, site) "
                '(rate(mqis_new_thing_bucket{instance=~"$instance"}[$__rate_interval])))'
            ),
        ),
    ],
)
def test_a_metric_without_a_panel_gets_one(kind: MetricKind, query: str) -> None:
    metric = Metric("Server", kind, "mqis_new_thing", "A new thing.", ("site",))
    panels = dashboard([*METRICS, metric])["panels"]
    assert "More" in {panel["title"] for panel in panels if panel["type"] == "row"}
    panel = panels[-1]
    assert (panel["title"], panel["description"]) == ("New thing", "A new thing.")
    (target,) = panel["targets"]
    assert target["expr"] == query
    assert target["legendFormat"].endswith("{{instance}} {{site}}")


def test_its_labels_are_those_of_its_metrics() -> None:
    known = {label for metric in METRICS for label in metric.labels} | {"instance", "le"}
    for query in queries():
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", query):
            assert set(group.split(", ")) <= known, query


def test_both_files_are_up_to_date() -> None:
    command = [sys.executable, "tools/metrics_doc.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_document_says_to_watch_is_there() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    known = {metric.exported for metric in METRICS}
    known |= {metric.name for metric in METRICS if metric.kind is MetricKind.HISTOGRAM}
    assert set(re.findall(r"\bmqis_\w+", text)) - known == set()

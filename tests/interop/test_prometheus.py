"""A real Prometheus scrapes real servers, loads the rules, and answers the dashboard's queries."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from mqis.testing.ports import free_ports
from tests.alert_rules import RULES, alerts
from tests.runtime.ldap.certificates import server_context
from tests.server.monitoring.pair import Pair, pair, scrape
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.interop

DASHBOARD = RULES.parents[1] / "grafana" / "mqis.json"


class Prometheus:
    """The HTTP interface of a Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    async def ask(self, path: str, **values: str) -> Any:
        return await asyncio.to_thread(self._ask, path, values)

    def _ask(self, path: str, values: dict[str, str]) -> Any:
        with urlopen(f"{self._url}/{path}?{urlencode(values)}", timeout=DEADLINE_S) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    async def query(self, text: str) -> list[dict[str, Any]]:
        found = await self.ask("query", query=text)
        return list(found["result"])

    async def scraped(self, number: int) -> bool:
        """Returns whether so many servers have been scraped, and all rules evaluated since."""
        try:
            up = await self.query("count_over_time(up[10m]) > 2 and up == 1")
            groups = (await self.ask("rules"))["groups"]
        except URLError:  # it is starting
            return False
        rules = [rule for group in groups for rule in group["rules"]]
        return len(up) == number and all(rule["health"] == "ok" for rule in rules) and bool(rules)


@contextmanager
def prometheus(directory: Path, targets: list[str]) -> Iterator[Prometheus]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed (Debian package prometheus)")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "mqis", "static_configs": [{"targets": targets}]}],
    }
    file = directory / "prometheus.yml"
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    (port,) = free_ports(1)
    command = [program, f"--config.file={file}", f"--storage.tsdb.path={directory / 'tsdb'}"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def dashboard_queries() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")


async def _use(both: Pair) -> None:
    """Changes that are replicated and forwarded: what was never counted has no series."""
    await both.create(both.psc, "pec1\\forwarded")
    await both.create(both.pec, "pec1\\own")
    await both.converged()
    for server in (both.pec, both.psc):
        await scrape(server)


def test_prometheus_takes_rules_metrics_and_dashboard(tmp_path: Path) -> None:
    server_context(tmp_path)
    store: dict[str, object] = {"ca_file": str(tmp_path / "ca.pem")}
    discovery: dict[str, object] = {"enabled": True, "port": 0}
    rpc: dict[str, object] = {"mapper": True, "mapper_port": 0}

    async def run() -> None:
        async with pair(tmp_path, store=store, discovery=discovery, rpc=rpc) as both:
            await _use(both)
            ports = [server.ready.monitoring_port for server in (both.pec, both.psc)]
            with prometheus(tmp_path, [f"127.0.0.1:{port}" for port in ports]) as judge:
                await until(lambda: judge.scraped(2), "both servers are scraped")
                await _judge(judge)

    asyncio.run(run())


async def _judge(judge: Prometheus) -> None:
    groups = (await judge.ask("rules"))["groups"]
    loaded = [rule["name"] for group in groups for rule in group["rules"]]
    assert sorted(loaded) == sorted(alert.name for alert in alerts())

    names = set(await judge.ask("label/__name__/values"))
    asked = {name for alert in alerts() for name in alert.metrics}
    assert len(asked) > 30
    assert asked - names == set(), "rules ask for metrics that no server has"

    queries = list(dashboard_queries())
    assert len(queries) > 50
    shown = {name for q in queries for name in re.findall(r"\b(?:mqis|process|python)_\w+", q)}
    # Nobody has failed a call here.
    assert shown - names == {"mqis_rpc_call_failures_total", "mqis_rpc_faults_total"}
    for query in queries:
        await judge.query(query)  # raises for what Prometheus cannot answer

    firing = (await judge.ask("alerts"))["alerts"]
    told = {alert["labels"]["alertname"]: alert for alert in firing if alert["state"] == "firing"}
    # The certificate of the test is valid for a day.
    assert told.keys() - {"MqisDiskLow", "MqisDiskFull"} == {"MqisCertificateExpires"}
    alert = told["MqisCertificateExpires"]
    texts = alert["annotations"]
    assert re.fullmatch(
        r"A certificate in store\.ca_file of 127\.0\.0\.1:\d+ expires, or has expired",
        texts["summary"],
    )
    assert re.match(r"It expires in (1d|23h) ", texts["description"])

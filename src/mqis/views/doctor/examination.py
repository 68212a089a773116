"""Checks one server, or all servers of a run directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mqis.config.claims import lock_of
from mqis.config.errors import ConfigError
from mqis.config.file import load
from mqis.config.nodes import load_nodes
from mqis.config.processlocks import holder
from mqis.config.sections import Config, ConfiguredRole
from mqis.config.stores import directory_urls, file_of, open_store
from mqis.enterprise.collected_status import Collector, collect
from mqis.enterprise.lost_servers import loss_at
from mqis.enterprise.roster import Roster, RosterEntry
from mqis.enterprise.status import MemberState
from mqis.extras import PIPELINE
from mqis.findings import Area, CheckReport, Finding
from mqis.protocol.errors import MissingStore, StorageError
from mqis.protocol.ports import Store
from mqis.server.identity import identify, server_name
from mqis.server.loss import ways_back
from mqis.server.monitoring.verdict import HealthVerdict
from mqis.storage.schema import VERSION
from mqis.storage.sqlite import schema_version
from mqis.views.doctor import (
    archive_lag,
    file_checks,
    key_checks,
    peer_checks,
    port_checks,
    store_checks,
)
from mqis.views.doctor.patient import Patient, neighbours

# --- The verdict about health as findings ---------------------------------------------------------
# The same as of 'mqis status', /health and the console.

_HEALTH = Area("health")
_GENERAL = "see its log"


def check_run(run: Path) -> list[Finding]:
    """The verdict about all servers of a run directory."""
    return findings_of(Collector.of_run(run).collect().verdict)


def check_server(config: Config) -> list[Finding]:
    """The verdict about one server, by its monitoring endpoint; nothing if that does not answer.

    The other checks say whether the server runs, so silence is no finding here.
    """
    url = config.monitoring.local_url
    if not url:
        return []
    entry = RosterEntry(server_name(config), monitor=url)
    found = collect(Roster("", None, (entry,)), read=None)
    if found.servers[0].state is MemberState.DOWN:
        return []
    return findings_of(found.verdict.about(entry.name))


def findings_of(verdict: HealthVerdict) -> list[Finding]:
    found = [replace(f, check="health", todo=f.todo or _GENERAL) for f in verdict.findings]
    return found or [_HEALTH.ok(verdict.summary)]


# --- Checks one server, or all servers of a run directory -----------------------------------------

_CONFIGURATION, _STORE = Area("configuration"), Area("store")
_ENVIRONMENT = Area("environment")


def examine(file: Path, rpc_ports: dict[str, int] | None = None) -> list[Finding]:
    """Runs all checks of one server; changes nothing."""
    try:
        config = load(file)
    except ConfigError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        if missing and (lost := loss_at(file)) is not None:
            return [_CONFIGURATION.error(*lost)]
        return [_CONFIGURATION.error(str(error), "docs/configuration.md has every key")]
    running = _runs(config)
    store, found = _opened(file, config)
    patient = Patient(file, config, store, running, rpc_ports or {})
    try:
        found += file_checks.check(patient)
        found += port_checks.check(patient)
        found += store_checks.check(patient)
        found += archive_lag.check(patient)
        if store is not None and config.server.role is not ConfiguredRole.NONE:
            found += _check_peers(patient, store)
    finally:
        if store is not None:
            store.close()
    return [*found, *_environment()]


def examine_server(file: Path) -> list[Finding]:
    """Runs all checks of one server; adds the verdict that its /health gives, if it runs."""
    found = examine(file)
    with suppress(ConfigError):  # it is among the findings
        found += check_server(load(file))
    return found


def _opened(file: Path, config: Config) -> tuple[Store | None, list[Finding]]:
    """Opens the store, unless it is of an earlier version: opening would change it.

    An Active Directory has checks of its own.
    """
    if directory_urls(config.store.url):
        from mqis.views.doctor import activedirectory_checks  # noqa: PLC0415 -- slow

        return None, list(activedirectory_checks.check(config))
    path = file_of(config.store.url)
    version = None if path is None or not path.exists() else schema_version(path)
    if version is not None and 0 < version < VERSION:
        todo = "back it up with the mqis that wrote it; 'mqis store upgrade' upgrades it"
        return None, [_STORE.warning(f"schema version {version}, this mqis has {VERSION}", todo)]
    try:
        return open_store(config.store.url), []
    except StorageError as error:
        lost = loss_at(file)
        if lost is None and isinstance(error, MissingStore):
            lost = error.detail, ways_back(config.server.role, server_name(config), file)
        return None, [_STORE.error(*(lost or (str(error), "'mqis restore' restores a backup")))]


def _runs(config: Config) -> bool | None:
    """True if a process has claimed the store; None if that cannot be known."""
    path = file_of(config.store.url)
    if path is None:
        return None
    return holder(lock_of(path)) is not None


def _check_peers(patient: Patient, store: Store) -> list[Finding]:
    try:
        with store.read() as view:
            me = identify(patient.config, view)
            others = neighbours(view, me)
    except ConfigError as error:
        return [_CONFIGURATION.error(str(error), "'mqis join' fills these keys in")]
    except StorageError:
        return []  # reported under store
    return [
        *key_checks.check(patient, store, me, others),
        *peer_checks.check(patient, store, me, others),
    ]


def _environment() -> Iterator[Finding]:
    """Checks for Spark and Java, which only the pipeline needs."""
    home = os.environ.get("JAVA_HOME")
    java = (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java")
    if not PIPELINE.installed:
        yield _ENVIRONMENT.note("no Spark: the pipeline does not run here", PIPELINE.command)
    elif not java:
        yield _ENVIRONMENT.note("no Java: the pipeline does not run here", "make java")
    else:
        yield _ENVIRONMENT.ok("Spark and Java are here, the pipeline can run")


# --- a run directory ------------------------------------------------------------------------------


def examine_run(run: Path, names: Sequence[str] = ()) -> list[CheckReport]:
    """Checks every server of ``mqis up``; adds the verdict about all together.

    With ``names``, it checks these servers alone.
    """
    nodes = load_nodes(run)
    known = {node.name: node.rpc_port for node in nodes if node.rpc_port}
    chosen = [nodes.named(name) for name in names] or list(nodes)
    found = {node.name: examine(Path(node.config), known) for node in chosen}
    if not names:
        found[""] = check_run(run)
    return [CheckReport(tuple(each), server=name) for name, each in found.items()]

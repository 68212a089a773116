"""A forest of two domains at two slapd: the configuration is shared, each has its own domain."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench import slapdforest
from bench.backends import Unavailable
from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import ORDER
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.mqds.objecttype import ObjectType
from tests.estate.forest import CHILD, child, configuration, faults_of_two_domains, parent
from tests.estate.planted import CONFIGURATION, ROOT, guid, made

pytestmark = pytest.mark.interop

MQIS = Path(sys.executable).with_name("mqis")


def server(number: int) -> AddEntry:
    """The settings of a domain controller, which tell the copy of the database that it has."""
    at = f"CN=NTDS Settings,{CONFIGURATION}"
    return made(at, "top", "nTDSDSA", invocationId=guid(200 + number))


@contextmanager
def forest(directory: Path, *planted: AddEntry) -> Iterator[tuple[str, str]]:
    """Serves both domains, with further entries of the first domain or the configuration."""
    above, below = [*parent(), *configuration(), *planted], child()
    shared = [entry for entry in above if entry.name.endswith(CONFIGURATION)]
    domains = {ROOT: (above, below), CHILD: ([*below, *shared], above)}
    with ExitStack() as resources:
        urls: list[str] = []
        for domain, (entries, others) in domains.items():
            try:
                served = slapdforest.start(
                    directory / f"slapd{len(urls)}",
                    resources,
                    domain=domain,
                    configuration=CONFIGURATION,
                    entries=slapdforest.completed([*entries, server(len(urls))], others),
                )
            except Unavailable as reason:
                if "not installed" not in str(reason):
                    raise
                pytest.skip(str(reason))
            urls.append(served.url)
        yield urls[0], urls[1]


def run(*command: str | Path, status: int = 0) -> dict[str, Any]:
    done = subprocess.run([MQIS, *command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def held(store: Path) -> dict[str, dict[int, object]]:
    """All objects of a store with the values that say something."""
    with closing(open_store(str(store))) as found, found.read() as view:
        return {
            f"{kind.label} {obj.id}": {k: v.value for k, v in obj.properties.items() if v.value}
            for kind in ORDER
            for obj in view.objects(kind)
        }


def test_nothing_wrong_is_told_and_all_domains_come_into_one_store(tmp_path: Path) -> None:
    with forest(tmp_path) as (first, second):
        told = run("estate", "check", first, second)
        assert (told["findings"], told["unknown"], told["unreadable"]) == ([], [], [])
        # One domain alone leaves questions open, and accuses nothing of the other one.
        alone = run("estate", "check", first)
        assert alone["findings"] == []
        assert alone["unknown"]
        imported, followed = tmp_path / "imported.db", tmp_path / "followed.db"
        run("import", first, second, "--store", imported)
        told = run("mirror", first, second, "--store", followed, "--once")
        assert (told["equal"], told["left_out"]) == (True, [])
        again = run("mirror", first, second, "--store", followed, "--compare")
        assert again["differences"] == []
    assert held(followed) == held(imported)
    with closing(open_store(str(imported))) as store, store.read() as view:
        names = sorted(obj.path or "" for obj in view.objects(ObjectType.MACHINE))
    assert names == ["SRV1", "SRV2", "SRV3", "SRVB", "WS1"]


def test_faults_that_only_both_domains_show_are_found_and_no_others(tmp_path: Path) -> None:
    faults = faults_of_two_domains()
    planted = [entry for entries in faults.values() for entry in entries]
    with forest(tmp_path, *planted) as (first, second):
        told = run("estate", "check", first, second, status=1)
        assert sorted(found["check"] for found in told["findings"]) == sorted(faults)
        assert told["unknown"] == []
        alone = run("estate", "check", first)
        assert alone["findings"] == []

"""The image of deploy/Containerfile, built by buildah, and three controllers started from it.

No registry is needed: the base is made by debootstrap. Containers run with ``--isolation chroot``,
which needs no namespaces and shares the network of the computer, so controllers listen at loopback
addresses of their own. What this does not try: the networks, volumes and secrets of
deploy/compose.yml, and its images of PostgreSQL, Prometheus and Grafana.

``MQIS_CONTAINER_BASE`` may name a directory that debootstrap has made before.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from mqis import __version__
from tests.cli.commands import process
from tests.docs.documents import ROOT
from tests.waiting import DEADLINE_S, wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PASSWORD = "correct horse\n"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
#: Name, role, site, address.
CONTROLLERS = (
    ("delft", "pec", "Delft", "127.0.89.21"),
    ("leiden", "psc", "Leiden", "127.0.89.22"),
    ("utrecht", "bsc", "Delft", "127.0.89.23"),
)


class Buildah:
    """buildah with a storage of its own."""

    def __init__(self, directory: Path) -> None:
        storage = ("--root", f"{directory}/store", "--runroot", f"{directory}/run")
        self.command = ["buildah", *storage, "--storage-driver", "vfs"]

    def __call__(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [*self.command, *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments[0]}: {done.stderr[-3000:]}"
        return done.stdout.strip()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """With the image of this checkout in its storage."""
    for program in ("buildah", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} (Debian: apt-get install buildah debootstrap)")
    if os.geteuid() != 0:
        pytest.skip("debootstrap and buildah's chroot isolation need root")
    directory = tmp_path_factory.mktemp("containers")
    made = Buildah(directory)
    base = Path(os.environ.get("MQIS_CONTAINER_BASE") or _debootstrap(directory / "base"))
    container = made("from", "scratch")
    made("add", container, base, "/")
    if CERTIFICATES.exists():  # those that this computer trusts, for pip
        made("add", container, CERTIFICATES, CERTIFICATES)
        made("config", "--env", f"PIP_CERT={CERTIFICATES}", container)
    made("commit", container, "localhost/mqis-base")
    arguments = ("--build-arg", "BASE=localhost/mqis-base", "--build-arg", "MQIS_COMMIT=0123abc")
    where = ("-f", "deploy/Containerfile", "-t", "localhost/mqis")
    made("build", "--isolation", "chroot", *arguments, *where, ".")
    yield made
    shutil.rmtree(directory, ignore_errors=True)


def _debootstrap(target: Path) -> Path:
    command = ["debootstrap", "--variant=minbase", "--include=python3,python3-venv"]
    done = subprocess.run(
        [*command, "bookworm", str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"debootstrap cannot make a base here: {done.stdout[-300:]}")
    return target


@contextmanager
def controller(buildah: Buildah, values: Mapping[str, str], log: Path) -> Iterator[None]:
    container = buildah("from", "localhost/mqis")
    given = [word for pair in values.items() for word in ("--env", "=".join(pair))]
    run = [*buildah.command, "run", "--isolation", "chroot", *given, container, "--"]
    secret = f"umask 077; printf '{PASSWORD.strip()}\\n' > secret; exec mqis-controller"
    with log.open("wb") as out:
        process = subprocess.Popen([*run, "sh", "-c", secret], stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_the_image_knows_its_version(buildah: Buildah) -> None:
    container = buildah("from", "localhost/mqis")
    said = buildah("run", "--isolation", "chroot", container, "--", "mqis", "--version")
    assert said.startswith(f"mqis {__version__}, commit 0123abc, Python 3.")


def test_three_controllers_found_and_join_an_enterprise(buildah: Buildah, tmp_path: Path) -> None:
    shared = {
        "MQIS_ENTERPRISE": "Acme",
        "MQIS_PEC": "delft",
        "MQIS_PEC_ADDRESS": CONTROLLERS[0][3],
        "MQIS_USER": "ACME\\admin",
        "MQIS_PASSWORD_FILE": "/var/lib/mqis/secret",
        "MQIS_MAPPER_PORT": "11135",
    }
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text(PASSWORD, "utf-8")
    with ExitStack() as stack:
        for name, role, site, address in CONTROLLERS:
            own = {"MQIS_NAME": name, "MQIS_ROLE": role, "MQIS_SITE": site, "MQIS_ADDRESS": address}
            stack.enter_context(controller(buildah, shared | own, tmp_path / name))
        for name, _, _, address in CONTROLLERS:
            wait_until(partial(_healthy, address))
            assert "ready: Acme" in (tmp_path / name).read_text("utf-8")
        environment = {"MQIS_USER": "ACME\\admin", "MQIS_PASSWORD_FILE": str(secret)}

        def ask(address: str, *arguments: str) -> str:
            done = process(*arguments, "--server", f"{address}:2879", env=environment)
            return done.stdout.decode()

        def has_orders(address: str) -> bool:
            return "Orders" in ask(address, "get", "queue", "app1\\orders")

        pec, psc, bsc = (address for *_, address in CONTROLLERS)
        assert "created" in ask(pec, "create", "machine", "app1", "site_ids=Delft")
        assert "created" in ask(pec, "create", "queue", "app1\\orders", "label=Orders")
        for copy in (psc, bsc):
            wait_until(partial(has_orders, copy))


def _healthy(address: str) -> bool:
    try:
        with urlopen(f"http://{address}:9364/health", timeout=5) as reply:
            return bool(json.load(reply)["healthy"])
    except (URLError, OSError):
        return False

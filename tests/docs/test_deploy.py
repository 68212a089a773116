"""deploy/: what the unit and the image start exists, and systemd finds nothing wrong."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from mqis import __version__
from mqis.cli.main import app
from tests.docs.documents import ROOT

UNIT = ROOT / "deploy" / "mqis@.service"
CONTAINER = ROOT / "deploy" / "Containerfile"


def started(path: Path) -> list[str]:
    """The words behind ``mqis``, of a command line or of a JSON list."""
    text = path.read_text("utf-8")
    line = next(iter(re.findall(r"^ExecStart=\S+ (.+)$", text, re.M)), None)
    if line is not None:
        return str(line).split()
    words: list[str] = json.loads(re.findall(r"^CMD (.+)$", text, re.M)[0])
    return words


@pytest.mark.parametrize("path", [UNIT, CONTAINER], ids=lambda path: path.name)
def test_what_is_started_exists(path: Path) -> None:
    name, *words = started(path)
    group: Any = typer.main.get_command(app)
    command = group.get_command(click.Context(group), name)
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    given = {word for word in words if word.startswith("-")}
    assert "--config" in given
    assert given <= known


def test_the_image_has_what_it_copies() -> None:
    copied = re.findall(
        r"^COPY (?!--from)(?:--chmod=\d+ )?(.+) \S+$", CONTAINER.read_text("utf-8"), re.M
    )
    assert copied
    for words in copied:
        for name in words.split():
            assert (ROOT / name).exists(), name


def test_the_compose_file_is_whole() -> None:
    """What it mounts is there, and what the script wants is in the environment of each server."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the pipeline")
    found = yaml.safe_load((ROOT / "deploy" / "compose.yml").read_text("utf-8"))
    services = found["services"]
    servers = {name for name, each in services.items() if each.get("entrypoint")}
    assert servers == {"delft", "leiden", "utrecht"}
    assert services.keys() - servers == {"postgres", "prometheus", "grafana"}
    for service in services.values():
        for volume in service["volumes"]:
            place = volume.partition(":")[0]
            assert place in found["volumes"] or (ROOT / "deploy" / place).is_dir(), volume
    wanted = set(re.findall(r"\$\{?(MQIS_\w+)", (ROOT / "deploy" / "controller.sh").read_text()))
    for name in servers:
        service = services[name]
        values = service["environment"]
        assert wanted - {"MQIS_STORE", "MQIS_MAPPER_PORT"} <= values.keys()
        assert values["MQIS_NAME"] == name
        assert service["networks"]["enterprise"]["ipv4_address"] == values["MQIS_ADDRESS"]
        assert service["image"].endswith(f":{__version__}")
    assert services["leiden"]["environment"]["MQIS_STORE"] == "postgresql://mqis@postgres/mqis"
    scraped = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
    (targets,) = (each["targets"] for each in scraped["scrape_configs"][0]["static_configs"])
    assert targets == [f"{name}:9364" for name in sorted(servers)]


def test_the_unit_is_one_and_hardened(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8")
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "StateDirectory=mqis/%i",
        "LoadCredential=accounts:",
        "DynamicUser=yes",
    ):
        assert f"\n{line}" in text, line
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd-analyze")
    copy = tmp_path / "mqis@.service"  # with a program that is installed here
    copy.write_text(text.replace("/opt/mqis/bin/mqis", sys.executable), encoding="utf-8")
    done = subprocess.run([verify, "verify", copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mqis" not in done.stderr, done.stderr

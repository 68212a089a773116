"""A backup controller that lost everything, while its PSC is being restored from a backup."""

from __future__ import annotations

import shutil
from pathlib import Path

from mqis.config.nodes import load_nodes
from tests.cli.commands import run
from tests.cli.test_up import Acme, agreed

OPTIONS = "[options.replication]\nrecovery_wait_s = 8\n"


def test_it_joins_when_the_psc_is_there_again(tmp_path: Path) -> None:
    """The PSC asks all others for its changes first, the one that is lost too."""
    acme = Acme(tmp_path)
    acme.file.write_text(acme.file.read_text() + OPTIONS)
    try:
        acme.mqis("up", "--detach")
        acme.until(agreed)
        homes = {node.name: Path(node.home) for node in load_nodes(acme.run)}
        acme.mqis("backup", "lei-dir1.mqisbackup", "--config", str(homes["lei-dir1"] / "mqis.toml"))
        acme.mqis("down")
        where = ("--config", str(homes["lei-dir1"] / "mqis.toml"))
        acme.mqis("restore", "lei-dir1.mqisbackup", *where, "--force")
        shutil.rmtree(homes["lei-dir2"])
        told = acme.mqis("up", "--detach", "--wait", "170")
        assert "3 servers ready" in told
        acme.until(agreed)
    finally:
        run("down", "--run", acme.run)

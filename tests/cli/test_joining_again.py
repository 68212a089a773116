"""A backup controller that lost everything, while its PSC is being restored from a backup."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.test_up import agreed, running_acme

OPTIONS = "[options.replication]\nrecovery_wait_s = 8\n"


def test_it_joins_when_the_psc_is_there_again(tmp_path: Path) -> None:
    """The PSC asks all others for its changes first, the one that is lost too."""
    with running_acme(tmp_path, OPTIONS) as acme:
        place = ("--config", str(acme.home("lei-dir1") / "mqis.toml"))
        acme.mqis("backup", "lei-dir1.mqisbackup", *place)
        acme.mqis("down")
        acme.mqis("restore", "lei-dir1.mqisbackup", *place, "--force")
        shutil.rmtree(acme.home("lei-dir2"))
        told = acme.mqis("up", "--detach", "--wait", "170")
        assert "3 servers ready" in told
        acme.until(agreed)

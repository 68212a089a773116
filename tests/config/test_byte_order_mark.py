"""Files that people edit may begin with a byte order mark, which editors on Windows write."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.cli.credentials import password
from mqis.config.file import load
from mqis.enterprise.plan import load_plan
from mqis.server.accounts import AccountsFile
from tests.cli.test_up import PLAN

MARK = b"\xef\xbb\xbf"


def marked(path: Path, text: str) -> Path:
    path.write_bytes(MARK + text.encode("utf-8"))
    path.chmod(0o600)
    return path


def test_a_configuration(tmp_path: Path) -> None:
    assert load(marked(tmp_path / "mqis.toml", '[server]\nname = "é"\n')).server.name == "é"


def test_the_file_of_an_enterprise(tmp_path: Path) -> None:
    assert load_plan(marked(tmp_path / "enterprise.toml", PLAN)).enterprise.name == "Acme"


def test_accounts(tmp_path: Path) -> None:
    path = tmp_path / "accounts.toml"
    AccountsFile(path).add("clerk", "secret")
    marked(path, path.read_text("utf-8"))
    assert [account.name for account in AccountsFile(path).accounts()] == ["clerk"]


def test_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(marked(tmp_path / "word", "sesame\r\n")))
    assert password("clerk") == "sesame"

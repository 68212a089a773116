"""Somebody without an account, from many addresses: what all strangers together may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.server.accounts import AccountsFile
from tests.cli.running import CONFIG, Running, prepare, serving
from tests.hostile import plain_rpc as rpc
from tests.hostile.nobody import Nobody, validation
from tests.interop import mqds_impacket as mqds

#: 64 handles of all, 32 of all strangers, 8 of one address, 2 of one connection.
FEW = CONFIG.replace("mapper_port = 0", "mapper_port = 0\nmax_handles = 64")
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_store(str(path), create=True)) as made:
        demo.build(made)
    return path


@pytest.fixture
def few(store: Path, tmp_path: Path) -> Iterator[Running]:
    prepare(tmp_path, store, FEW)
    AccountsFile(tmp_path / "accounts.toml").add("honest", "honest", domain="LAB")
    with serving(tmp_path, "--json") as running:
        yield running
        mqds.disconnect_all()


def port_of(running: Running) -> int:
    return int(running.ready["port"])


@pytest.mark.req("SEC-17-02")
def test_nobody_from_many_addresses_does_not_take_the_handles_of_users(few: Running) -> None:
    with ExitStack() as stack:
        taken = 0
        for address in ADDRESSES:
            for _ in range(4):
                nobody = stack.enter_context(Nobody(port_of(few), address))
                answers = [nobody.call(validation()) for _ in range(3)]
                taken += sum(rpc.kind_of(answer) == rpc.RESPONSE for answer in answers)
        assert taken == 32
        honest = mqds.connect(port_of(few), "honest", RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)
        assert mqds.ask(honest, validation())["ErrorCode"] == 0

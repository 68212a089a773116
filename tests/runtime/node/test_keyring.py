"""The key file of a server through all stages of a rotation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqis.files import write_whole
from mqis.runtime.node.keyring import KeyRing, KeyStage
from mqis.runtime.node.signer import MachineKey
from mqis.wire.errors import MqisError
from mqis.wire.mqds.keys import RsaPublicKey


def reopened(ring: KeyRing, path: Path) -> KeyRing:
    ring.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    return KeyRing.open(path, create=False)


def numbers(keys: tuple[RsaPublicKey, ...]) -> list[int]:
    return [key.modulus for key in keys]


def test_a_death_while_the_key_is_made_leaves_none(tmp_path: Path) -> None:
    """A part of a key would stop the server for good."""
    path = tmp_path / "signing.key"
    dying = (
        "import os, sys, pathlib, mqis.files\n"
        "mqis.files.flush = lambda _: os._exit(9)\n"
        "from mqis.runtime.node.signer import MachineKey\n"
        "MachineKey.open(pathlib.Path(sys.argv[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", dying, path], check=False).returncode == 9
    assert not path.exists()
    made = MachineKey.open(path)
    assert MachineKey.open(path, create=False).public == made.public


def test_of_two_that_make_a_key_at_once_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, first = tmp_path / "signing.key", MachineKey.generate()
    late = MachineKey.generate()

    def meanwhile() -> MachineKey:
        write_whole(path, first.pem())
        return late

    monkeypatch.setattr(MachineKey, "generate", meanwhile)
    assert MachineKey.open(path).public == first.public


@pytest.mark.req("SEC-26-01", "SEC-26-03")
def test_the_stages_of_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"
    old = KeyRing.open(path)
    assert old.stage is KeyStage.STEADY
    assert old.made == pytest.approx(path.stat().st_mtime)

    announced = reopened(old.announced(), path)
    assert announced.stage is KeyStage.NEXT
    assert announced.following is not None
    new = announced.following.public
    assert announced.signing.public == old.signing.public
    assert announced.made == pytest.approx(old.made, abs=1), "the same key signs"
    assert numbers(announced.published) == numbers((old.signing.public, new))
    assert MachineKey.open(path).public == old.signing.public, "this one signs"

    switched = reopened(announced.switched(2e9), path)
    assert switched.stage is KeyStage.FORMER
    assert switched.made == 2e9
    assert numbers(switched.published) == numbers((new, old.signing.public))
    assert old.signing.pem().splitlines()[5] not in path.read_text(), "the old private half is gone"
    assert MachineKey.open(path).public == new

    withdrawn = reopened(switched.withdrawn(), path)
    assert withdrawn.stage is KeyStage.WITHDRAWN
    assert numbers(withdrawn.published) == [new.modulus]

    settled = reopened(withdrawn.settled(), path)
    assert (settled.stage, settled.made) == (KeyStage.STEADY, 2e9)
    assert numbers(settled.published) == [new.modulus]
    assert path.read_text().count("BEGIN") == 1


@pytest.mark.req("SEC-26-01")
def test_only_a_key_that_the_directory_has_may_sign_without_a_restart(tmp_path: Path) -> None:
    old = KeyRing.open(tmp_path / "old")
    announced = old.announced()
    switched = announced.switched(2e9)
    assert announced.succeeds(old)
    assert switched.succeeds(announced)
    assert switched.withdrawn().succeeds(switched)
    assert not switched.succeeds(old)
    assert not KeyRing.open(tmp_path / "other").succeeds(old)
    assert not old.succeeds(switched.withdrawn()), "a withdrawn key does not come back"


def test_a_new_key_is_as_long_as_the_old_one(tmp_path: Path) -> None:
    ring = KeyRing(MachineKey.generate(2048), 1.0).announced()
    assert ring.following is not None
    assert ring.following.bits == 2048


def test_files_that_no_rotation_has_written(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"
    path.write_text(MachineKey.generate().pem() + MachineKey.generate().pem())
    path.chmod(0o600)
    with pytest.raises(MqisError, match="holds several keys"):
        KeyRing.open(path)
    path.write_text("made: yesterday\n" + MachineKey.generate().pem())
    assert KeyRing.open(path).made == pytest.approx(path.stat().st_mtime)
    path.write_text("rubbish")
    with pytest.raises(MqisError, match="no private key"):
        KeyRing.open(path)
    path.chmod(0o644)
    with pytest.raises(MqisError, match="others may read"):
        KeyRing.open(path)

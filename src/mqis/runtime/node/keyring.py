"""The file with a server's signing key, and the steps by which a new key takes its place.

The file holds the key that signs and, during a rotation, one more. Each step replaces the file as a
whole, so after a crash it says exactly how far the rotation is; the server publishes what it says.

    stage       signs with   second in the file    the directory lists
    steady      old          -                     old
    next        old          new, private          old, new
    former      new          old, public half      new, old
    withdrawn   new          old, public half      new
    steady      new          -                     new

``mqis key rotate`` goes from one stage to the next when all servers have seen the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mqis.files import is_open_to_others, system_reason, write_whole
from mqis.runtime.node.signer import MachineKey, public_key_in
from mqis.texts import iso_moment, parse_moment
from mqis.wire.errors import MqisError
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.security.keyinfo import key_id, key_pem

#: A key in PEM, and the text before it.
_BLOCK = re.compile(rb"(.*?)(-----BEGIN ([A-Z ]+)-----.+?-----END \3-----\s*)", re.DOTALL)
_MADE = re.compile(r"^made: (\S+)$", re.MULTILINE)


class KeyStage(Enum):
    """The stage of a rotation; the value stands in the file before the second key."""

    STEADY = "steady"
    NEXT = "next"
    FORMER = "former"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The content of a key file."""

    signing: MachineKey
    #: The time at which the signing key was made, in seconds since the epoch.
    made: float
    stage: KeyStage = KeyStage.STEADY
    #: The key that signs next, which the stage NEXT has.
    following: MachineKey | None = None
    #: The key that signed before, which the stages FORMER and WITHDRAWN have.
    former: RsaPublicKey | None = None

    @property
    def published(self) -> tuple[RsaPublicKey, ...]:
        """The keys that the directory lists; the first one is that which signs."""
        if self.following is not None:
            return self.signing.public, self.following.public
        if self.former is not None and self.stage is KeyStage.FORMER:
            return self.signing.public, self.former
        return (self.signing.public,)

    def succeeds(self, before: KeyRing) -> bool:
        """Returns whether a server that has ``before`` may take this one without a restart."""
        known = {key_id(key) for key in before.published}
        return self.signing.key_id in known

    # --- the file ---------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> KeyRing:
        """Reads the file; a missing one is made with a new key, readable by its owner only."""
        try:
            if create and not path.exists():
                MachineKey.open(path)
            if is_open_to_others(path):
                raise MqisError(f"{path}: others may read this private key; chmod 600 {path}")
            return cls._parsed(path, path.read_bytes(), path.stat().st_mtime)
        except OSError as error:
            raise MqisError(
                f"{path}: the signing key cannot be read: {system_reason(error)}"
            ) from error

    @classmethod
    def _parsed(cls, path: Path, data: bytes, written: float) -> KeyRing:
        blocks = [(m[1].decode("utf-8", "replace"), m[2]) for m in _BLOCK.finditer(data)]
        signing = MachineKey.parsed(path, blocks[0][1] if blocks else data)
        made = _time_in(blocks[0][0] if blocks else "", written)
        if len(blocks) < 2:
            return cls(signing, made)
        heading, second = blocks[1]
        words = heading.split()
        try:
            stage = KeyStage(words[0].rstrip(":") if words else "")
            if len(blocks) > 2 or stage is KeyStage.STEADY:
                raise ValueError
        except ValueError:
            raise MqisError(
                f"{path}: holds several keys, and not as 'mqis key rotate' writes them; leave the "
                "one in it that is to sign"
            ) from None
        if stage is KeyStage.NEXT:
            return cls(signing, made, stage, following=MachineKey.parsed(path, second))
        return cls(signing, made, stage, former=public_key_in(path, second))

    def save(self, path: Path) -> None:
        """Replaces the file, atomically; raises ``MqisError`` if that fails."""
        text = f"made: {_stamp(self.made)}\n{self.signing.pem()}"
        if self.following is not None:
            text += f"{self.stage.value}:\n{self.following.pem()}"
        elif self.former is not None:
            text += f"{self.stage.value}:\n{key_pem(self.former)}"
        try:
            write_whole(path, text)
        except OSError as error:
            raise MqisError(
                f"{path}: the signing key cannot be written: {system_reason(error)}"
            ) from error

    # --- the steps --------------------------------------------------------------------------------

    def announced(self) -> KeyRing:
        """Returns the ring with a new key that does not sign yet."""
        following = MachineKey.generate(self.signing.bits)
        return KeyRing(self.signing, self.made, KeyStage.NEXT, following)

    def switched(self, now: float) -> KeyRing:
        """Returns the ring in which the new key signs; the private half of the old one is gone."""
        assert self.following is not None
        return KeyRing(self.following, now, KeyStage.FORMER, former=self.signing.public)

    def withdrawn(self) -> KeyRing:
        """Returns the ring in which the old key is valid no more."""
        return KeyRing(self.signing, self.made, KeyStage.WITHDRAWN, former=self.former)

    def settled(self) -> KeyRing:
        """Returns the ring without the old key, at the end of the rotation."""
        return KeyRing(self.signing, self.made)


def _stamp(at: float) -> str:
    return iso_moment(int(at) * 1_000_000, 0)


def _time_in(heading: str, otherwise: float) -> float:
    found = _MADE.search(heading)
    try:
        return otherwise if found is None else parse_moment(found[1]).timestamp()
    except ValueError:
        return otherwise


class ServerKey:
    """The keys of a running server, which a rotation replaces while it runs."""

    def __init__(self, path: Path, ring: KeyRing) -> None:
        self.path = path
        self.ring = ring

    @classmethod
    def open(cls, path: Path) -> ServerKey:
        return cls(path, KeyRing.open(path))

    @property
    def public(self) -> RsaPublicKey:
        return self.ring.signing.public

    def sign(self, data: bytes) -> bytes:
        return self.ring.signing.sign(data)

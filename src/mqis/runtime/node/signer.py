"""The signing key of this machine, and signatures with it.

The form in messages is MSMQ 1.0's: MD5 and RSA. The seals of the journal are signed over SHA-256.
New keys have 1024 bits; longer ones work as well.
Keys of others may be as short as 512 bits, which old queue managers have: they are verified too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from mqis.files import is_open_to_others, system_reason, write_whole
from mqis.protocol.queueing.signing import Verdict
from mqis.protocol.security.rsa import verify_md5
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import KeyAlgorithm, RsaPublicKey
from mqis.wire.security.keyinfo import key_id

KEY_BITS = 1024
#: Shorter own keys are not used.
MIN_BITS = 1024


class MachineKey:
    """A private key; ``public`` is published in the directory."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self._private = private
        numbers = private.public_key().public_numbers()
        self.public = RsaPublicKey.of(numbers.n, numbers.e, KeyAlgorithm.CALG_RSA_SIGN)
        self.key_id = key_id(self.public)

    @classmethod
    def generate(cls, bits: int = KEY_BITS) -> MachineKey:
        if bits < MIN_BITS:
            raise ValueError(f"a new key has at least {MIN_BITS} bits, not {bits}")
        return cls(rsa.generate_private_key(65537, bits))

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> MachineKey:
        """Reads the key in a file; a missing one is created, readable by its owner only."""
        try:
            if create and not path.exists():
                with suppress(FileExistsError):  # another process was first: its key counts
                    write_whole(path, cls.generate().pem(), replace=False)
            if is_open_to_others(path):
                raise MqisError(f"{path}: others may read this private key; chmod 600 {path}")
            data = path.read_bytes()
        except OSError as error:
            raise MqisError(
                f"{path}: the signing key cannot be read: {system_reason(error)}"
            ) from error
        return cls.parsed(path, data)

    @classmethod
    def parsed(cls, path: Path, data: bytes) -> MachineKey:
        """The key in PEM that ``path`` holds; of several, the first."""
        try:
            private = serialization.load_pem_private_key(data, None)
        except (ValueError, TypeError) as error:
            raise MqisError(f"{path}: is no private key in PEM without a password") from error
        if not isinstance(private, rsa.RSAPrivateKey) or private.key_size < MIN_BITS:
            raise MqisError(f"{path}: is no RSA key of {MIN_BITS} bits or more")
        return cls(private)

    @property
    def bits(self) -> int:
        return self._private.key_size

    def pem(self) -> str:
        """The private key, for a file that only its owner can read."""
        data = self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return data.decode("ascii")

    def sign(self, data: bytes) -> bytes:
        """The signature, least significant byte first, as CryptoAPI writes it."""
        signature = self._private.sign(data, padding.PKCS1v15(), hashes.MD5())
        return signature[::-1]

    def sign_sha256(self, data: bytes) -> bytes:
        """The signature of a journal's seal, most significant byte first."""
        return self._private.sign(data, padding.PKCS1v15(), hashes.SHA256())


def read_public_key(path: Path) -> RsaPublicKey:
    """Reads a public key in PEM; the file may also hold the private key."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MqisError(f"{path}: the key cannot be read: {system_reason(error)}") from error
    return public_key_in(path, data)


def public_key_in(path: Path, data: bytes) -> RsaPublicKey:
    """The public key in PEM that ``path`` holds, or the public half of a private one."""
    try:
        if b"PRIVATE KEY" in data:
            key = serialization.load_pem_private_key(data, None).public_key()
        else:
            key = serialization.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise MqisError(f"{path}: is no key in PEM without a password") from error
    if not isinstance(key, rsa.RSAPublicKey):
        raise MqisError(f"{path}: is no RSA key")
    numbers = key.public_numbers()
    try:
        return RsaPublicKey.of(numbers.n, numbers.e, KeyAlgorithm.CALG_RSA_SIGN)
    except ValueError as error:
        raise MqisError(f"{path}: cannot be used: {error}") from error


class SignsMessages(Protocol):
    """A key of this machine, or the one that it has at the moment."""

    def sign(self, data: bytes) -> bytes: ...


class MachineSigner:
    """``queueing.Signer`` with the keys that the directory holds."""

    def __init__(
        self, key: SignsMessages, keys_of: Callable[[Guid], tuple[RsaPublicKey, ...]]
    ) -> None:
        self._key = key
        self._keys_of = keys_of

    def sign(self, parts: tuple[bytes, ...]) -> bytes:
        return self._key.sign(b"".join(parts))

    def verify(self, sender: Guid, parts: tuple[bytes, ...], signature: bytes) -> Verdict:
        """Verifies by a key of the sender's machine, or of the site whose PSC it is."""
        keys = self._keys_of(sender)
        if not keys:
            return Verdict.UNKNOWN_SENDER
        digest = md5(b"".join(parts), usedforsecurity=False).digest()
        right = any(verify_md5(key, digest, signature) for key in keys)
        return Verdict.VALID if right else Verdict.INVALID

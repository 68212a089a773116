"""An NTLMv2 client in a few lines that follow MS-NLMP, for the messages that no library sends."""

from __future__ import annotations

import hashlib
import hmac
import struct

from mqis.runtime.authentication.account import nt_hash

UNICODE, SIGN, SEAL, NTLM = 0x1, 0x10, 0x20, 0x200
ALWAYS_SIGN, EXTENDED, TARGET_INFO = 0x8000, 0x80000, 0x800000
KEY_128, KEY_EXCH, KEY_56 = 0x20000000, 0x40000000, 0x80000000
FLAGS = UNICODE | SIGN | NTLM | ALWAYS_SIGN | EXTENDED | TARGET_INFO | KEY_128

EOL = b"\0\0\0\0"


def hmac_md5(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.md5).digest()


def av(av_id: int, value: bytes) -> bytes:
    return struct.pack("<HH", av_id, len(value)) + value


def negotiate(flags: int = FLAGS) -> bytes:
    """NEGOTIATE_MESSAGE (2.2.1.1) with empty names."""
    return b"NTLMSSP\0" + struct.pack("<II", 1, flags) + bytes(16)


def server_challenge(challenge: bytes) -> bytes:
    return challenge[24:32]


class Client:
    """Answers a challenge with any AV pairs at all, as long as the proof over them is right."""

    def __init__(self, user: str, domain: str, password: str, flags: int = FLAGS) -> None:
        self.user, self.domain, self.flags = user, domain, flags
        name = (user.upper() + domain).encode("utf-16-le")
        self.response_key = hmac_md5(nt_hash(password), name)
        self.session_key = b""

    def nt_response(self, challenge: bytes, av_pairs: bytes) -> bytes:
        """3.3.2: temp, and the proof over the server's challenge and temp."""
        temp = b"\1\1" + bytes(6) + bytes(range(8)) + b"client!!" + bytes(4) + av_pairs
        proof = hmac_md5(self.response_key, server_challenge(challenge) + temp)
        self.session_key = hmac_md5(self.response_key, proof)
        return proof + temp

    def authenticate(self, challenge: bytes, av_pairs: bytes, room: int = 88) -> bytes:
        """AUTHENTICATE_MESSAGE (2.2.1.3); ``room`` is where the payload starts."""
        return message(
            self.flags,
            lm=bytes(24),
            nt=self.nt_response(challenge, av_pairs),
            domain=self.domain,
            user=self.user,
            room=room,
        )

    def with_mic(self, first: bytes, challenge: bytes, av_pairs: bytes, room: int = 88) -> bytes:
        token = self.authenticate(challenge, av_pairs, room)
        mic = hmac_md5(self.session_key, first + challenge + token)
        return token[:72] + mic + token[88:]

    def signature(self, number: int, data: bytes) -> bytes:
        """3.4.4.2 without key exchange, so without RC4."""
        magic = b"session key to client-to-server signing key magic constant\0"
        key = hashlib.md5(self.session_key + magic).digest()
        sequence = struct.pack("<I", number)
        return b"\1\0\0\0" + hmac_md5(key, sequence + data)[:8] + sequence


def message(
    flags: int, *, lm: bytes, nt: bytes, domain: str, user: str, room: int = 88, key: bytes = b""
) -> bytes:
    names = [domain.encode("utf-16-le"), user.encode("utf-16-le"), b""]
    fields, payload = b"", b""
    for value in (lm, nt, *names, key):
        fields += struct.pack("<HHI", len(value), len(value), room + len(payload))
        payload += value
    head = b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", flags)
    return head.ljust(room, b"\0") + payload

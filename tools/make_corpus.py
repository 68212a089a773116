"""Writes the seeds of the fuzz corpus: one or more valid inputs for each decoder.

    python tools/make_corpus.py

The inputs come from the demonstration enterprise and from the values of the specifications'
examples. Files that a fuzz run added stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mqis.lab.demo import build
from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.memory_store import MemoryStore
from mqis.wire.mqds.keys import MqdsPublicKey, PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.serverlist import ServerList, ServerSpec
from mqis.wire.propertybag import encode_properties
from mqis.wire.security.sid import ADMINISTRATORS, EVERYONE

CORPUS = Path(__file__).resolve().parents[1] / "fuzz/corpus"

#: The properties whose values are inputs of a decoder.
_PROPERTIES = {
    "descriptor": (PropId.Q_SECURITY, PropId.QM_SECURITY, PropId.S_SECURITY, PropId.E_SECURITY),
    "publickeys": (PropId.QM_ENCRYPT_PKS, PropId.QM_SIGN_PKS, PropId.S_PSC_SIGNPK),
    "certificates": (PropId.U_SIGN_CERT,),
    "addresses": (PropId.QM_ADDRESS,),
    "sid": (PropId.U_SID,),
}
PER_TARGET = 4


def seeds() -> Iterator[tuple[str, bytes]]:
    store = MemoryStore()
    build(store)
    with store.read() as view:
        for object_type in ObjectType:
            for number, obj in enumerate(view.objects(object_type)):
                if number < PER_TARGET:
                    yield "properties", encode_properties(obj.properties)
                yield from _values(obj)
    yield "sid", EVERYONE.to_bytes()
    yield "sid", ADMINISTRATORS.to_bytes()
    yield "guid", bytes.fromhex("d4c3b2a101000200030405060708090a")
    yield "seqnum", bytes(6) + b"\x01\x00"
    yield "hresult", bytes.fromhex("0f050ec0")
    servers = (ServerSpec("srv1.example.com"), ServerSpec("srv2", supports_ipx=True))
    yield "serverlist", str(ServerList("HQ", servers)).encode("utf-16-le")


def _values(obj: DirectoryObject) -> Iterator[tuple[str, bytes]]:
    for target, propids in _PROPERTIES.items():
        for propid in propids:
            value = obj.value(propid)
            if isinstance(value, bytes) and value:
                yield target, value
                if target == "publickeys":
                    for key in PublicKeys.from_bytes(value).keys:
                        yield "publickey", MqdsPublicKey(key.rsa()).to_bytes()


def main() -> int:
    kept: dict[str, set[bytes]] = {}
    for target, data in seeds():
        known = kept.setdefault(target, set())
        if len(known) >= PER_TARGET + 3 or data in known:
            continue
        known.add(data)
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed-{len(known)}").write_bytes(data)
    for target, inputs in sorted(kept.items()):
        print(f"{target}: {len(inputs)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

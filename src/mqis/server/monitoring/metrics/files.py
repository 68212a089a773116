"""The metrics of a server's files: free space, the age of its key, the expiry of certificates."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cryptography import x509

from mqis.config.sections import Config
from mqis.config.stores import file_of
from mqis.places import parse_place
from mqis.runtime.node.keyring import KeyRing
from mqis.runtime.node.signer import SigningKeyError
from mqis.server.monitoring.metrics import catalogue as c

Family = tuple[c.Metric, c.Samples]


def files(config: Config) -> Iterator[Family]:
    """Yields the metrics; what cannot be read has no sample."""
    yield c.DISK_FREE, _free(config)
    made: c.Samples = []
    with suppress(SigningKeyError):
        made = c.alone(KeyRing.open(Path(config.replication.key), create=False).made)
    yield c.KEY_MADE, made
    yield c.CERTIFICATE_EXPIRY, _expiry(config.store.ca_file)


def _free(config: Config) -> c.Samples:
    store, section = file_of(config.store.url), config.replication
    places = {
        "store": None if store is None else store.parent,
        "journal": Path(section.journal) if section.journal else None,
        "archive": parse_place(section.archive) if section.archive else None,
    }
    found: c.Samples = []
    for name, place in places.items():
        if isinstance(place, Path):
            with suppress(OSError):
                found.append(((name,), shutil.disk_usage(place).free))
    return found


def _expiry(path: str) -> c.Samples:
    if not path:
        return []
    try:
        certificates = x509.load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        return []
    first = min(each.not_valid_after_utc for each in certificates)
    return [(("store.ca_file",), first.timestamp())]

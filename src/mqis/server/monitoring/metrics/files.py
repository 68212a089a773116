"""The metrics of a server's files: free space, and the expiry of certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cryptography import x509

from mqis.config.sections import Config
from mqis.server.monitoring.metrics import all_metrics as c
from mqis.server.monitoring.resources import disk_free

Family = tuple[c.Metric, c.Samples]


def files(config: Config) -> Iterator[Family]:
    """Yields the metrics; what cannot be read has no sample."""
    yield c.DISK_FREE, [((place,), free) for place, free in disk_free(config).items()]
    yield c.CERTIFICATE_EXPIRY, _expiry(config.store.ca_file)


def _expiry(path: str) -> c.Samples:
    if not path:
        return []
    try:
        certificates = x509.load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        return []
    first = min(each.not_valid_after_utc for each in certificates)
    return [(("store.ca_file",), first.timestamp())]

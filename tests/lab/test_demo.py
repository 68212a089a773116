"""The demonstration enterprise: what it has, and that it is the same every time."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from io import BytesIO
from pathlib import Path

from mqis.admin.transfer import export_store
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import Scope
from mqis.wire.mqds.certificates import UserSignCerts, is_bare_certificate
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = BytesIO(), BytesIO()
    for url, out in (("memory:", first), (f"sqlite:{tmp_path}/d.db", second)):
        with closing(open_store(url, create=True)) as store:
            demo.build(store)
            export_store(store, out)
    assert first.getvalue() == second.getvalue()


def test_what_it_has() -> None:
    with closing(open_store("memory:")) as store:
        writer = demo.build(store)
        assert writer.operations > writer.commits >= 1
        assert store.check() == []
        with store.read() as view:
            assert demo.is_demonstration(view)
            counts = {kind.label: view.count(kind) for kind in ObjectType}
            roles = Counter(ServiceAttributes.of(m).role for m in view.objects(ObjectType.MACHINE))
            queues = list(view.objects(ObjectType.QUEUE))
            users = list(view.objects(ObjectType.USER))
            owners = {partition.owner for partition in view.partitions()}
    assert counts == {
        "queue": 60,
        "machine": 20,
        "site": 3,
        "deleted": 0,
        "network": 3,
        "enterprise": 1,
        "user": 5,
        "link": 3,
    }
    assert [roles[role] for role in (demo.PEC, demo.PSC, demo.BSC)] == [1, 2, 2]
    assert owners == {"ams-dir1", "ber-dir1", "chi-dir1"}
    for propid, value in (
        (PropId.Q_TRANSACTION, 1),
        (PropId.Q_JOURNAL, 1),
        (PropId.Q_SCOPE, Scope.SITE),
    ):
        assert 0 < sum(queue.value(propid) == value for queue in queues) < 60
    for user in users:
        listed = user.value(PropId.U_SIGN_CERT)
        assert isinstance(listed, bytes)
        (certificate,) = UserSignCerts.from_bytes(listed).certificates
        assert certificate.digest_matches
        assert is_bare_certificate(certificate.certificate)


def test_another_directory_is_not_taken_for_it() -> None:
    with closing(open_store("memory:")) as store, store.read() as view:
        assert not demo.is_demonstration(view)

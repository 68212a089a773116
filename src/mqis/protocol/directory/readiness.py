"""The objects that a directory must hold before it can be served (MS-MQDS 1.5)."""

from __future__ import annotations

from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType


def check_ready(view: View, own_site: Guid | None) -> None:
    """Raise ``DirectoryError`` unless there are an enterprise and the site of this server."""
    if enterprise(view) is None:
        raise _empty("the directory has no enterprise")
    if own_site is None:
        raise _empty("it is not configured which site this server is in")
    if view.get(ObjectType.SITE, own_site) is None:
        raise _empty(f"the directory does not know the site {own_site} of this server")


def _empty(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_MQIS_SERVER_EMPTY, detail)

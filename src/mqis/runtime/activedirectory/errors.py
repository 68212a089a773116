"""Errors of an Active Directory as those of a directory call (MS-MQDSSM 2.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mqis.protocol.activedirectory.results import hresult_of
from mqis.protocol.errors import DirectoryError, ProtocolError, StoreUnavailable
from mqis.protocol.ldap.entry import BadAttribute
from mqis.protocol.ldap.errors import LdapRefused
from mqis.wire.errors import MqisError, WireError
from mqis.wire.hresult import HResult
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.mqds.objecttype import ObjectType


class DirectoryNotConnected(DirectoryError, StoreUnavailable):
    """No domain controller answers. Callers get MQ_ERROR_NO_DS; it is logged once an outage."""

    def __init__(self, detail: str) -> None:
        super().__init__(HResult.MQ_ERROR_NO_DS, detail)

    def __reduce__(self) -> tuple[type[DirectoryNotConnected], tuple[str]]:  # type: ignore[override]
        return type(self), (self.detail,)


class AccountRefused(DirectoryError):
    """Active Directory refuses the account of the server; the caller had the right."""

    def __init__(self, detail: str, right: str) -> None:
        super().__init__(HResult.MQ_ERROR_DS_ERROR, f"the directory refuses the server: {detail}")
        #: What the directory said.
        self.reason = detail
        #: What the account would need.
        self.right = right

    def __reduce__(self) -> tuple[type[DirectoryError], tuple[int, str]]:
        return DirectoryError, (self.hresult, self.detail)


@contextmanager
def translated(object_type: ObjectType) -> Iterator[None]:
    """Raises errors of LDAP operations on an object of this type as ``DirectoryError``."""
    try:
        yield
    except (DirectoryError, StoreUnavailable):
        raise
    except LdapRefused as error:
        if error.code == ResultCode.INSUFFICIENT_ACCESS_RIGHTS:
            raise AccountRefused(str(error), f"to read {object_type.label} entries") from error
        code = hresult_of(error.code, object_type)
        if code == HResult.MQ_ERROR_NO_DS:
            raise DirectoryNotConnected(str(error)) from error
        raise DirectoryError(code, str(error)) from error
    except (BadAttribute, WireError) as error:
        raise DirectoryError(HResult.MQ_ERROR_DS_ERROR, str(error)) from error
    except (ProtocolError, OSError) as error:
        raise DirectoryNotConnected(str(error)) from error
    except MqisError as error:  # the logon, or the server's certificate
        raise DirectoryNotConnected(str(error)) from error

"""The step of the live tour about a user who tries to exceed their rights."""

from __future__ import annotations

from collections.abc import Awaitable

from mqis.cli.tour.guide import Guide
from mqis.cli.tour.site import Tour, has
from mqis.config.nodes import ACCOUNTS
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.directory.service import ServiceBits
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.node.signer import MachineKey
from mqis.server.accounts import AccountsFile
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, name_of
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.keys import MqdsPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import Sid

MACHINE, USER, QUEUE = ObjectType.MACHINE, ObjectType.USER, ObjectType.QUEUE
_SERVER, _DESK, _CLERK, _ADMIN = "ams-dir1", "ams-desk1", "clerk", "admin"
_RELAYED = "C14\\relayed"
_LABEL: dict[int, PropVariant] = props({PropId.Q_LABEL: "relayed"})
#: The shortest bytes that pass as an X.509 certificate.
_CERTIFICATE = bytes.fromhex("300430020500")


async def hostile(guide: Guide, tour: Tour) -> None:
    guide.step(
        "Access denied",
        f"{_CLERK} has an account without rights, and tries to act as a server and as another user",
    )
    sids = _sids(tour)
    before = await _digests(tour)
    async with tour.client(_SERVER, account=_CLERK) as clerk:
        role: dict[int, PropVariant] = props({PropId.QM_SERVICE: int(ServiceBits.BSC)})
        await _refused(guide, f"make {_DESK} a controller", clerk.set(MACHINE, role, path=_DESK))
        key = MqdsPublicKey(MachineKey.generate().public).to_bytes()
        sign = SecurityInformation.SIGN_PUBLIC_KEY
        forged = clerk.set_security(MACHINE, sign, key, path=_SERVER)
        await _refused(guide, f"replace the key of {_SERVER}", forged)
        stolen = clerk.create(USER, None, _registration(sids[_ADMIN]))
        await _refused(guide, f"register a certificate as {_ADMIN}", stolen)
        guide.confirm_equal(
            f"nothing of that is in the directory: its digests at {_SERVER} are as before",
            await _digests(tour),
            before,
        )
        own = await _result(clerk.create(USER, None, _registration(sids[_CLERK])))
        guide.confirm_equal(
            f"{_CLERK} may register a certificate of its own", name_of(own), "MQ_OK"
        )
    async with tour.client(_SERVER, level=AuthLevel.CONNECT) as relayed:
        await _refused(
            guide,
            f"create a queue by a relayed logon of {_ADMIN}, whose calls are not signed",
            relayed.create(QUEUE, _RELAYED, _LABEL),
        )
        guide.confirm_equal("there is no such queue", await has(relayed, QUEUE, _RELAYED), False)


async def _digests(tour: Tour) -> dict[str, str]:
    """The digest of each partition at the server that is attacked."""
    return {part.name: part.digest for part in (await tour.status(_SERVER)).partitions}


def _sids(tour: Tour) -> dict[str, Sid]:
    """The SID of each account, from the file that all servers share."""
    return {account.name: account.sid for account in AccountsFile(tour.run / ACCOUNTS).accounts()}


def _registration(sid: Sid) -> dict[int, PropVariant]:
    digest = Guid(digest_of(_CERTIFICATE))
    return props(
        {
            PropId.U_SID: sid.to_bytes(),
            PropId.U_SIGN_CERT: _CERTIFICATE,
            PropId.U_DIGEST: (digest,),
        }
    )


async def _refused(guide: Guide, attempt: str, call: Awaitable[object]) -> None:
    code = await _result(call)
    told = name_of(code)
    guide.confirm_equal(f"attempt to {attempt}: {told}", told, "MQ_ERROR_ACCESS_DENIED")


async def _result(call: Awaitable[object]) -> int:
    try:
        await call
    except DirectoryError as error:
        return error.hresult
    return HResult.MQ_OK

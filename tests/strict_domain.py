"""A scripted domain controller with the strictness of Windows, where Samba is kind.

It gives 1,000 entries a page at most and 1,500 values of an attribute, refuses what has no pages
beyond that (4), substring matches on object identifiers (18), anonymous questions but for the root
(1), simple binds outside of TLS and logons without signing (8), logons inside TLS without a channel
binding (49), refers to other domains (10) and to the configuration, and shows tombstones only to
those who ask for deleted objects.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from mqis.runtime.authentication.negotiate import Negotiate
from mqis.testing.followed import FollowedDomain
from mqis.testing.ldap import ScriptedAnswer, name_of
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.filters import And, Filter, Not, Or, Substrings
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SaslBind, SearchRequest, SimpleBind
from mqis.wire.ldap.responses import BindResponse, LdapResult, SearchDone, SearchReference
from tests.runtime.ldap.test_spnego import SIGN, SpnegoDirectory

#: Attributes of the syntax object identifier (2.5.5.2).
OID_ATTRIBUTES = frozenset(
    {"objectclass", "governsid", "attributeid", "attributesyntax", "auxiliaryclass", "mustcontain"}
)
_BOUND_ONLY = "000004DC: LdapErr: DSID-0C090A5C, a successful bind must be completed"
_BAD_BINDING = "80090346: LdapErr: DSID-0C090597, AcceptSecurityContext error, data 80090346"


@dataclass
class StrictDomain(SpnegoDirectory, FollowedDomain):
    """``certificate`` is the file of the server's own, to which logons inside TLS are bound."""

    certificate: Path | None = None
    refused: list[str] = field(default_factory=list)
    #: Someone has logged on; the server is for one client at a time.
    bound: bool = False

    def _usual(self, message: LdapMessage) -> ScriptedAnswer:
        request = message.operation
        if isinstance(request, SimpleBind):
            self.bound = False
            if request.password and not self.ldaps:
                code = ResultCode.STRONGER_AUTH_REQUIRED
                return [BindResponse(LdapResult(code, "", "a simple bind outside of TLS"))]
        if isinstance(request, SearchRequest):
            refused = self._refused(request)
            if refused is not None:
                self.refused.append(refused.result.diagnostic)
                return [refused]
        return super()._usual(message)

    def _refused(self, request: SearchRequest) -> SearchDone | None:
        code, text = ResultCode.SUCCESS, ""
        to: tuple[str, ...] = ()
        is_root = not request.base and request.scope is SearchScope.BASE
        if not self.bound and not is_root:
            code, text = ResultCode.OPERATIONS_ERROR, _BOUND_ONLY
        elif (attribute := _substring_of_oid(request.filter)) is not None:
            code = ResultCode.INAPPROPRIATE_MATCHING
            text = f"00002097: {attribute} is an object identifier: no substring match"
        elif request.base and not request.base.startswith("<") and not self._holds(request.base):
            code, text = ResultCode.REFERRAL, "0000202B: RefErr: DSID-0310084A"
            to = (f"ldap://other.example/{request.base}",)
        return SearchDone(LdapResult(code, "", text, to)) if code else None

    def _holds(self, base: str) -> bool:
        """A child's domain has a name below this one's, and is another naming context."""
        found = name_of(base)
        inside = found.is_below(name_of(self.root))
        parts = [part for part in found.parts if part.attribute.lower() == "dc"]
        return inside and len(parts) == len(name_of(self.root).parts)

    def _search(self, request: SearchRequest, controls: tuple[LdapControl, ...]) -> ScriptedAnswer:
        answer = [*super()._search(request, controls)]
        if request.base.lower() == self.root.lower() and request.scope is SearchScope.SUBTREE:
            answer.insert(0, SearchReference((f"ldap://corp.example/{self.configuration}",)))
        return answer

    # --- the logon --------------------------------------------------------------------------------

    def _logon(self, acceptor: Negotiate, message: LdapMessage) -> list[Any]:  # type: ignore[override]
        answers = SpnegoDirectory._logon(acceptor, message)
        request = message.operation
        if not isinstance(request, SaslBind) or not acceptor.complete:
            return answers
        why = self._unprotected(request.token or b"")
        if why is None:
            self.bound = True
            return answers
        self.refused.append(why.diagnostic)
        return [BindResponse(why)]

    def _unprotected(self, last: bytes) -> LdapResult | None:
        first = self.tokens[-2] if len(self.tokens) > 1 else b""
        at = first.find(b"NTLMSSP\0\x01\0\0\0")
        flags = int.from_bytes(first[at + 12 : at + 16], "little") if at >= 0 else 0
        if not self.ldaps and not flags & SIGN:
            text = "00002028: LdapErr: DSID-0C090259, binds have to turn on integrity checking"
            return LdapResult(ResultCode.STRONGER_AUTH_REQUIRED, "", text)
        if self.ldaps and self._binding not in last:
            return LdapResult(ResultCode.INVALID_CREDENTIALS, "", _BAD_BINDING)
        return None

    @property
    def _binding(self) -> bytes:
        """MsvAvChannelBindings of the server's certificate (MS-NLMP 2.2.2.1)."""
        assert self.certificate is not None
        own = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        unique = b"tls-server-end-point:" + own.fingerprint(hashes.SHA256())
        bound = bytes(16) + len(unique).to_bytes(4, "little") + unique
        return b"\x0a\x00\x10\x00" + hashlib.md5(bound).digest()


def _substring_of_oid(node: Filter) -> str | None:
    match node:
        case And(items) | Or(items):
            return next(filter(None, map(_substring_of_oid, items)), None)
        case Not(item):
            return _substring_of_oid(item)
        case Substrings(attribute) if attribute.lower() in OID_ATTRIBUTES:
            return attribute
    return None

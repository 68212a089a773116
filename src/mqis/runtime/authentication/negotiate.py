"""SPNEGO by pyspnego over our own mechanisms, with its gaps closed.

- The state accept-completed in a peer's token made pyspnego's acceptor complete, whatever had been
  proven. Here only the acceptor's own mechanism decides.
- If the first mechanism that a client offers is not ours, its token is for that one. pyspnego
  passed it to another; here the client is asked for a new one (RFC 4178 4.2.2).
- Given mechanisms were used whether the client offered them or not.
- A mechListMIC is due if the chosen mechanism is not the client's first (RFC 4178 5). pyspnego
  asked for it if the client's first is not ours, which clients without a key cannot give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from spnego import ContextProxy, ContextReq
from spnego._context import GSSMech
from spnego._negotiate import NegotiateProxy
from spnego.channel_bindings import GssChannelBindings

from mqis.protocol.authentication import AuthenticationError
from mqis.runtime.authentication.protection import Mechanism

_Input = tuple[bytes | None, bytes | None, bool]


class Negotiate(NegotiateProxy):
    """Either side of SPNEGO. The mechanisms are in order of preference."""

    def __init__(
        self, usage: str, mechanisms: Mapping[GSSMech, ContextProxy], *, dce_style: bool = True
    ) -> None:
        # An initiator in DCE style protects the list of mechanisms by a MIC.
        dce_style = dce_style and usage == "initiate"
        style = ContextReq.dce_style if dce_style else ContextReq.none
        super().__init__(usage=usage, context_req=style)
        for mechanism in mechanisms.values():
            mechanism._is_wrapped = True
        self._mechanisms = dict(mechanisms)

    @property
    def mechanism(self) -> Mechanism:
        return cast(Mechanism, self._context)

    def _preferred_mech_list(self) -> list[GSSMech]:
        return list(self._mechanisms)

    def _rebuild_context_list(
        self,
        mech_types: list[str] | None = None,
        channel_bindings: GssChannelBindings | None = None,
    ) -> list[str]:
        self._available_contexts = {
            mech: context
            for mech, context in self._mechanisms.items()
            if not mech_types or any(self._is_same_mech(mech, oid) for oid in mech_types)
        }
        if not self._available_contexts:
            raise AuthenticationError("SPNEGO: no mechanism in common")
        return super()._rebuild_context_list(mech_types, channel_bindings)

    def _step_spnego_input(
        self,
        in_token: bytes | None = None,
        channel_bindings: GssChannelBindings | None = None,
    ) -> _Input:
        complete, opening, offered = self._complete, not self._init_sent, self._mech_list
        token, mic, is_spnego = super()._step_spnego_input(in_token, channel_bindings)
        if self.usage == "accept":
            self._complete = complete
            if not opening and self._mech_list is not offered:
                raise AuthenticationError("SPNEGO: a second opening")
            if opening and self._mech_list:
                preferred = self._is_same_mech(self._chosen_mech, self._mech_list[0])
                self._mic_required = not preferred
                token = token if preferred else None
        return token, mic, is_spnego

"""Cost of context negotiation: a stranger's bind must not cause quadratic work."""

from __future__ import annotations

from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.negotiation import negotiate
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.pdu_bodies import ContextElement, ContextVerdict
from tests.protocol.rpc.talk import ECHO, OTHER, STRICT, UNKNOWN


class Counted(Interface):
    """Counts how often it was compared."""

    __slots__ = ()
    asked = 0

    def offers(self, wanted: SyntaxId) -> bool:
        Counted.asked += 1
        return super().offers(wanted)


def test_elements_are_looked_at_a_fixed_number_of_times() -> None:
    counted = Counted("counted", ECHO.syntax, 1)
    for size in (10, 132):
        Counted.asked = 0
        elements = [ContextElement(n, ECHO.syntax, (NDR20,)) for n in range(size)]
        agreed = negotiate(elements, [counted], {})
        assert Counted.asked <= 3 * size
        assert [r.result for r in agreed.results] == [0] + [2] * (size - 1)


def test_each_interface_gets_the_syntax_that_it_prefers() -> None:
    elements = [
        ContextElement(0, ECHO.syntax, (NDR20,)),
        ContextElement(1, STRICT.syntax, (NDR20,)),
        ContextElement(2, ECHO.syntax, (NDR64,)),
        ContextElement(3, STRICT.syntax, (NDR64,)),
        ContextElement(4, UNKNOWN, (NDR20, NDR64)),
        ContextElement(5, OTHER.syntax, (NDR20, NDR64)),
    ]
    agreed = negotiate(elements, [ECHO, OTHER, STRICT], {})
    assert [(c.id, c.interface.name, c.transfer) for c in agreed.accepted] == [
        (1, "strict", NDR20),
        (2, "echo", NDR64),
        (5, "other", NDR64),
    ]
    accepted = [n for n, r in enumerate(agreed.results) if r.result == ContextVerdict.ACCEPTANCE]
    assert accepted == [1, 2, 5]
    assert all(
        r.transfer.uuid == Guid.NULL for n, r in enumerate(agreed.results) if n not in accepted
    )

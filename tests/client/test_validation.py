"""Proving the server, and letting go of it (MS-MQDS 3.1.4.2, 3.1.4.3, 4.1)."""

from __future__ import annotations

import asyncio

import pytest

from mqis.client import (
    DirectoryClient,
    KnownServers,
    Queue,
    SignatureError,
)
from mqis.client.session import ServerSession, SessionSettings
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.testing.security import SharedSecret
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.client.peers import (
    AUTH,
    HOST,
    NOTHING,
    OK,
    Scripted,
    connected,
    demo_store,
    run,
    served,
    text,
)
from tests.client.providers import Proving, Stubborn
from tests.client.samples import TWO
from tests.client.tap import Tap


class TestValidation:
    @pytest.mark.req("MQDS-3.1.4.2-51", "MQDS-3.1.4.2-52", "MQDS-3.1.4.2-55")
    def test_by_default_there_is_no_token(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                known = KnownServers.of([peer.address], enterprise=TWO)
                async with await DirectoryClient.connect(known):
                    pass
                request = peer.only(dscomm.VALIDATE_SERVER)
                assert request.enterprise_id == TWO
                assert request.setup_mode == 0
                assert request.token == b""

        run(main())

    @pytest.mark.req("MQDS-3.1.4.2-55")
    def test_then_signatures_are_zeros_and_results_unverified(self) -> None:
        async def main() -> None:
            for size in (0, 16, 1024):
                lines = {dscomm.GET_PROPS: dscomm.PropsGot((text("Orders"),), bytes(size), OK)}
                async with Scripted(lines) as peer, connected(peer.address) as client:
                    got = await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")
                    assert got[PropId.Q_LABEL].value == "Orders"
            lines = {dscomm.GET_PROPS: dscomm.PropsGot((text("Orders"),), b"\0\1", OK)}
            async with Scripted(lines) as peer, connected(peer.address) as client:
                with pytest.raises(SignatureError):
                    await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")

        run(main())

    @pytest.mark.departs("MQDS-1.4-51")
    @pytest.mark.req("MQDS-3.1.4.2-54", "MQDS-3.2.4.3-15", "MQDS-4.1-51")
    def test_with_a_provider_the_first_token_goes_along(self) -> None:
        """The handshake is its own: nothing protects the connection here."""

        async def main() -> None:
            async with Proving() as peer, connected(peer.address, gss=SharedSecret()):
                request = peer.only(dscomm.VALIDATE_SERVER)
                assert request.token == b"hello somebody"
                assert len(request.token) <= request.buffer_size <= 524_288
                assert peer.context.complete

        run(main())

    @pytest.mark.req("MQDS-3.1.4.2-54")
    @pytest.mark.parametrize("size", [65_537, 524_288])
    def test_a_long_token_has_the_buffer_it_needs(self, size: int) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                steps = Stubborn(bytes(size))
                steps.complete = True
                async with connected(peer.address, gss=steps):
                    request = peer.only(dscomm.VALIDATE_SERVER)
                    assert len(request.token) == request.buffer_size == size

        run(main())

    @pytest.mark.req("MQDS-3.1.4.2-54")
    def test_a_token_beyond_the_limit_is_not_sent(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                with pytest.raises(ValueError, match="524288"):
                    await DirectoryClient.connect([peer.address], gss=Stubborn(bytes(524_289)))
                assert peer.asked == []

        run(main())

    def test_what_protects_the_connection_is_another_context(self) -> None:
        store = demo_store()

        async def main() -> None:
            outer, inner = SharedSecret(b"outer", "caller"), SharedSecret(b"inner", "prover")
            async with served(store, gss=inner, authenticator=outer) as server:
                credentials = Credentials(outer, AuthType.NTLM, AuthLevel.PRIVACY, HOST)
                async with connected(server.address, credentials=credentials, gss=inner) as client:
                    assert (await client.read(Queue, pathname="ams-app1\\orders")).label
                with pytest.raises(DirectoryError):
                    await DirectoryClient.connect(
                        [server.address], credentials=credentials, gss=outer
                    )

        run(main())

    @pytest.mark.req("MQDS-3.1.4.2-53")
    def test_handshakes_at_the_same_time_are_told_apart(self) -> None:
        async def main() -> None:
            async with Proving() as peer:
                settings = SessionSettings(gss=SharedSecret())
                session = await ServerSession.open(peer.address, settings)
                await asyncio.gather(*(session.validate() for _ in range(5)))
                asked = [a.request for a in peer.asked]
                assert len({request.context for request in asked}) == len(asked) == 5
                await session.close()

        run(main())

    @pytest.mark.req("MQDS-3.1.4.2-56", "MQDS-3.2.4.3-18")
    def test_the_context_checks_what_comes_later(self) -> None:
        async def main() -> None:
            async with Proving() as peer:
                session = await ServerSession.open(
                    peer.address, SessionSettings(gss=SharedSecret())
                )
                assert session.proof.context is None
                await session.validate()
                assert session.auth == AUTH
                assert session.proof.context is not None
                session.proof.check(b"digest", peer.sign(b"digest"))
                with pytest.raises(SignatureError):
                    session.proof.check(b"another", peer.sign(b"digest"))
                assert session.callbacks.pending == {}
                await session.close()

        run(main())

    @pytest.mark.parametrize("code", [0xC00E052B, 0xC00E0043])
    @pytest.mark.req("MQDS-3.1.4.2-57")
    def test_a_failure_leaves_no_handle_and_no_context(self, code: int) -> None:
        async def main() -> None:
            lines = {dscomm.VALIDATE_SERVER: dscomm.HandleGot(AUTH, code)}
            async with Scripted(lines) as peer:
                session = await ServerSession.open(
                    peer.address, SessionSettings(gss=SharedSecret())
                )
                with pytest.raises(DirectoryError) as failure:
                    await session.validate()
                assert failure.value.hresult == code
                assert session.auth == NOTHING
                assert session.proof.context is None
                assert session.callbacks.pending == {}
                await session.close()
                assert [a.name for a in peer.asked] == ["S_DSValidateServer"]

        run(main())

    def test_a_server_that_claims_to_be_proven_is_not_believed(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                with pytest.raises(SignatureError):
                    await DirectoryClient.connect([peer.address], gss=SharedSecret())
                assert [a.name for a in peer.asked][-1] == "S_DSCloseServerHandle"

        run(main())

    def test_a_null_handle_is_no_success(self) -> None:
        async def main() -> None:
            lines = {dscomm.VALIDATE_SERVER: dscomm.HandleGot(NOTHING, OK)}
            async with Scripted(lines) as peer:
                with pytest.raises(ProtocolError):
                    await DirectoryClient.connect([peer.address])

        run(main())

    @pytest.mark.req("MQDS-4.1-51")
    def test_legs_are_exchanged_until_both_sides_are_complete(self) -> None:
        """Two callbacks: the client's proof for the challenge, then the server's proof."""
        store = demo_store()

        async def main() -> None:
            async with (
                served(store, gss=SharedSecret()) as server,
                Tap(server.port) as tap,
                connected(tap.address, gss=SharedSecret()) as client,
            ):
                got = await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="ams-app1\\orders")
                assert got[PropId.Q_LABEL].value
                assert len(tap.stubs(dscomm.INIT_SEC_CTX.opnum, from_client=False)) == 2

        run(main())

    @pytest.mark.req("MQDS-4.1-51", "MQDS-3.2.4.3-20")
    def test_an_error_of_the_client_ends_the_handshake(self) -> None:
        """And is what S_DSValidateServer returns."""
        store = demo_store()

        async def main() -> None:
            async with served(store, gss=SharedSecret(b"another")) as server:
                with pytest.raises(DirectoryError):
                    await DirectoryClient.connect([server.address], gss=SharedSecret())
            steps = Stubborn(b"hello x", ValueError("no more"))
            async with served(store, gss=SharedSecret()) as server:
                with pytest.raises(DirectoryError) as failure:
                    await DirectoryClient.connect([server.address], gss=steps)
                assert failure.value.hresult == 0xC00E0001  # what the callback answered

        run(main())


class TestClosing:
    @pytest.mark.req("MQDS-3.2.3-06", "MQDS-3.2.3-07", "MQDS-3.1.4.3-51")
    def test_first_the_handle_then_calls_then_the_handle_goes(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                client = await DirectoryClient.connect([peer.address])
                await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")
                await client.close()
                await client.close()
                names = [asked.name for asked in peer.asked]
                assert names == ["S_DSValidateServer", "S_DSGetProps", "S_DSCloseServerHandle"]
                assert peer.only(dscomm.GET_PROPS).auth == AUTH
                assert peer.only(dscomm.CLOSE_SERVER_HANDLE).handle == AUTH
                with pytest.raises(RpcConnectionError, match="closed"):
                    await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")

        run(main())

    @pytest.mark.req("MQDS-3.1.4.3-51", "MQDS-3.1.4.3-52")
    def test_handle_and_context_are_gone_afterwards(self) -> None:
        async def main() -> None:
            async with Proving() as peer:
                session = await ServerSession.open(
                    peer.address, SessionSettings(gss=SharedSecret())
                )
                await session.validate()
                await session.close()
                assert session.auth == NOTHING
                assert session.proof.context is None
                await session.close()
                assert [a.name for a in peer.asked].count("S_DSCloseServerHandle") == 1

        run(main())

    def test_a_server_has_nothing_left_of_a_client_that_closed(self) -> None:
        store = demo_store()

        async def main() -> None:
            async with served(store) as server:
                client = await DirectoryClient.connect([server.address])
                groups = server.rpc.endpoint.groups
                assert groups.budget.used == 1
                rows = client.lookup([PropId.Q_LABEL])
                await anext(rows)
                assert groups.budget.used == 2
                await rows.aclose()  # type: ignore[attr-defined]
                assert groups.budget.used == 1
                await client.close()
                assert groups.budget.used == 0

        run(main())

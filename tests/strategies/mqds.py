"""Values of the MS-MQDS structures, for any test that needs some."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    ENHANCED_AES_PROVIDER,
    ENHANCED_PROVIDER,
    KeyAlgorithm,
    MqdsPublicKey,
    ProviderType,
    PublicKey,
    PublicKeys,
    RsaPublicKey,
)
from mqis.wire.mqds.machine_address import AddressList, AddressType, TaAddress
from mqis.wire.mqds.serverlist import ServerList, ServerSpec

_U32 = st.integers(0, 0xFFFFFFFF)

guids = st.binary(min_size=16, max_size=16).map(Guid)


@st.composite
def rsa_public_keys(draw: st.DrawFn) -> RsaPublicKey:
    size = draw(st.integers(1, 64))
    modulus = draw(st.integers(0, (1 << 8 * size) - 1))
    return RsaPublicKey(draw(st.sampled_from(KeyAlgorithm)), draw(_U32), modulus, 8 * size)


def mqds_public_keys() -> st.SearchStrategy[MqdsPublicKey]:
    return st.builds(MqdsPublicKey, rsa_public_keys())


def provider_names() -> st.SearchStrategy[str]:
    known = st.sampled_from([BASE_PROVIDER, ENHANCED_PROVIDER, ENHANCED_AES_PROVIDER])
    return known | st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20
    )


def public_keys() -> st.SearchStrategy[PublicKey]:
    """With a key in it, or with any bytes: the list passes both on."""
    blobs = rsa_public_keys().map(RsaPublicKey.to_bytes) | st.binary(max_size=40)
    types = st.sampled_from([int(kind) for kind in ProviderType]) | _U32
    return st.builds(PublicKey, provider_names(), types, blobs)


def public_key_lists() -> st.SearchStrategy[PublicKeys]:
    return st.builds(PublicKeys, st.lists(public_keys(), max_size=4).map(tuple))


def user_sign_certs() -> st.SearchStrategy[UserSignCert]:
    """With the digest that belongs to the certificate, or with another."""
    certificates = st.binary(max_size=60)
    right = st.builds(UserSignCert.of, certificates, guids)
    digests = st.binary(min_size=16, max_size=16)
    return right | st.builds(UserSignCert, digests, guids, certificates)


def user_sign_cert_lists() -> st.SearchStrategy[UserSignCerts]:
    return st.builds(UserSignCerts, st.lists(user_sign_certs(), max_size=4).map(tuple))


def ta_addresses() -> st.SearchStrategy[TaAddress]:
    """The four types that are defined, and others with any bytes."""
    ip = st.builds(
        TaAddress,
        st.sampled_from([int(AddressType.IP), int(AddressType.IP_RAS)]),
        st.binary(min_size=4, max_size=4),
    )
    ipx = st.builds(TaAddress, st.just(int(AddressType.IPX)), st.binary(min_size=10, max_size=10))
    known = {int(kind) for kind in AddressType}
    unknown = st.builds(
        TaAddress,
        st.integers(0, 0xFFFF).filter(lambda kind: kind not in known),
        st.binary(max_size=20),
    )
    return ip | ipx | guids.map(TaAddress.foreign) | unknown


def address_lists() -> st.SearchStrategy[AddressList]:
    return st.builds(AddressList, st.lists(ta_addresses(), max_size=6).map(tuple))


def dns_names() -> st.SearchStrategy[str]:
    label = st.text("abcdefghijklmnopqrstuvwxyz0123456789-ü", min_size=1, max_size=12)
    return st.lists(label, min_size=1, max_size=4).map(".".join)


def server_specs() -> st.SearchStrategy[ServerSpec]:
    return st.builds(ServerSpec, dns_names(), st.booleans(), st.booleans())


def server_lists() -> st.SearchStrategy[ServerList]:
    return st.builds(ServerList, dns_names(), st.lists(server_specs(), max_size=5).map(tuple))

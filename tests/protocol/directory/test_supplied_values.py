"""From a supplied value to the stored one, and what is refused with which code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.write_mapping import stored_value
from mqis.protocol.errors import DirectoryError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.keys import PublicKey, PublicKeys
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.protocol.directory.world import (
    ADDRESSES,
    ALICE_SID,
    BARE_CERTIFICATE,
    C14,
    DESCRIPTOR,
    KEYS,
    SECOND_CERTIFICATE,
    SITE_A,
    SITE_B,
    blob,
    certificates,
    guid,
    guids,
    i4,
    text,
    ui1,
    ui2,
    ui4,
)
from tests.strategies.propvariant import prop_variants

ILLEGAL_VALUE = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
ILLEGAL_DESCRIPTOR = HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR

#: A list whose one key is no RSA key at all.
UNUSABLE_KEYS = PublicKeys((PublicKey("Some provider", 1, b"no key"),)).to_bytes()


def refused(propid: int, variant: PropVariant) -> int:
    with pytest.raises(DirectoryError) as caught:
        stored_value(PropId(propid), variant)
    return caught.value.hresult


class TestConversions:
    @pytest.mark.parametrize("propid", [104, 111, 113, 219, 227, 228, 229, 242, 311])
    @pytest.mark.parametrize(("supplied", "stored"), [(0, 0), (1, 1), (2, 0), (255, 0)])
    def test_one_means_true_anything_else_false(
        self, propid: int, supplied: int, stored: int
    ) -> None:
        assert stored_value(PropId(propid), ui1(supplied)) == ui1(stored)

    @pytest.mark.parametrize(("supplied", "stored"), [(0, 0), (1, 1), (2, 0), (0xFFFF, 0)])
    def test_310_is_a_flag_of_two_bytes(self, supplied: int, stored: int) -> None:
        assert stored_value(PropId.S_NT4_STUB, prop(PropId.S_NT4_STUB, supplied)) == ui2(stored)

    @pytest.mark.req("MQDS-3.1.4.21.8.2-11")
    @pytest.mark.parametrize(("supplied", "stored"), [(0, 0), (1, 1), (2, 0)])
    def test_name_style(self, supplied: int, stored: int) -> None:
        assert stored_value(PropId.E_NAMESTYLE, prop(PropId.E_NAMESTYLE, supplied)) == ui1(stored)

    @pytest.mark.req("MQDS-3.1.4.21.8.2-11")
    @pytest.mark.parametrize(
        ("supplied", "stored"), [(3, 3), (200, 200), (0, 200), (2, 200), (0xFFFF, 200)]
    )
    def test_version(self, supplied: int, stored: int) -> None:
        assert stored_value(PropId.E_VERSION, prop(PropId.E_VERSION, supplied)) == ui2(stored)


class TestChecks:
    @pytest.mark.parametrize(
        ("propid", "good", "bad"),
        [
            pytest.param(112, [0, 1, 2], [3, 0xFFFFFFFF], id="privacy level"),
            pytest.param(
                220,
                [0, 0x100, 0x200, 0x300, 0x400, 0x500],
                [1, 0x101, 0x600, 0xFFFFFFFF],
                id="operating system",
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-07"),
            ),
            pytest.param(
                803,
                [1, 5, 999_999],
                [0, 1_000_000, 1_000_004],
                id="cost",
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-13"),
            ),
            pytest.param(
                812,
                [1, 5, 999_999],
                [0, 1_000_000, 0xFFFFFFFF],
                id="actual cost",
                marks=pytest.mark.req("MQDS-3.1.4.21.8.2-13"),
            ),
        ],
    )
    def test_numbers(self, propid: int, good: list[int], bad: list[int]) -> None:
        for number in good:
            assert stored_value(PropId(propid), ui4(number)) == ui4(number)
        for number in bad:
            assert refused(propid, ui4(number)) == ILLEGAL_VALUE

    @pytest.mark.parametrize(
        ("propid", "good", "bad"),
        [
            pytest.param(114, [0, 1], [2, 255], id="scope"),
            pytest.param(
                501,
                [1, 3, 5],
                [0, 2, 4, 6, 255],
                id="protocol",
                marks=pytest.mark.req("MQDS-3.1.1.12-01", "MQDS-3.1.4.21.8.2-14"),
            ),
            pytest.param(602, [0, 1], [3, 255], id="name style"),
        ],
    )
    def test_bytes(self, propid: int, good: list[int], bad: list[int]) -> None:
        for number in good:
            assert stored_value(PropId(propid), ui1(number)) == ui1(number)
        for number in bad:
            assert refused(propid, ui1(number)) == ILLEGAL_VALUE

    def test_label(self) -> None:
        longest = text("x" * 124)
        assert stored_value(PropId.Q_LABEL, longest) == longest
        assert refused(108, text("x" * 125)) == ILLEGAL_VALUE

    def test_a_label_is_measured_in_units(self) -> None:
        longest = text("\U0001f600" * 62)
        assert stored_value(PropId.Q_LABEL, longest) == longest
        assert refused(108, text("\U0001f600" * 63)) == ILLEGAL_VALUE

    @pytest.mark.req("MQDS-3.1.4.21.8.2-04")
    def test_the_list_of_sites_is_not_empty(self) -> None:
        several = guids(SITE_B, SITE_A)
        assert stored_value(PropId.QM_SITE_IDS, several) == several
        assert refused(222, guids()) == ILLEGAL_VALUE

    def test_the_null_guid_is_no_site(self) -> None:
        """It stands for the enterprise, where no machine belongs."""
        assert refused(201, guid(Guid.NULL)) == ILLEGAL_VALUE
        assert refused(222, guids(SITE_A, Guid.NULL)) == ILLEGAL_VALUE

    @pytest.mark.parametrize("propid", [207, 208, 209, 303, 705, 813])
    def test_other_lists_may_be_empty(self, propid: int) -> None:
        for value in (guids(), guids(C14)):
            assert stored_value(PropId(propid), value) == value

    @pytest.mark.req("MQDS-3.1.4.21.8.1-13")
    def test_a_provider_is_one_of_three(self) -> None:
        for name in (
            "Microsoft Base Cryptographic Provider v1.0",
            "Microsoft Enhanced Cryptographic Provider v1.0",
            "Microsoft Enhanced RSA and AES Cryptographic Provider",
        ):
            assert stored_value(PropId.E_CSP_NAME, prop(PropId.E_CSP_NAME, name)) == text(name)
        for name in ("", "Microsoft Strong Cryptographic Provider"):
            assert refused(603, text(name)) == ILLEGAL_VALUE


class TestStructures:
    @pytest.mark.parametrize(
        "propid",
        [
            *(
                pytest.param(p, marks=pytest.mark.req("MQDS-2.2.10.3-01"))
                for p in (238, 239, 1202, 1203)
            ),
            pytest.param(1302, marks=pytest.mark.req("MQDS-2.2.10.4-01")),
        ],
    )
    def test_keys(self, propid: int) -> None:
        """MQDSPUBLICKEYS, also where the text says MQUSERSIGNCERTS; nothing means no keys."""
        for value in (KEYS, b"", PublicKeys(()).to_bytes()):
            assert stored_value(PropId(propid), blob(value)) == blob(value)
        for value in (certificates(BARE_CERTIFICATE), b"key", KEYS[:-1], UNUSABLE_KEYS):
            assert refused(propid, blob(value)) == INVALID

    @pytest.mark.parametrize("propid", [1101, 1102, 234, 1201, 1301, 1501, 1601])
    def test_security_descriptors(self, propid: int) -> None:
        for value in (DESCRIPTOR, b""):
            assert stored_value(PropId(propid), blob(value)) == blob(value)
        assert refused(propid, blob(DESCRIPTOR[:-1])) == ILLEGAL_DESCRIPTOR

    def test_addresses(self) -> None:
        for value in (ADDRESSES, ADDRESSES * 2, b""):
            assert stored_value(PropId.QM_ADDRESS, prop(PropId.QM_ADDRESS, value)) == blob(value)
        assert refused(206, blob(ADDRESSES[:-1])) == ILLEGAL_VALUE

    def test_sid(self) -> None:
        assert stored_value(PropId.U_SID, prop(PropId.U_SID, ALICE_SID)) == blob(ALICE_SID)
        assert refused(701, blob(ALICE_SID[:-1])) == ILLEGAL_VALUE

    def test_certificates(self) -> None:
        """A list or one bare certificate; the event makes a list of either."""
        for value in (certificates(BARE_CERTIFICATE, SECOND_CERTIFICATE), BARE_CERTIFICATE):
            assert stored_value(PropId.U_SIGN_CERT, prop(PropId.U_SIGN_CERT, value)) == blob(value)
        for value in (b"certificate", certificates(BARE_CERTIFICATE)[:-1], BARE_CERTIFICATE[:-1]):
            assert refused(702, blob(value)) == ILLEGAL_VALUE


class TestType:
    @pytest.mark.parametrize(
        ("propid", "variant"),
        [
            (106, ui2(1)),
            (109, ui4(1)),
            (105, i4(1)),
            (310, ui1(1)),
            (311, ui2(1)),
            (222, guid(SITE_A)),
            (201, guids(SITE_A)),
            (205, blob(b"")),
            (108, PropVariant(VarType.EMPTY, None)),
        ],
    )
    def test_another_type_is_refused(self, propid: int, variant: PropVariant) -> None:
        assert refused(propid, variant) == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT

    @given(st.sampled_from(PropId), prop_variants())
    def test_any_value_is_stored_or_refused(self, propid: PropId, variant: PropVariant) -> None:
        try:
            stored = stored_value(propid, variant)
        except DirectoryError:
            return
        assert stored.vt is variant.vt
        assert stored_value(propid, stored) == stored  # what is stored can be stored again

    @given(st.sampled_from([206, 238, 701, 702, 1101, 1302]), st.binary(max_size=60))
    def test_any_bytes_are_stored_or_refused(self, number: int, data: bytes) -> None:
        code = HResult.MQ_OK
        try:
            assert stored_value(PropId(number), blob(data)) == blob(data)
        except DirectoryError as error:
            code = HResult(error.hresult)
        assert code in (HResult.MQ_OK, ILLEGAL_VALUE, INVALID, ILLEGAL_DESCRIPTOR)

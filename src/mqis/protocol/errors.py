"""What a machine or a rule reports: the peer is wrong, or the directory says no."""

from __future__ import annotations

from mqis.wire.errors import MqisError
from mqis.wire.hresult import meaning_of, name_of


class ProtocolError(MqisError):
    """The peer is wrong: well-formed bytes at the wrong time, or with the wrong content."""


class DirectoryError(MqisError):
    """The directory refuses, with the HRESULT that a caller over the wire would get."""

    def __init__(self, hresult: int, detail: str) -> None:
        super().__init__(f"{detail} ({name_of(hresult)}: {meaning_of(hresult)})")
        self.hresult = int(hresult)
        self.detail = detail

    def __reduce__(self) -> tuple[type[DirectoryError], tuple[int, str]]:
        return type(self), (self.hresult, self.detail)


class StorageError(MqisError):
    """A store cannot do its work: full or read-only disk, wrong version, damage."""


class StoreUnavailable(StorageError):
    """A store is not asked because it is known that it does not answer, or is damaged."""


class DamagedStore(StorageError):
    """What is in a store is not what was written; ``detail`` is that without what to do."""

    ADVICE = "'mqis store check' lists what is damaged, 'mqis restore' puts a backup back"

    @property
    def detail(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return f"{self.detail}; {self.ADVICE}"


#: Errors that the store itself reports, once: nobody logs them again for each call that fails.
REPORTED = (StoreUnavailable, DamagedStore)

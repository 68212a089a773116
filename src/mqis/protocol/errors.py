"""The errors of protocols, the directory and stores."""

from __future__ import annotations

from typing import ClassVar

from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult, meaning_of, name_of


class ProtocolError(MqisError):
    """The peer is wrong: well-formed bytes at the wrong time, or with the wrong content."""


class DirectoryError(MqisError):
    """The directory refuses an operation, with the HRESULT that a caller over the wire gets."""

    def __init__(self, hresult: int, detail: str) -> None:
        super().__init__(f"{detail} ({name_of(hresult)}: {meaning_of(hresult)})")
        self.hresult = int(hresult)
        self.detail = detail

    def __reduce__(self) -> tuple[type[DirectoryError], tuple[int, str]]:
        return type(self), (self.hresult, self.detail)


class ChangedMeanwhile(DirectoryError):
    """Another server has changed an object since it was read; nothing was written. Try again."""

    def __init__(self, detail: str) -> None:
        super().__init__(HResult.MQ_ERROR_DS_ERROR, detail)

    def __reduce__(self) -> tuple[type[ChangedMeanwhile], tuple[str]]:  # type: ignore[override]
        return type(self), (self.detail,)


class StorageError(MqisError):
    """A store fails: full or read-only disk, wrong version, damage."""

    #: What to do, if that is the same for all errors of the class.
    ADVICE: ClassVar[str] = ""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: The message without the advice.
        self.detail = super().__str__()

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}; {self.ADVICE}" if self.ADVICE else text


class StoreUnavailable(StorageError):
    """A store that was not accessed at all.

    It is known to be unreachable or damaged, or only its memory was to be looked at.
    """


class MissingStore(StorageError):
    """A file is missing or empty, or a database has no tables: it was never a store, or lost it."""

    ADVICE = (
        "'mqis restore' puts a backup back; 'mqis init', 'mqis join' and 'mqis import' make a new "
        "store"
    )


class DamagedStore(StorageError):
    """A store is damaged."""

    ADVICE = "'mqis store check' lists what is damaged, 'mqis restore' puts a backup back"


#: Errors that the store itself logs once; callers do not log them again for each failed call.
REPORTED = (StoreUnavailable, DamagedStore)

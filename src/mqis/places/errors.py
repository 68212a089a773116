"""The error of places, and the words for what stores of objects answer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mqis.wire.errors import MqisError


class PlaceError(MqisError, OSError):
    """A place cannot be read or written; the text says which, why and what to do.

    It is an ``OSError`` too, so that code for files treats an unreachable bucket like a bad disk.
    """


#: Variables whose values must never be printed.
_SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
_SHORTEST_SECRET = 4
_CODE = re.compile(r"AWS Error ([A-Z_0-9]+)")
_CREDENTIALS = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN|EXPIRED_TOKEN"
    r"|MISSING_AUTHENTICATION_TOKEN|HTTP status 40[13]|UNAUTHENTICATED|PERMISSION_DENIED|credential"
    # The answer of rclone to a request without a signature.
    r"|UnsupportedAlgorithm|Unauthorized|Forbidden",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|curlCode|timed? ?out|REQUEST_TIMEOUT|connection|resolve|UNAVAILABLE",
    re.IGNORECASE,
)
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|bucket .* does not exist|HTTP status 404", re.IGNORECASE)


def reason_of(error: BaseException, secrets: Sequence[str] = ()) -> str:
    """One sentence about the answer of a store, with advice and without any credential."""
    text = " ".join(str(error).split())
    code = f" ({found[1]})" if (found := _CODE.search(text)) else ""
    if _CREDENTIALS.search(text):
        return (
            f"access was refused{code}: the credential is missing, wrong or lacks the right; set "
            "it in the environment (S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        )
    if _NO_BUCKET.search(text):
        return f"there is no such bucket{code}; create it, or correct the address"
    if _UNREACHABLE.search(text):
        return f"the store cannot be reached{code}; check its address and the network"
    return hidden(text, secrets)


def hidden(text: str, secrets: Sequence[str] = ()) -> str:
    """The text without the given secrets, and without those of the environment."""
    known = [*secrets, *(os.environ.get(name, "") for name in _SECRET_VARIABLES)]
    for secret in known:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


@contextmanager
def explained_at(place: object, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Converts the errors of a file system to ``PlaceError`` with the place and the reason."""
    try:
        yield
    except PlaceError:
        raise
    except FileNotFoundError as error:
        if _NO_BUCKET.search(str(error)) or _CREDENTIALS.search(str(error)):
            raise PlaceError(f"{place}: {reason_of(error, secrets)}") from None
        raise PlaceError(f"{place}: there is no such file or directory") from None
    except (OSError, ValueError, NotImplementedError) as error:  # ArrowInvalid is a ValueError
        # Without the cause: its text may have what must not be printed.
        raise PlaceError(f"{place}: {reason_of(error, secrets)}") from None

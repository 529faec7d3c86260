"""What can go wrong, one exception a code of the protocol."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class PawlError(Exception):
    """The base of all errors of Pawl. For an acquire each of them means that you do not hold the key.

    code: the short name for programs, `held` for example. message: a sentence for people. details: everything that the node said.
    """

    code = "error"
    default_message = "something failed"

    def __init__(self, message: str = "", details: Optional[Mapping[str, Any]] = None) -> None:
        self.message = message or self.default_message
        self.details: Dict[str, Any] = dict(details or {})
        super().__init__(self.message)

    @property
    def field(self) -> str:
        """The parameter or limit at fault, where one is named; else empty."""
        return str(self.details.get("field", ""))

    def __str__(self) -> str:
        field = self.field
        return "%s%s" % (self.message, " (%s)" % field if field and field not in self.message else "")


class HeldError(PawlError):
    """Somebody else holds the key, or others wait ahead for it."""

    code = "held"
    default_message = "somebody else holds the key or waits ahead for it"

    @property
    def holder(self) -> Optional[Dict[str, Any]]:
        """What the node told about the holder: owner, token, remaining_ms, ...; None when it is not known."""
        holder = self.details.get("holder")
        return holder if isinstance(holder, dict) else None


class WaitTimeoutError(PawlError):
    """The time to wait is over, or no node answered in time."""

    code = "timeout"
    default_message = "no answer came in time"


class NoQuorumError(PawlError):
    """Too few masters answered."""

    code = "no_quorum"
    default_message = "too few masters answered"


class LostError(PawlError):
    """The lock is not yours any more: stop what it protects."""

    code = "lost"
    default_message = "the lock is not yours any more"


class UnsureError(PawlError):
    """Perhaps lost in between. Of an update: it may still take effect."""

    code = "unsure"
    default_message = "the lock was perhaps lost in between"


class NotFoundError(PawlError):
    """No such key, lock or waiter."""

    code = "not_found"
    default_message = "no such key or lock"


class MismatchError(PawlError):
    """The value is not the expected one, or the lock_id has another mode."""

    code = "mismatch"
    default_message = "the value is not the expected one"

    @property
    def value(self) -> Optional[bytes]:
        """The value that is there, where the node told it."""
        value = self.details.get("value")
        return value if isinstance(value, bytes) else None


class RecoveringError(PawlError):
    """The nodes have restarted and do not vote yet."""

    code = "recovering"
    default_message = "the node is recovering and does not vote yet"


class TooLongError(PawlError):
    """The lease is longer than the cluster allows (`limit_ms` in the details)."""

    code = "too_long"
    default_message = "the lease is longer than the cluster allows"


class TooLargeError(PawlError):
    """A key, owner, value or message is larger than allowed."""

    code = "too_large"
    default_message = "a key, owner, value or message is larger than allowed"


class FullError(PawlError):
    """A limit of the cluster is reached."""

    code = "full"
    default_message = "a limit of the cluster is reached"


class DeniedError(PawlError):
    """Not allowed for this identity."""

    code = "denied"
    default_message = "not allowed for this identity"


class BadRequestError(PawlError):
    """A parameter is wrong, or the node is older than this package."""

    code = "bad_request"
    default_message = "the request is malformed"


class BusyError(PawlError):
    """Too many operations under way."""

    code = "busy"
    default_message = "too many operations under way"


class UnsettledError(PawlError):
    """A change of membership is not settled yet."""

    code = "unsettled"
    default_message = "a change of membership is not settled yet"


class QuotaError(PawlError):
    """This identity, or its address, has as much of the node as it may: `field` names the limit. Asking again in time did not help."""

    code = "quota"
    default_message = "a limit of this identity on this node is reached"


class IndeterminateError(PawlError):
    """A quorum read found no majority for either answer: ask again."""

    code = "indeterminate"
    default_message = "the masters' answers do not determine the state"


class UnreachableError(PawlError):
    """No node could be talked to within the time."""

    code = "unreachable"
    default_message = "no node can be reached"


class TlsError(PawlError):
    """Certificates do not fit, or what answers does not speak TLS 1.3."""

    code = "tls"
    default_message = "TLS failed"


class ProtocolError(PawlError):
    """What a node answered is not Pawl."""

    code = "protocol"
    default_message = "what arrived is not the protocol"


class ClosedError(PawlError):
    """The client is closed, or its connection broke during what is never repeated."""

    code = "closed"
    default_message = "the client is closed"


def _all_codes() -> Dict[str, Type[PawlError]]:
    return {kind.code: kind for kind in PawlError.__subclasses__()}


def from_wire(error: Any) -> PawlError:
    """The exception for the error map of a response."""
    if not isinstance(error, dict):
        return ProtocolError("an error without a code", {"error": error})
    code = error.get("code")
    kind = _all_codes().get(code) if isinstance(code, str) else None
    details = {str(k): v for k, v in error.items()}
    message = str(error.get("message", ""))
    if kind is None:  # of a later version
        unknown = PawlError(message, details)
        unknown.code = str(code)
        return unknown
    return kind(message, details)

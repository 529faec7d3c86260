"""The errors, with one exception for each code of the protocol."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple, Type


class PawlError(Exception):
    """The base of all errors of Pawl. After any error of an acquire you do not hold the key.

    code: the short name for programs, such as `held`.
    message: a sentence for people.
    details: everything that the node said.
    file: the file that cannot be used, such as that of a certificate; empty if it is not about one.
    """

    code = "error"
    default_message = "something failed"

    def __init__(self, message: str = "", details: Optional[Mapping[str, Any]] = None,
                 file: str = "") -> None:
        self.message = message or self.default_message
        self.details: Dict[str, Any] = dict(details or {})
        self.file = file
        super().__init__(self.message)

    @property
    def limit(self) -> Optional[float]:
        """The longest lease in seconds that the cluster allows, or the shortest if the lease was
        too short; None if the error is not about a lease."""
        limit = self.details.get("limit_ms")
        return limit / 1000 if isinstance(limit, int) else None

    @property
    def field(self) -> str:
        """The parameter or limit at fault; empty if the node names none."""
        return str(self.details.get("field", ""))

    @property
    def holder(self) -> Optional[Dict[str, Any]]:
        """What the node said of the holder who stands in the way (HeldError, WaitTimeoutError):
        owner, token, remaining_ms, ...; None if none is known."""
        holder = self.details.get("holder")
        return holder if isinstance(holder, dict) else None

    def __str__(self) -> str:
        field = self.field
        return "%s%s" % (self.message, " (%s)" % field
                         if field and field not in self.message else "")


class HeldError(PawlError):
    """Somebody else holds the key, or others wait ahead for it."""

    code = "held"
    default_message = "somebody else holds the key or waits ahead for it"


class WaitTimeoutError(PawlError):
    """The wait has timed out, or no node answered in time."""

    code = "timeout"
    default_message = "no answer came in time"


class NoQuorumError(PawlError):
    """Too few masters answered."""

    code = "no_quorum"
    default_message = "too few masters answered"


class LostError(PawlError):
    """You no longer hold the lock: stop using what it protects."""

    code = "lost"
    default_message = "you no longer hold the lock"


class UnsureError(PawlError):
    """The lock may have been lost in between. An update may still take effect."""

    code = "unsure"
    default_message = "the lock may have been lost in between"


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
        """The present value; None if the node did not tell it."""
        value = self.details.get("value")
        return value if isinstance(value, bytes) else None


class RecoveringError(PawlError):
    """The node takes no part in the cluster; the message says why, and what helps."""

    code = "recovering"
    default_message = "the node takes no part in the cluster now"


class TooLongError(PawlError):
    """The lease is longer than the cluster allows, which is `limit`."""

    code = "too_long"
    default_message = "the lease is longer than the cluster allows"


class TooLargeError(PawlError):
    """A key, owner, value or message is larger than allowed."""

    code = "too_large"
    default_message = "a key, owner, value or message is larger than allowed"


class FullError(PawlError):
    """The cluster has reached one of its limits."""

    code = "full"
    default_message = "the cluster has reached one of its limits"


class DeniedError(PawlError):
    """The access rules do not allow this identity to do that."""

    code = "denied"
    default_message = "this identity is not allowed to do that"


class BadRequestError(PawlError):
    """A parameter is wrong, or the node is older than this package."""

    code = "bad_request"
    default_message = "the request is malformed"


class BusyError(PawlError):
    """Too many operations are in progress."""

    code = "busy"
    default_message = "too many operations are in progress"


class UnsettledError(PawlError):
    """An earlier membership change is not settled yet."""

    code = "unsettled"
    default_message = "an earlier membership change is not settled yet"


class QuotaError(PawlError):
    """This identity or address has reached one of its limits on this node: `field` names the limit.
    Asking again in time did not help."""

    code = "quota"
    default_message = "this identity or address has reached one of its limits on this node"


class DeadlockError(PawlError):
    """Clients wait for each other in a ring, which the message names, and the node ended this wait.
    Release what you hold, and try again. Only nodes with `deadlock = refuse` do so."""

    code = "deadlock"
    default_message = "clients wait for each other in a ring"


class MovedError(PawlError):
    """Another cluster serves this: `endpoints` names nodes of it. The client has not followed: the
    request is about one connection or one node, or was moved a second time, or the client may not
    use these endpoints. No node of this release says so."""

    code = "moved"
    default_message = "another cluster serves this"

    @property
    def endpoints(self) -> Tuple[str, ...]:
        """The endpoints of that cluster, as far as the node names any."""
        named = self.details.get("endpoints")
        return tuple(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)
                     for one in named) if isinstance(named, list) else ()


class IndeterminateError(PawlError):
    """A quorum read found no majority for either answer: ask again."""

    code = "indeterminate"
    default_message = "the masters' answers do not determine the state"


class UnreachableError(PawlError):
    """No node could be reached in time."""

    code = "unreachable"
    default_message = "no node can be reached"


class TlsError(PawlError):
    """A certificate is rejected, or the server does not speak TLS 1.3."""

    code = "tls"
    default_message = "TLS failed"


class ProtocolError(PawlError):
    """The received data does not follow Pawl's protocol."""

    code = "protocol"
    default_message = "the received data does not follow Pawl's protocol"


class ClosedError(PawlError):
    """The client is closed, or its connection broke during a request that is never repeated."""

    code = "closed"
    default_message = "the client is closed"


def _all_codes() -> Dict[str, Type[PawlError]]:
    return {kind.code: kind for kind in PawlError.__subclasses__()}


def from_wire(error: Any) -> PawlError:
    """Returns the exception for the error map of a response."""
    if not isinstance(error, dict):
        return ProtocolError("an error without a code", {"error": error})
    code = error.get("code")
    kind = _all_codes().get(code) if isinstance(code, str) else None
    details = {str(k): v for k, v in error.items()}
    message = str(error.get("message", ""))
    if kind is None:  # The node is of a later version.
        unknown = PawlError(message, details)
        unknown.code = str(code)
        return unknown
    return kind(message, details)

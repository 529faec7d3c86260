"""The certificates of a client, which are read again when their files have changed, so that a
client that runs for long goes on after they were renewed."""

from __future__ import annotations

import os
import ssl
from typing import Callable, List, Optional, Tuple

from .._env.errors import TlsError


def _use_file(file: str, what: str, use: Callable[[], None]) -> None:
    try:
        use()
    except OSError as error:
        why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        raise TlsError("%s: the %s cannot be used: %s" % (file, what, why or error),
                       file=file) from error


def _context(ca_file: Optional[str], cert_file: Optional[str],
                 key_file: Optional[str]) -> ssl.SSLContext:
    if ca_file is None:
        raise TlsError("tls:// endpoints need a ca_file with the authorities that may sign node "
                       "certificates")
    if (cert_file is None) != (key_file is None):
        raise TlsError("a certificate and its key must be given together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificates and names
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # An elliptic curve that each node accepts; OpenSSL's own list has slow finite fields, too. The
    # module ssl takes one group and not a list.
    context.set_ecdh_curve("prime256v1")
    _use_file(ca_file, "authorities", lambda: context.load_verify_locations(ca_file))
    if cert_file is not None and key_file is not None:
        cert, key = cert_file, key_file
        _use_file(key, "private key", lambda: open(key, "rb").close())
        _use_file(cert, "certificate, with the private key %s," % key,
                  lambda: context.load_cert_chain(cert, key))
    return context


class TlsFiles:
    """Raises a TlsError if the files cannot be used."""

    def __init__(self, ca_file: Optional[str], cert_file: Optional[str],
                 key_file: Optional[str]) -> None:
        self._files = (ca_file, cert_file, key_file)
        # The files as they were when they were last read.
        self._seen = self._look()
        self._context = _context(*self._files)
        # Why the files as they are now cannot be used, so that what was read before is still in
        # use; empty if they can.
        self.problem = ""

    def _look(self) -> List[Optional[Tuple[int, int, int, int]]]:
        return [_state(file) for file in self._files if file is not None]

    def context(self) -> ssl.SSLContext:
        """Returns the context for a new connection. (Connections that are up keep theirs.)"""
        seen = self._look()
        if seen != self._seen:
            # If a file changes while it is read, it is read again the next time.
            self._seen = seen
            try:
                self._context, self.problem = _context(*self._files), ""
            except TlsError as error:
                self.problem = ("; the files have changed, and those from before are still in use: "
                                + error.message)
        return self._context


def _state(file: str) -> Optional[Tuple[int, int, int, int]]:
    """Returns what changes with a file; None if there is no such file."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

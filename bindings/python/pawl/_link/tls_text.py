"""What is wrong with TLS, in words that say what to do."""

from __future__ import annotations

import ssl

_UNKNOWN = ("the node's certificate is not signed by an authority in ca_file: is this the CA file "
            "of this cluster?")
_OTHER_HOST = ("the node's certificate does not contain this host: write a host that it contains "
               "in the endpoint or as server_name (pawl cert show shows them), or issue one that "
               "has the host (pawl cert node NAME --host ...)")
# The numbers of the verdicts are those of OpenSSL (X509_V_ERR_...).
_VERDICTS = {
    9: "the node's certificate is not valid yet: check the clocks of both machines",
    10: "the node's certificate has expired: issue a new one (pawl cert node NAME)",
    2: _UNKNOWN, 7: _UNKNOWN, 18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 21: _UNKNOWN,
    62: _OTHER_HOST, 64: _OTHER_HOST,
    26: "the certificate there is not that of a node",
}
_REJECTED = "the node rejects this client's certificate: the node's log says why"
_REASONS = {
    "WRONG_VERSION_NUMBER": "what is there does not speak TLS; for a port without TLS leave out "
                            "tls://",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the node requires a client certificate: give cert_file "
                                         "and key_file",
    "TLSV1_ALERT_UNKNOWN_CA": "this client's certificate is not signed by an authority that the "
                              "node trusts: does it belong to this cluster?",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the node rejects this client's certificate, which is "
                                       "revoked: use another one (pawl cert client NAME)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this client's certificate has expired: issue a new one "
                                       "(pawl cert client NAME), or check the clock of the node",
    "SSLV3_ALERT_BAD_CERTIFICATE": _REJECTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REJECTED,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _REJECTED,
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server there does not speak TLS 1.3",
}


def tls_text(error: BaseException) -> str:
    """Returns a sentence for an error of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        text = _VERDICTS.get(error.verify_code)
        return text or "the node's certificate is rejected: %s" % error.verify_message
    reason = str(getattr(error, "reason", "") or "")
    return _REASONS.get(reason) or reason or str(error)

"""The options of a client from the environment, with the variables of the command pawl."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

from ._env.arguments import valid_trace

ENDPOINT_DEFAULT = "127.0.0.1:7117"


def options_from_env(environ: Optional[Mapping[str, str]] = None) -> Dict[str, Any]:
    """Returns the options of a client that the environment sets, for
    `pawl.connect(**pawl.options_from_env())`. The variables are those of the command pawl:
    PAWL_ENDPOINTS, PAWL_PREFER_FIRST, PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY, PAWL_SERVER_NAME and
    TRACEPARENT (which is ignored if it is no traceparent). Without PAWL_ENDPOINTS the endpoint is
    127.0.0.1:7117, where pawld --dev listens."""
    given = os.environ if environ is None else environ
    trace = given.get("TRACEPARENT", "")
    found = {
        "endpoints": given.get("PAWL_ENDPOINTS") or ENDPOINT_DEFAULT,
        "ca_file": given.get("PAWL_CACERT"),
        "cert_file": given.get("PAWL_CERT"),
        "key_file": given.get("PAWL_CERT_KEY"),
        "server_name": given.get("PAWL_SERVER_NAME"),
        "prefer_first": bool(given.get("PAWL_PREFER_FIRST")),
        "trace": trace if valid_trace(trace) else None,
    }
    return {name: value for name, value in found.items() if value}

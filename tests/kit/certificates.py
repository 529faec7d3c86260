"""The certificates of cases with TLS. The openssl program makes them, once for all cases."""

import atexit
import functools
import os
import shutil
import ssl
import subprocess
import tempfile

# The certificates that a node may show.
OF_NODES = ("right", "other_name", "unknown_authority", "expired")
# How a node may meet a client that begins TLS: it shows one of these certificates; it shows the
# right one, and wants one of the client; or it does not know TLS.
NODES = (*OF_NODES, "wants_certificate", "plain")
# The certificates that a client may have.
OF_CLIENTS = ("right", "unknown_authority")
OTHER_NAME = "node.example"


def _openssl(folder, *arguments):
    subprocess.run(("openssl", *arguments), cwd=folder, check=True, stderr=subprocess.DEVNULL)


def _request(folder, name, *arguments):
    _openssl(folder, "req", "-subj", "/CN=" + name, "-keyout", name + ".key", "-newkey", "ec",
             "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *arguments)


def _sign(folder, name, authority, alternative, days):
    _request(folder, name, "-out", name + ".csr")
    with open(os.path.join(folder, name + ".ext"), "w", encoding="utf-8") as f:
        f.write("subjectAltName = %s\n" % alternative)
    _openssl(folder, "x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt", "-CAkey",
             authority + ".key", "-set_serial", "7", "-days", str(days), "-extfile", name + ".ext",
             "-out", name + ".crt")


@functools.lru_cache(maxsize=None)
def folder():
    """Makes the certificates, and returns their folder, which is there until this program ends."""
    made = tempfile.mkdtemp(prefix="pawl-kit-tls-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for authority in ("authority", "unknown"):
        _request(made, authority, "-x509", "-days", "2", "-out", authority + ".crt")
    for name in OF_NODES:
        _sign(made, name, "unknown" if name == "unknown_authority" else "authority",
              "DNS:" + OTHER_NAME if name == "other_name" else "IP:127.0.0.1",
              -1 if name == "expired" else 2)
    for name in OF_CLIENTS:
        _sign(made, "client_" + name, "unknown" if name == "unknown_authority" else "authority",
              "URI:pawl:client:kit", 2)
    return made


def _path(name):
    return os.path.join(folder(), name)


def context(kind):
    """Returns how a node of that kind begins TLS."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    name = "right" if kind == "wants_certificate" else kind
    made.load_cert_chain(_path(name + ".crt"), _path(name + ".key"))
    if kind == "wants_certificate":
        made.load_verify_locations(_path("authority.crt"))
        made.verify_mode = ssl.CERT_REQUIRED
    return made


def environment(client):
    """Returns the variables for a client, which may name its `certificate` and a `server_name`."""
    found = {"PAWL_CACERT": _path("authority.crt")}
    if "certificate" in client:
        name = "client_" + client["certificate"]
        found.update(PAWL_CERT=_path(name + ".crt"), PAWL_CERT_KEY=_path(name + ".key"))
    if "server_name" in client:
        found["PAWL_SERVER_NAME"] = client["server_name"]
    return found

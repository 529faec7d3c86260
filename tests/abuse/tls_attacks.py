"""The attacks of abuse.py that are made of TLS, and not of requests."""

import ctypes
import ctypes.util
import os
import socket
import ssl
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import pawltest  # noqa: E402

PING = pawltest.pack([0, 1, "ping", [{}]])


def in_small_records(address, authority, data, times):
    """Returns a connection over TLS, and the bytes that it sends, each in a record of its own."""
    s = socket.create_connection(pawltest.split(address))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = authority.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            s.sendall(outgoing.read())
            incoming.write(s.recv(1 << 16))
    s.sendall(outgoing.read())
    for _ in range(times):
        for at in range(len(data)):
            tls.write(data[at:at + 1])
    return s, outgoing.read()


def attack_records(address, authority):
    """16 connections whose TLS records have one byte each (over TLS)"""
    pings = PING * 300
    made = dict(in_small_records(address, authority, pings, 8) for _ in range(16))
    places = dict.fromkeys(made, 0)
    for s in made:
        s.setblocking(False)
    yield
    while True:
        for s, data in made.items():
            try:
                if places[s] < len(data):
                    places[s] += s.send(memoryview(data)[places[s]:places[s] + (1 << 20)])
                s.recv(1 << 20)
            except BlockingIOError:
                pass
        yield
        time.sleep(0.001)


# What openssl(3) has and the module ssl has not.
LIBSSL = ctypes.CDLL(ctypes.util.find_library("ssl"))
LIBCRYPTO = ctypes.CDLL(ctypes.util.find_library("crypto"))
for function in (LIBSSL.TLS_client_method, LIBSSL.SSL_CTX_new, LIBSSL.SSL_new,
                 LIBCRYPTO.BIO_s_mem, LIBCRYPTO.BIO_new):
    function.restype = ctypes.c_void_p


def key_updates(address, authority, count):
    """Opens a connection over TLS, and makes that many updates of its keys, each in a record of its
    own. They are still to be sent."""
    pointer, pem = ctypes.c_void_p, 1
    context = pointer(LIBSSL.SSL_CTX_new(pointer(LIBSSL.TLS_client_method())))
    for load, name in ((LIBSSL.SSL_CTX_use_certificate_file, "ops.crt"),
                       (LIBSSL.SSL_CTX_use_PrivateKey_file, "ops.key")):
        assert load(context, authority.path(name).encode(), pem) == 1
    tls, s = pointer(LIBSSL.SSL_new(context)), socket.create_connection(pawltest.split(address))
    assert LIBSSL.SSL_set_fd(tls, s.fileno()) == 1 and LIBSSL.SSL_connect(tls) == 1
    outgoing = pointer(LIBCRYPTO.BIO_new(pointer(LIBCRYPTO.BIO_s_mem())))
    LIBSSL.SSL_set0_wbio(tls, outgoing)
    for _ in range(count):
        assert LIBSSL.SSL_key_update(tls, 1) == 1 and LIBSSL.SSL_do_handshake(tls) == 1
    updates = ctypes.create_string_buffer(64 * count)
    size = LIBCRYPTO.BIO_read(outgoing, updates, len(updates))
    LIBSSL.SSL_free(tls)
    LIBSSL.SSL_CTX_free(context)
    return s, updates.raw[:size]


def attack_key_updates(address, authority):
    """8 connections that send 600 updates of their TLS keys each, and come again (over TLS)"""
    while True:
        made = [key_updates(address, authority, 600) for _ in range(8)]
        for s, data in made:
            s.sendall(data)
        yield
        for s, _ in made:
            s.close()

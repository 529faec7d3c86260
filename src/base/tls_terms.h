/* tls_terms.h: what nodes and clients agree to in a TLS handshake, whoever is at the other end.
 *
 * The other end may be a stranger. What a handshake costs follows from what it asks for, so these
 * terms say how much that may be. Both ends set them on each context that they make.
 */
#ifndef BASE_TLS_TERMS_H
#define BASE_TLS_TERMS_H

/* The groups for the exchange of keys, the fastest first. OpenSSL's own list has finite fields,
 * too: a step in the one of 8,192 bits takes 5 ms and more, and one in P-384, the slowest of
 * these, half a millisecond. X448 and P-521 are not slower than P-384, but nobody needs them. */
#define TLS_TERMS_GROUPS "X25519:P-256:P-384"
/* The greatest size of the certificates that the other end may show, in bytes, and how many
 * authorities may stand between its certificate and one that is trusted. Certificates are read and
 * compared with each other before any of them is known to be good. */
#define TLS_TERMS_CHAIN_BYTES 16384
#define TLS_TERMS_CHAIN_DEPTH 4
/* Options of OpenSSL. From 3.2 on it can take certificates that are compressed, and some of its
 * versions make room for the size that the other end names, up to 16 MiB, before they compare it
 * with the bound above. This header follows <openssl/ssl.h>, which says what it knows. */
#ifndef SSL_OP_ALL
#error "include <openssl/ssl.h> first"
#endif
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
#define TLS_TERMS_OPTIONS SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
#else
#define TLS_TERMS_OPTIONS 0
#endif

#endif

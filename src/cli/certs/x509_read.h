/* x509_read.h: what a certificate says, for people, and whether a list revokes it. */
#ifndef PAWL_CLI_X509_READ_H
#define PAWL_CLI_X509_READ_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#define X509_SERIAL_BYTES 64
#define X509_NAMES_BYTES 2048
#define X509_KIND_BYTES 128
#define X509_ENDS_SOON_DAYS 30

/* Writes capital hex digits, as nodes show them. */
void x509_serial(X509 *x, char out[X509_SERIAL_BYTES]);
void x509_subject(const X509_NAME *name, char *out, size_t size);
/* Writes names such as "URI:pawl:node:b, DNS:b.example.org". What does not fit is left out. */
void x509_names(X509 *x, char out[X509_NAMES_BYTES]);
/* Writes "authority", "node b", "node b, at most replica", "client backup", or "neither a node's
 * nor a client's". */
void x509_kind(X509 *x, char out[X509_KIND_BYTES]);
/* Writes a time such as 2026-11-23 12:00 UTC. */
void x509_time(const ASN1_TIME *at, char out[32]);
/* Returns the whole days from now, rounded down. A negative number means that the time is over. */
int64_t x509_days_left(const ASN1_TIME *at);

/* Returns the number of the line that revokes the certificate, or 0 if none does. `text` is
 * changed. */
unsigned x509_listed(X509 *x, char *text);

/* Reads hex digits, with or without colons, and writes them as capital digits without leading
 * zeros. Returns false if this is no serial number. */
bool x509_serial_read(const char *from, char out[X509_SERIAL_BYTES]);

#endif

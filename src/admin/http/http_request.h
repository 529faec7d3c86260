/* http_request.h: reads requests of HTTP/1.0 and 1.1: GET and HEAD, and POST, all of them without a
 * body. It is strict: two programs must not read one stream of bytes as different
 * requests, so whatever is not exactly as RFC 9112 wants it is refused, and the connection ends.
 * This is pure. */
#ifndef PAWL_ADMIN_HTTP_REQUEST_H
#define PAWL_ADMIN_HTTP_REQUEST_H

#include <sys/types.h>

#include "slice.h"

/* The limits for a request: the bytes of the line and all header fields together, the bytes of the
 * target, and the number of header fields. */
#define HTTP_HEAD_BYTES_MAX 8192
#define HTTP_TARGET_BYTES_MAX 1024
#define HTTP_FIELDS_MAX 64

/* The status codes of answers. */
enum http_status {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_FORBIDDEN = 403,
	HTTP_NOT_FOUND = 404,
	HTTP_METHOD_NOT_ALLOWED = 405,
	HTTP_CONTENT_TOO_LARGE = 413,
	HTTP_URI_TOO_LONG = 414,
	HTTP_FIELDS_TOO_LARGE = 431,
	HTTP_INTERNAL_ERROR = 500,
	HTTP_UNAVAILABLE = 503,
	HTTP_VERSION_NOT_SUPPORTED = 505
};

/* A request. The slices are borrowed from the bytes that were read. */
struct http_request {
	/* The part of the target before the first '?', beginning with '/', and the part behind
	 * it. */
	struct slice path, query;
	/* What the header field Host says; empty without one. */
	struct slice host;
	/* What the header fields Origin, Sec-Fetch-Site and Pawl-Action say; empty without them. */
	struct slice origin, site, action;
	/* It is a HEAD, so the answer has no body. */
	bool head;
	/* It is a POST, so it asks for more than to be shown something. */
	bool post;
	/* The connection stays open after the answer. */
	bool keep_alive;
};

enum http_read { HTTP_READ_MORE, HTTP_READ_COMPLETE, HTTP_READ_REFUSED };

/* Reads the request at the front of `in`. MORE: it is not complete, and all its bytes so far may be
 * the beginning of one. COMPLETE: *out is the request, and *out_size is its size in bytes. REFUSED:
 * *out_status says why; the connection must end after that answer. */
enum http_read http_request_read(struct slice in, struct http_request *out, size_t *out_size,
	enum http_status *out_status);

/* Returns whether the browser says that a page which it has from this very port over TLS has sent
 * the request. */
bool http_from_own_page(const struct http_request *request);

/* Returns whether the query has the name, as `name`, `name=` or among several with '&'. */
bool http_query_has(struct slice query, const char *name);

/* Finds the value of a name in the query, as in `name=a%2Fb`, and writes it without its %XX. A plus
 * stands for itself. Returns its size, or -1 if there is no such name, if the value is longer than
 * `room`, or if it is badly written. */
ssize_t http_query_value(struct slice query, const char *name, uint8_t *out, size_t room);

/* Returns whether the host is `localhost` or an address, with or without a port, and so no name
 * that somebody else could let stand for this machine. */
bool http_host_is_address(struct slice host);

/* Returns the words for a status, such as "Not Found". */
const char *http_status_text(enum http_status status);

#endif

/* error.h: the table of all errors of Pawl. Functions return 0 or a negative PAWL_E... value. */
#ifndef PAWL_ERROR_H
#define PAWL_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, number, code on the wire, message) */
#define PAWL_ERROR_TABLE(X) \
	X(PAWL_EHELD, 1, "held", "somebody else holds the key or waits ahead for it") \
	X(PAWL_ETIMEOUT, 2, "timeout", "the wait has timed out") \
	X(PAWL_ENOQUORUM, 3, "no_quorum", "too few masters answered") \
	X(PAWL_ELOST, 4, "lost", "you no longer hold the lock") \
	X(PAWL_EUNSURE, 5, "unsure", \
		"the lock may have been lost in between: acquire it again with the same lock_id") \
	X(PAWL_ENOTFOUND, 6, "not_found", "no such key or lock") \
	X(PAWL_EMISMATCH, 7, "mismatch", "the value is not the expected one") \
	X(PAWL_ERECOVERING, 8, "recovering", "the node takes no part in the cluster now") \
	X(PAWL_ETOOLONG, 9, "too_long", "the lease is longer than the cluster allows") \
	X(PAWL_ETOOLARGE, 10, "too_large", \
		"a key, owner, value or message is larger than allowed") \
	X(PAWL_EFULL, 11, "full", "the cluster has reached one of its limits") \
	X(PAWL_EDENIED, 12, "denied", "this identity is not allowed to do that") \
	X(PAWL_EBADREQUEST, 13, "bad_request", "the request is malformed") \
	X(PAWL_EBUSY, 14, "busy", "too many operations are in progress") \
	X(PAWL_EUNSETTLED, 15, "unsettled", "an earlier membership change is not settled yet") \
	X(PAWL_EINDETERMINATE, 16, "indeterminate", \
		"the masters' answers do not determine the state") \
	X(PAWL_EQUOTA, 17, "quota", \
		"this identity or address has reached one of its limits on this node") \
	X(PAWL_EDEADLOCK, 18, "deadlock", \
		"clients wait for each other in a ring: release what you hold, and try again") \
	X(PAWL_EMOVED, 19, "moved", "another cluster serves this request") \
	X(PAWL_ENOMEM, 32, "no_memory", "out of memory") \
	X(PAWL_EPROTOCOL, 33, "protocol", "the received data does not follow Pawl's protocol") \
	X(PAWL_ECLOSED, 34, "closed", "the connection is closed") \
	X(PAWL_EUNREACHABLE, 35, "unreachable", "no node can be reached") \
	X(PAWL_EINVAL, 36, "invalid", "an argument is invalid") \
	X(PAWL_EIO, 37, "io", "reading or writing a file failed") \
	X(PAWL_ETLS, 38, "tls", "TLS failed") \
	X(PAWL_ECANCELED, 39, "canceled", "the operation was canceled") \
	X(PAWL_EINTERRUPTED, 40, "interrupted", "pawl_wake has interrupted the call")

enum pawl_error {
	PAWL_OK = 0,
#define PAWL_ERROR_ENUM(name, number, code, message) name = -(number),
	PAWL_ERROR_TABLE(PAWL_ERROR_ENUM)
#undef PAWL_ERROR_ENUM
};

/* Returns the code of an error in the client protocol, such as "held"; "ok" for 0, and "unknown"
 * for any other number. The text is never NULL and is in static storage. */
const char *pawl_error_code(int error);
/* Returns a sentence for people, never NULL and in static storage. */
const char *pawl_error_message(int error);
/* Returns the (negative) number for a code of the client protocol; PAWL_EPROTOCOL for any other
 * text. */
int pawl_error_from_code(const char *code);

#ifdef __cplusplus
}
#endif
#endif

/* pawl.h: libpawl, the client of Pawl, which grants leases and locks by the agreement of a quorum.
 *
 * The library has layers, and each can be used alone:
 *   - struct pawl is a client. It keeps one connection to one of its endpoints. When that one
 *     fails, the client moves on to the next endpoint and repeats the requests under way there,
 *     with the same lock_id, which is safe.
 *   - pawl_call and pawl_start send one request (request.h) to a node and give its result
 *     (result.h). pawl_call blocks; pawl_start calls back.
 *   - struct pawl_lock (lock.h, which this header includes) is a held lock. The library renews it,
 *     and it tells how long it may still be trusted. A lock is exclusive, shared, or some permits
 *     of a semaphore; several keys can be acquired at once.
 *   - struct pawl_watch (watch.h) tells what happens to keys. struct pawl_election (election.h)
 *     makes one of many candidates the leader. struct pawl_fence (fence.h) is for the resource that
 *     a lock protects: it stores the highest tokens seen.
 *
 * A program chooses one of two styles:
 *   - Blocking: options.base is NULL. The client has its own loop, which runs only inside blocking
 *     calls (pawl_call, pawl_poll, pawl_lock_acquire, pawl_lock_update, pawl_lock_release, ...).
 *     The library has no threads, so LOCKS ARE RENEWED ONLY WHILE ONE OF THESE CALLS RUNS. A
 *     program that works for longer than a third of its lease must call pawl_poll(client, 0) now
 *     and then, at least four times in each lease.
 *   - Event-driven: options.base is the program's own loop. Everything happens in that loop, and
 *     blocking calls are refused with PAWL_EINVAL. pawl_start and the other functions whose names
 *     end in _start work in both styles.
 *
 * Threads: a client and its locks, calls and results belong to one thread at a time. Clients of
 * different threads are independent of each other. After fork() only the parent may use a client;
 * the child may only exec or exit.
 *
 * Callbacks run inside the loop, never inside the function that started the call. A callback may
 * call every function of this header except the blocking ones (PAWL_EINVAL); it may call pawl_free.
 *
 * Errors: functions return 0 or a negative PAWL_E... value (error.h). PAWL_EINVAL means that an
 * argument is not valid, or that a blocking call was made where none is allowed. Every function
 * that returns an error may return PAWL_ENOMEM, which leaves everything as it was. Durations are in
 * milliseconds. Bytes and strings that are passed in are borrowed for the call only.
 */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "change.h"
#include "error.h"
#include "request.h"
#include "result.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The loop of libevent. */
struct event_base;
/* A client. */
struct pawl;
/* A request under way. */
struct pawl_call;
/* A lock that is held, or was held (lock.h). */
struct pawl_lock;

/* Returns the version of the library, such as "0.2.0", in static storage. */
const char *pawl_version(void);

/* ---- the client ---- */

/* The options of a client. A zero field means the default. pawl_new copies everything except
 * base. */
struct pawl_options {
	/* At most 32 endpoints, separated by commas: "host:port", "tls://host:port" or
	 * "unix:/path", with "[::1]:7000" for IPv6. The client begins with one of them by chance,
	 * so that clients spread over the nodes, and goes to the next when one fails; see
	 * prefer_first. It looks up names when it first uses an endpoint, and again when none of
	 * its addresses answers. getaddrinfo does that in a thread of its own, so that the loop
	 * goes on. */
	const char *endpoints;
	/* The program's loop. It must outlive the client, and the client keeps it running. NULL
	 * means the blocking style. */
	struct event_base *base;

	/* The tls:// endpoints use TLS 1.3 with the files below, which are in PEM. pawl_new reads
	 * them. ca_file has the authorities that may vouch for nodes; tls:// endpoints need it. */
	const char *ca_file;
	/* The client's certificate with its chain. Give both cert_file and key_file, or neither. */
	const char *cert_file;
	const char *key_file;
	/* The host name or address that a node's certificate must carry; the default is the
	 * endpoint's host. */
	const char *server_name;

	/* The owner for acquisitions that give none. Others see it. The default is "host:pid". */
	struct pawl_bytes owner;
	/* The label for acquisitions that give none; the default is no label. Others see it, and
	 * they see the host name and the process id in any case. */
	struct pawl_bytes label;

	/* How long a request may take beyond its wait_ms, over all nodes that are tried, in ms; the
	 * default is 5000. */
	uint32_t timeout_ms;
	/* How long the client tries to connect to one endpoint before it tries the next, TLS
	 * included, in ms; the default is 1000. */
	uint32_t connect_timeout_ms;
	/* How long a node that owes an answer may be silent before the client gives it up, in ms;
	 * the default is 2000. While locks are held, the client uses at most a sixth of the
	 * shortest lease for silence_ms and connect_timeout_ms. With several endpoints the client
	 * goes on sooner: after four times as long as the slowest recent answer took, at least 6 ms
	 * and at most half of silence_ms, it pings the node, which answers pings at once even while
	 * requests wait. If the node does not answer within as long again, the client goes on with
	 * the next node. Updates and transfers under way are PAWL_EUNSURE only after silence_ms. */
	uint32_t silence_ms;

	/* The client begins with the first endpoint, and returns to it 10 s after it had to leave
	 * it; if it then has to leave it again soon, it waits twice as long before it returns, and
	 * so on. Without this option the client stays at the endpoint that it has come to. */
	bool prefer_first;

	/* The traceparent (W3C Trace Context) of the client's requests, such as
	 * "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01". Nodes write it into their logs
	 * and audit files. NULL means none. A node of a release before 0.2.0 refuses requests that
	 * have one. */
	const char *trace;
};

/* Sets the options that are not set yet from the environment, with the variables of the command
 * pawl: PAWL_ENDPOINTS, PAWL_PREFER_FIRST, PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY,
 * PAWL_SERVER_NAME and TRACEPARENT (which is ignored if it is no traceparent). Without
 * PAWL_ENDPOINTS, the endpoint is 127.0.0.1:7117, where pawld --dev listens. The texts are borrowed
 * from the environment: make the client before it changes. */
void pawl_options_from_env(struct pawl_options *options);

/* Makes a client. It does not connect; the first request does. Returns 0, PAWL_EINVAL (an endpoint
 * or option is not valid), PAWL_ETLS (a certificate or key cannot be used), PAWL_EIO (there is no
 * loop or timer) or PAWL_ENOMEM. If out_message is not NULL, it is set to a sentence that says what
 * is wrong; the sentence is valid until the next pawl_new of this thread. Free the client with
 * pawl_free. */
int pawl_new(const struct pawl_options *options, struct pawl **out_client,
	const char **out_message);

/* Closes the connection and frees the client. Calls under way end with PAWL_ECANCELED, and their
 * callbacks run before this returns; if this is called in a callback, they run after that callback
 * has returned. The client releases acquires under way as far as it can do so without waiting.
 * Locks that are left are freed and not released. NULL is allowed. */
void pawl_free(struct pawl *client);

/* Blocking style only. Runs the loop for at most timeout_ms, so that locks are renewed, answers
 * arrive and callbacks run. It returns earlier once a callback has run. With 0 it does only what is
 * due now. Returns 0, or PAWL_EINVAL if the loop is the program's, or if this is called in a
 * callback. */
int pawl_poll(struct pawl *client, uint32_t timeout_ms);

/* Returns the endpoint that the client is connected to, as the options have it, or "" if there is
 * none. The text is valid until the next call of a function with this client. */
const char *pawl_endpoint(const struct pawl *client);

/* ---- requests ---- */

/* Blocking: sends the request and waits for its outcome. Returns result->error. If the request
 * could not be sent it returns PAWL_EINVAL or PAWL_ENOMEM, and *out_result is NULL. out_result may
 * be NULL; otherwise free the result, also after an error. The library itself reports
 * PAWL_EUNREACHABLE or PAWL_ETLS (no connection to any node succeeded in time), PAWL_ETIMEOUT
 * (nodes were silent), PAWL_ETOOLARGE (the request is larger than a frame) and PAWL_EPROTOCOL (what
 * answered is not a Pawl node). */
int pawl_call(struct pawl *client, const struct pawl_request *request,
	struct pawl_result **out_result);

/* Takes over the result, which the callback must free. */
typedef void pawl_done_fn(struct pawl_result *take_result, void *arg);

/* Event-driven: starts a request and calls `done` exactly once, unless this function fails or the
 * call is canceled. Hundreds of requests may be under way; requests that are started in one turn of
 * the loop leave in one write. done may be NULL if nobody wants the outcome. out_call may be NULL;
 * the call is valid until `done` runs. Returns 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EBUSY (65536
 * requests are under way) or PAWL_ENOMEM. */
int pawl_start(struct pawl *client, const struct pawl_request *request, pawl_done_fn *done,
	void *arg, struct pawl_call **out_call);

/* Ends a call without its callback. An acquire that was sent is released in the background. */
void pawl_cancel(struct pawl_call *take_call);

/* ---- fencing ---- */

/* Checks a fencing token. Use this in the resource that a lock protects. *highest is the highest
 * token that the resource has seen for this key: 0 at first, kept for as long as what it protects,
 * and read and written in the same transaction. Returns true if no newer holder has been here; it
 * then raises *highest to the token, and the holder may read and write. Returns false if a newer
 * holder was here: refuse the request. Token 0 is always refused. fence.h keeps such numbers in a
 * file, and knows shared locks. */
bool pawl_fence_check(uint64_t *highest, uint64_t token);

#ifdef __cplusplus
}
#endif

#include "lock.h"
#endif

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
 *     and then, at least four times in each lease. pawl_wake ends such a call from a signal handler
 *     or from another thread. With pawl_fd a program may wait in a loop of any kind instead.
 *   - Event-driven: options.base is the program's own loop. Everything happens in that loop, and
 *     blocking calls are refused with PAWL_EINVAL. pawl_start and the other functions whose names
 *     end in _start work in both styles.
 *
 * Threads: a client and its locks, calls and results belong to one thread at a time, except that
 * any thread may call pawl_wake. Clients of different threads are independent of each other. After
 * fork() only the parent may use a client; the child may only exec or exit.
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
	/* At most 64 endpoints, separated by commas: "host:port", "tls://host:port" or
	 * "unix:/path", with "[::1]:7000" for IPv6; "srv:name" or "tls://srv:name" for the SRV
	 * records of the name; "file:path" for a file of endpoints, one a line or separated by
	 * commas, with comments after #. Each address of a name is an endpoint of its own, which
	 * can be written as "name:port@address". At most 32 addresses of one name are used, and 64
	 * endpoints in all. The client begins with one endpoint by chance, so that clients spread
	 * over the nodes, and goes to the next when one fails; see prefer_first.
	 *
	 * A name is looked up when it is first used, and again, in the background, at each new
	 * connection (but not twice within a second); addresses that are known stay in use if that
	 * fails. The system's functions do that in a thread of its own for each name, so that the
	 * loop goes on. The client waits for them for connect_timeout_ms at most. A file is read by
	 * pawl_new, and again at each new connection if it has changed; one that cannot be used
	 * then changes nothing, and errors say why. */
	const char *endpoints;
	/* The program's loop. It must outlive the client, and the client keeps it running. NULL
	 * means the blocking style. */
	struct event_base *base;

	/* The tls:// endpoints use TLS 1.3 with the files below, which are in PEM. pawl_new reads
	 * them, and each new connection reads them again if they have changed. ca_file has the
	 * authorities that may vouch for nodes; tls:// endpoints need it. */
	const char *ca_file;
	/* The client's certificate with its chain. Give both cert_file and key_file, or neither. */
	const char *cert_file;
	const char *key_file;
	/* The host name or address that a node's certificate must carry; the default is the
	 * endpoint's host. For SRV records this is their target. */
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
	 * so on. Without this option the client stays at the endpoint that it has come to. The
	 * addresses of a name are taken in the order of the system's resolver, and SRV records by
	 * their priorities; without this option chance decides within a family of addresses, and,
	 * by the weights, within a priority. */
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

/* Makes a client. It does not connect; the first request does. Returns 0, PAWL_EINVAL (an endpoint,
 * a file of endpoints or an option is not valid), PAWL_ETLS (a certificate or key cannot be used),
 * PAWL_EIO (there is no loop or timer) or PAWL_ENOMEM. If out_message is not NULL, it is set to a
 * sentence that says what is wrong; the sentence is valid until the next pawl_new of this thread.
 * Free the client with pawl_free. */
int pawl_new(const struct pawl_options *options, struct pawl **out_client,
	const char **out_message);

/* Closes the connection and frees the client. Calls under way end with PAWL_ECANCELED, and their
 * callbacks run before this returns; if this is called in a callback, they run after that callback
 * has returned. The client releases acquires under way as far as it can do so without waiting.
 * Locks that are left are freed and not released. NULL is allowed. */
void pawl_free(struct pawl *client);

/* Blocking style only. Runs the loop for at most timeout_ms, so that locks are renewed, answers
 * arrive and callbacks run. It returns earlier once a callback has run. With 0 it does only what is
 * due now. Returns 0, PAWL_EINTERRUPTED (pawl_wake), or PAWL_EINVAL if the loop is the program's,
 * or if this is called in a callback. */
int pawl_poll(struct pawl *client, uint32_t timeout_ms);

/* Blocking style only. Interrupts the blocking call of this client that runs, or else the next one:
 * it returns PAWL_EINTERRUPTED, also if a callback of the program has called this. Several wakes
 * before that count as one. A call that already has its outcome returns that, as pawl_poll has once
 * a callback has run, and the wake is for the next call. So a handler that sets a flag and then
 * wakes is never too early: the program looks at the flag after each call that was interrupted, and
 * misses no signal. (pawl_poll(client, 0) takes up a wake that nobody needs any more.)
 *
 * This may be called from any thread and in a signal handler, because it only writes to a
 * descriptor (it is async-signal-safe and keeps errno). The client must exist: let no handler and
 * no thread call this any more before pawl_free.
 *
 * An interrupted call leaves nothing behind that is held and renewed:
 *   - An acquire that was sent is released in the background, as after PAWL_ETIMEOUT.
 *   - A release goes on in the background, and pawl_free sends it as far as it can do so without
 *     waiting. A transfer that was sent becomes a release without a successor.
 *   - Whether an update, or another request that changes something, takes effect is not known.
 *   - pawl_poll has done all that was due. Locks that are held stay held.
 * The background means the next blocking calls, and pawl_poll. */
void pawl_wake(struct pawl *client);

/* Blocking style only, for a program that waits in a loop of another kind (poll, epoll, GLib, ...).
 * Returns a descriptor that is readable when the client has something to do; or PAWL_EINVAL (the
 * loop is the program's) or PAWL_EIO. It is the same one each time, and pawl_free closes it. In
 * each round of its loop the program
 *   1. asks pawl_timeout_ms, right before it waits;
 *   2. waits until the descriptor is readable (POLLIN), for at most that time;
 *   3. calls pawl_poll(client, 0), in which callbacks run and locks are renewed.
 * The functions whose names end in _start do not block. */
int pawl_fd(struct pawl *client);
/* Returns how long the program may wait for the descriptor of pawl_fd, in ms: 0 if there is
 * something to do now, and -1 if the descriptor will tell. It also makes the descriptor ready to
 * tell, so call it after everything else that the program does with the client. */
int pawl_timeout_ms(struct pawl *client);

/* Returns the endpoint that the client is connected to, in a form that options take, or "" if there
 * is none. It is the text of the options, or the endpoint that a name or a file stands for: one of
 * several addresses of the same family is "name:port@address". The text is valid until the next
 * call of a function with this client. */
const char *pawl_endpoint(const struct pawl *client);

/* Blocking: looks up the names among the endpoints, for connect_timeout_ms at most, and sets
 * *out_endpoints to all endpoints, separated by commas. Each of them leads to one address (a name
 * with one address of each family stays as it is), but for names that could not be looked up in
 * time. The text is valid until the next call of this function with this client. Returns 0,
 * PAWL_EINVAL (a blocking call is not allowed here), PAWL_ENOMEM, PAWL_EIO, PAWL_EINTERRUPTED or
 * PAWL_ECANCELED (a callback has freed the client). */
int pawl_look_up(struct pawl *client, const char **out_endpoints);

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

/* Blocking and event-driven: like pawl_call and pawl_start, with more than a struct pawl_request
 * can say; `with` may be NULL. PAWL_EINVAL: the method does not take what is given; or an order is
 * given for a lock that this client holds as a struct pawl_lock, for which pawl_lock_shorten
 * counts. */
int pawl_call_with(struct pawl *client, const struct pawl_request *request,
	const struct pawl_with *with, struct pawl_result **out_result);
int pawl_start_with(struct pawl *client, const struct pawl_request *request,
	const struct pawl_with *with, pawl_done_fn *done, void *arg, struct pawl_call **out_call);

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

/* client_core.h: the inside of struct pawl: one session with one of the endpoints, the calls that
 * wait to be sent or are under way on it, the locks, and the timers. Calls that are started go to
 * `queue`; the turn at the end of each round of the loop (client_core_kick) sends them. While the
 * node of the present session is silent there may be a second session, the spare one, and after a
 * switch a third one, the old one (switch.c).
 *
 *   idle --work--> dialing --up--> ready --connection lost--> idle (next endpoint) or,
 *   after a round of failures, pausing --> idle
 */
#ifndef PAWL_CLIENT_CLIENT_CORE_H
#define PAWL_CLIENT_CLIENT_CORE_H

#include "agenda.h"
#include "client.h"
#include "endpoint_list.h"
#include "env.h"
#include "session.h"
#include "patience.h"
#include "tls_files.h"
#include "map.h"
#include "pawl/lock.h"
#include "pawl/pawl.h"
#include "prng.h"
#include "trace.h"

#define CALLS_MAX 65536
#define SESSIONS 3
/* The largest number of connections that are retained for locks that depend on them. */
#define RETAINED_MAX 64
/* Once this many connections are retained, none is given up any more only because its node does not
 * reach a quorum: the other nodes do not reach one either. */
#define RETAINED_BEFORE_STAYING 8
#define LEASE_MS_DEFAULT 30000

struct request_copy;
struct pawl_call;

/* What link and request tell the layers above them. events.c says who hears of what. */
struct client_core_handlers {
	/* It is the end of a round of the loop: send the calls that wait. */
	void (*turn)(struct pawl *client);

	/* The client is being freed: end all calls. */
	void (*cancel)(struct pawl *client);

	/* The client was freed, and nothing runs inside it any more. */
	void (*destroy)(struct pawl *client);

	void (*connection_up)(struct pawl *client);

	/* The session was up, and is about to be closed. */
	void (*connection_lost)(struct session *session);

	/* The present session or the old one was closed, whether it had been up or not. */
	void (*connection_closed)(struct session *session);

	/* The client has left the session, which is the old one now, for another one. `repeat`:
	 * what is under way is to be sent again, as far as that is allowed. Returns how many
	 * requests are. */
	size_t (*session_left)(struct session *session, bool repeat);

	/* Returns whether the client may leave a node that answers for the first endpoint. */
	bool (*may_return)(const struct pawl *client);

	/* Returns whether the old session must not be closed yet. */
	bool (*session_needed)(const struct session *session);

	/* Returns whether the connection must not be given up for another node. */
	bool (*connection_needed)(const struct pawl *client);

	/* No node can ever be reached. */
	void (*unreachable)(struct pawl *client, int error);
	void (*on_answer)(struct session *session, uint32_t msgid, struct slice message);

	/* Returns false if the message cannot be read. */
	bool (*on_event)(struct pawl *client, struct slice message);

	/* Returns the shortest lease of the locks that are kept now; 0 if there are none. */
	span_ns (*lease_shortest)(struct pawl *client);

	/* The call has been made; it will be sent. */
	void (*call_asked)(struct pawl_call *call);

	/* The update was done. */
	void (*call_updated)(struct pawl *client, const struct request_copy *request);

	/* Nobody waits for the call any more: end it with PAWL_EINTERRUPTED. */
	void (*call_interrupted)(struct pawl_call *call);

	/* Returns whether this client trusts a lock with this lock_id, or may trust one again. */
	bool (*lock_trusted)(const struct pawl *client, struct pawl_id lock_id);

	/* Makes a guest of the client: a client of another cluster (request/moved.c), with these
	 * endpoints in their order. Returns NULL if it cannot be made. */
	struct pawl *(*guest_new)(struct pawl *client, const char *endpoints);
	/* Frees a guest; NULL is allowed. */
	void (*guest_free)(struct pawl *take_guest);
};

/* What acquires say about the caller where the request itself says nothing. */
struct request_self {
	struct pawl_bytes owner, label;
	const char *host;
	/* Of every request; NULL: none. */
	const char *trace;
	uint32_t pid;
	/* Names the client when nodes look for deadlocks. */
	struct pawl_id party;
};

enum client_core_state {
	CLIENT_CORE_IDLE,
	CLIENT_CORE_DIALING,
	CLIENT_CORE_READY,
	CLIENT_CORE_PAUSING
};

/* A blocking call that runs. */
struct blocking {
	/* Becomes true when the call has what it waits for. */
	const bool *over;
	/* The request that it waits for; NULL: it waits for none, or for several. */
	struct pawl_call *call;
	/* wake.c: the call has to return. */
	bool interrupted;
};

/* A connection that was given up but must not be closed yet, because its node would then release
 * the locks that are bound to it. Nothing is read from it. */
struct retained_connection {
	int fd;
	/* As in pawl.connection_number. */
	unsigned number;
};

struct pawl {
	struct env env;
	const struct client_core_handlers *handlers;
	struct event_base *base;
	/* The client has made `base` and frees it; otherwise it is the program's. */
	bool own_base;

	/* This client is a guest, and asks something for that client. It asks each endpoint once.
	 * NULL: it is no guest. */
	struct pawl *guest_of;

	/* pawl_free was called. The client is destroyed as soon as nothing runs inside it any
	 * more. */
	bool dying;

	/* The number of callbacks of the loop that are running, one inside the other. */
	unsigned inside;

	/* The blocking call that runs; NULL if there is none. */
	struct blocking *blocking;

	/* wake.c: the eventfd to which pawl_wake writes; -1 if no call of this client blocks.
	 * `wake_watched`: the loop watches it. */
	int wake_fd;
	bool wake_watched;
	struct event wake;

	/* polled.c: the descriptor that pawl_fd has given to the program, and the one inside it;
	 * -1: there is none. */
	int polled_fd, polled_inner;

	/* How many of the program's callbacks have run. */
	uint64_t callbacks;

	struct agenda agenda;

	/* Runs the next turn; `kicked` says that a turn is wanted. */
	struct event kick;
	bool kicked;
	struct prng prng;

	/* ---- failover.c: the connection and the endpoint that it leads to ---- */

	enum client_core_state state;

	/* The present session, the spare one and the old one are three of these. The last two are
	 * closed most of the time. */
	struct session sessions[SESSIONS];
	struct session *session, *spare, *old;

	/* How many connections have come into use so far; also the number of the last of them. */
	unsigned connection_number;
	struct endpoint_list endpoints;

	/* The index of the present endpoint. */
	size_t endpoint_at;

	/* Becomes true when no look-up is under way any more; NULL: nobody waits for that. */
	bool *located;
	/* The text that pawl_look_up has returned. */
	struct pawl_bytes located_text;

	/* How many endpoints have failed one after the other without any answer in between, and how
	 * many of these with an error that waiting does not cure. */
	size_t failed_in_round, failed_for_good;

	/* Some node has answered this client. */
	bool served;

	/* How many rounds over all endpoints have failed one after the other. */
	unsigned rounds_failed;

	struct tls_files tls;
	/* The name that the node's certificate must carry; empty means the host of the endpoint. */
	char server_name[256];

	/* Goes off when the pause is over. */
	struct alarm pause_alarm;

	/* Why the last connection was lost, or could not be made. */
	int last_error;
	char last_problem[ENDPOINT_TEXT_MAX + CONNECTION_PROBLEM_MAX + 2];
	struct client_decoder decoder;

	/* ---- switch.c ---- */

	struct patience patience;

	/* The spare session has answered a ping. */
	bool spare_ready;

	/* How many endpoints the client may still dial for a spare session while this silence
	 * lasts. */
	size_t spare_tries;

	/* Until when an answer on the old session says that the client has left it too early, in ns
	 * of CLOCK_BOOTTIME; 0: it says nothing. */
	int64_t left_early_until;

	/* The client begins with the first endpoint, and returns to it. `returning`: the spare
	 * session is for that. */
	bool prefer_first, returning;
	struct alarm return_alarm;

	/* How long the client stays at another endpoint, and when it has returned last. */
	span_ns return_pause;
	int64_t returned_at;

	/* ---- call.c ---- */

	/* The calls that are to be sent. */
	struct list queue;

	/* The calls that were sent, in this order. */
	struct list flight;

	/* rest.c: the calls that are to be sent again later. */
	struct list resting;

	/* entering.c: the acquires among the calls whose lock_ids others may know. */
	struct list named;
	/* The calls in `flight`, by their msgid. */
	struct map by_msgid;
	/* How many calls there are in all, wherever they wait. */
	size_t call_count;
	/* The msgid that was used last. */
	uint32_t msgid;

	/* ---- lock.c, renew.c ---- */

	/* The locks that are held. */
	struct list locks;

	/* The locks that are to be extended in this turn. */
	struct list due;

	/* session_binding.c: the connections that were given up and are still open. */
	struct retained_connection retained[RETAINED_MAX];
	size_t retained_count;
	/* Goes off at the deadline of a lock that is bound to the first of them. */
	struct alarm retained_alarm;

	/* Some lock has been bound to a connection. Until then there is no need to look for such
	 * locks. */
	bool bound_ever;

	/* The lease of some lock was shortened. The same holds. */
	bool shortened_ever;

	/* Called for each new connection; NULL if the program has not asked for it. */
	pawl_connected_fn *on_connected;
	void *connected_arg;

	/* The shortest lease of the locks that are kept; 0 if there are none. Do not read this:
	 * call locks_shortest. */
	span_ns lease_shortest;

	/* A lock that had the shortest lease is gone, so lease_shortest must be recomputed. */
	bool lease_stale;

	/* The longest lease that the cluster allows, as it has said to this client; SPAN_MAX: it
	 * has not. */
	span_ns lease_most;

	/* ---- watch.c, election.c ---- */

	struct list watches;

	/* The watches to which a node has given a number. */
	struct map by_watch;

	/* The one of the crowded watches that asks for all of them whether there is room again;
	 * NULL if there is none. */
	struct pawl_watch *watch_probe;

	/* Some watches may have to be sent to the node. */
	bool watch_wanted;
	struct list elections;

	/* What acquires say about the caller. The client owns its bytes. */
	struct request_self self;
	char host[65];
	char trace[TRACE_BYTES + 1];

	/* The times of struct pawl_options. */
	span_ns timeout, connect_timeout, silence;
};

static inline struct instant client_core_now(const struct pawl *client) {
	return env_now(&client->env);
}

/* Sets up the agenda and the turns on client->base. Returns 0, or an error of agenda_init. */
int client_core_start_timers(struct pawl *client);

/* Call these before and after everything that the loop calls, because callbacks of the program may
 * free the client meanwhile. client_core_leave may destroy the client. */
void client_core_enter(struct pawl *client);
void client_core_leave(struct pawl *client);

/* Asks for a turn at the end of this round of the loop. */
void client_core_kick(struct pawl *client);
/* Rings the alarms that are due. This is for clocks that tests move. */
void client_core_tick(struct pawl *client);
/* Returns whether a blocking call is allowed now. */
bool client_core_may_block(const struct pawl *client);
/* Runs the loop until *over is true. `call` is the request whose end sets it, or NULL. Returns 0,
 * PAWL_EIO (the loop failed), PAWL_EINTERRUPTED (pawl_wake, while `call` is NULL; otherwise the
 * call ends with this error) or PAWL_ECANCELED (a callback freed the client, which is gone now).
 * After PAWL_ECANCELED *over is true if the end of a call sets it, because every call has ended. */
int client_core_wait(struct pawl *client, const bool *over, struct pawl_call *call);

/* polled.c: frees what pawl_fd has made. */
void polled_done(struct pawl *client);

/* wake.c: makes what pawl_wake needs. Returns 0, PAWL_EIO or PAWL_ENOMEM. */
int wake_init(struct pawl *client);
void wake_done(struct pawl *client);

/* ---- failover.c ---- */

void failover_init(struct pawl *client);
void failover_done(struct pawl *client);
/* Connects to the present endpoint. The state must be idle; only the loop may call this. */
void failover_connect(struct pawl *client);
/* Resets the alarm for silence, because the limit may be shorter now. */
void failover_reset_silence_alarm(struct pawl *client);
/* This node is of no use: goes on to the next one, if there is one. */
void failover_move_on(struct pawl *client, int error);
/* Returns `limit`, or what the shortest lease allows if that is less. */
span_ns failover_lease_share(struct pawl *client, span_ns limit);
/* Writes what is to be written on all sessions. Returns 0, or an error of the present session. */
int failover_flush(struct pawl *client);
/* Returns the endpoint of the session, as the options would have it. */
const char *session_endpoint_text(const struct session *session);

/* ---- locate.c: where the endpoints are ---- */

/* Reads the files of endpoints again if they have changed. Call it before an endpoint is chosen. */
void locate_read_again(struct pawl *client);
/* Begins to look up the name that has led to the endpoint, unless that is under way or was done a
 * moment ago. Returns NULL, or why an endpoint that is not located cannot be. */
const char *locate_look_up(struct pawl *client, const struct endpoint *endpoint);

/* ---- switch.c ---- */

void switch_init(struct pawl *client);
/* The present session is silent: dials the next endpoint, in case the node is gone. */
void failover_probe(struct pawl *client);
/* The node has not answered a ping in time: leaves it as soon as a spare session is ready. */
void failover_overdue(struct pawl *client);
/* Closes the spare session, if the present one is not silent any more. */
void switch_spare_unneeded(struct pawl *client);
/* The spare session has answered a ping; or it has failed, and is closed. */
void switch_spare_ready(struct pawl *client);
void switch_spare_failed(struct pawl *client);
/* Something has come over the old session. */
void switch_old_heard(struct pawl *client);
/* Closes the old session if nothing depends on it any more. Call this once in each turn. */
void switch_settle(struct pawl *client);
/* A present session has come up. */
void switch_arrived(struct pawl *client);

#endif

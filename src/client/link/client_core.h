/* client_core.h: the inside of struct pawl: one connection to one of the endpoints, the calls that wait for it and those it carries, the
 * locks, and the clockwork. What is started goes to `queue`; the turn at the end of each round of the loop (client_core_kick) sends.
 *
 *   idle --work--> dialing --up--> ready --connection lost--> idle (next endpoint) or, after a round of failures, pausing --> idle
 */
#ifndef PAWL_CLIENT_CLIENT_CORE_H
#define PAWL_CLIENT_CLIENT_CORE_H

#include "agenda.h"
#include "client.h"
#include "endpoint.h"
#include "env.h"
#include "connection.h"
#include "map.h"
#include "pawl/lock.h"
#include "pawl/pawl.h"
#include "prng.h"

#define CALLS_MAX 65536
#define RETAINED_MAX 64 /* connections that are retained for locks that depend on them */
#define RETAINED_FOR_ANOTHER 8 /* ... and with so many none is given up because its node has no quorum: others have none either */
#define LEASE_MS_DEFAULT 30000

struct request_copy;
struct pawl_call;

/* What link and request tell those above them; events.c says who hears of what. */
struct client_core_handlers {
	void (*turn)(struct pawl *client);    /* the end of a round of the loop: what waits is sent */
	void (*cancel)(struct pawl *client);  /* the client is being freed: all calls end */
	void (*destroy)(struct pawl *client); /* it was freed, and nobody is inside any more */
	/* of the connection */
	void (*connection_up)(struct pawl *client);
	void (*connection_lost)(struct pawl *client);   /* it was up, and is about to be closed */
	void (*connection_closed)(struct pawl *client); /* whether it was up or not */
	bool (*connection_needed)(const struct pawl *client); /* it is not to be given up for another node */
	void (*unreachable)(struct pawl *client, int error); /* no node can ever be talked to */
	void (*on_answer)(struct pawl *client, uint32_t msgid, struct slice message);
	bool (*on_event)(struct pawl *client, struct slice message); /* false: it cannot be read */
	span_ns (*lease_shortest)(struct pawl *client); /* of the locks that are kept now; 0: there are none */
	/* of calls */
	void (*call_asked)(struct pawl_call *call); /* it is asked from now on */
	void (*call_updated)(struct pawl *client, const struct request_copy *request); /* that update was done */
	/* a lock of this client is trusted under it, or may be again */
	bool (*lock_believed)(const struct pawl *client, struct pawl_id lock_id);
};

/* What acquires say about the caller, where the request itself says nothing. */
struct request_self {
	struct pawl_bytes owner, label;
	const char *host;
	uint32_t pid;
};

enum client_core_state { CLIENT_CORE_IDLE, CLIENT_CORE_DIALING, CLIENT_CORE_READY, CLIENT_CORE_PAUSING };

/* A connection that was given up, and must not be closed yet: a node would release what is bound to it. Nothing is read. */
struct retained_connection {
	int fd;
	unsigned number;
};

struct pawl {
	struct env env;
	const struct client_core_handlers *handlers;
	struct event_base *base;
	bool own_base;
	bool dying;         /* pawl_free was called: destroyed when nobody is inside any more */
	unsigned inside;    /* in a callback of the loop */
	unsigned blocking;  /* in a blocking call */
	uint64_t callbacks; /* how many of the program's callbacks have run */

	struct agenda agenda;
	struct event kick; /* a turn is wanted */
	bool kicked;
	struct prng prng;

	/* failover.c: the connection and where it leads */
	enum client_core_state state;
	struct connection connection;
	unsigned connection_number; /* of the connections that came up so far, this one is the last */
	struct endpoint_list endpoints;
	size_t endpoint_at;
	size_t failed_in_round, failed_for_good; /* endpoints in turn without an answer between them */
	unsigned rounds_failed;
	SSL_CTX *tls; /* NULL: none configured */
	char server_name[256];
	struct alarm dial_alarm; /* connecting takes too long, or the pause is over */
	struct alarm silence_alarm;
	bool pinged, only_watching; /* the silence is that of a connection on which nothing but events is awaited */
	struct instant heard, ping_at;
	int last_error; /* why the connection was lost last, or could not be had */
	char last_problem[512];
	struct client_scanner scanner;
	struct client_decoder decoder;

	/* call.c */
	struct list queue;  /* to be sent */
	struct list flight; /* sent on this connection, in order */
	struct list resting; /* rest.c: to be sent again later */
	struct list named;  /* acquires among them: entering.c */
	struct map by_msgid;
	size_t call_count;
	uint32_t msgid;

	/* lock.c, renew.c */
	struct list locks;
	struct list due; /* to be extended in this turn */
	struct retained_connection retained[RETAINED_MAX]; /* session_binding.c */
	size_t retained_count;
	struct alarm retained_alarm;
	bool bound_ever; /* some lock was: else there is nothing to look for */
	pawl_connected_fn *on_connected; /* NULL: nobody needs to know */
	void *connected_arg;
	span_ns lease_shortest; /* of the locks that are kept; 0: none. Ask locks_shortest */
	bool lease_stale;       /* one that had it is gone */

	struct list watches;   /* watch.c */
	struct map by_watch;   /* those that a node has given a number */
	bool watch_wanted;     /* some have perhaps to be asked for */
	struct list elections; /* election.c */

	struct request_self self; /* what acquires say about the caller; its bytes are this client's */
	char host[65];
	span_ns timeout, connect_timeout, silence;
};

static inline struct instant client_core_now(const struct pawl *client) {
	return env_now(&client->env);
}

/* The clockwork on client->base: 0 or an error of agenda_init. */
int client_core_start_clockwork(struct pawl *client);

/* Around everything that the loop calls: the program's callbacks may free the client meanwhile. client_core_leave may destroy it. */
void client_core_enter(struct pawl *client);
void client_core_leave(struct pawl *client);

/* A turn is wanted at the end of this round of the loop. */
void client_core_kick(struct pawl *client);
/* Alarms that are due (for clocks that tests move). */
void client_core_tick(struct pawl *client);
/* A blocking call is allowed now. */
bool client_core_may_block(const struct pawl *client);
/* Runs the loop until *over. 0, PAWL_EIO: the loop failed, or PAWL_ECANCELED: a callback freed the client, and it is gone now
 * (*over is true then, if that was the end of a call: every call has ended). */
int client_core_wait(struct pawl *client, const bool *over);

/* failover.c */
void failover_init(struct pawl *client);
void failover_connect(struct pawl *client);  /* from idle, from the loop only */
void failover_stop(struct pawl *client);     /* closes; flight is the caller's to clear */
void failover_watch_silence(struct pawl *client);    /* something was sent: silence is counted from now on */
void failover_silence_anew(struct pawl *client); /* the limit may be shorter now */
void failover_move_on(struct pawl *client, int error); /* this node is of no use: try the next, if there is another */

#endif

/* client_status_fields.h: the fields of the answer to `status`. The server fills them in and
 * encodes them; the client finds them in struct client_response. All slices are borrowed. */
#ifndef PAWL_WIRE_CLIENT_STATUS_FIELDS_H
#define PAWL_WIRE_CLIENT_STATUS_FIELDS_H

#include "buffer.h"
#include "core.h"

struct client_context;

/* What the node says about one node that it knows, which may be itself. */
struct client_status_peer {
	/* The role is "master", "replica", or "outside" for a node that is not in the
	 * configuration: not yet, or not any more. */
	struct slice node, address, role;
	/* The peer is the node that answers; it is linked with it; and it votes. */
	bool self, linked, voting;
	/* The peer has the name of a member, but another identity. */
	bool stranger;
	/* The peer has not adopted the epoch of the node that answers, or has adopted a later
	 * one. */
	bool other_epoch;
	/* The epoch that the linked peer is in; 0 for unknown, or for none. */
	uint64_t epoch;
	/* The round trip of a ping in nanoseconds; 0 if none was measured. */
	span_ns round_trip;

	/* The peer follows the node that answers. */
	bool follows;
	/* If `follows` is set: the place in the node's log that the peer has reached, and how many
	 * entries it is behind. */
	uint64_t position, lag;

	/* The serial number of the peer's certificate in hex digits. It is empty if the peer is not
	 * linked, or if there is no TLS; then the other fields of the certificate are not set. */
	struct slice serial;
	/* The end of the certificate, in seconds since 1970. */
	uint64_t certificate_ends;
	/* The digest of the peer's access rules, as client_status.rights; empty for unknown. */
	struct slice rights;
	/* What the certificate lets the peer be: "master", "replica" or "embedded". */
	struct slice certificate_role;
	/* Which release of Pawl the peer is; empty for unknown. */
	struct slice version;
	/* Why the node that answers has no link with the peer; empty if it has one, or if that is
	 * not known. */
	struct slice trouble;
};

/* How a replica follows its master. */
struct client_status_following {
	/* The master that the replica follows; empty if there is none now. */
	struct slice node;
	/* That master's snapshot is arriving; and how many of its records have come. */
	bool catching_up;
	uint64_t snapshot_done;
	/* The replica's place in that master's log. */
	uint64_t position;
	/* How old the replica's view is, in nanoseconds; SPAN_MAX if it is not known yet. */
	span_ns age;
};

/* A change of the set of nodes that the node coordinates. */
struct client_status_change {
	/* What the change does now; empty if there is no change. */
	struct slice step;
	/* How many records have been copied ahead, and how many there are; a total of 0 is
	 * unknown. */
	uint64_t done, total;
	/* The epoch that the change is to have. */
	uint64_t epoch;
};

/* A limit of [limits] that is nearly, or quite, reached. */
struct client_status_limit {
	struct slice name;
	uint64_t used, limit;
	bool reached;
	/* How much of it belongs at least to one party, and which one this is, for people; 0 and
	 * empty if the node does not know, or does not say. */
	uint64_t most;
	struct slice whose;
};
/* The most limits in a status. */
#define CLIENT_STATUS_LIMITS_MAX 16

struct client_status {
	/* The node that answers. */
	struct slice node, role, version;
	/* The digest of the file with the access rules in hex digits, or "none" if there is no such
	 * file. */
	struct slice rights;
	/* The name of the cluster. */
	struct slice cluster;
	/* "unconfigured", "following", "handover", "recovering", "voting" or "drained". */
	struct slice state;
	/* What the node waits for before it takes part; empty for nothing. */
	struct slice waits_for;
	/* The node serves clients; or else why not, as a phrase. */
	bool ready;
	struct slice not_ready;
	/* Why the audit file cannot be written now, as a phrase; empty if it can, or if there is
	 * none. */
	struct slice audit_trouble;
	/* The time in nanoseconds after which the node votes at the latest, because it has waited
	 * long enough; 0 for unknown. */
	span_ns left;

	/* The present configuration. */
	uint64_t epoch, config_hash;
	/* A majority of the masters has voted in this epoch; and all of them have. */
	bool settled, complete;
	/* The masters that do not vote in this epoch, as far as this node sees. */
	struct slice missing[MASTERS_MAX];
	uint32_t missing_count;

	/* The node is a replica, and `following` is set. */
	bool replica;
	struct client_status_following following;
	/* The node's own log: the next number, the oldest number that is still there, and its size
	 * in bytes. */
	uint64_t log_next, log_oldest, log_bytes;
	struct client_status_change change;

	/* The quorum; and the masters that vote and are linked with the node, itself included. */
	uint32_t quorum, voting_linked;
	/* The boot of the node, its clock, and its clock reservation. */
	uint64_t boot, clock, ceiling;
	/* How many the node has of each, and how many bytes of memory its core uses. `clients`
	 * counts the connections. */
	uint64_t keys, held, promises, waiters, rounds, memory_bytes, clients;
	/* The connections that have not said who they are; and the totals since the start of those
	 * that were closed for a newer one, and for any other reason. */
	uint64_t handshakes, handshakes_evicted, handshakes_refused;
	/* How many requests and connections were refused since the start, because the caller had as
	 * much of the node as it may. */
	uint64_t quota_refused;
	/* How many watches all clients have, and how many events they were told since the start. */
	uint64_t watches, events;
	/* The time since the node's start, in nanoseconds. */
	span_ns uptime;
	uint32_t limit_count;
	struct client_status_limit limits[CLIENT_STATUS_LIMITS_MAX];

	/* The timing constants of the configuration: nanoseconds, and millionths. */
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;

	/* The nodes that the node knows, itself included: first the masters, then the replicas,
	 * then the nodes that are "outside". */
	uint32_t peer_count;
	struct client_status_peer peers[NODES_MAX];
};

/* Fills in everything that the core knows. The caller adds version, rights, clients, handshakes
 * (all three), quota_refused, watches, events, uptime, limits, ready, not_ready, audit_trouble,
 * and of each peer the certificate, the rights, the version and the trouble. The result borrows
 * from the core, the configuration and the context. */
void client_status_of_core(struct client_status *out, const struct core_status *core,
	const struct config *config, const struct client_context *context);

/* Appends the response. Returns 0, PAWL_ENOMEM or PAWL_ETOOLARGE; after an error the buffer is
 * unchanged. */
int client_status_encode(uint32_t msgid, const struct client_status *status, struct buffer *out);

#endif

/* machine.h: the abstract machine of docs/protocol.md, sections 1, 2, 4 and 6: which steps of a
 * node are allowed. It is written from the page. It knows the messages (cluster/message.h), and
 * nothing of how a node does what it does. A judgement takes what was before, the event, and what
 * is after, and returns NULL if the page allows it, or else the rule that it breaks, in static
 * storage. Nothing here changes anything. */
#ifndef PAWL_REFINE_MACHINE_H
#define PAWL_REFINE_MACHINE_H

#include "config.h"
#include "message.h"

/* ---- what a node keeps (section 1) ---- */

/* A held record that is not past its end. */
struct m_record {
	struct id128 lock_id;
	uint64_t token, noted;
	/* The ballot of its value, and the highest one noted. */
	struct ballot wrote, prepared;
	/* When it ends, lock delay included. */
	struct instant end;
	/* The name that it rests on (section 11); 0: none, or several. */
	uint64_t name;
	/* They stand for the value and for the identity. */
	uint64_t value, identity;
	struct terms terms;
	bool barred;
	/* It keeps a key closed after a release (section 10). */
	bool closing;
	/* In a merge: what the sources say is not finished for it. */
	bool unfinished;
	/* A source had it bound to no node, so it ends with none. */
	bool freed;
};

/* A promise that is not past its end. */
struct m_promise {
	struct id128 lock_id;
	uint64_t attempt, noted;
	/* Its coordinator. */
	uint64_t from;
	/* The highest ballot of a first value that was named with it. */
	struct ballot first;
	struct instant end;
	struct terms terms;
};

enum { M_RECORDS = 12, M_PROMISES = 12 };
struct m_key {
	struct m_record records[M_RECORDS];
	struct m_promise promises[M_PROMISES];
	uint32_t record_count, promise_count;
	/* When it was so, and the node's clock then. */
	struct instant seen;
	uint64_t clock;
	/* There is more than fits, so nothing is judged. */
	bool more;
	/* Some record is unfinished. */
	bool unfinished;
};

/* What a master remembers of a lock_id that has ended. */
struct m_ended {
	bool released, barred;
	/* The session binding that it ended with; and the name that was rolled back. */
	uint32_t binding;
	uint64_t name;
};

/* What a node is at one moment. */
struct m_node {
	struct instant now;
	uint64_t clock;
	bool votes;
	uint64_t epoch, hash;
	/* The masters n and the quorum q of its configuration; and this node's identity. */
	uint32_t masters, quorum;
	uint64_t self;
	/* This node is one of the masters. */
	bool is_master;
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	/* When it began to vote. */
	struct instant vote_began;
};

/* ---- a message that a master handles (section 2) ---- */

struct m_step {
	/* The node before and after; and the key, and what is remembered of the lock_id. */
	const struct m_node *node;
	uint64_t clock_after;
	/* The clock when the last promise to another request was made, or its turn given, in this
	 * step; as before, if there was none. */
	uint64_t clock_between;
	/* In this step a promise was made to another request, which may be for the same lock_id. */
	bool promised_between;
	const struct m_key *before, *after;
	struct m_ended ended, ended_after;
	/* The highest ballot that was noted here for the lock_id and lost, other than by a release,
	 * since the master votes. */
	struct ballot lost;
	/* What the record rested on before an extension with the name of the message (section 11):
	 * its own name, if there was no record; 0: it is not known, because it was accepted before
	 * the master began to vote. */
	uint64_t base;
	/* A node has bound the record to itself (section 2, Release on disconnect). */
	bool bound;
	/* Since when the master has lacked the lock_id, if it lacks it, as far as is known. */
	struct instant lacked_since;
	const struct message *m;
	uint64_t from;
	/* The coordinator is a master of the configuration. */
	bool from_master;
	/* The message came in a frame of this epoch and hash, from a member or a former master. */
	bool in_epoch;
	/* What the master has answered; NULL: nothing. */
	const struct message *answer;
};

/* Judges what a master has done with a message about one key. */
const char *machine_handled(const struct m_step *s);

/* Judges a change of a key of a node that votes for which no message is to blame: something has
 * ended, or somebody has the turn. */
const char *machine_idle(const struct m_node *node, const struct m_key *before,
	const struct m_key *after);

/* ---- what leaves a node, and when it votes (sections 1, 4 and 6) ---- */

/* What is synced to the disk of a node. */
struct m_disk {
	uint64_t ceiling, boot, epoch;
	bool voted, pledged;
	/* Of the decree: the highest ballot promised, and what was accepted under which ballot. */
	struct ballot promised, accepted;
	uint64_t accepted_hash;
};
/* Judges a frame that leaves. `vote_clock`: the clock of the node as a master that votes; if it has
 * stopped voting, the one that it had then. */
const char *machine_sent(const struct m_disk *disk, uint64_t vote_clock, const struct frame *f);

/* Why a master begins to vote. */
struct m_return {
	bool voted_on_disk;
	uint64_t clock, reservation;
	/* The least clock after a forced start; 0: there was none. */
	uint64_t forced_clock;
	/* A complete side file was restored: the stop was only a pause. */
	bool restored;
	/* It had voted in this epoch before; and it takes over for its first vote in it. */
	bool had_voted, handover;
	/* The largest max_lease that it ever voted under, and the time since its start. */
	span_ns longest, since_start;
	uint32_t drift_ppm;
	/* n and q of this epoch and of the one before. */
	uint32_t masters, quorum, previous_masters, previous_quorum;
	/* The sources whose snapshots it has had: for rejoining, and for a handover. */
	uint32_t rejoined, handed_over;
};
const char *machine_may_vote(const struct m_return *v);

/* What one source has said of a lock_id. */
struct m_copy {
	bool has;
	/* The source's clock at the end of its snapshot. */
	uint64_t clock;
	uint64_t token, noted;
	struct ballot wrote, prepared;
	struct instant end;
	/* Its session binding, or order. */
	uint32_t binding;
	/* It is bound to a node there. */
	bool bound;
};
const char *machine_merged(const struct m_record *r, const struct m_copy *c);

/* ---- parts of the above, by the files that have them ---- */

const char *machine_promise(const struct m_step *s);
const char *machine_withdraw(const struct m_step *s);
const char *machine_commit(const struct m_step *s);
const char *machine_learn(const struct m_step *s);
const char *machine_extend(const struct m_step *s);
const char *machine_release(const struct m_step *s);
const char *machine_break(const struct m_step *s);
const char *machine_downgrade(const struct m_step *s);
const char *machine_prepare(const struct m_step *s);
const char *machine_write(const struct m_step *s);
const char *machine_fetch(const struct m_step *s);
const char *machine_sync(const struct m_step *s);
const char *machine_binding(const struct m_step *s);

/* Tells whether two locks exclude each other (section 10). */
bool m_excludes(const struct terms *a, const struct terms *b);
const struct m_record *m_record_of(const struct m_key *key, struct id128 lock_id);
const struct m_promise *m_promise_of(const struct m_key *key, struct id128 lock_id);
/* Returns a live record of another lock_id that excludes the terms, or NULL. */
const struct m_record *m_in_the_way(const struct m_key *key, struct id128 lock_id,
	const struct terms *terms);
/* Tells whether two live records exclude each other: the key is contested (section 4). */
bool m_contested(const struct m_key *key);
/* Tells whether all records of the key have permits of one semaphore. */
bool m_numbered(const struct m_key *key);
/* Tells whether the record, which others exclude on a contested key, is in doubt. */
bool m_doubted(const struct m_key *key, const struct m_record *r);
bool m_is_numbers(const struct terms *t);
/* Tells whether the record's lock is over, and its key stays closed for the lock delay. */
bool m_delayed(const struct m_record *r, struct instant now);
/* Everything but the record and the promise of one lock_id is as before: no other record has
 * changed, and none has come. Promises of others may be gone if `displaced` excludes them. A
 * promise that is new is one of those that a master may make by itself. */
const char *m_others_kept(const struct m_node *node, const struct m_key *before,
	const struct m_key *after, struct id128 lock_id, const struct terms *displaced);
bool m_record_same(const struct m_record *a, const struct m_record *b);
/* The record of the lock_id is the same as before, or there is none. */
const char *m_own_kept(const struct m_step *s);
/* Tells whether a record, or a message for it, that has a binding has ended with a connection, or
 * was released (R3). */
bool m_r3(const struct m_step *s, uint32_t binding);
/* Tells whether this is the clock that the master had when it handled the message. A promise to
 * another may have come first: the ballot of that one raises the clock. */
bool m_notes_clock(const struct m_step *s, uint64_t noted);
struct instant m_end_of(const struct m_node *node, uint64_t lease_us);
bool m_instant_same(struct instant a, struct instant b);
/* Returns the name that a record rests on after an extension was accepted for it under a name. */
uint64_t m_name_after(const struct m_record *own, uint64_t name);
/* Tells whether this is the name of an extension, of which no request has any (section 11). */
bool m_of_extension(uint64_t name);
/* A number that stands for bytes. */
uint64_t m_hash(struct slice bytes);

#endif

/* election_part.h: one participant in an election, and what it was told; for the tests of
 * elections. */
#ifndef PAWL_TESTS_ELECTION_PART_H
#define PAWL_TESTS_ELECTION_PART_H

#include <stdio.h>
#include <string.h>

#include "client_rig.h"
#include "pawl/election.h"
#include "unit.h"

struct part {
	struct pawl_election *election;
	unsigned led, stepped_down, failed, asked;
	int cause, error, result;
	unsigned results;
	bool released;
	int64_t left;
	enum pawl_asked_answer answer;
	bool free_when_leading, observing;
	char leaders[256];
};

static inline void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	struct part *p = arg;
	assert_int_equal(token, pawl_election_token(election));
	assert_true(pawl_election_leads(election));
	p->led++;
	if (p->free_when_leading) {
		pawl_election_free(election);
		p->election = NULL;
	}
}

static inline void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	struct part *p = arg;
	p->stepped_down++;
	p->cause = cause;
	p->left = pawl_election_valid_ms(election);
	assert_false(pawl_election_leads(election));
}

static inline void on_leader(struct pawl_election *election, const struct pawl_leader *leader,
	void *arg) {
	struct part *p = arg;
	size_t used = strlen(p->leaders);
	struct pawl_leader same;
	assert_true(pawl_election_leader(election, &same) == (leader != NULL));
	if (leader) {
		(void)snprintf(p->leaders + used, sizeof(p->leaders) - used, "%s=%s@%u%s ",
			(const char *)leader->owner.data, (const char *)leader->value.data,
			(unsigned)leader->token, leader->self ? "!" : "");
	} else {
		(void)snprintf(p->leaders + used, sizeof(p->leaders) - used, "nobody ");
	}
}

static inline enum pawl_asked_answer on_asked(struct pawl_election *election,
	const struct pawl_asked *asked, void *arg) {
	struct part *p = arg;
	(void)election;
	(void)asked;
	p->asked++;
	return p->answer;
}

static inline void on_failed(struct pawl_election *election, int error, const char *message,
	bool observing, void *arg) {
	struct part *p = arg;
	(void)election;
	(void)message;
	p->failed++;
	p->error = error;
	p->observing = observing;
}

static inline void on_result(struct pawl_result *take_result, void *arg) {
	struct part *p = arg;
	p->results++;
	p->result = take_result->error;
	p->released = take_result->released;
	pawl_result_free(take_result);
}

static inline struct pawl_election_options options_of(struct part *p) {
	return (struct pawl_election_options){ .name = { "k", 1 }, .owner = { "me", 2 },
		.value = { "v", 1 }, .lease_ms = 9000, .on_leading = on_leading,
		.on_stepped_down = on_stepped_down, .on_leader = on_leader, .on_asked = on_asked,
		.on_failed = on_failed, .arg = p };
}

/* `options`: NULL for the usual ones. */
static inline void begin(struct rig *r, struct part *p,
	const struct pawl_election_options *options) {
	const struct pawl_election_options usual = options_of(p);
	rig_open(r, NULL);
	r->nodes[0].held = r->nodes[1].held = false;
	assert_int_equal(pawl_election_new(r->client, options ? options : &usual, &p->election), 0);
	rig_settle(r);
}

static inline void lead(struct rig *r, struct part *p,
	const struct pawl_election_options *options) {
	begin(r, p, options);
	assert_int_equal(pawl_election_campaign(p->election), 0);
	rig_settle(r);
	assert_int_equal(p->led, 1);
	assert_true(pawl_election_leads(p->election));
}

#endif

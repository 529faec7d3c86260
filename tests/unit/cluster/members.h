/* members.h: what the tests of changes of the set share. Nodes 0 to 2 are masters, the others are
 * outside. */
#ifndef PAWL_TESTS_MEMBERS_H
#define PAWL_TESTS_MEMBERS_H

#include "named.h"

/* A change is answered within this time. */
#define DECIDED (15 * SPAN_S)

static const struct id128 nobody;

static inline int members_setup(void **state, uint32_t outside) {
	return named_setup_of(state, 3, outside);
}

static inline int setup_one(void **state) {
	return members_setup(state, 1);
}

static inline int setup_three(void **state) {
	return members_setup(state, 3);
}

/* MEMBERS has one node outside, n4; MEMBERS_3 has three, n4 to n6. */
#define MEMBERS(test) cmocka_unit_test_setup_teardown(test, setup_one, named_teardown)
#define MEMBERS_3(test) cmocka_unit_test_setup_teardown(test, setup_three, named_teardown)

static inline struct core_change change_of(enum change_kind kind, const char *name) {
	return (struct core_change){ .kind = kind, .name = slice_str(name) };
}

static inline struct core_change replacing(const char *old, const char *new) {
	return (struct core_change){ .kind = CHANGE_REPLACE, .name = slice_str(old),
		.other = slice_str(new) };
}

static inline struct core_change max_lease_of(span_ns max_lease) {
	return (struct core_change){ .kind = CHANGE_SET_TIMING, .max_lease = max_lease };
}

static inline uint64_t ask_change(struct stage *s, uint32_t node, struct core_change change) {
	/* This links the nodes that were new to each other. */
	stage_mend(s);
	stage_settle(s);
	struct core_request r = { .op = CORE_CHANGE, .change = &change, .admin = true,
		.client = 100 + node };
	return stage_ask(s, node, r);
}

/* Lets time pass until there is an answer. */
static inline const struct stage_reply *await(struct stage *s, uint64_t id) {
	int64_t end = s->now + DECIDED;
	stage_mend(s);
	stage_settle(s);
	while (!answered(s, id) && s->now < end) {
		stage_wait(s, SPAN_MS);
	}
	assert_true(answered(s, id));
	return stage_answer(s, id);
}

static inline int do_change(struct stage *s, uint32_t node, struct core_change change) {
	return await(s, ask_change(s, node, change))->r.error;
}

/* The change must be done, and complete. */
static inline void must_at(struct stage *s, uint32_t node, struct core_change change, int line) {
	const struct stage_reply *r = await(s, ask_change(s, node, change));
	if (r->r.error != PAWL_OK || !r->r.complete) {
		print_error("line %d: %d, missing %llx: %.*s\n", line, r->r.error,
			(unsigned long long)r->r.missing, (int)r->why.size, r->why.bytes);
		fail();
	}
}
#define must(s, node, change) must_at(s, node, change, __LINE__)

static inline void add_replica(struct stage *s, uint32_t node, const char *name,
	const char *address) {
	struct core_change c = change_of(CHANGE_ADD_REPLICA, name);
	c.address = slice_str(address);
	must(s, node, c);
}

static inline uint64_t epoch_of(const struct stage *s, uint32_t node) {
	return stage_status(s, node).epoch;
}

static inline enum core_state state_of(const struct stage *s, uint32_t node) {
	return stage_status(s, node).state;
}

static inline bool knows(const struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

static inline uint64_t count_of(const struct stage *s, uint32_t node, enum core_count count) {
	return core_counts(s->nodes[node].core)[count];
}

/* Returns a set of masters only, by their numbers: "456" is n4, n5, n6. They have the addresses of
 * the nodes. */
static inline struct core_change set_of(const char *numbers) {
	static struct core_change_node nodes[STAGE_NODES];
	static char names[STAGE_NODES][4], addresses[STAGE_NODES][12];
	struct core_change c = { .kind = CHANGE_SET_NODES, .nodes = nodes };
	for (; *numbers; numbers++, c.node_count++) {
		char *name = names[c.node_count], *address = addresses[c.node_count];
		memcpy(name, "n?", 3);
		memcpy(address, "n?:7118", 8);
		name[1] = address[1] = *numbers;
		nodes[c.node_count] = (struct core_change_node){ .name = slice_str(name),
			.address = slice_str(address), .master = true };
	}
	return c;
}

static inline void lose_to(struct stage *s, uint32_t to, enum message_kind kind, bool lose) {
	for (uint32_t i = 0; i < s->count; i++) {
		stage_lose(s, i, to, kind, lose);
	}
}

/* The node hears neither that a configuration was chosen nor what others have accepted. */
static inline void lose_choices(struct stage *s, uint32_t to, bool lose) {
	lose_to(s, to, MESSAGE_CONFIG, lose);
	lose_to(s, to, MESSAGE_DECREE_ACCEPTED, lose);
}

static inline bool wait_until_epoch(struct stage *s, uint32_t node, uint64_t epoch, span_ns limit) {
	int64_t end = s->now + limit;
	while (epoch_of(s, node) < epoch && s->now < end) {
		stage_wait(s, SPAN_MS);
	}
	return epoch_of(s, node) >= epoch;
}

#endif

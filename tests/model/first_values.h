/* first_values.h: what the parts of the model of first values share (first_values_walk.c). */
#ifndef PAWL_TESTS_FIRST_VALUES_H
#define PAWL_TESTS_FIRST_VALUES_H

#include "walks.h"

enum { MASTERS = 3, QUORUM = 2, ATTEMPTS = 3, UPDATES = 3, REPAIRS = 2,
	VERSIONS = ATTEMPTS + UPDATES, NOBODY = 255 };

#define RULES(X) \
	X(LAPSED, "q masters have lacked it at one moment") \
	X(HIGHEST, "a promise keeps the highest ballot") \
	X(LOST, "stale below what was lost") \
	X(PROMISED, "stale below what the promise noted") \
	X(RUN_OUT, "a promise that ends is remembered") \
	X(TAKES_OVER, "a record has noted its promise's ballot") \
	X(BEFORE, "the ballot is drawn before the promises") \
	X(NOTED, "stale below what the record noted") \
	X(LEARNED, "a learned value counts only above what was lost")
#define RULE_ENUM(name, text) RULE_##name,
enum rule { RULES(RULE_ENUM) RULE_COUNT };

/* A ballot is its clock and, in the lowest four bits, the number of its owner. A version is an
 * attempt's first value or an update. */
struct master {
	uint16_t clock, wrote, prepared, noted, first, promise_noted, lost;
	uint8_t version;
	bool has, counts, promised;
};
enum asked { UNASKED, ASKED, ANSWERED, HEARD };
struct answer {
	uint8_t state, version;
	bool yes, own, lacked, had, counts;
	uint16_t noted, wrote;
};
enum stage { IDLE, ASKING, COMMITTING, DONE, FAILED };
struct attempt {
	uint8_t stage, node, brings;
	uint16_t ballot, token, reported;
	struct answer promise[MASTERS], commit[MASTERS];
};
struct update {
	uint8_t stage, node, base, must_see;
	/* `before`: the holding that it is written in has ended before its answer. */
	bool blind, before;
	uint16_t ballot;
	struct answer prepare[MASTERS], write[MASTERS];
};
struct repair {
	bool sent;
	uint8_t to, version;
	uint16_t wrote;
};
struct world {
	struct master masters[MASTERS];
	struct attempt attempts[ATTEMPTS];
	struct update updates[UPDATES];
	struct repair repairs[REPAIRS];
	bool held;
	/* `newest`: the version that was answered last, while the lock has been held ever since. */
	uint8_t newest, base[VERSIONS];
	int losses, repairs_left, restarts, drops;
};

extern struct world w;

/* first_values.c: what has to hold, and the masters. A function that does something returns whether
 * there was anything to do. */
bool rule(enum rule r);
void raise_to(uint16_t *value, uint16_t to);
int holders(void);
void answered(uint8_t version);
void check_read(uint8_t version, uint8_t must_see, const char *who);
void make_record(int i, uint8_t version, uint16_t ballot, bool counts);
bool lose_record(int i);
bool lose_promise(int i);
bool repair(int from, int to);
bool learn(int which);
bool hear_clock(int from, int to);
bool restart(int i);

/* first_values_try.c: attempts and updates. */
bool attempt_begin(int a);
bool attempt_promise(int a, int i);
bool attempt_hear(int a, int i);
bool attempt_commit(int a, int i);
bool attempt_granted(int a, int i);
bool update_begin(int u);
bool update_prepare(int u, int i);
bool update_write(int u, int i);
bool update_written(int u, int i);
bool update_done(int u, int i);

#endif

/* script.h: what the scripts of Redis clients mean. */
#ifndef PAWL_REDIS_SCRIPT_H
#define PAWL_REDIS_SCRIPT_H

#include "script_form.h"

/* What a script does with its keys, if they have its value (or are free). */
enum script_kind {
	/* Takes all keys, or none. */
	SCRIPT_TAKE,
	/* Sets the length of leases. */
	SCRIPT_RENEW,
	/* Adds to the length of leases. */
	SCRIPT_ADD,
	/* Adds to the length if the argument `flag` is "0", and sets it otherwise. */
	SCRIPT_ADD_OR_RENEW,
	/* Sets the length, or takes a key that is free. */
	SCRIPT_RENEW_OR_TAKE,
	SCRIPT_RELEASE,
	/* Shows value and what is left. */
	SCRIPT_READ,
	/* Shows what is left, if the value is the caller's. */
	SCRIPT_LEFT_IF_MINE
};

/* What a script answers. */
enum script_answer {
	SCRIPT_SAYS_ONE,
	/* The number of keys on which it acted. */
	SCRIPT_SAYS_COUNT,
	SCRIPT_SAYS_OK
};

/* Stands for nil among the numbers of struct script_meaning. */
#define SCRIPT_NIL 100
/* Stands for any number of keys. */
#define SCRIPT_ANY_KEYS 255

/* What a script means. The numbers of arguments count from 1; 0 is none. */
struct script_meaning {
	/* The SHA1 of its normal form, in hex digits. */
	const char *form;
	enum script_kind kind;
	/* The number of keys, or SCRIPT_ANY_KEYS. A script acts on all of its keys. */
	uint8_t keys;
	/* The arguments with the value, with the length, and with a flag. */
	uint8_t value, length, flag;
	/* The argument with the number of a database, whose keys are meant. */
	uint8_t database;
	/* The length is in seconds. */
	bool seconds;
	enum script_answer answer;
	/* What it answers if somebody else has the key, and if it is free. */
	int8_t other, gone;
	/* Where it comes from. */
	const char *library;
};

/* A script that the operator has named. */
struct script_mapping {
	/* The digest of its bytes or of its normal form. */
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	struct script_meaning meaning;
};
#define SCRIPTS_MAPPED_MAX 64
struct script_mappings {
	struct script_mapping list[SCRIPTS_MAPPED_MAX];
	uint32_t count;
};
/* Reads a line of [redis.scripts]: the digest, and the meaning as docs/redis.md says. Returns NULL
 * and sets *out, or returns what is wrong; `out` is unchanged then. */
const char *script_mapping_read(const char *sha1, const char *meaning, struct script_mapping *out);
/* Returns NULL if the digest is not mapped. */
const struct script_meaning *script_mappings_find(const struct script_mappings *m,
	const uint8_t sha1[SCRIPT_SHA1_BYTES]);

/* The name of a kind, as `pawl redis-script` prints it. */
const char *script_kind_name(enum script_kind kind);

/* Returns the meaning of the script with this digest of its normal form, or NULL. */
const struct script_meaning *script_find_form(const uint8_t sha1[SCRIPT_SHA1_BYTES]);
/* Returns the meaning of a script, or NULL if none is known or there is no memory. The mappings
 * count for those whose normal form is not known. */
const struct script_meaning *script_find(struct slice script,
	const struct script_mappings *mappings, const struct allocator *alloc);

/* What can be said of a script. */
struct script_account {
	/* The SHA1 of its bytes and of its normal form, in hex digits; the latter is empty if the
	 * script is no Lua. */
	char sha1[2 * SCRIPT_SHA1_BYTES + 1], form_sha1[2 * SCRIPT_SHA1_BYTES + 1];
	/* NULL if its meaning is not known. */
	const struct script_meaning *meaning;
	/* Its normal form. */
	char form[2 * SCRIPT_BYTES_MAX];
	size_t form_size;
};
/* Returns 0, or PAWL_ENOMEM or PAWL_ETOOLARGE. */
int script_describe(const void *script, size_t size, struct script_account *out);

/* The scripts that were sent lately, by the SHA1 of their bytes. */
#define SCRIPTS_LEARNED_MAX 256
struct scripts {
	struct script_learned {
		uint8_t sha1[SCRIPT_SHA1_BYTES];
		/* NULL: the place is free. */
		const struct script_meaning *meaning;
	} learned[SCRIPTS_LEARNED_MAX];
	/* The place that is used next. */
	size_t next;
	struct script_mappings mappings;
};
/* Replaces the mappings, and forgets what was learned. */
void scripts_map(struct scripts *s, const struct script_mappings *mappings);
/* Returns the meaning of a script that was learned, that the package of a library sends, or that is
 * mapped; or NULL. */
const struct script_meaning *scripts_find(const struct scripts *s,
	const uint8_t sha1[SCRIPT_SHA1_BYTES]);
/* Remembers a script, in the place of the one that was learned first. */
void scripts_learn(struct scripts *s, const uint8_t sha1[SCRIPT_SHA1_BYTES],
	const struct script_meaning *meaning);

#endif

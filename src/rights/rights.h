/* rights.h: who may do what: the rules in the file that `[acl] file` names.
 *
 * INI. A section is somebody, a rule in it says what that one may do, or may not, with the keys that begin with a prefix:
 *
 *   [billing]                                     the name in a certificate; or unix:uid:N, unix:user:NAME, unix:gid:N,
 *   allow = read, acquire, wait on billing/       unix:group:NAME, plain, anonymous, everybody
 *   deny  = acquire on billing/archive/
 *
 *   [group:ops]                                   several of them
 *   members = alice, unix:group:wheel
 *   allow = all on *
 *
 * A section may also have limits (src/base/share.h), each with a number: `locks = 1000`. Each of a group's members has so much.
 *
 * Of the rules about a right that apply to a caller the one with the longest prefix counts; of several as long a deny. Where none
 * applies the caller has not got the right. Whoever asks for all keys with a prefix also needs that no deny is about some of them.
 */
#ifndef PAWL_RIGHTS_RIGHTS_H
#define PAWL_RIGHTS_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "right.h"
#include "share.h"
#include "slice.h"

#define RIGHTS_RULES_MAX 4096
#define RIGHTS_DIGEST_BYTES 32
#define RIGHTS_WHY_BYTES 1024
#define RIGHTS_PRIORITY_MAX INT32_MAX
/* Names of callers that have no certificate; a certificate with such a name, or with one that begins so, is refused. */
#define RIGHTS_PLAIN "plain"
#define RIGHTS_ANONYMOUS "anonymous"
#define RIGHTS_UNIX "unix:"

struct rights;

/* ---- reading ---- */

/* The accounts of this machine. False: there is no such name. */
struct rights_accounts {
	bool (*user)(const char *name, uint32_t *out_uid);
	bool (*group)(const char *name, uint32_t *out_gid);
};
extern const struct rights_accounts rights_system_accounts; /* may block where accounts come from the network */

/* 0; PAWL_EIO, PAWL_ENOMEM, or PAWL_EINVAL: *problem names file, line and remedy. *out is the caller's. */
int rights_read(const char *path, struct rights **out, struct problem *problem);
/* The same of a text; `name` stands for the file in messages. */
int rights_parse(struct slice text, const char *name, const struct rights_accounts *accounts, struct rights **out,
	struct problem *problem);
void rights_free(struct rights *take_r); /* accepts NULL */

/* SHA-256 of the file's bytes, as sha256sum prints it. */
void rights_digest(const struct rights *r, uint8_t out[RIGHTS_DIGEST_BYTES]);

/* A sentence about what is allowed in the file and probably not meant, or false: there is no n-th one. */
bool rights_warning(const struct rights *r, unsigned n, struct problem *out);

/* ---- judging ---- */

struct rights_caller {
	/* The name in its certificate, unix:uid:N, plain, or empty: anonymous. */
	struct slice identity;
	/* The groups of its process, of a Unix socket. */
	const uint32_t *gids;
	uint32_t gid_count;
	/* It has further groups that are not known: any rule about a group that denies something is taken to be about it. */
	bool more_gids;
};

struct rights_question {
	enum right right;
	/* Empty for rights that are about no key. */
	struct slice key;
	/* About all keys that begin with `key`. */
	bool prefix;
	/* RIGHT_PRIORITY: the one that is asked for; it needs no rule up to 0. */
	int64_t priority;
};

struct rights_verdict {
	bool allowed;
	/* The rule that decided it; 0: none applies. */
	unsigned line;
	/* RIGHT_PRIORITY: the greatest that the caller may ask for. */
	int64_t priority;
	/* The rule denies it for a part of the keys that begin with the prefix. */
	bool part;
};

struct rights_verdict rights_judge(const struct rights *r, const struct rights_caller *caller, const struct rights_question *question);

/* Changes the limits to those that the sections say which are about the caller: of its own name before those of its groups, and these before
 * everybody's. Of several groups the greatest counts. */
void rights_limits(const struct rights *r, const struct rights_caller *caller, struct share_limits *limits);

/* The verdict as a sentence with file, line and the rule as it stands there. */
void rights_explain(const struct rights *r, const struct rights_caller *caller, const struct rights_question *question,
	const struct rights_verdict *verdict, char out[RIGHTS_WHY_BYTES]);
const char *rights_file(const struct rights *r);

const char *right_name(enum right right);
/* The right that the method of the client protocol needs, and whether it is always about all keys with a prefix. False: there is no such
 * method. */
bool rights_of_method(struct slice method, enum right *out_right, bool *out_prefix);

/* ---- names ---- */

/* Whether a certificate may have this name: those that this file gives to callers without a certificate it may not. */
bool rights_name_reserved(struct slice name);

#endif

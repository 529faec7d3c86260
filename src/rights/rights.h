/* rights.h: who may do what, by the rules in the file that `[acl] file` names.
 *
 * The file is an INI file. A section is about somebody. A rule in it says what that one may do, or
 * may not do, with the keys that begin with a prefix:
 *
 *   [billing]
 *   allow = read, acquire, wait on billing/
 *   deny  = acquire on billing/archive/
 *
 *   [group:ops]
 *   members = alice, unix:group:wheel
 *   allow = all on *
 *
 * A section has the name of a certificate, or is called unix:uid:N, unix:user:NAME, unix:gid:N,
 * unix:group:NAME, plain, anonymous or everybody. A section group:NAME is about several of these.
 *
 * A section may also have limits (src/base/share.h), each with a number: `locks = 1000`. Each
 * member of a group has so much.
 *
 * Of the rules about a right that apply to a caller, the one with the longest prefix counts; of
 * several that are as long, a deny counts. Where no rule applies, the caller does not have the
 * right. A caller that asks for all keys with a prefix also needs that no deny is about some of
 * them. */
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
/* Names of callers that have no certificate. A certificate with such a name, or with one that
 * begins so, is refused. */
#define RIGHTS_PLAIN "plain"
#define RIGHTS_ANONYMOUS "anonymous"
#define RIGHTS_UNIX "unix:"

struct rights;

/* ---- reading ---- */

/* Looks up the accounts of a machine. False: there is no such name. */
struct rights_accounts {
	bool (*user)(const char *name, uint32_t *out_uid);
	bool (*group)(const char *name, uint32_t *out_gid);
};

/* The accounts of this machine. This may block where accounts come from the network. */
extern const struct rights_accounts rights_system_accounts;

/* Reads the file. Returns 0, PAWL_EIO, PAWL_ENOMEM, or PAWL_EINVAL: *problem names the file, the
 * line and the remedy. The caller frees *out by rights_free. */
int rights_read(const char *path, struct rights **out, struct problem *problem);

/* Reads a text in the same way. `name` stands for the file in messages. The text is copied. */
int rights_parse(struct slice text, const char *name, const struct rights_accounts *accounts,
	struct rights **out, struct problem *problem);

/* Frees the rules. Accepts NULL. */
void rights_free(struct rights *take_r);

/* Returns the SHA-256 of the file's bytes, as sha256sum prints it. */
void rights_digest(const struct rights *r, uint8_t out[RIGHTS_DIGEST_BYTES]);

/* Returns the n-th sentence about something that the file allows and that is probably not meant.
 * False: there is no n-th one. */
bool rights_warning(const struct rights *r, unsigned n, struct problem *out);

/* ---- judging ---- */

struct rights_caller {
	/* The name in its certificate, unix:uid:N, or plain. Empty: the caller is anonymous. */
	struct slice identity;
	/* The groups of the caller's process, if it is connected by a Unix socket. */
	const uint32_t *gids;
	uint32_t gid_count;
	/* The caller has further groups that are not known. Any rule about a group that denies
	 * something is taken to be about it. */
	bool more_gids;
};

struct rights_question {
	enum right right;
	/* The key; empty for rights that are about no key. */
	struct slice key;
	/* The question is about all keys that begin with `key`. */
	bool prefix;
	/* RIGHT_PRIORITY: the priority that is asked for. Up to 0 it needs no rule. */
	int64_t priority;
};

struct rights_verdict {
	bool allowed;
	/* The line of the rule that decided it; 0: no rule applies. */
	unsigned line;
	/* RIGHT_PRIORITY: the greatest priority that the caller may ask for. */
	int64_t priority;
	/* The rule denies it for some of the keys that begin with the prefix. */
	bool part;
};

/* Tells whether the rules allow what is asked, and which rule decided it. */
struct rights_verdict rights_judge(const struct rights *r, const struct rights_caller *caller,
	const struct rights_question *question);

/* Changes the limits to those of the sections that are about the caller. Its own name counts before
 * its groups, and these count before everybody. Of several groups the greatest limit counts. */
void rights_limits(const struct rights *r, const struct rights_caller *caller,
	struct share_limits *limits);

/* Writes the verdict as a sentence, with the file, the line, and the rule as it stands there. */
void rights_explain(const struct rights *r, const struct rights_caller *caller,
	const struct rights_question *question, const struct rights_verdict *verdict,
	char out[RIGHTS_WHY_BYTES]);

/* Returns the name of the file, which lives as long as the rules. */
const char *rights_file(const struct rights *r);

/* Returns the name of the right in the file of rules, a constant. */
const char *right_name(enum right right);

/* Returns the right that a method of the client protocol needs, and whether the method is always
 * about all keys with a prefix. False: there is no such method. */
bool rights_of_method(struct slice method, enum right *out_right, bool *out_prefix);

/* ---- names ---- */

/* Tells whether the rules give this name to callers without a certificate, so that a certificate
 * may not have it. */
bool rights_name_reserved(struct slice name);

#endif

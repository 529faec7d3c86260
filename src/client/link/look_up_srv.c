/* look_up_srv.c: SRV records (RFC 2782): on which hosts and ports a service is offered. */
#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "check.h"
#include "look_up.h"

/* How long a name server may take for an answer, in seconds, and how often it is asked. */
#define SRV_ASK_S 2
#define SRV_ASKS 2
/* After this time no further target is looked up. */
#define SRV_LOOK_UP_S 10

struct srv_target {
	char host[256];
	char port[6];
	unsigned priority, weight;
};

static const char *refusal(int why) {
	switch (why) {
	case HOST_NOT_FOUND: return "the name has no SRV records (it does not exist)";
	case NO_DATA: return "the name has no SRV records";
	case TRY_AGAIN: return "no name server has answered the question for SRV records";
	default: return "the name servers refuse the question for SRV records";
	}
}

/* Asks the name servers of the system. Returns the size of the answer; 0: `problem` says why there
 * is none. */
static size_t ask(const char *name, unsigned char *answer, const char **problem) {
	struct __res_state state;
	memset(&state, 0, sizeof(state));
	if (res_ninit(&state) != 0) {
		*problem = "the system's resolver cannot be set up";
		return 0;
	}
	state.retrans = SRV_ASK_S;
	state.retry = SRV_ASKS;
	int size = res_nquery(&state, name, ns_c_in, ns_t_srv, answer, NS_MAXMSG);
	*problem = refusal(state.res_h_errno);
	res_nclose(&state);
	return size > NS_MAXMSG ? NS_MAXMSG : size < 0 ? 0 : (size_t)size;
}

/* Only what is a host name becomes part of an endpoint. */
static bool is_host(const char *name) {
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789-_.";
	return *name && strspn(name, allowed) == strlen(name);
}

static bool read_target(const ns_msg *message, const ns_rr *record, struct srv_target *out) {
	const unsigned char *data = ns_rr_rdata(*record);
	if (ns_rr_type(*record) != ns_t_srv || ns_rr_rdlen(*record) < 7) {
		return false;
	}
	*out = (struct srv_target){ .priority = ns_get16(data), .weight = ns_get16(data + 2) };
	(void)snprintf(out->port, sizeof(out->port), "%u", ns_get16(data + 4));
	/* The target "." says that the service is not offered. */
	return dn_expand(ns_msg_base(*message), ns_msg_end(*message), data + 6, out->host,
		sizeof(out->host)) > 0 && is_host(out->host);
}

static int by_priority(const void *a, const void *b) {
	const struct srv_target *left = a, *right = b;
	return (left->priority > right->priority) - (left->priority < right->priority);
}

/* Returns how many targets the answer has, sorted by their priority. */
static size_t read_targets(const unsigned char *answer, size_t size,
	struct srv_target targets[LOOK_UP_PLACES_MAX]) {
	ns_msg message;
	size_t count = 0;
	if (ns_initparse(answer, (int)size, &message) != 0) {
		return 0;
	}
	for (int i = 0; i < ns_msg_count(message, ns_s_an) && count < LOOK_UP_PLACES_MAX; i++) {
		ns_rr record;
		if (ns_parserr(&message, ns_s_an, i, &record) == 0
			&& read_target(&message, &record, &targets[count])) {
			count++;
		}
	}
	qsort(targets, count, sizeof(targets[0]), by_priority);
	return count;
}

static time_t seconds(void) {
	struct timespec now;
	CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return now.tv_sec;
}

/* Looks up the addresses of the targets. Each priority has two ranks, for two families. */
static void look_up_targets(const struct srv_target *targets, size_t count,
	struct look_up_found *out) {
	const time_t end = seconds() + SRV_LOOK_UP_S;
	for (size_t i = 0; i < count && (i == 0 || seconds() < end); i++) {
		look_up_addresses(targets[i].host, targets[i].port, 2 * targets[i].priority,
			targets[i].weight, out);
	}
}

void look_up_srv(const char *name, struct look_up_found *out) {
	struct allocator libc = alloc_libc(NULL);
	struct srv_target targets[LOOK_UP_PLACES_MAX];
	const char *problem = "there is no memory";
	unsigned char *answer = alloc_new(&libc, NS_MAXMSG);
	size_t size = answer ? ask(name, answer, &problem) : 0;
	size_t count = size ? read_targets(answer, size, targets) : 0;
	alloc_free(&libc, answer, NS_MAXMSG);
	look_up_targets(targets, count, out);
	if (out->count == 0 && count) {
		char why[sizeof(out->problem)];
		memcpy(why, out->problem, sizeof(why));
		(void)snprintf(out->problem, sizeof(out->problem), "%.200s: %.100s",
			targets[0].host, why);
	} else if (out->count == 0) {
		(void)snprintf(out->problem, sizeof(out->problem), "%s",
			size ? "the SRV records of the name offer no host" : problem);
	}
}

/* candidate.h: what the files of the candidate share. */
#ifndef PAWL_ELECTIONS_CANDIDATE_H
#define PAWL_ELECTIONS_CANDIDATE_H

#include <event2/event.h>
#include <stdio.h>

#include "history.h"
#include "pawl/election.h"
#include "pawl/watch.h"
#include "prng.h"

#define ELECTIONS_MAX 8
#define NAME_BYTES 32

struct candidate;
struct post { /* what it is a candidate for */
	struct candidate *candidate;
	char name[NAME_BYTES];
	struct pawl_election *election;
	struct event *heartbeat, *timer; /* the timer: while it is wild */
	bool acts;                       /* on_leading was called, and the end not yet written */
	int64_t told, until;             /* when it was written last, and what */
	bool hands_over;                 /* its transfer has no outcome yet */
};

struct candidate {
	struct event_base *base;
	struct pawl *client;
	struct pawl_watch *watch;
	FILE *history;
	char owner[NAME_BYTES];
	struct pawl_election_options options; /* common to its posts */
	struct prng prng;
	bool wild;       /* does things by itself, drawn from the seed */
	uint32_t others; /* how many candidates there are: c1 to c<others>, to hand over to */
	struct post posts[ELECTIONS_MAX];
	size_t post_count;
};

void candidate_resign(struct post *p);
void candidate_transfer(struct post *p, const char *to);

/* wild.c: what a candidate does of its own accord. */
void wild_leads(struct post *p);
void wild_follows(struct post *p); /* it is neither leader nor candidate */
void wild_timer(struct post *p);

#endif

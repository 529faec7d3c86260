/* wild.c: a candidate that leads, proclaims, hands over, resigns and comes back, in an order and at
 * times drawn from its seed. */
#include "candidate.h"

static void wait_for(struct post *p, uint64_t ms) {
	struct timeval tv = { (long)(ms / 1000), (long)(ms % 1000) * 1000 };
	evtimer_add(p->timer, &tv);
}

static uint64_t draw(struct post *p, uint64_t below) {
	return prng_below(&p->candidate->prng, below);
}

void wild_leads(struct post *p) {
	if (p->candidate->wild) {
		wait_for(p, draw(p, 10) < 3 ? draw(p, 4000) : draw(p, 400));
	}
}

void wild_follows(struct post *p) {
	if (p->candidate->wild) {
		wait_for(p, draw(p, 1000));
	}
}

static void act(struct post *p) {
	uint64_t dice = draw(p, 100);
	char text[NAME_BYTES];
	if (dice < 35) {
		candidate_resign(p);
		wild_follows(p);
	} else if (dice < 70) {
		snprintf(text, sizeof text, "c%u", (unsigned)(1 + draw(p, p->candidate->others)));
		candidate_transfer(p, text);
		wild_leads(p); /* where nobody of that name waits it still leads */
	} else {
		snprintf(text, sizeof text, "%u", (unsigned)draw(p, 1000000));
		(void)pawl_election_proclaim(p->election, pawl_str(text), NULL, NULL);
		wild_leads(p);
	}
}

void wild_timer(struct post *p) {
	if (!p->candidate->wild) {
		return;
	}
	if (pawl_election_leads(p->election)) {
		act(p);
	} else {
		(void)pawl_election_campaign(p->election);
	}
}

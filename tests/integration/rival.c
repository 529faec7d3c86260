/* rival.c: takes keys again and again, against others of its kind, and prints every interval in
 * which it believed that it held one:
 *
 *     key token begin_ns end_ns        (CLOCK_BOOTTIME, the same for all processes of a machine)
 *
 * rival ENDPOINTS KEYS LEASE_MS SECONDS SEED. Whoever compares the lines of all rivals sees whether
 * two of them believed at once. */
#include <event2/event.h>
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEYS_MAX 16

struct rival;
struct contest { /* one key */
	struct rival *rival;
	char key[16];
	struct pawl_lock *lock;
	struct event *timer; /* while holding: until the release; otherwise until the next try */
	int64_t begin, token;
};

struct rival {
	struct event_base *base;
	struct pawl *client;
	uint32_t lease_ms;
	uint64_t random;
	struct contest contests[KEYS_MAX];
};

static int64_t now_ns(void) {
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* xorshift64*: the same seed makes the same choices. */
static uint32_t draw(struct rival *r, uint32_t below) {
	r->random ^= r->random >> 12;
	r->random ^= r->random << 25;
	r->random ^= r->random >> 27;
	return (uint32_t)((r->random * 2685821657736338717u) >> 33) % below;
}

static void set_timer(struct contest *c, uint32_t ms) {
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000 };
	event_add(c->timer, &tv);
}

/* The belief ends now, or ended at the deadline if that came first. */
static void tell(const struct contest *c) {
	int64_t boot, raw, now = now_ns();
	pawl_lock_deadline(c->lock, &boot, &raw);
	if (boot != 0 && boot < now) {
		now = boot;
	}
	printf("%s %" PRId64 " %" PRId64 " %" PRId64 "\n", c->key, c->token, c->begin, now);
	fflush(stdout);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct contest *c = arg;
	if (cause == PAWL_ELOST) {
		tell(c);
		pawl_lock_free(lock);
		c->lock = NULL;
		set_timer(c, 1);
		return;
	}
	/* The lock may be believed until its deadline, so this rival believes it for so long. */
	set_timer(c, (uint32_t)pawl_lock_valid_ms(lock) + 1);
}

static void on_acquired(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct contest *c = arg;
	pawl_result_free(take_result);
	c->lock = take_lock;
	if (take_lock) {
		c->begin = now_ns();
		c->token = (int64_t)pawl_lock_token(take_lock);
		set_timer(c, 1 + draw(c->rival, c->rival->lease_ms * 2));
	} else {
		set_timer(c, 1 + draw(c->rival, 50));
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
	struct contest *c = arg;
	(void)fd;
	(void)what;
	if (c->lock) {
		tell(c);
		pawl_lock_release_start(c->lock, NULL, NULL);
		c->lock = NULL;
	}
	struct pawl_lock_options o = { .key = pawl_str(c->key), .lease_ms = c->rival->lease_ms,
		.wait_ms = draw(c->rival, 4) ? 3000 : 0, .on_lost = on_lost, .arg = c };
	if (pawl_lock_start(c->rival->client, &o, on_acquired, c, NULL) != 0) {
		abort();
	}
}

int main(int argc, char **argv) {
	if (argc != 6) {
		return 2;
	}
	static struct rival r;
	size_t keys = strtoul(argv[2], NULL, 10);
	r.lease_ms = (uint32_t)strtoul(argv[3], NULL, 10);
	r.random = strtoull(argv[5], NULL, 10) * 2 + 1;
	r.base = event_base_new();
	struct pawl_options options = { .endpoints = argv[1], .base = r.base, .timeout_ms = 1000,
		.prefer_first = true };
	if (keys > KEYS_MAX || !r.base || pawl_new(&options, &r.client, NULL) != 0) {
		return 2;
	}
	for (size_t i = 0; i < keys; i++) {
		struct contest *c = &r.contests[i];
		c->rival = &r;
		snprintf(c->key, sizeof(c->key), "key%zu", i);
		c->timer = event_new(r.base, -1, 0, on_timer, c);
		set_timer(c, 1 + draw(&r, 100));
	}
	struct timeval limit = { .tv_sec = strtol(argv[4], NULL, 10) };
	event_base_loopexit(r.base, &limit);
	event_base_dispatch(r.base);
	for (size_t i = 0; i < keys; i++) {
		if (r.contests[i].lock) {
			tell(&r.contests[i]);
		}
		event_free(r.contests[i].timer);
	}
	pawl_free(r.client);
	event_base_free(r.base);
	return 0;
}

/* shards.c: a leader with workers. Twelve shards of work are divided among all processes that run.
 *
 *     cc shards.c $(pkg-config --cflags --libs pawl) -o shards
 *     ./shards 127.0.0.1:7117 crawler host-a
 *
 * Every process is a worker, which holds the key crawler/workers/NAME, and a candidate in the
 * election crawler. The leader watches crawler/workers/ and proclaims the list of workers. Every
 * worker observes the list, and takes its own shards. */
#include <inttypes.h>
#include <pawl/election.h>
#include <pawl/watch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 12, WORKERS_MAX = 64, NAME_ROOM = 64 };

struct crawler {
	struct pawl *client;
	struct pawl_lock *membership;
	struct pawl_election *election;
	const char *me;
	char prefix[128];
	/* The next five fields belong to the leader. */
	struct pawl_watch *watch;
	char workers[WORKERS_MAX][NAME_ROOM];
	size_t count;
	/* The whole present state has been told; and the list differs from the proclaimed one. */
	bool complete, changed;
	/* A worker's place in the list, and the length of the list; if that is 0, there are no
	 * shards. */
	size_t mine, of;
	bool failed;
};

/* ---- the leader ---- */

static void set_worker(struct crawler *c, const char *name, bool there) {
	size_t at = 0;
	while (at < c->count && strcmp(c->workers[at], name) != 0) {
		at++;
	}
	if (there && at == c->count && c->count < WORKERS_MAX && strlen(name) < NAME_ROOM) {
		strcpy(c->workers[c->count++], name); /* style: strcpy, because name is short */
	} else if (!there && at < c->count) {
		memmove(c->workers[at], c->workers[at + 1], (c->count - at - 1) * NAME_ROOM);
		c->count--;
	} else {
		return;
	}
	c->changed = true;
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct crawler *c = arg;
	(void)watch;
	switch (event->type) {
	case PAWL_EVENT_PRESENT:
	case PAWL_EVENT_ACQUIRED:
		set_worker(c, (const char *)event->entry.key.data + strlen(c->prefix), true);
		break;
	case PAWL_EVENT_RELEASED:
	case PAWL_EVENT_EXPIRED:
	case PAWL_EVENT_LOST:
		set_worker(c, (const char *)event->entry.key.data + strlen(c->prefix), false);
		break;
	case PAWL_EVENT_OVERFLOW: /* the table may be wrong: the present state follows */
		c->count = 0;
		c->complete = false;
		break;
	case PAWL_EVENT_CURRENT:
		c->complete = c->changed = true;
		break;
	case PAWL_EVENT_UPDATED:
	case PAWL_EVENT_DOWNGRADED:
	case PAWL_EVENT_ASKED:
		break;
	}
}

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	struct crawler *c = arg;
	(void)election;
	struct pawl_watch_options wanted = { .key = pawl_str(c->prefix), .prefix = true,
		.on_event = on_event, .arg = c };
	printf("leading with token %" PRIu64 "\n", token);
	c->count = 0;
	c->complete = false;
	c->failed |= pawl_watch_start(c->client, &wanted, &c->watch) != 0;
}

static void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	struct crawler *c = arg;
	(void)election;
	printf("stepped down: %s\n", cause ? pawl_error_message(cause) : "asked to");
	pawl_watch_free(c->watch);
	c->watch = NULL;
}

static void proclaim(struct crawler *c) {
	char list[WORKERS_MAX * (NAME_ROOM + 1) + 1] = "";
	size_t used = 0;
	for (size_t i = 0; i < c->count; i++) {
		used += (size_t)snprintf(list + used, sizeof list - used, "%s\n", c->workers[i]);
	}
	c->changed = pawl_election_proclaim(c->election, pawl_str(list), NULL, NULL) != 0;
}

/* ---- a worker ---- */

static void on_leader(struct pawl_election *election, const struct pawl_leader *leader, void *arg) {
	struct crawler *c = arg;
	(void)election;
	c->of = 0;
	size_t place = SHARDS;
	const char *at = leader ? leader->value.data : "";
	for (const char *end; at && (end = strchr(at, '\n')); at = end + 1, c->of++) {
		if ((size_t)(end - at) == strlen(c->me) &&
			memcmp(at, c->me, (size_t)(end - at)) == 0) {
			place = c->of;
		}
	}
	c->mine = place;
	printf("shards:");
	for (size_t shard = place; c->of && shard < SHARDS; shard += c->of) {
		printf(" %zu", shard);
	}
	printf("\n");
	fflush(stdout);
}

static bool set_up(struct crawler *c, const char *name) {
	char key[128 + NAME_ROOM];
	snprintf(c->prefix, sizeof c->prefix, "%s/workers/", name);
	snprintf(key, sizeof key, "%s%s", c->prefix, c->me);
	struct pawl_lock_options member = { .key = pawl_str(key), .lease_ms = 5000,
		.wait_ms = 10000, .terms.release_on_disconnect = true };
	struct pawl_election_options candidate = { .name = pawl_str(name), .lease_ms = 5000,
		.release_on_disconnect = true, .again = true, .on_leading = on_leading,
		.on_stepped_down = on_stepped_down, .on_leader = on_leader, .arg = c };
	return pawl_lock_acquire(c->client, &member, &c->membership, NULL) == 0 &&
		pawl_election_new(c->client, &candidate, &c->election) == 0 &&
		pawl_election_campaign(c->election) == 0;
}

int main(int argc, char **argv) {
	if (argc != 4 || strlen(argv[2]) > 64 || strlen(argv[3]) >= NAME_ROOM) {
		fprintf(stderr, "usage: shards ENDPOINTS NAME WORKER\n");
		return 2;
	}
	struct crawler c = { .me = argv[3] };
	struct pawl_options options = { .endpoints = argv[1], .owner = pawl_str(argv[3]) };
	pawl_options_from_env(&options);
	const char *problem = "could not begin";
	if (pawl_new(&options, &c.client, &problem) != 0 || !set_up(&c, argv[2])) {
		fprintf(stderr, "%s\n", problem);
		pawl_free(c.client);
		return 1;
	}
	/* A worker that has lost its membership ends; a service manager may start it again. */
	while (!c.failed && pawl_lock_error(c.membership) == 0 && pawl_poll(c.client, 200) == 0) {
		if (c.watch && c.complete && c.changed) {
			proclaim(&c);
		}
		/* Here the worker would do a step of its shards, from c.mine in steps of c.of. */
	}
	/* This also frees the lock, the election and the watch. */
	pawl_free(c.client);
	return 1;
}

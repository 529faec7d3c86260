/* node.c: puts the parts of a node together, starts them in the right order, and frees them. */
#include "node.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "blocks.h"
#include "check.h"
#include "config_file.h"
#include "disk.h"
#include "listeners.h"
#include "drain.h"
#include "driver.h"
#include "free_lists.h"
#include "listener.h"
#include "log.h"
#include "memory.h"
#include "monitor.h"
#include "pawl/error.h"
#include "service.h"
#include "side_file.h"
#include "state_file.h"

struct node {
	struct event_base *base;
	const struct node_config *config;
	struct log *log;
	struct allocator alloc, client_alloc;
	/* `alloc` takes from these lists. */
	struct free_lists lists;
	struct alloc_counter client_memory;
	struct blocks blocks;
	struct net_loop loop, client_loop;
	struct state_file *state_file;
	struct durable durable;
	struct driver driver;
	struct service service;
	/* NULL if there is no audit file. */
	struct audit *audit;
	struct drain drain;
	struct monitor monitor;
	struct dialects dialects;
	struct listeners listeners;
	/* What a drain has left behind; only while the node starts. */
	struct side_file *side;
	void (*on_voting)(void *ctx, bool voting);
	void *ctx;
	void (*drained)(void *ctx, int error);
	void *drained_ctx;
};

__attribute__((format(printf, 3, 4))) static int node_fail(int error, char why[NODE_WHY_BYTES],
	const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(why, NODE_WHY_BYTES, format, args);
	va_end(args);
	return error;
}

static int node_no_memory(char why[NODE_WHY_BYTES]) {
	return node_fail(PAWL_ENOMEM, why, "out of memory");
}

/* ---- events ---- */

static void node_on_persisted(void *ctx, uint64_t seq, int problem) {
	struct node *node = ctx;
	const struct core_event event = { .kind = CORE_PERSISTED, .persist_seq = seq,
		.persist_ok = problem == 0 };
	if (problem) {
		log_to(node->driver.log, LEVEL_ERROR, "state_file_failed",
			LOG_TEXT("state_dir", node->config->state_dir),
			LOG_TEXT("why", strerror(problem)));
	}
	driver_step_now(&node->driver, &event);
}

static void node_on_note(void *ctx, const struct core_note *note) {
	struct node *node = ctx;
	if (!node->on_voting) {
		return;
	}
	if (note->kind == NOTE_VOTING) {
		node->on_voting(node->ctx, true);
	} else if (note->kind == NOTE_RECOVERING || note->kind == NOTE_DRAINING
		|| note->kind == NOTE_OUTSIDE) {
		node->on_voting(node->ctx, false);
	}
}

static void node_on_drain_answer(void *ctx, uint64_t tag, int error) {
	struct node *node = ctx;
	service_answer_done(&node->service, tag, error);
}

static void node_on_drain_request(void *ctx, uint64_t request_id) {
	struct node *node = ctx;
	if (drain_ask(&node->drain, node_on_drain_answer, node, request_id) != 0) {
		service_answer_done(&node->service, request_id, PAWL_EBUSY);
	}
}

/* Whoever looks at the node is told first, and the vote ends afterwards. */
static void node_on_drain_begin(void *ctx) {
	struct node *node = ctx;
	monitor_drain(&node->monitor);
}

static void node_on_drained(void *ctx, uint64_t tag, int error) {
	struct node *node = ctx;
	(void)tag;
	node->drained(node->drained_ctx, error);
}

int node_drain(struct node *node, void (*done)(void *ctx, int error), void *ctx) {
	node->drained = done;
	node->drained_ctx = ctx;
	return drain_ask(&node->drain, node_on_drained, node, 0);
}

/* ---- making one ---- */

static int node_open_state(struct node *node, char why[NODE_WHY_BYTES]) {
	const struct node_config *c = node->config;
	struct problem problem = { "" };
	int error = state_file_open(c->state_dir, c->birth.cluster, c->name, &node->state_file,
		&node->durable, &problem);
	return error ? node_fail(error, why, "%s", problem.text) : 0;
}

static int node_make_core(struct node *node, struct core **out, char why[NODE_WHY_BYTES]) {
	const struct node_config *c = node->config;
	struct core_options options = { .alloc = &node->alloc, .limits = c->limits.core,
		.name = c->name, .address = c->advertise, .birth = &c->birth,
		.durable = &node->durable, .replication_interval = c->replication_interval,
		.auto_replace = c->auto_replace, .check_grants = c->audit.check,
		.groups = &c->admin.groups };
	CHECK(RAND_bytes((unsigned char *)&options.hash_key, sizeof options.hash_key) == 1);
	CHECK(RAND_bytes((unsigned char *)&options.seed, sizeof options.seed) == 1);
	int error = core_new(&options, out);
	if (error == PAWL_ENOMEM) {
		return node_no_memory(why);
	}
	if (error) {
		const struct config *used = node->durable.config.epoch
			? &node->durable.config : &c->birth;
		const char *problem = config_problem(used);
		return node_fail(error, why, "node %s cannot be part of the cluster %s: %s",
			c->name, used->cluster,
			problem ? problem : "its name is not among the nodes of the configuration");
	}
	return 0;
}

static int node_make_driver(struct node *node, char why[NODE_WHY_BYTES]) {
	struct core *core;
	int error = node_make_core(node, &core, why);
	if (error) {
		return error;
	}
	struct driver *d = &node->driver;
	struct service *s = &node->service;
	if (driver_init(d, node->base, core, &node->alloc) != 0
		|| service_init(s, d, &node->alloc, &node->client_alloc) != 0
		|| drain_init(&node->drain, d, node->config->state_dir, node->durable.node_id) != 0
		|| disk_new(node->base, node->state_file, node_on_persisted, node, &d->disk) != 0) {
		return node_no_memory(why);
	}
	d->config = node->config;
	d->log = node->log;
	d->on_note = node_on_note;
	d->ctx = node;
	monitor_init(&node->monitor, d, s, &node->listeners.tls);
	node->drain.on_begin = node_on_drain_begin;
	node->drain.ctx = node;
	s->on_drain_request = node_on_drain_request;
	s->ctx = node;
	return 0;
}

/* Limits the memory for clients. Memory that is not counted for one connection, such as the table
 * of all connections, may use the part that is kept for administrators, too. */
static void node_limit_memory(struct node *node) {
	node->client_memory.max = (size_t)memory_above(node->config->limits.client_memory,
		MEMORY_ADMIN_END);
}

int node_new(const struct node_options *options, struct node **out_node, char why[NODE_WHY_BYTES]) {
	struct node *node = calloc(1, sizeof *node);
	if (!node) {
		return node_no_memory(why);
	}
	node->base = options->base;
	node->config = options->config;
	node->log = options->log;
	free_lists_init(&node->lists, alloc_libc(NULL), FREE_LISTS_KEPT);
	node->alloc = free_lists_alloc(&node->lists);
	node_limit_memory(node);
	node->client_alloc = blocks_alloc(&node->blocks);
	int error = 0;
	if (blocks_init(&node->blocks, node->base, &node->client_memory) != 0
		|| net_loop_init(&node->loop, node->base, &node->alloc) != 0
		|| net_loop_init(&node->client_loop, node->base, &node->client_alloc) != 0) {
		error = node_no_memory(why);
	}
	if (!error) {
		error = node_open_state(node, why);
	}
	if (!error) {
		error = node_make_driver(node, why);
	}
	if (error) {
		node_free(node);
		return error;
	}
	node->on_voting = options->on_voting;
	node->ctx = options->ctx;
	*out_node = node;
	return 0;
}

/* ---- starting ---- */

/* Restores the side file of a drain, if there is one. A file that is not whole counts as none: the
 * core then recovers as after a crash. */
static int node_restore(struct node *node, bool *out_restored, char why[NODE_WHY_BYTES]) {
	struct problem problem = { "" };
	struct slice bytes;
	struct frame frame;
	int more = 0;
	enum side_status status = side_file_open(node->config->state_dir, node->durable.node_id,
		node->durable.boot, &node->side, &problem);
	if (status == SIDE_FAILED) {
		return node_fail(PAWL_EIO, why, "%s", problem.text);
	}
	if (status == SIDE_BAD) {
		log_to(node->driver.log, LEVEL_WARNING, "side_file_ignored",
			LOG_TEXT("why", problem.text));
	}
	if (status != SIDE_OPEN) {
		return 0;
	}
	while ((more = side_file_next(node->side, &bytes)) == 1) {
		if (peer_frame_decode(&node->driver.decoder, bytes, &frame) != 0) {
			more = PAWL_EPROTOCOL;
			break;
		}
		const struct core_event event = { .kind = CORE_RESTORE, .frame = &frame };
		driver_step_now(&node->driver, &event);
	}
	*out_restored = more == 0;
	if (more < 0) {
		log_to(node->driver.log, LEVEL_WARNING, "side_file_ignored",
			LOG_TEXT("why", pawl_error_message(more)));
	}
	return 0;
}

/* Starts the core in memory only: nothing is on disk yet, and no other node has heard of this
 * start. */
static int node_start_core(struct node *node, char why[NODE_WHY_BYTES]) {
	struct core_event start = { .kind = CORE_START };
	int error = node_restore(node, &start.restored, why);
	if (!error) {
		driver_step_now(&node->driver, &start);
	}
	return error;
}

/* Every start has a boot of its own. It is on disk before any other node can hear of it; otherwise
 * the rounds of two starts with the same boot could be mistaken for each other. For the same reason
 * the side file is renamed away first, so that no other start can rely on it. */
static int node_begin(struct node *node, char why[NODE_WHY_BYTES]) {
	struct core_event persisted = { .kind = CORE_PERSISTED, .persist_ok = true };
	struct durable state;
	const char *dir = node->config->state_dir;
	if (node->side && side_file_use(node->side) != 0) {
		return node_fail(PAWL_EIO, why,
			"cannot rename the file \"drained\" in %s: is the "
			"directory writable?", dir);
	}
	if (core_out_persist(node->driver.out, &state, &persisted.persist_seq)) {
		int error = state_file_write(node->state_file, &state), problem = errno;
		if (error) {
			side_file_put_back(node->side);
			return node_fail(error, why, "cannot write the state file in %s: %s", dir,
				strerror(problem));
		}
		driver_step_now(&node->driver, &persisted);
	}
	side_file_free(node->side);
	node->side = NULL;
	return 0;
}

static int node_make_peers(struct node *node) {
	struct driver *d = &node->driver;
	struct core_status status;
	struct peer_hello hello = { .version_min = PEER_VERSION_MIN,
		.version_max = PEER_VERSION_MAX, .features = PEER_FEATURES,
		.id = node->durable.node_id };
	uint64_t seed;
	core_status(d->core, d->last, &status);
	hello.boot = status.boot;
	snprintf(hello.cluster, sizeof hello.cluster, "%s", core_config(d->core)->cluster);
	snprintf(hello.node, sizeof hello.node, "%s", node->config->name);
	snprintf(hello.release, sizeof hello.release, "%s", PAWL_VERSION);
	CHECK(RAND_bytes((unsigned char *)&seed, sizeof seed) == 1);
	return driver_make_peers(d, &node->loop, &hello, seed);
}

static struct sessions_limits node_session_limits(const struct node_config *c) {
	return (struct sessions_limits){ .clients = c->limits.clients,
		.admin_clients = c->limits.admin_clients, .identity = c->limits.identity,
		.address = c->limits.address, .requests_per_client = c->limits.requests_per_client,
		.idle = c->limits.idle_timeout, .memory = c->limits.client_memory,
		.strangers = driver_strangers_limits(c) };
}

static int node_open_audit(struct node *node, char why[NODE_WHY_BYTES]) {
	const struct audit_options options = { .base = node->base, .core = node->driver.core,
		.config = node->config, .log = node->driver.log, .told = service_audit_told,
		.ctx = &node->service };
	char problem[AUDIT_WHY_BYTES];
	if (node->config->audit_file[0]) {
		int error = audit_open(&options, &node->audit, problem);
		if (error) {
			return node_fail(error, why, "%s", problem);
		}
	}
	service_set_audit(&node->service, node->audit);
	return 0;
}

int node_start(struct node *node, char why[NODE_WHY_BYTES]) {
	struct driver *d = &node->driver;
	const struct sessions_options sessions = { .loop = &node->client_loop,
		.memory = &node->client_memory, .limits = node_session_limits(node->config),
		.handlers = &service_sessions_handlers, .ctx = &node->service };
	int error = node_start_core(node, why);
	if (error) {
		return error;
	}
	if (node_make_peers(node) != 0 || sessions_new(&sessions, &node->service.sessions) != 0) {
		return node_no_memory(why);
	}
	/* Everything that can fail comes before this start writes to the disk. So a start that
	 * fails leaves alone what a drain wrote. */
	dialects_init(&node->dialects, &node->service, node->config);
	error = listeners_open(&node->listeners, &node->client_loop, &node->service,
		&node->dialects, node->config, why);
	error = error ? error : listeners_open_admin(&node->listeners, &node->loop, &node->monitor,
		node->config, why);
	error = error ? error : node_open_audit(node, why);
	error = error ? error : node_begin(node, why);
	if (error) {
		return error;
	}
	driver_set_rights(d);
	peers_start(d->peers);
	driver_flush_later(d);
	return 0;
}

int node_reload(struct node *node, const struct node_config *config, char why[NODE_WHY_BYTES]) {
	const struct sessions_limits limits = node_session_limits(config);
	const char *problem = node_config_reload_problem(node->config, config);
	if (problem) {
		return node_fail(PAWL_EINVAL, why, "%s", problem);
	}
	int error = listeners_reload(&node->listeners, config, why);
	if (error) {
		return error;
	}
	node->config = node->driver.config = node->listeners.config = config;
	node_limit_memory(node);
	sessions_set_limits(node->service.sessions, &limits);
	peers_set_limits(node->driver.peers, &limits.strangers);
	driver_set_rights(&node->driver);
	dialects_reload(&node->dialects, config);
	service_rules_changed(&node->service);
	if (node->audit) {
		audit_set_config(node->audit, config);
	}
	service_settings_changed(&node->service);
	return 0;
}

void node_reopen(struct node *node) {
	if (node->audit) {
		audit_reopen(node->audit);
	}
}

void node_free(struct node *node) {
	if (!node) {
		return;
	}
	struct driver *d = &node->driver;
	drain_stop(&node->drain);
	disk_free(d->disk);
	listeners_close(&node->listeners);
	monitor_done(&node->monitor);
	service_done(&node->service);
	audit_close(node->audit);
	peers_free(d->peers);
	driver_done(d);
	side_file_free(node->side);
	state_file_close(node->state_file);
	net_loop_done(&node->client_loop);
	net_loop_done(&node->loop);
	blocks_done(&node->blocks);
	free_lists_done(&node->lists);
	free(node);
}

struct driver *node_driver(struct node *node) {
	return &node->driver;
}

struct sessions *node_sessions(struct node *node) {
	return node->service.sessions;
}

const char *node_client_address(const struct node *node, size_t n) {
	return n < node->listeners.client_count && node->listeners.clients[n].listener
		? listener_address(node->listeners.clients[n].listener) : NULL;
}

const char *node_peer_address(const struct node *node) {
	return node->listeners.peer.listener
		? listener_address(node->listeners.peer.listener) : NULL;
}

const char *node_admin_address(const struct node *node) {
	return node->listeners.admin.listener
		? listener_address(node->listeners.admin.listener) : NULL;
}

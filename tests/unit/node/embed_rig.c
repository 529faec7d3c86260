/* embed_rig.c: nodes in this process, see embed_rig.h. */
#include "embed_rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* The ports are taken all at once, so that no two nodes get the same one. */
static void rig_free_addresses(struct embed_rig *r) {
	int fds[EMBED_RIG_NODES];
	for (size_t i = 0; i < EMBED_RIG_NODES; i++) {
		struct sockaddr_in at = { .sin_family = AF_INET,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t size = sizeof at;
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(fds[i] >= 0 && bind(fds[i], (struct sockaddr *)&at, sizeof at) == 0);
		CHECK(getsockname(fds[i], (struct sockaddr *)&at, &size) == 0);
		snprintf(r->nodes[i].address, sizeof r->nodes[i].address, "127.0.0.1:%u",
			(unsigned)ntohs(at.sin_port));
	}
	for (size_t i = 0; i < EMBED_RIG_NODES; i++) {
		close(fds[i]);
	}
}

void embed_rig_open(struct embed_rig *r, size_t masters) {
	static const char *const names[EMBED_RIG_NODES] = { "a", "b", "c", "d" };
	memset(r, 0, sizeof *r);
	net_fixture_init(&r->f);
	rig_free_addresses(r);
	r->master_count = masters;
	for (size_t i = 0; i < EMBED_RIG_NODES; i++) {
		struct embed_rig_node *n = &r->nodes[i];
		n->rig = r;
		n->name = names[i];
		snprintf(n->dir, sizeof n->dir, "%s-%s", r->f.dir, n->name);
		if (i < masters) {
			r->masters[i] = (struct pawl_node_master){ n->name, n->address };
		}
	}
}

static void rig_remove_dir(const char *path) {
	DIR *dir = opendir(path);
	if (!dir) {
		/* The node was never started. */
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			CHECK(unlinkat(dirfd(dir), entry->d_name, 0) == 0);
		}
	}
	closedir(dir);
	CHECK(rmdir(path) == 0);
}

void embed_rig_revoke(struct embed_rig *r, const char *lines) {
	char path[128];
	snprintf(path, sizeof path, "%s/revoked", r->f.dir);
	FILE *f = fopen(path, "w");
	assert_true(f && fputs(lines, f) >= 0 && fclose(f) == 0);
}

static void rig_rules_path(const struct embed_rig *r, size_t n, char out[128]) {
	snprintf(out, 128, "%s/rights-%s", r->f.dir, r->nodes[n].name);
}

void embed_rig_rules(struct embed_rig *r, size_t n, const char *text) {
	char path[128];
	rig_rules_path(r, n, path);
	FILE *f = fopen(path, "w");
	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

void embed_rig_endpoint(const struct embed_rig *r, size_t n, char out[160]) {
	snprintf(out, 160, "unix:%s/%s.sock", r->f.dir, r->nodes[n].name);
}

void embed_rig_close(struct embed_rig *r) {
	for (size_t i = 0; i < EMBED_RIG_NODES; i++) {
		pawl_node_free(r->nodes[i].node);
		rig_remove_dir(r->nodes[i].dir);
	}
	net_fixture_done(&r->f);
}

static void rig_be_busy(void) {
	struct timespec begun, now;
	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun) == 0);
	do {
		CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
	} while ((now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec
		< 150000000L);
}

static void rig_log(int level, const char *line, void *arg) {
	struct embed_rig_node *n = arg;
	(void)level;
	n->lines++;
	snprintf(n->line, sizeof n->line, "%s", line);
	if (n->wanted && strstr(line, n->wanted)) {
		snprintf(n->found, sizeof n->found, "%s", line);
	}
	if (n->slow && strstr(line, n->slow)) {
		n->slow = NULL;
		rig_be_busy();
	}
	if (getenv("EMBED_RIG_LOG")) {
		fprintf(stderr, "%s: %s\n", n->name, line);
	}
}

static void rig_changed(struct pawl_node *node, void *arg) {
	struct embed_rig_node *n = arg;
	assert_ptr_equal(node, n->node);
	n->changes++;
}

void embed_rig_start(struct embed_rig *r, size_t i) {
	struct embed_rig_node *n = &r->nodes[i];
	char why[PAWL_NODE_WHY] = "";
	char ca[128], cert[128], file[128], list[128];
	struct pawl_node_options o = { .base = r->f.base, .name = n->name, .cluster = "test",
		.state_dir = n->dir, .masters = r->masters, .master_count = r->master_count,
		.listen_peer = i < r->master_count ? NULL : n->fixed ? n->address : "127.0.0.1:0",
		.log = rig_log, .on_changed = rig_changed, .arg = n };
	if (r->tls) {
		char uri[64];
		snprintf(uri, sizeof uri, "pawl:node:%s%s%s", n->name, n->role ? "?role=" : "",
			n->role ? n->role : "");
		net_fixture_certificate(&r->f, n->name, uri);
		snprintf(ca, sizeof ca, "%s/ca.pem", r->f.dir);
		snprintf(cert, sizeof cert, "%s/%s.pem", r->f.dir, n->name);
		snprintf(file, sizeof file, "%s/%s.key", r->f.dir, n->name);
		o.ca_file = ca;
		o.cert_file = cert;
		o.key_file = file;
		snprintf(list, sizeof list, "%s/revoked", r->f.dir);
		o.revoked_file = r->revoked ? list : NULL;
	}
	char rules[128], endpoint[160];
	if (r->ruled) {
		rig_rules_path(r, i, rules);
		embed_rig_endpoint(r, i, endpoint);
		o.acl_file = rules;
		o.listen_client = endpoint;
	}
	if (pawl_node_new(&o, &n->node, why) != 0 || pawl_node_start(n->node, why) != 0) {
		fail_msg("%s", why);
	}
}

struct rig_state {
	struct pawl_node *node;
	enum pawl_node_state state;
};

static bool rig_in_state(void *ctx) {
	const struct rig_state *wanted = ctx;
	struct pawl_node_status status;
	pawl_node_status(wanted->node, &status);
	return status.state == wanted->state;
}

void embed_rig_await_state(struct embed_rig *r, size_t n, enum pawl_node_state state) {
	struct rig_state wanted = { r->nodes[n].node, state };
	assert_true(net_fixture_until(&r->f, rig_in_state, &wanted));
}

void embed_rig_start_all(struct embed_rig *r) {
	for (size_t i = 0; i < r->master_count; i++) {
		embed_rig_start(r, i);
	}
	for (size_t i = 0; i < r->master_count; i++) {
		embed_rig_await_state(r, i, PAWL_NODE_VOTING);
	}
}

static void rig_text(char *out, size_t size, struct pawl_bytes from) {
	/* What the library hands out ends with a NUL. */
	snprintf(out, size, "%s", (const char *)from.data);
	assert_true(from.size >= size || strlen(out) == from.size);
}

void embed_rig_done(struct pawl_node *node, const struct pawl_node_result *result, void *arg) {
	struct embed_rig_answer *a = arg;
	(void)node;
	a->calls++;
	a->error = result->error;
	a->token = result->token;
	a->lock_id = result->lock_id;
	a->deadline = result->deadline;
	a->released = result->released;
	a->held = result->entry.held;
	a->count = result->entry_count + result->waiter_count;
	rig_text(a->value, sizeof a->value, result->entry.value);
	rig_text(a->owner, sizeof a->owner, result->entry.owner);
	snprintf(a->message, sizeof a->message, "%s", result->message);
	assert_true(result->error == 0 || result->message[0] != '\0');
}

bool embed_rig_answered(void *answer) {
	return ((struct embed_rig_answer *)answer)->calls > 0;
}

struct embed_rig_answer embed_rig_ask(struct embed_rig *r, size_t n,
	const struct pawl_request *request) {
	struct embed_rig_answer a = { .calls = 0 };
	assert_int_equal(pawl_node_ask(r->nodes[n].node, request, embed_rig_done, &a, NULL), 0);
	/* The callback is never called from within the call. */
	assert_int_equal(a.calls, 0);
	assert_true(net_fixture_until(&r->f, embed_rig_answered, &a));
	assert_int_equal(a.calls, 1);
	return a;
}

/* These tests are about the state file: what a node must not forget. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pawl/error.h"
#include "state_file.h"
/* These come behind the codec's F_LOCK_ID, which they leave alone. */
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

static char dir[64], file_path[128];

static int make_dir(void **state) {
	(void)state;
	char top[] = "/tmp/pawl-state.XXXXXX";
	if (!mkdtemp(top)) {
		return -1;
	}
	snprintf(dir, sizeof dir, "%s/s", top);
	snprintf(file_path, sizeof file_path, "%s/state", dir);
	return 0;
}

static int remove_dir(void **state) {
	(void)state;
	static const char *const names[] = { "state", "state.new", "lock" };
	char path[128];
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	*strrchr(dir, '/') = '\0';
	return rmdir(dir);
}

static struct state_file *open_good(struct durable *state) {
	struct state_file *f = NULL;
	struct problem problem = { "" };
	if (state_file_open(dir, "c", "a", &f, state, &problem)) {
		fail_msg("refused: %s", problem.text);
	}
	return f;
}

static struct problem open_bad(const char *cluster, const char *node) {
	struct state_file *f = NULL;
	struct durable state;
	struct problem problem = { "" };
	assert_int_equal(state_file_open(dir, cluster, node, &f, &state, &problem), PAWL_EINVAL);
	assert_null(f);
	return problem;
}

static struct durable sample(struct durable d, uint64_t boot) {
	d.boot = boot;
	d.ceiling = boot << 20;
	d.voted = boot & 1;
	d.pledged = false;
	d.max_lease_seen = 60 * SPAN_S;
	d.request_timeout_seen = SPAN_S;
	d.config = (struct config){ .epoch = 1, .cluster = "c", .max_lease = 60 * SPAN_S,
		.request_timeout = SPAN_S, .promise_timeout = 2 * SPAN_S, .drift_ppm = 10000,
		.node_count = 1 };
	d.complete = boot % 3 == 0;
	d.voted_before = boot % 3 != 1;
	d.decree_promised = (struct ballot){ boot + 5, 7, (uint32_t)boot };
	d.decree_accepted = (struct ballot){ boot + 4, 6, 1 };
	d.config.nodes[0] = (struct config_node){ .name = "a", .address = "127.0.0.1:1",
		.id = d.node_id, .master = true };
	d.config.previous_master_count = 2;
	d.config.previous_masters[0] = (struct config_node){ .name = "z", .address = "127.0.0.1:3",
		.id = { { 9 } }, .master = true };
	d.config.previous_masters[1] = d.config.nodes[0];
	d.decree_config = d.config;
	d.decree_config.epoch = boot % 4 ? 2 : 0;
	return d;
}

static void assert_same(const struct durable *a, const struct durable *b) {
	struct state_slot one = { .sequence = 1, .cluster = "c", .node = "a", .durable = *a },
		two = one;
	static uint8_t x[STATE_SLOT_BYTES], y[STATE_SLOT_BYTES];
	two.durable = *b;
	size_t size = state_encode(&one, x);
	assert_int_equal(state_encode(&two, y), size);
	assert_memory_equal(x, y, size);
}

static void a_fresh_directory_gets_a_new_identity_and_mode_0700(void **state) {
	(void)state;
	struct durable d, again;
	struct stat st;
	state_file_close(open_good(&d));
	assert_false(id128_zero(d.node_id));
	assert_int_equal(d.boot, 0);
	assert_int_equal(d.config.epoch, 0);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(file_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	state_file_close(open_good(&again));
	assert_same(&d, &again);
}

static void what_was_written_is_read_back(void **state) {
	(void)state;
	struct durable d, again;
	struct state_file *f = open_good(&d);
	for (uint64_t boot = 1; boot < 6; boot++) {
		d = sample(d, boot);
		assert_int_equal(state_file_write(f, &d), 0);
		state_file_close(f);
		f = open_good(&again);
		assert_same(&d, &again);
	}
	state_file_close(f);
}

/* The write of state 3 stops after every number of bytes. What is on disk then is state 2, or all
 * of state 3 where the bytes that are missing were there before. */
static void a_torn_write_at_any_byte_leaves_a_whole_state(void **state) {
	(void)state;
	struct durable two, three, found;
	struct state_file *f = open_good(&two);
	two = sample(two, 2);
	three = sample(two, 3);
	assert_int_equal(state_file_write(f, &two), 0);
	static uint8_t bytes[STATE_SLOT_BYTES];
	const struct state_slot slot = { .sequence = 3, .cluster = "c", .node = "a",
		.durable = three };
	size_t size = state_encode(&slot, bytes);
	for (size_t cut = 0; cut < size; cut++) {
		state_file_fail_after(f, (long)cut);
		assert_int_equal(state_file_write(f, &three), PAWL_EIO);
		state_file_close(f);
		f = open_good(&found);
		assert_true(found.boot == 2 || cut > 64);
		assert_same(found.boot == 2 ? &two : &three, &found);
		/* This puts the torn slot in order again. */
		assert_int_equal(state_file_write(f, &two), 0);
		/* This writes the other slot, so that the next turn tears a good one. */
		assert_int_equal(state_file_write(f, &two), 0);
	}
	assert_int_equal(state_file_write(f, &three), 0);
	state_file_close(f);
	state_file_close(open_good(&found));
	assert_same(&three, &found);
}

static void a_failed_write_can_be_repeated(void **state) {
	(void)state;
	struct durable d, found;
	struct state_file *f = open_good(&d);
	d = sample(d, 2);
	state_file_fail_after(f, 10);
	assert_int_equal(state_file_write(f, &d), PAWL_EIO);
	assert_int_equal(state_file_write(f, &d), PAWL_EIO);
	state_file_fail_after(f, -1);
	assert_int_equal(state_file_write(f, &d), 0);
	state_file_close(f);
	state_file_close(open_good(&found));
	assert_same(&d, &found);
}

static void spoil(long offset) {
	int fd = open(file_path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "XXXXXXXXXXXXXXXX", 16, offset), 16);
	close(fd);
}

static void one_damaged_slot_is_survived_and_two_are_reported(void **state) {
	(void)state;
	struct durable d, found;
	/* This goes to slot 0. */
	struct state_file *f = open_good(&d);
	struct durable one = d;
	d = sample(d, 2);
	/* This goes to slot 1. */
	assert_int_equal(state_file_write(f, &d), 0);
	state_file_close(f);
	spoil(STATE_SLOT_BYTES + 40);
	state_file_close(open_good(&found));
	assert_same(&one, &found);
	spoil(40);
	struct problem problem = open_bad("c", "a");
	assert_non_null(strstr(problem.text, "the state file is damaged in both slots"));
	assert_non_null(strstr(problem.text, "Restore a copy"));
}

static void an_empty_file_is_damage_not_a_new_node(void **state) {
	(void)state;
	struct durable d;
	state_file_close(open_good(&d));
	assert_int_equal(truncate(file_path, 0), 0);
	assert_non_null(strstr(open_bad("c", "a").text, "both slots"));
}

static void a_file_of_another_cluster_or_node_is_refused(void **state) {
	(void)state;
	struct durable d;
	state_file_close(open_good(&d));
	struct problem problem = open_bad("other", "a");
	assert_non_null(strstr(problem.text, "belongs to cluster c"));
	assert_non_null(strstr(problem.text, "[cluster] name = other"));
	problem = open_bad("c", "b");
	assert_non_null(strstr(problem.text, "belongs to node a"));
	assert_non_null(strstr(problem.text, "[node] name = b"));
}

static void two_daemons_never_share_a_directory(void **state) {
	(void)state;
	struct durable d;
	struct state_file *f = open_good(&d);
	assert_non_null(strstr(open_bad("c", "a").text, "in use by another pawld"));
	state_file_close(f);
	state_file_close(open_good(&d));
}

static void a_directory_that_cannot_be_made_is_named(void **state) {
	(void)state;
	struct state_file *f = NULL;
	struct durable d;
	struct problem problem = { "" };
	char missing[128];
	snprintf(missing, sizeof missing, "%s/x", dir);
	assert_int_equal(state_file_open(missing, "c", "a", &f, &d, &problem), PAWL_EIO);
	assert_non_null(strstr(problem.text, missing));
	assert_non_null(strstr(problem.text, "cannot be created: No such file"));
}

static void expect_remedy(const char *found, const char *remedy) {
	char want[256];
	snprintf(want, sizeof want, "%s %s", remedy, dir);
	if (!strstr(found, want)) {
		fail_msg("no \"%s\" in: %s", want, found);
	}
}

static void a_directory_that_others_may_write_to_is_refused(void **state) {
	(void)state;
	static const mode_t open_modes[] = { 0777, 0770, 01777, 0702, 0720, 02770 };
	struct durable d;
	state_file_close(open_good(&d));
	for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
		char mode[16];
		snprintf(mode, sizeof mode, "(mode %04o)", (unsigned)open_modes[i]);
		assert_int_equal(chmod(dir, open_modes[i]), 0);
		const struct problem problem = open_bad("c", "a");
		assert_non_null(strstr(problem.text, mode));
		expect_remedy(problem.text, ": run chmod 700");
	}
	/* Others may look into it: the files have modes of their own. */
	assert_int_equal(chmod(dir, 0755), 0);
	state_file_close(open_good(&d));
}

static void a_directory_of_another_account_is_refused(void **state) {
	(void)state;
	struct durable d;
	struct problem problem = { "" };
	if (geteuid() != 0) {
		skip();
	}
	state_file_close(open_good(&d));
	assert_int_equal(chown(dir, 7, 7), 0);
	problem = open_bad("c", "a");
	assert_non_null(strstr(problem.text, "belongs to another user (7)"));
	expect_remedy(problem.text, "run chown 0");
	expect_remedy(problem.text, "and chmod 700");
	/* Root may check a configuration for the account to which the directory belongs. */
	assert_int_equal(state_file_check(dir, true, &problem), 0);
	assert_int_equal(chown(dir, 0, 0), 0);
}

/* This is how Kubernetes gives a volume to an account: it belongs to root, and the group of the
 * account may write to it. */
static void a_directory_of_root_may_let_its_group_in(void **state) {
	(void)state;
	struct problem problem = { "" };
	if (geteuid() != 0) {
		skip();
	}
	char above[sizeof dir];
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(above, sizeof above, "%.*s", (int)(strrchr(dir, '/') - dir), dir);
	assert_int_equal(chmod(above, 0711), 0);
	assert_int_equal(chown(dir, 0, 7), 0);
	assert_int_equal(chmod(dir, 02775), 0);
	assert_int_equal(seteuid(7), 0);
	const int let_in = state_file_check(dir, false, &problem);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(let_in, 0);
	assert_int_equal(chmod(dir, 02777), 0);
	assert_int_equal(seteuid(7), 0);
	const int all = state_file_check(dir, false, &problem);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(all, PAWL_EINVAL);
	expect_remedy(problem.text, "run chown 7");
}

/* The disk is really full. The room was taken when the file was made, so that later writes go
 * through. */
static void a_full_disk_does_not_stop_writes(void **state) {
	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	if (mount("none", dir, "tmpfs", 0, "size=128k,mode=700") != 0) {
		skip();
	}
	struct durable d, found;
	struct state_file *f = open_good(&d);
	char path[128], block[4096] = { 1 };
	snprintf(path, sizeof path, "%s/fill", dir);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	while (write(fd, block, sizeof block) > 0) {
	}
	close(fd);
	for (uint64_t boot = 2; boot < 5; boot++) {
		d = sample(d, boot);
		assert_int_equal(state_file_write(f, &d), 0);
	}
	state_file_close(f);
	state_file_close(open_good(&found));
	assert_same(&d, &found);
	assert_int_equal(umount(dir), 0);
}

static void a_disk_too_full_to_begin_leaves_no_file(void **state) {
	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	if (mount("none", dir, "tmpfs", 0, "size=16k,mode=700") != 0) {
		skip();
	}
	struct state_file *f = NULL;
	struct durable d;
	struct problem problem = { "" };
	assert_int_equal(state_file_open(dir, "c", "a", &f, &d, &problem), PAWL_EIO);
	assert_non_null(strstr(problem.text, "No space left"));
	assert_int_not_equal(access(file_path, F_OK), 0);
	assert_int_equal(umount(dir), 0);
}

static void only_what_was_encoded_is_decoded(void **state) {
	(void)state;
	static uint8_t bytes[STATE_SLOT_BYTES];
	struct durable d = { .node_id = { { 1 } } };
	struct state_slot slot = { .sequence = 7, .cluster = "c", .node = "a",
		.durable = sample(d, 3) }, out;
	size_t size = state_encode(&slot, bytes);
	assert_int_equal(state_decode(slice_of(bytes, size), &out), 0);
	assert_int_equal(out.sequence, 7);
	assert_same(&out.durable, &slot.durable);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(state_decode(slice_of(bytes, i), &out), PAWL_EPROTOCOL);
		bytes[i] ^= 0x10;
		assert_int_equal(state_decode(slice_of(bytes, size), &out), PAWL_EPROTOCOL);
		bytes[i] ^= 0x10;
	}
}

static void fill_config(struct config *c, char letter) {
	*c = (struct config){ .epoch = 2, .max_lease = SPAN_S, .request_timeout = SPAN_S,
		.promise_timeout = 2 * SPAN_S, .node_count = CONFIG_NODES_MAX,
		.previous_master_count = MASTERS_MAX };
	memset(c->cluster, letter, NODE_NAME_MAX);
	for (uint32_t i = 0; i < CONFIG_NODES_MAX + MASTERS_MAX; i++) {
		struct config_node *n = i < CONFIG_NODES_MAX ? &c->nodes[i]
			: &c->previous_masters[i - CONFIG_NODES_MAX];
		memset(n->name, letter, NODE_NAME_MAX);
		memset(n->address, letter, ADDRESS_MAX);
		n->master = i % 2;
	}
}

static void the_largest_state_is_read_back(void **state) {
	(void)state;
	static uint8_t bytes[STATE_SLOT_BYTES];
	struct state_slot slot = { .sequence = 7, .durable = { .node_id = { { 1 } } } }, out;
	memset(slot.cluster, 'c', NODE_NAME_MAX);
	memset(slot.node, 'n', NODE_NAME_MAX);
	fill_config(&slot.durable.config, 'x');
	fill_config(&slot.durable.decree_config, 'y');
	size_t size = state_encode(&slot, bytes);
	assert_int_equal(state_decode(slice_of(bytes, size), &out), 0);
	assert_same(&out.durable, &slot.durable);
	assert_int_equal(out.durable.decree_config.previous_masters[8].address[254], 'y');
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

UNIT(state_file) {
	const struct CMUnitTest tests[] = {
		WITH_DIR(a_fresh_directory_gets_a_new_identity_and_mode_0700),
		WITH_DIR(what_was_written_is_read_back),
		WITH_DIR(a_torn_write_at_any_byte_leaves_a_whole_state),
		WITH_DIR(a_failed_write_can_be_repeated),
		WITH_DIR(one_damaged_slot_is_survived_and_two_are_reported),
		WITH_DIR(an_empty_file_is_damage_not_a_new_node),
		WITH_DIR(a_file_of_another_cluster_or_node_is_refused),
		WITH_DIR(two_daemons_never_share_a_directory),
		WITH_DIR(a_directory_that_cannot_be_made_is_named),
		WITH_DIR(a_directory_that_others_may_write_to_is_refused),
		WITH_DIR(a_directory_of_another_account_is_refused),
		WITH_DIR(a_directory_of_root_may_let_its_group_in),
		WITH_DIR(a_full_disk_does_not_stop_writes),
		WITH_DIR(a_disk_too_full_to_begin_leaves_no_file),
		cmocka_unit_test(only_what_was_encoded_is_decoded),
		cmocka_unit_test(the_largest_state_is_read_back),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}

/* These tests compare the ordered tree with a naive model, and check that it stays low, in whatever
 * order its nodes come. */
#include "unit.h"

#include <string.h>

#include "list.h"
#include "prng.h"
#include "treap.h"

#define NODES 3000
/* With this number of nodes in random order, the longest way from the root is about 30. */
#define LOW 48

struct number {
	struct tree_node node;
	uint32_t value;
	bool in;
};

static struct number numbers[NODES];

static uint32_t value_of(const struct tree_node *n) {
	return CONTAINER_OF(n, const struct number, node)->value;
}

static bool before(const void *ctx, const struct tree_node *a, const struct tree_node *b) {
	assert_ptr_equal(ctx, numbers);
	return value_of(a) < value_of(b);
}

static uint32_t height(const struct tree_node *n) {
	if (n == NULL) {
		return 0;
	}
	const uint32_t left = height(n->left), right = height(n->right);
	return 1 + (left > right ? left : right);
}

static void put(struct tree_node **root, uint32_t i) {
	numbers[i] = (struct number){ .value = 2 * i, .in = true };
	tree_insert(root, &numbers[i].node, before, numbers);
}

static void in_order(struct tree_node *root) {
	struct tree_node *n = tree_first(root);
	for (uint32_t i = 0; i < NODES; i++) {
		if (numbers[i].in) {
			assert_ptr_equal(n, &numbers[i].node);
			n = tree_after(root, n, before, numbers);
		}
	}
	assert_null(n);
}

static void nodes_are_found_in_their_order_whatever_comes_and_goes(void **state) {
	struct tree_node *root = NULL;
	struct prng prng;
	(void)state;
	prng_init(&prng, 7);
	memset(numbers, 0, sizeof numbers);
	for (uint32_t n = 0; n < 20 * NODES; n++) {
		const uint32_t i = (uint32_t)prng_below(&prng, NODES);
		if (numbers[i].in) {
			tree_remove(&root, &numbers[i].node, before, numbers);
			numbers[i].in = false;
		} else {
			put(&root, i);
		}
		if (n % NODES == 0) {
			in_order(root);
		}
	}
	in_order(root);
}

static void the_next_one_is_found_from_a_place_where_there_is_none(void **state) {
	struct tree_node *root = NULL;
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		put(&root, i);
	}
	const struct number between = { .value = 41 }, there = { .value = 42 },
		last = { .value = 199 };
	assert_int_equal(value_of(tree_from(root, &between.node, before, numbers)), 42);
	assert_int_equal(value_of(tree_after(root, &between.node, before, numbers)), 42);
	assert_int_equal(value_of(tree_from(root, &there.node, before, numbers)), 42);
	assert_int_equal(value_of(tree_after(root, &there.node, before, numbers)), 44);
	assert_null(tree_from(root, &last.node, before, numbers));
	assert_null(tree_after(NULL, &last.node, before, numbers));
	assert_null(tree_first(NULL));
}

static void a_treap_is_low_in_whatever_order_nodes_come(void **state) {
	struct tree_node *root = NULL;
	(void)state;
	for (uint32_t i = 0; i < NODES; i++) {
		put(&root, i);
	}
	assert_in_range(height(root), 12, LOW);
	root = NULL;
	for (uint32_t i = NODES; i-- > 0;) {
		put(&root, i);
	}
	assert_in_range(height(root), 12, LOW);
	for (uint32_t i = 0; i < NODES; i += 2) {
		tree_remove(&root, &numbers[i].node, before, numbers);
		numbers[i].in = false;
	}
	assert_in_range(height(root), 11, LOW);
	in_order(root);
}

UNIT(base_treap) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_found_in_their_order_whatever_comes_and_goes),
		cmocka_unit_test(the_next_one_is_found_from_a_place_where_there_is_none),
		cmocka_unit_test(a_treap_is_low_in_whatever_order_nodes_come),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}

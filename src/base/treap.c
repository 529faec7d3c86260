/* treap.c: a tree in the caller's order from left to right, and in the order of ranks from the root
 * down. */
#include "treap.h"

#include <stddef.h>
#include <stdint.h>

#include "check.h"

/* Returns a node's rank among its ancestors. It is the node's address, well mixed (by the finalizer
 * of splitmix64), so it needs no memory. */
static uint64_t rank(const struct tree_node *node) {
	uint64_t n = (uint64_t)(uintptr_t)node;
	n = (n ^ (n >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ (n >> 27)) * UINT64_C(0x94d049bb133111eb);
	return n ^ (n >> 31);
}

void tree_insert(struct tree_node **root, struct tree_node *node, tree_before *before,
	const void *ctx) {
	const uint64_t own = rank(node);
	struct tree_node **at = root;
	while (*at && rank(*at) >= own) {
		at = before(ctx, node, *at) ? &(*at)->left : &(*at)->right;
	}
	struct tree_node *rest = *at, **left = &node->left, **right = &node->right;
	/* What is below is split in two. */
	while (rest) {
		if (before(ctx, node, rest)) {
			*right = rest;
			right = &rest->left;
			rest = rest->left;
		} else {
			*left = rest;
			left = &rest->right;
			rest = rest->right;
		}
	}
	*left = *right = NULL;
	*at = node;
}

void tree_remove(struct tree_node **root, struct tree_node *node, tree_before *before,
	const void *ctx) {
	struct tree_node **at = root;
	while (*at != node) {
		CHECK(*at);
		at = before(ctx, node, *at) ? &(*at)->left : &(*at)->right;
	}
	struct tree_node *left = node->left, *right = node->right;
	while (left && right) {
		if (rank(left) > rank(right)) {
			*at = left;
			at = &left->right;
			left = left->right;
		} else {
			*at = right;
			at = &right->left;
			right = right->left;
		}
	}
	*at = left ? left : right;
	node->left = node->right = NULL;
}

struct tree_node *tree_first(struct tree_node *root) {
	while (root && root->left) {
		root = root->left;
	}
	return root;
}

struct tree_node *tree_from(struct tree_node *root, const struct tree_node *probe,
	tree_before *before, const void *ctx) {
	struct tree_node *found = NULL;
	while (root) {
		const bool early = before(ctx, root, probe);
		found = early ? found : root;
		root = early ? root->right : root->left;
	}
	return found;
}

struct tree_node *tree_after(struct tree_node *root, const struct tree_node *probe,
	tree_before *before, const void *ctx) {
	struct tree_node *found = NULL;
	while (root) {
		const bool behind = before(ctx, probe, root);
		found = behind ? root : found;
		root = behind ? root->left : root->right;
	}
	return found;
}

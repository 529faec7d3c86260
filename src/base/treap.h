/* treap.h: an intrusive ordered tree, a treap (Aragon and Seidel, 1989). Its shape is that of a
 * tree whose nodes came in a random order. So a way from the root is as long as the logarithm of
 * the count, whatever the order in which the nodes come.
 *
 * The caller says what comes before what. No two nodes may be alike, and what the order rests on
 * must not change while a node is in a tree. A tree is a pointer to its root; NULL: it is empty. */
#ifndef PAWL_BASE_TREAP_H
#define PAWL_BASE_TREAP_H

#include <stdbool.h>

struct tree_node {
	struct tree_node *left, *right;
};

/* Tells whether `a` comes before `b`. `ctx` is what the caller of the tree handed in. */
typedef bool tree_before(const void *ctx, const struct tree_node *a, const struct tree_node *b);

/* Puts in a node that is in no tree. */
void tree_insert(struct tree_node **root, struct tree_node *node, tree_before *before,
	const void *ctx);

/* Takes out a node, which must be in the tree. */
void tree_remove(struct tree_node **root, struct tree_node *node, tree_before *before,
	const void *ctx);

/* Returns the first node; NULL: the tree is empty. */
struct tree_node *tree_first(struct tree_node *root);

/* Return the first node that is not before `probe`, and the first node that is behind it. `probe`
 * need not be in the tree. NULL: there is none. */
struct tree_node *tree_from(struct tree_node *root, const struct tree_node *probe,
	tree_before *before, const void *ctx);
struct tree_node *tree_after(struct tree_node *root, const struct tree_node *probe,
	tree_before *before, const void *ctx);

#endif

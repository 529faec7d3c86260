/* treap.h: intrusive ordered tree: a treap (Aragon and Seidel, 1989). Its shape is that of a tree whose nodes came in a random
 * order, so that a way from the root is as long as the logarithm of the count, whatever the order in which they come.
 *
 * The caller says what comes before what. No two nodes may be alike, and what the order rests on must not change while a
 * node is in a tree. A tree is a pointer to its root; NULL: it is empty.
 */
#ifndef PAWL_BASE_TREAP_H
#define PAWL_BASE_TREAP_H

#include <stdbool.h>

struct tree_node {
	struct tree_node *left, *right;
};

/* Whether `a` comes before `b`; `ctx` is what the caller of the tree handed in. */
typedef bool tree_before(const void *ctx, const struct tree_node *a, const struct tree_node *b);

void tree_insert(struct tree_node **root, struct tree_node *node, tree_before *before, const void *ctx);
void tree_remove(struct tree_node **root, struct tree_node *node, tree_before *before, const void *ctx); /* must be in the tree */
struct tree_node *tree_first(struct tree_node *root); /* NULL: it is empty */
/* The first node that is not before `probe`, and the first one behind it; `probe` need not be in the tree. NULL: none. */
struct tree_node *tree_from(struct tree_node *root, const struct tree_node *probe, tree_before *before, const void *ctx);
struct tree_node *tree_after(struct tree_node *root, const struct tree_node *probe, tree_before *before, const void *ctx);

#endif

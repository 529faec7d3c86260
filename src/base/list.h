/* list.h: an intrusive circular doubly linked list. A head is a node of its own. An unlinked node
 * has next == NULL. */
#ifndef PAWL_BASE_LIST_H
#define PAWL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct list {
	struct list *next, *prev;
};

/* Converts through a number, so that it serves pointers to const and others alike. */
#define CONTAINER_OF(ptr, type, member) ((type *)((uintptr_t)(ptr) - offsetof(type, member)))

/* Makes an empty list. */
static inline void list_init(struct list *head) {
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head) {
	return head->next == head;
}

static inline bool list_linked(const struct list *node) {
	return node->next != NULL;
}

/* Insert a node that is not linked. What stands before the head is the end of the list. */
static inline void list_append(struct list *head, struct list *node) {
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_insert_before(struct list *at, struct list *node) {
	list_append(at, node);
}

static inline void list_prepend(struct list *head, struct list *node) {
	list_insert_before(head->next, node);
}

/* Unlinks the node. A node that is not linked stays so. */
static inline void list_remove(struct list *node) {
	if (node->next) {
		node->prev->next = node->next;
		node->next->prev = node->prev;
		node->next = node->prev = NULL;
	}
}

/* Moves all nodes of `from` behind those of `to`. */
static inline void list_splice(struct list *to, struct list *from) {
	if (!list_empty(from)) {
		from->next->prev = to->prev;
		to->prev->next = from->next;
		from->prev->next = to;
		to->prev = from->prev;
		list_init(from);
	}
}

/* Returns the first node; NULL: there is none. */
static inline struct list *list_first(const struct list *head) {
	return head->next == head ? NULL : head->next;
}

/* Returns the node after `node`; NULL: it is the last. */
static inline struct list *list_after(const struct list *head, const struct list *node) {
	return node->next == head ? NULL : node->next;
}

#endif

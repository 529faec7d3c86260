/* list.h: intrusive circular doubly linked list. A head is a node of its own; an unlinked node has next == NULL. */
#ifndef PAWL_BASE_LIST_H
#define PAWL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct list {
	struct list *next, *prev;
};

/* Through a number, so that it serves const and other pointers alike. */
#define CONTAINER_OF(ptr, type, member) ((type *)((uintptr_t)(ptr) - offsetof(type, member)))

static inline void list_init(struct list *head) {
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head) {
	return head->next == head;
}

static inline bool list_linked(const struct list *node) {
	return node->next != NULL;
}

static inline void list_insert_before(struct list *at, struct list *node) {
	node->prev = at->prev;
	node->next = at;
	at->prev->next = node;
	at->prev = node;
}

static inline void list_append(struct list *head, struct list *node) {
	list_insert_before(head, node);
}

/* Unlinks; a node that is not linked stays so. */
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

/* First node, or NULL. */
static inline struct list *list_first(const struct list *head) {
	return head->next == head ? NULL : head->next;
}

/* The node after `node`, or NULL at the end. */
static inline struct list *list_after(const struct list *head, const struct list *node) {
	return node->next == head ? NULL : node->next;
}

#endif

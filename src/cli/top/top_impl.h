/* top_impl.h: what the files of pawl top share. */
#ifndef PAWL_CLI_TOP_IMPL_H
#define PAWL_CLI_TOP_IMPL_H

#include <event2/event.h>

#include "output.h"
#include "top.h"

#define TOP_NODES_MAX 64
#define TOP_ROWS_MAX 20
#define TOP_KEY_BYTES 512
#define TOP_OWNER_BYTES 256

/* What a node counts since its start. */
enum top_total { TOP_REQUESTS, TOP_REFUSALS, TOP_GRANTS, TOP_RELEASES, TOP_LOSSES, TOP_TOTALS };
/* Returns the field of the answer, which is also the name in JSON. */
const char *top_total_name(enum top_total total);

/* One of the nodes that are asked. */
struct top_node {
	char *endpoint;
	/* This client talks to this endpoint only. */
	struct pawl *client;
	struct top *top;
	/* How many answers are still to come, of those that were asked for at `asked`. */
	unsigned under_way;
	int64_t asked;
	/* The last answers; NULL if the last request failed, or if there was none. */
	struct pawl_result *said, *status;
	/* Why there is no answer; "" if there is one. `denied`: the node answers, and refuses. */
	char trouble[160];
	bool denied;
	/* How long the last answer took, in microseconds. */
	int64_t took;
	/* The totals of the last answer and when it came; and how much more they are a second than
	 * in the answer before, or -1 if that is not known. */
	int64_t totals[TOP_TOTALS], at;
	double rates[TOP_TOTALS];
};

/* The lists of keys. */
enum top_sort { TOP_BY_GRANTED, TOP_BY_QUEUE, TOP_BY_WAIT, TOP_BY_HOLD, TOP_SORTS };
struct top_list_name {
	/* The fields of the answer: the list, and the number of each of its keys; and whether that
	 * is a time in ms. */
	const char *list, *number;
	bool time;
	/* What people read. */
	const char *title, *column;
};
extern const struct top_list_name top_lists[TOP_SORTS];

struct top_row {
	unsigned char key[TOP_KEY_BYTES], owner[TOP_OWNER_BYTES];
	size_t key_size, owner_size;
	int64_t number;
};

/* What all nodes say together. */
struct top_view {
	size_t answering;
	/* As the node that sees most says: the masters that vote, how many there must be, and how
	 * many there are. */
	int64_t voting, quorum, masters;
	int64_t waiting;
	/* -1 means that the rate is not known. */
	double rates[TOP_TOTALS];
	struct {
		size_t count;
		struct top_row rows[TOP_ROWS_MAX];
	} lists[TOP_SORTS];
};

struct top {
	const struct cli_command_line *line;
	struct pawl_bytes prefix;
	/* The memory that the texts of the endpoints point into. */
	char *endpoints;
	struct event_base *base;
	struct top_node nodes[TOP_NODES_MAX];
	size_t count;
	/* How often it is shown, 0 for always; and how often it was. */
	uint64_t shows, shown;
	/* Some node has answered. */
	bool answered;
	/* There is a screen. */
	bool screen;
	enum top_sort sort;
	/* The first row of the list that is shown. */
	size_t first;
	struct top_view view;
};

/* Puts together what the nodes have said last (top_view.c). */
void top_look(struct top *t);
/* A node that takes longer than this is called slow, in microseconds. */
#define TOP_SLOW_US 100000
/* Returns "ok", "slow", "silent", "denied" or "not ready". */
const char *top_node_word(const struct top_node *n);

/* Print a line for programs that read text, and an object (top_print.c). */
void top_print_line(const struct top *t);
void top_print_json(const struct top *t);

/* The screen (top_screen.c): opens it, draws it, reads a key of the keyboard, and closes it. A key
 * that ends the command makes top_screen_key return false. */
bool top_screen_open(void);
void top_screen_draw(const struct top *t);
bool top_screen_key(struct top *t);
void top_screen_close(void);

#endif

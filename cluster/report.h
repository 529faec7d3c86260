/* report.h: what masters report of a key (report.c), and how much of it there is room for. Part of functions.h. */
#ifndef PAWL_CLUSTER_REPORT_H
#define PAWL_CLUSTER_REPORT_H

enum out_backlog { BACKLOG_SMALL, BACKLOG_SOME, BACKLOG_LARGE };
enum out_backlog out_backlog(const struct core *core, uint32_t peer); /* outbox.c */

#define REPORT_PIECE_MAX 128
/* The first of the key's records in the order of their lock_ids, after the one that `m` names (its number: 0: from the beginning). */
uint32_t report_pick(const struct key *key, const struct message *m, uint32_t most, const struct record *piece[REPORT_PIECE_MAX], uint32_t *left);
void master_read(struct core *core, uint32_t from, const struct message *m);
bool report_value_left_out(const struct core *core, const struct record *r, bool alone, enum out_backlog backlog);
void report_ask_all(struct core *core, struct op *op, bool rest);
void report_part(struct core *core, struct op *op, uint32_t from, const struct message *m);
bool report_fetch(struct core *core, struct op *op, const struct record *lacks);
bool report_fetched(struct core *core, struct op *op, uint32_t from, const struct message *m);
bool report_may_begin(struct core *core, struct op *op); /* false: it stands in line */
void report_over(struct core *core, struct op *op);
bool report_due(const struct core *core);
bool report_run(struct core *core);

#endif

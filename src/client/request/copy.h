/* copy.h: copies for the program what a node says about holders, waiters and acquired locks. */
#ifndef PAWL_CLIENT_COPY_H
#define PAWL_CLIENT_COPY_H

#include "client.h"
#include "pawl/pawl.h"

/* An entry in which all texts are empty and nothing is known. */
extern const struct pawl_entry copy_no_entry;

/* These functions return 0 or PAWL_ENOMEM. */
int copy_entry(struct arena *arena, const struct client_entry *from, struct pawl_entry *to);
int copy_seq(struct arena *arena, struct ballot ballot, struct pawl_bytes *out);
int copy_slots(struct arena *arena, struct permits from, const uint32_t **out, size_t *out_count);
/* Copies the lists of an answer: entries, holders, waiters, extended and got. */
int copy_lists(struct arena *arena, const struct client_response *r, struct pawl_result *to);
enum pawl_mode copy_mode(enum client_mode mode);

#endif

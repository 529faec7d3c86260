/* bind.h: locks that end with the connection (docs/protocol.md, Release on disconnect). Each has a bond, the number of the
 * connection that ends it: on a new one it is extended under the next number before anything else. A connection that was given
 * up from this side stays open until no lock depends on it any more: its node would release them.
 */
#ifndef PAWL_CLIENT_BIND_H
#define PAWL_CLIENT_BIND_H

#include "lock.h"

void bind_init(struct pawl *hub);
void bind_done(struct pawl *hub);
/* The line was up and is about to be closed; then, when it is. */
void bind_line_lost(struct pawl *hub);
void bind_anew(struct pawl *hub);
/* Once a turn: closes what no lock depends on any more. */
void bind_turn(struct pawl *hub);

/* The lock was got over the present line. */
void bind_begin(struct pawl_lock *lock);
/* It is bound to another line than the present one. */
bool bind_wanted(const struct pawl_lock *lock);
/* The number to extend it under over the present line. */
uint32_t bind_number(struct pawl_lock *lock);
/* That was accepted. */
void bind_made(struct pawl_lock *lock, unsigned line_number);

#endif

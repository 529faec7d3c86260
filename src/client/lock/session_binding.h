/* session_binding.h: locks that end with the connection (docs/protocol.md, Release on disconnect). The bond of each is the number of the
 * connection that ends it: over a new one it is extended under that one's number before anything else. A connection that was given up
 * from this side stays open until no lock depends on it any more: its node would release them.
 */
#ifndef PAWL_CLIENT_SESSION_BINDING_H
#define PAWL_CLIENT_SESSION_BINDING_H

#include "lock.h"

void session_binding_init(struct pawl *client);
void session_binding_done(struct pawl *client);
void session_binding_connection_up(struct pawl *client);
/* The present connection could not be kept open as well if it were given up for another node. */
bool session_binding_full(const struct pawl *client);
/* The connection was up and is about to be closed; then, when it is. */
void session_binding_connection_lost(struct pawl *client);
void session_binding_anew(struct pawl *client);
/* Once a turn: closes what no lock depends on any more. */
void session_binding_turn(struct pawl *client);

/* The lock was got over the present connection. */
void session_binding_begin(struct pawl_lock *lock);
/* It is bound to another connection than the present one. */
bool session_binding_wanted(const struct pawl_lock *lock);
/* An extension under that connection's number was accepted. */
void session_binding_made(struct pawl_lock *lock, unsigned connection_number);

#endif

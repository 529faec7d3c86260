/* session_binding.h: locks that end with the connection (docs/protocol.md, Release on disconnect).
 * The number of a lock's session binding is the number of the connection that ends the lock. When a
 * new connection comes up, the lock is extended under the number of that connection before anything
 * else. A connection that this client has given up stays open until no lock depends on it any more,
 * because its node would release those locks. */
#ifndef PAWL_CLIENT_SESSION_BINDING_H
#define PAWL_CLIENT_SESSION_BINDING_H

#include "lock.h"

void session_binding_init(struct pawl *client);
void session_binding_done(struct pawl *client);
void session_binding_connection_up(struct pawl *client);
/* Returns whether no room would be left to keep the present connection open, too, if it were given
 * up for another node. */
bool session_binding_full(const struct pawl *client);
/* The first function is called when a connection that was up is about to be closed; the second one
 * when it has been closed. */
void session_binding_connection_lost(struct session *session);
void session_binding_rebind(struct pawl *client);
/* Closes the connections that no lock depends on any more. Call this once in each turn of the
 * loop. */
void session_binding_turn(struct pawl *client);

/* Returns whether closing this session could end a lock that somebody still trusts. */
bool session_binding_needs(const struct session *session);

/* The lock was acquired over the connection with that number. */
void session_binding_begin(struct pawl_lock *lock, unsigned connection_number);
/* Returns whether the lock is bound to another connection than the present one. */
bool session_binding_wanted(const struct pawl_lock *lock);
/* The lock was answered under the number of that connection. Returns true if it has moved there
 * from an earlier one: then only this answer counts. */
bool session_binding_made(struct pawl_lock *lock, unsigned connection_number);

#endif

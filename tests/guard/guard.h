/* guard.h: lets a test hear what a core says to itself. */
#ifndef PAWL_GUARD_H
#define PAWL_GUARD_H

#include "core.h"

/* From now on `local` is called when a core has handled one message of its own to itself, and is
 * about to handle the next one, `m`; NULL: there is none. A `local` of NULL ends that. */
void guard_listen(void (*local)(void *ctx, struct core *core, const struct message *m), void *ctx);

#endif

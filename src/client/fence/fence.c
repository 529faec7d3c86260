/* fence.c: how a resource checks a token (docs/protocol.md, section 8.2). */
#include "pawl/pawl.h"

bool pawl_fence_check(uint64_t *highest, uint64_t token) {
	if (token == 0 || token < *highest) {
		return false;
	}
	*highest = token;
	return true;
}

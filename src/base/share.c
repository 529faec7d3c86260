/* share.c: the names of the shares. */
#include "share.h"

const char *const share_kind_name[SHARE_KINDS] = {
#define SHARE_NAME(name, text, what) [SHARE_##name] = text,
	SHARE_TABLE(SHARE_NAME)
#undef SHARE_NAME
};

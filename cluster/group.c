/* group.c: several keys at once, all or none (section 11). */
#include "state.h"

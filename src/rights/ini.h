/* ini.h: the lines of an INI file: [section], `name = value`, comments. Pure; what a name means is the caller's business.
 *
 * Written here because the usual library cuts long lines and hands over the cut value, and loses line numbers. */
#ifndef PAWL_RIGHTS_INI_H
#define PAWL_RIGHTS_INI_H

#include "slice.h"

#define INI_NAME_MAX 255
#define INI_VALUE_MAX 4095

struct ini {
	struct slice rest;
	unsigned line; /* of the item returned last */
};

enum ini_kind { INI_END, INI_SECTION, INI_VALUE, INI_WRONG };

struct ini_item {
	char name[INI_NAME_MAX + 1]; /* of the section or value */
	char value[INI_VALUE_MAX + 1];
	struct slice where; /* the section's name, or the value, as it stands in the text */
	const char *wrong; /* what is wrong and the remedy; static storage */
};

void ini_init(struct ini *ini, struct slice text);
enum ini_kind ini_next(struct ini *ini, struct ini_item *out);

#endif

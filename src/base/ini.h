/* ini.h: the lines of an INI file: [section], `name = value`, comments. What a name means is the
 * caller's business.
 *
 * It was written for Pawl because the usual library cuts long lines and hands over the cut value,
 * and loses line numbers. */
#ifndef PAWL_BASE_INI_H
#define PAWL_BASE_INI_H

#include "slice.h"

#define INI_NAME_MAX 255
#define INI_VALUE_MAX 4095

struct ini {
	struct slice rest;
	/* The line of the item that was returned last, counted from 1. */
	unsigned line;
};

enum ini_kind { INI_END, INI_SECTION, INI_VALUE, INI_WRONG };

struct ini_item {
	/* The name of the section or of the value. */
	char name[INI_NAME_MAX + 1];
	char value[INI_VALUE_MAX + 1];
	/* The section's name, or the value, as it stands in the text. */
	struct slice where;
	/* INI_WRONG: what is wrong, and the remedy. It is static storage. */
	const char *wrong;
};

/* Begins with the first line. The text is borrowed as long as items are read. */
void ini_init(struct ini *ini, struct slice text);

/* Reads the next item into *out. INI_END: there are no more. */
enum ini_kind ini_next(struct ini *ini, struct ini_item *out);

#endif

/* json_page.h: writes an object of MessagePack as JSON. So an answer of the client protocol has the
 * same names and values in JSON. */
#ifndef PAWL_ADMIN_JSON_PAGE_H
#define PAWL_ADMIN_JSON_PAGE_H

#include "page.h"
#include "unpack.h"

/* Takes one object and writes it. Strings that are not UTF-8, and everything binary, become hex
 * digits; a number with the name config_hash becomes a string of 16 hex digits, because programs
 * read numbers of JSON with 53 bits. A bad reader makes the page bad. */
void json_page_object(struct page *p, struct unpack *u);

#endif

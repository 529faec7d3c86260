/* json_page.h: writes an object of MessagePack as JSON. So an answer of the client protocol has the
 * same names and values in JSON. */
#ifndef PAWL_ADMIN_JSON_PAGE_H
#define PAWL_ADMIN_JSON_PAGE_H

#include "page.h"
#include "unpack.h"

/* Takes one object and writes it. A bad reader makes the page bad. Strings that are not UTF-8
 * become hex digits, and so does what is binary, except for the fields of maps: those that are
 * UTF-8 become strings, and the names of those that are not get the ending "_hex", as with
 * `pawl --json`. A value_seq and a position are always hex digits. A number with the name
 * config_hash becomes a string of 16 hex digits, because programs read numbers of JSON with 53
 * bits. */
void json_page_object(struct page *p, struct unpack *u);

#endif

/* endpoint_list.c: the endpoints that the sources of a client give. */
#include "endpoint_list.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"

/* ---- sources ---- */

static void source_done(struct endpoint_list *list, struct endpoint_source *s) {
	look_up_abandon(s->look_up);
	alloc_free(list->alloc, s->places, s->place_count * sizeof(s->places[0]));
}

static void sources_free(struct endpoint_list *list) {
	for (size_t i = 0; i < list->source_count; i++) {
		source_done(list, &list->sources[i]);
	}
	alloc_free(list->alloc, list->sources, list->source_count * sizeof(list->sources[0]));
}

struct endpoint_source *endpoint_list_source(struct endpoint_list *list, unsigned number) {
	for (size_t i = 0; i < list->source_count; i++) {
		if (list->sources[i].given.source == number) {
			return &list->sources[i];
		}
	}
	return NULL;
}

struct endpoint_source *endpoint_list_looking(struct endpoint_list *list,
	const struct look_up *look_up) {
	for (size_t i = 0; i < list->source_count; i++) {
		if (list->sources[i].look_up == look_up) {
			return &list->sources[i];
		}
	}
	return NULL;
}

/* ---- from sources to endpoints ---- */

/* Returns whether the host stands for more than one node: one address of each family is still the
 * address of one. */
static bool shares_host(const struct endpoint_source *s, const struct look_up_place *p) {
	size_t v4 = 0, v6 = 0;
	for (size_t i = 0; i < s->place_count; i++) {
		const struct look_up_place *other = &s->places[i];
		if (strcmp(other->host, p->host) == 0 && strcmp(other->port, p->port) == 0) {
			v4 += other->addr.ss_family == AF_INET;
			v6 += other->addr.ss_family == AF_INET6;
		}
	}
	return v4 > 1 || v6 > 1;
}

static void write_place(const struct endpoint_source *s, const struct look_up_place *p,
	struct endpoint *out) {
	char address[INET6_ADDRSTRLEN + IF_NAMESIZE + 1] = "";
	*out = s->given;
	memcpy(out->host, p->host, sizeof(out->host));
	memcpy(out->port, p->port, sizeof(out->port));
	memcpy(&out->address.addr, &p->addr, p->size);
	out->address.size = p->size;
	bool shares = shares_host(s, p)
		&& getnameinfo((const struct sockaddr *)&p->addr, p->size, address, sizeof(address),
			NULL, 0, NI_NUMERICHOST) == 0;
	(void)snprintf(out->text, sizeof(out->text), "%s%s:%s%s%s", out->tls ? "tls://" : "",
		out->host, out->port, shares ? "@" : "", shares ? address : "");
}

/* Each source has at least one endpoint, and the last ones of those with many are left out if there
 * are too many in all. */
static size_t share_of(const struct endpoint_source *s, size_t room) {
	size_t wants = s->place_count ? s->place_count : 1;
	return wants < room ? wants : room;
}

static int expand(struct endpoint_list *list) {
	size_t count = 0;
	for (size_t i = 0; i < list->source_count; i++) {
		size_t after = list->source_count - 1 - i;
		count += share_of(&list->sources[i], ENDPOINTS_MAX - count - after);
	}
	struct endpoint *items = alloc_new(list->alloc, count * sizeof(items[0]));
	if (!items) {
		return PAWL_ENOMEM;
	}
	size_t at = 0;
	for (size_t i = 0; i < list->source_count; i++) {
		const struct endpoint_source *s = &list->sources[i];
		size_t share = share_of(s, ENDPOINTS_MAX - at - (list->source_count - 1 - i));
		for (size_t k = 0; k < share; k++, at++) {
			if (s->place_count) {
				write_place(s, &s->places[k], &items[at]);
			} else {
				items[at] = s->given;
			}
		}
	}
	alloc_free(list->alloc, list->items, list->count * sizeof(list->items[0]));
	list->items = items;
	list->count = count;
	return 0;
}

size_t endpoint_list_find(const struct endpoint_list *list, const struct endpoint *e,
	size_t otherwise) {
	size_t first = list->count;
	for (size_t i = list->count; i-- > 0;) {
		if (endpoint_same(&list->items[i], e)) {
			return i;
		}
		first = list->items[i].source == e->source ? i : first;
	}
	if (first < list->count) {
		return first;
	}
	return otherwise < list->count ? otherwise : list->count - 1;
}

/* ---- what a look-up has found ---- */

static bool place_same(const struct look_up_place *a, const struct look_up_place *b) {
	return a->size == b->size && memcmp(&a->addr, &b->addr, a->size) == 0
		&& strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/* Returns the index of the place among the first `count`; `count` if it is none of them. */
static size_t place_find(const struct look_up_place *places, size_t count,
	const struct look_up_place *p) {
	size_t i = 0;
	while (i < count && !place_same(&places[i], p)) {
		i++;
	}
	return i;
}

/* A weight of 0 has a small chance as well. */
static uint64_t chance(const struct look_up_place *p) {
	return (uint64_t)p->weight * 256 + 1;
}

static void place_swap(struct look_up_place *a, struct look_up_place *b) {
	struct look_up_place kept = *a;
	*a = *b;
	*b = kept;
}

/* Puts them into the order of chance; their ranks do not matter yet. */
static void shuffle(struct prng *prng, struct look_up_place *places, size_t count) {
	for (size_t i = 0; i + 1 < count; i++) {
		uint64_t total = 0;
		for (size_t k = i; k < count; k++) {
			total += chance(&places[k]);
		}
		uint64_t drawn = prng_below(prng, total);
		size_t chosen = i;
		while (drawn >= chance(&places[chosen])) {
			drawn -= chance(&places[chosen++]);
		}
		place_swap(&places[i], &places[chosen]);
	}
}

/* Sorts by rank, and keeps the order of those of the same rank. */
static void sort_by_rank(struct look_up_place *places, size_t count) {
	for (size_t i = 1; i < count; i++) {
		for (size_t k = i; k > 0 && places[k - 1].rank > places[k].rank; k--) {
			place_swap(&places[k - 1], &places[k]);
		}
	}
}

/* Fills `out` with what was found, each place once. Returns how many there are. */
static size_t merge(const struct endpoint_list *list, const struct endpoint_source *s,
	const struct look_up_found *found, struct look_up_place *out) {
	size_t count = 0;
	for (size_t i = 0; i < s->place_count; i++) {
		size_t at = place_find(found->places, found->count, &s->places[i]);
		if (at < found->count) {
			out[count++] = found->places[at];
		}
	}
	size_t known = count;
	for (size_t i = 0; i < found->count; i++) {
		if (place_find(out, count, &found->places[i]) == count) {
			out[count++] = found->places[i];
		}
	}
	if (list->shuffle) {
		shuffle(list->shuffle, out + known, count - known);
	}
	sort_by_rank(out, count);
	return count;
}

void endpoint_list_found(struct endpoint_list *list, struct endpoint_source *source,
	const struct look_up_found *found) {
	struct endpoint_source before = *source;
	struct look_up_place merged[LOOK_UP_PLACES_MAX];
	size_t count = merge(list, source, found, merged);
	struct look_up_place *places = count
		? alloc_new(list->alloc, count * sizeof(places[0]))
		: NULL;
	if (!places) {
		return;
	}
	memcpy(places, merged, count * sizeof(places[0]));
	source->places = places;
	source->place_count = count;
	if (expand(list) != 0) {
		alloc_free(list->alloc, places, count * sizeof(places[0]));
		*source = before;
		return;
	}
	alloc_free(list->alloc, before.places, before.place_count * sizeof(places[0]));
}

/* ---- reading ---- */

/* A source that was there before keeps its number, its addresses and its look-up. */
static void carry_over(struct endpoint_list *list, struct endpoint_source *to) {
	for (size_t i = 0; i < list->source_count; i++) {
		struct endpoint_source *from = &list->sources[i];
		if (strcmp(from->given.text, to->given.text) == 0) {
			*to = *from;
			from->look_up = NULL;
			from->places = NULL;
			from->place_count = 0;
			return;
		}
	}
	to->given.source = ++list->last_source;
}

static int take_sources(struct endpoint_list *list, const struct endpoint_sources *read) {
	struct endpoint_source *sources = alloc_new(list->alloc,
		read->count * sizeof(sources[0]));
	if (!sources) {
		return PAWL_ENOMEM;
	}
	memcpy(sources, read->items, read->count * sizeof(sources[0]));
	for (size_t i = 0; i < read->count; i++) {
		carry_over(list, &sources[i]);
	}
	sources_free(list);
	list->sources = sources;
	list->source_count = read->count;
	return expand(list);
}

/* Returns 0, PAWL_EINVAL or PAWL_ENOMEM. */
static int read_list(struct endpoint_list *list, const char **out_problem) {
	struct endpoint_sources *read = alloc_new(list->alloc, sizeof(*read));
	if (!read) {
		return PAWL_ENOMEM;
	}
	int error = endpoint_sources_parse(read, list->text.data, out_problem);
	memcpy(list->seen, read->seen, sizeof(list->seen));
	list->file_count = read->file_count;
	error = error ? error : take_sources(list, read);
	if (error == PAWL_ENOMEM) {
		/* The files are read again the next time. */
		memset(list->seen, 0, sizeof(list->seen));
	}
	alloc_free(list->alloc, read, sizeof(*read));
	return error;
}

int endpoint_list_parse(struct endpoint_list *list, const struct allocator *alloc,
	struct prng *prng, const char *text, const char **out_problem) {
	*list = (struct endpoint_list){ .alloc = alloc, .shuffle = prng };
	if (!text || !*text) {
		*out_problem = "no endpoint is given";
		return PAWL_EINVAL;
	}
	int error = kept_bytes_copy(alloc, (struct pawl_bytes){ text, strlen(text) + 1 },
		&list->text);
	error = error ? error : read_list(list, out_problem);
	if (error) {
		endpoint_list_done(list);
	}
	return error;
}

void endpoint_list_done(struct endpoint_list *list) {
	if (list->alloc) {
		sources_free(list);
		alloc_free(list->alloc, list->items, list->count * sizeof(list->items[0]));
		kept_bytes_free(list->alloc, list->text);
	}
	*list = (struct endpoint_list){ 0 };
}

void endpoint_list_read_again(struct endpoint_list *list) {
	if (!list->file_count || !endpoint_files_changed(list->text.data, list->seen)) {
		return;
	}
	const char *problem = "there is no memory";
	list->problem[0] = '\0';
	if (read_list(list, &problem) != 0) {
		(void)snprintf(list->problem, sizeof(list->problem),
			"; what was read before is still in use: %s", problem);
	}
}

void endpoint_list_dial_by(struct endpoint_list *list, struct endpoint_dial by) {
	static const char text[] = "inside";
	CHECK(list->count == 1);
	list->items[0].address.by = by;
	memcpy(list->items[0].text, text, sizeof(text));
	list->sources[0].given = list->items[0];
}

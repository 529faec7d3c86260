/* client_terms.c: the parameters that say what a lock excludes, in which order requests are served,
 * and what the holder says about itself. */
#include "client_field.h"
#include "client_terms.h"

#include "check.h"

/* ---- readers ---- */

const char *client_take_mode(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	int choice = client_take_choice(u, "exclusive", "shared");
	r->core.terms.of = choice == 1 ? (uint16_t)MODE_SHARED : (uint16_t)MODE_EXCLUSIVE;
	return choice < 0
		? "must be \"exclusive\" or \"shared\"; "
			"permits of a semaphore are asked for with permits and of"
		: NULL;
}

static const char *terms_take_permits(struct unpack *u, uint16_t *out) {
	_Static_assert(PERMITS_MAX == 128, "the text below says it");
	uint64_t count = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (count < 1 || count > PERMITS_MAX) {
		return "must be a whole number from 1 to 128";
	}
	*out = (uint16_t)count;
	return NULL;
}

const char *client_take_permits(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return terms_take_permits(u, &r->core.terms.count);
}

const char *client_take_of(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return terms_take_permits(u, &r->core.terms.of);
}

const char *client_take_priority(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	enum unpack_type type = unpack_peek(u);
	int64_t priority = INT64_MAX;
	if (type == UNPACK_NEGATIVE) {
		priority = unpack_int(u);
	} else if (type == UNPACK_UINT) {
		/* The number may be too large for a type with a sign. */
		uint64_t number = unpack_uint(u, UINT64_MAX);
		priority = number <= INT32_MAX ? (int64_t)number : INT64_MAX;
	}
	if (priority < INT32_MIN || priority > INT32_MAX) {
		return "must be a whole number from -2147483648 to 2147483647; greater is earlier";
	}
	r->core.terms.priority = (int32_t)priority;
	return NULL;
}

const char *client_take_lock_delay(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 0, &r->core.terms.delay);
}

/* Sets the number of the connection that ends the lock. The core reads it in the terms of an
 * acquire, and in the request of an extension. */
static void set_binding(struct client_request *r, uint32_t named) {
	r->core.binding = named;
	r->core.terms.binding = !r->release_on_disconnect && !r->core.ordered ? 0
		: named ? named : 1;
}

const char *client_take_release_on_disconnect(struct unpack *u, struct client_request *r,
	int *error) {
	(void)error;
	const char *problem = client_take_bool(u, &r->release_on_disconnect);
	set_binding(r, r->core.binding);
	return problem;
}

const char *client_take_binding(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t binding = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (binding < 1 || binding > UINT32_MAX) {
		return "must be a whole number from 1 to 4294967295: which of the holder's "
			"connections this is";
	}
	set_binding(r, (uint32_t)binding);
	return NULL;
}

const char *client_take_order(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t order = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (order < 1 || order > UINT32_MAX) {
		return "must be a whole number from 1 to 4294967295: how often the lease was "
			"shortened, counted with this request";
	}
	r->core.ordered = true;
	set_binding(r, (uint32_t)order);
	return NULL;
}

const char *client_take_permit_numbers(struct unpack *u, struct client_request *r, int *error) {
	static const char *const wrong =
		"must be a list of the permits that the lock has: different whole numbers from 0 "
		"to 127, as its answer named them";
	(void)error;
	uint32_t count = unpack_peek(u) == UNPACK_ARRAY ? unpack_array(u) : 0;
	for (uint32_t i = 0; i < count && i < PERMITS_MAX; i++) {
		uint64_t n =
			unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : PERMITS_MAX;
		if (n >= PERMITS_MAX || permits_has(r->core.terms.set, (uint32_t)n)) {
			return wrong;
		}
		r->core.terms.set.w[n / 64] |= (uint64_t)1 << (n % 64);
	}
	return count < 1 || count > PERMITS_MAX ? wrong : NULL;
}

const char *client_take_label(struct unpack *u, struct client_request *r, int *error) {
	_Static_assert(CLIENT_LABEL_MAX == 128, "the text below says it");
	return client_take_bytes(u, CLIENT_LABEL_MAX, "must be at most 128 bytes", &r->label.text,
		error);
}

const char *client_take_host(struct unpack *u, struct client_request *r, int *error) {
	_Static_assert(CLIENT_HOST_MAX == 64, "the text below says it");
	return client_take_bytes(u, CLIENT_HOST_MAX, "must be at most 64 bytes", &r->label.host,
		error);
}

const char *client_take_pid(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t pid = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : 0;
	if (pid < 1 || pid > UINT32_MAX) {
		return "must be a whole number from 1 to 4294967295; leave it out if there is none";
	}
	r->label.pid = (uint32_t)pid;
	return NULL;
}

const char *client_take_election(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->label.election);
}

const char *client_terms_problem(const struct client_request *r, const char **out_field) {
	bool permits = (r->present & CLIENT_HAS_PERMITS) != 0,
		of = (r->present & CLIENT_HAS_OF) != 0;
	*out_field = "permits";
	if ((permits || of) && (r->present & CLIENT_HAS_MODE)) {
		*out_field = "mode";
		return "must not be given together with permits and of: a lock is exclusive, "
			"shared, or permits of a semaphore";
	}
	if (permits && !of) {
		*out_field = "of";
		return "is missing: with permits it says how many the semaphore has in all";
	}
	if (of && !permits) {
		return "is missing: with of it says how many are wanted";
	}
	if (permits && r->core.terms.count > r->core.terms.of) {
		return "must not be more than of, which is all that the semaphore has";
	}
	return NULL;
}

const char *client_order_problem(const struct client_request *r, const char **out_field) {
	if ((r->present & CLIENT_HAS_ORDER) &&
		((r->present & CLIENT_HAS_BINDING) || r->release_on_disconnect)) {
		*out_field = "order";
		return "is for a lock that ends with no connection: a lock with "
			"release_on_disconnect is numbered by bond alone";
	}
	if (r->core.shorten && !(r->present & (CLIENT_HAS_ORDER | CLIENT_HAS_BINDING))) {
		*out_field = "shorten";
		return "needs order, or bond if the lock ends with its connection: a number that "
			"is greater than all that were named for the lock";
	}
	return NULL;
}

/* ---- the client's side ---- */

static void terms_put_mode(struct pack *k, uint16_t of) {
	pack_text(k, of == MODE_SHARED ? "shared" : "exclusive");
}

void client_terms_put(struct pack *k, const struct client_request *r, uint64_t param) {
	const struct terms *terms = &r->core.terms;
	if (param == CLIENT_HAS_MODE) {
		terms_put_mode(k, terms->of);
	} else if (param == CLIENT_HAS_PERMITS) {
		pack_uint(k, terms->count);
	} else if (param == CLIENT_HAS_OF) {
		pack_uint(k, terms->of);
	} else if (param == CLIENT_HAS_NUMBERS) {
		client_permit_numbers_put(k, terms->set);
	} else if (param == CLIENT_HAS_PRIORITY) {
		pack_int(k, terms->priority);
	} else if (param == CLIENT_HAS_LOCK_DELAY) {
		pack_uint(k, span_ms_up(terms->delay));
	} else if (param == CLIENT_HAS_RELEASE_ON_DISCONNECT) {
		pack_bool(k, r->release_on_disconnect);
	} else if (param == CLIENT_HAS_BINDING || param == CLIENT_HAS_ORDER) {
		pack_uint(k, r->core.binding);
	} else if (param == CLIENT_HAS_LABEL) {
		pack_bin(k, r->label.text);
	} else if (param == CLIENT_HAS_HOST) {
		pack_bin(k, r->label.host);
	} else if (param == CLIENT_HAS_ELECTION) {
		pack_bool(k, r->label.election);
	} else {
		CHECK(param == CLIENT_HAS_PID);
		pack_uint(k, r->label.pid);
	}
}

static void terms_put_lock(struct pack *k, const struct core_lock *lock) {
	struct pack_open map = pack_map_open(k);
	pack_key(k, &map, "key");
	pack_bin(k, lock->key);
	if (!id128_zero(lock->lock_id)) {
		pack_key(k, &map, "lock_id");
		pack_bin(k, slice_of(lock->lock_id.b, sizeof lock->lock_id.b));
	}
	if (lock->count) {
		pack_key(k, &map, "permits");
		pack_uint(k, lock->count);
		pack_key(k, &map, "of");
		pack_uint(k, lock->of);
	} else if (lock->of == MODE_SHARED) {
		pack_key(k, &map, "mode");
		terms_put_mode(k, lock->of);
	}
	pack_map_close(k, &map);
}

void client_terms_put_group(struct pack *k, const struct client_request *r) {
	pack_array(k, r->core.lock_count);
	for (uint32_t i = 0; i < r->core.lock_count && !k->error; i++) {
		terms_put_lock(k, &r->core.locks[i]);
	}
}

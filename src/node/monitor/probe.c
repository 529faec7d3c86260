/* probe.c: one read of a quorum after the other. */
#include "probe.h"

#include "client_method.h"
#include "pawl/error.h"
#include "time_source.h"

void probe_heard(struct probe *p, const struct core_reply *reply) {
	if (!p->under_way || reply->id != p->id) {
		return;
	}
	p->under_way = false;
	if (reply->error == PAWL_EBUSY) {
		/* Nobody was asked, because this node has too many operations under way. */
		return;
	}
	span_ns took = instant_elapsed_long(p->driver->last, p->begun);
	/* Masters that disagree about a key have answered. */
	bool answered = !reply->error || reply->error == PAWL_EINDETERMINATE;
	bool in_time = took <= core_config(p->driver->core)->request_timeout;
	p->found = answered && in_time ? PROBE_OK : PROBE_FAILED;
	p->answered = 0;
	if (reply->error == PAWL_ENOQUORUM) {
		uint32_t masters = config_masters(core_config(p->driver->core));
		uint32_t silent = (uint32_t)__builtin_popcountll(reply->silent);
		p->answered = masters > silent ? masters - silent : 0;
	}
	if (answered) {
		buckets_add(&p->took, took);
	}
}

void probe_init(struct probe *p, struct driver *driver) {
	*p = (struct probe){ .driver = driver, .found = PROBE_OFF };
}

void probe_start(struct probe *p) {
	struct driver *d = p->driver;
	if (p->under_way) {
		return;
	}
	p->under_way = true;
	p->begun = time_source_now();
	p->id = (p->id + 1) | DRIVER_PROBE;
	const struct core_request request = { .id = p->id, .client = DRIVER_PROBE, .op = CORE_GET,
		.key = slice_str(CLIENT_PROBE_KEY), .quorum = true };
	const struct core_event event = { .kind = CORE_REQUEST, .request = &request,
		.client = request.client };
	driver_step(d, &event, p->begun);
	if (core_out_unheard(d->out)) {
		p->under_way = false;
		p->found = PROBE_FAILED;
		p->answered = 0;
	}
}

enum probe_state probe_state_at(const struct probe *p, struct instant now, uint32_t *out_answered) {
	bool late = p->under_way && instant_elapsed_long(now, p->begun)
		> core_config(p->driver->core)->request_timeout;
	/* This node answers itself. */
	*out_answered = p->answered > 0 ? p->answered : 1;
	return late ? PROBE_FAILED : p->found;
}

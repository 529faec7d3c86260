/* drain.c: drains the core, writes the side file and syncs it in a thread, and then tells the
 * askers.
 */
#include "drain.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "job.h"
#include "log.h"
#include "pawl/error.h"
#include "side_file.h"

struct drain_asker {
	struct list among;
	drain_done *done;
	void *ctx;
	uint64_t tag;
};

/* What the thread works on. */
struct drain_write {
	struct side_writer *writer;
	int error;
};

/* ---- the file ---- */

static int drain_write_frames(struct drain *d, struct side_writer *writer, struct buffer *packet) {
	struct frame frame;
	struct slice body;
	while (core_drain_frame(d->driver->core, driver_now(d->driver), &frame)) {
		buffer_clear(packet);
		int error = peer_frame_encode(&frame, packet);
		if (error) {
			return error;
		}
		CHECK(peer_scan(buffer_slice(packet), PEER_BODY_BYTES_MAX, &body, NULL)
			== PEER_SCAN_COMPLETE);
		error = side_writer_add(writer, body);
		if (error) {
			return error;
		}
	}
	return 0;
}

static int drain_write_all(struct drain *d, uint64_t boot, struct side_writer **out) {
	struct allocator libc = alloc_libc(NULL);
	struct buffer packet;
	struct side_writer *writer = NULL;
	int error = side_writer_open(d->dir, d->node_id, boot, &writer);
	if (error) {
		return error;
	}
	buffer_init(&packet, &libc, PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX);
	error = drain_write_frames(d, writer, &packet);
	buffer_done(&packet);
	if (error) {
		side_writer_abort(writer);
		return error;
	}
	*out = writer;
	return 0;
}

static void drain_run(void *data) {
	struct drain_write *write = data;
	write->error = side_writer_finish(write->writer);
}

/* ---- telling ---- */

static void drain_on_told(evutil_socket_t fd, short what, void *ctx) {
	struct drain *d = ctx;
	struct list *first;
	(void)fd;
	(void)what;
	while (d->state == DRAIN_DONE && (first = list_first(&d->askers)) != NULL) {
		struct drain_asker asker = *CONTAINER_OF(first, struct drain_asker, among);
		list_remove(first);
		free(CONTAINER_OF(first, struct drain_asker, among));
		asker.done(asker.ctx, asker.tag, d->error);
	}
}

static void drain_end(struct drain *d, int error) {
	d->state = DRAIN_DONE;
	d->error = error ? PAWL_EIO : 0;
	if (error) {
		log_to(d->driver->log, LEVEL_ERROR, "side_file_failed",
			LOG_TEXT("why", pawl_error_message(error)));
	}
	event_active(d->told, EV_TIMEOUT, 0);
}

static void drain_on_finished(void *ctx, void *data) {
	struct drain *d = ctx;
	struct drain_write *write = data;
	d->job = NULL;
	drain_end(d, write->error);
}

static const struct job_work drain_work = { drain_run, drain_on_finished, free };

static void drain_finish_later(struct drain *d, struct side_writer *take_writer) {
	struct drain_write *write = calloc(1, sizeof *write);
	if (!write) {
		side_writer_abort(take_writer);
		drain_end(d, PAWL_ENOMEM);
		return;
	}
	write->writer = take_writer;
	if (job_start(d->driver->base, &drain_work, write, d, &d->job) != 0) {
		free(write);
		/* Without a thread, the loop waits for the disk, once. */
		drain_end(d, side_writer_finish(take_writer));
	}
}

/* ---- the stop ---- */

static void drain_begin(struct drain *d) {
	static const struct core_event stop = { .kind = CORE_DRAIN };
	struct core_status status;
	struct side_writer *writer;
	core_status(d->driver->core, driver_now(d->driver), &status);
	d->state = DRAIN_WRITING;
	driver_step_now(d->driver, &stop);
	/* The other nodes hear at once that this node no longer votes. */
	driver_flush(d->driver);
	if (status.state != CORE_VOTING) {
		/* The node does not know enough to make its next start a mere pause, so it writes
		 * no side file. */
		drain_end(d, 0);
		return;
	}
	int error = drain_write_all(d, status.boot, &writer);
	if (error) {
		drain_end(d, error);
	} else {
		drain_finish_later(d, writer);
	}
}

static void drain_on_announced(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	drain_begin(ctx);
}

/* Says that the node is not ready. Its vote ends after drain_wait, so that there is time to send
 * clients elsewhere. */
static void drain_announce(struct drain *d) {
	span_ns wait = d->driver->config->admin.drain_wait;
	const struct timeval left = { (time_t)(wait / SPAN_S),
		(suseconds_t)(wait % SPAN_S / SPAN_US) };
	if (d->on_begin) {
		d->on_begin(d->ctx);
	}
	d->state = DRAIN_ANNOUNCED;
	if (wait == 0 || event_add(d->announced, &left) != 0) {
		drain_begin(d);
	}
}

int drain_ask(struct drain *d, drain_done *done, void *ctx, uint64_t tag) {
	struct drain_asker *asker = calloc(1, sizeof *asker);
	if (!asker) {
		return PAWL_ENOMEM;
	}
	*asker = (struct drain_asker){ .done = done, .ctx = ctx, .tag = tag };
	list_append(&d->askers, &asker->among);
	switch (d->state) {
	case DRAIN_NONE:
		drain_announce(d);
		break;
	case DRAIN_ANNOUNCED:
	case DRAIN_WRITING:
		break;
	case DRAIN_DONE:
		event_active(d->told, EV_TIMEOUT, 0);
		break;
	}
	return 0;
}

int drain_init(struct drain *d, struct driver *driver, const char *dir, struct id128 node_id) {
	*d = (struct drain){ .driver = driver, .node_id = node_id };
	snprintf(d->dir, sizeof d->dir, "%s", dir);
	list_init(&d->askers);
	d->told = event_new(driver->base, -1, 0, drain_on_told, d);
	d->announced = evtimer_new(driver->base, drain_on_announced, d);
	return d->told && d->announced ? 0 : PAWL_ENOMEM;
}

void drain_stop(struct drain *d) {
	struct list *first;
	if (!d->driver) {
		return;
	}
	job_wait(d->job);
	if (d->told) {
		event_free(d->told);
	}
	if (d->announced) {
		event_free(d->announced);
	}
	while ((first = list_first(&d->askers)) != NULL) {
		list_remove(first);
		free(CONTAINER_OF(first, struct drain_asker, among));
	}
	*d = (struct drain){ 0 };
}

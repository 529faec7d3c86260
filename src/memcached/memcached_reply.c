/* memcached_reply.c: how answers of the client protocol look to a client of memcached. */
#include "memcached_impl.h"

#include <stdio.h>

#include "check.h"
#include "pawl/error.h"
#include "sentence.h"

/* A client must not take an outage for "held by somebody else", which is NOT_STORED. */
void memcached_refuse(struct mctext_writer *w, const struct client_response *response) {
	char room[SENTENCE_BYTES], text[SENTENCE_BYTES + 32];
	snprintf(text, sizeof text, "%s: %s", pawl_error_code(response->error),
		(const char *)sentence_of(response, room).data);
	mctext_error(w, "SERVER_ERROR", slice_str(text));
}

/* ---- client flags ---- */

/* Returns the client flags of a lock, which its label has. What another protocol has taken has
 * none. */
static uint32_t entry_flags(const struct client_entry *entry) {
	static const char before[] = MEMCACHED_LABEL MEMCACHED_FLAGS;
	const struct slice label = entry->label.text;
	uint64_t flags;
	if (!(entry->present & CLIENT_ENTRY_LABEL)
		|| !slice_has_prefix(label, slice_str(before))
		|| !mctext_unsigned(slice_of(label.data + strlen(before),
			label.size - strlen(before)), &flags) || flags > UINT32_MAX) {
		return 0;
	}
	return (uint32_t)flags;
}

/* ---- showing ---- */

/* Writes the rest of a lease in seconds, rounded down, because holders act on it. */
static void show_left(const struct task *task, span_ns left, const char *before,
	struct mctext_writer *w) {
	mctext_put(w, slice_str(before));
	if (task->endless) {
		mctext_put(w, slice_str("-1"));
	} else {
		mctext_put_number(w, "", (uint64_t)(left / SPAN_S));
	}
}

/* VALUE key flags bytes [unique] */
static void show_value(const struct memcached *m, const struct task *task,
	const struct client_entry *entry, struct mctext_writer *w) {
	mctext_put(w, slice_str("VALUE "));
	mctext_put(w, task->keys[task->at]);
	mctext_put_number(w, " ", entry_flags(entry));
	mctext_put_number(w, " ", entry->value.size);
	if (m->plan.show == MEMCACHED_SHOW_UNIQUE) {
		mctext_put_number(w, " ", task_unique(entry));
	}
	mctext_line(w, "");
	mctext_put(w, entry->value);
	mctext_line(w, "");
}

/* Writes the flags of a meta reply that do not need the lock. Returns false for all others. */
static bool meta_flag(const struct memcached *m, char letter, struct slice key,
	struct mctext_writer *w) {
	if (letter == 'k') {
		mctext_put(w, slice_str(" k"));
		mctext_put(w, key);
	} else if (letter == 'O') {
		mctext_put(w, slice_str(" O"));
		mctext_put(w, slice_str(m->meta.opaque));
	}
	return letter == 'k' || letter == 'O';
}

/* HD flags, or VA bytes flags and the value. */
static void show_meta(const struct memcached *m, const struct task *task,
	const struct client_entry *entry, struct mctext_writer *w) {
	/* A lease that is renewed in the same command does not become shorter. */
	const bool renews = m->plan.act.mine == TASK_EXTEND && task->length > task->left;
	mctext_put(w, slice_str(m->meta.value ? "VA" : "HD"));
	if (m->meta.value) {
		mctext_put_number(w, " ", entry->value.size);
	}
	for (const char *letter = m->meta.letters; *letter; letter++) {
		if (meta_flag(m, *letter, task->keys[task->at], w)) {
			continue;
		}
		if (*letter == 't') {
			show_left(task, renews ? task->length : task->left, " t", w);
			continue;
		}
		const char before[] = { ' ', *letter, '\0' };
		mctext_put_number(w, before, *letter == 'c' ? task_unique(entry)
			: *letter == 'f' ? entry_flags(entry) : entry->value.size);
	}
	mctext_line(w, "");
	if (m->meta.value) {
		mctext_put(w, entry->value);
		mctext_line(w, "");
	}
}

static void show_debug(const struct task *task, const struct client_entry *entry,
	struct mctext_writer *w) {
	mctext_put(w, slice_str("ME "));
	mctext_put(w, task->keys[task->at]);
	show_left(task, task->left, " exp=", w);
	mctext_put_number(w, " cas=", task_unique(entry));
	mctext_put_number(w, " size=", entry->value.size);
	mctext_line(w, "");
}

/* What was shown of the last key is dropped again if it was lost before the act on it. */
static void show_drop_lost(const struct memcached *m, struct task *task) {
	if (m->plan.act.mine != TASK_NOTHING && task->done == m->done_before) {
		task->shown.size = m->shown_from;
	}
}

int memcached_show(void *ctx, struct task *task, const struct client_entry *entry) {
	struct memcached *m = ctx;
	struct mctext_writer w = { .out = &task->shown };
	show_drop_lost(m, task);
	m->shown_from = task->shown.size;
	m->done_before = task->done;
	if (!entry) {
		return 0;
	}
	if (m->without_end && !task->endless) {
		m->refused = entry->label.without_end
			? "the node that kept this lock without an end is gone, and the lock ends: "
				"take it again then"
			: "a lock that was taken with an end keeps it";
		return PAWL_EINVAL;
	}
	if (m->without_end && !task->own) {
		/* To say that it is set would mean that this client has it. */
		m->refused = "this lock belongs to another identity";
		return PAWL_EINVAL;
	}
	switch (m->plan.show) {
	case MEMCACHED_SHOW_NOTHING:
		break;
	case MEMCACHED_SHOW_FLAGS:
		if (entry_flags(entry) != m->flags) {
			m->refused = "the client flags of a key that is held cannot be changed";
			return PAWL_EINVAL;
		}
		break;
	case MEMCACHED_SHOW_VALUE:
	case MEMCACHED_SHOW_UNIQUE:
		show_value(m, task, entry, &w);
		break;
	case MEMCACHED_SHOW_META:
		show_meta(m, task, entry, &w);
		break;
	case MEMCACHED_SHOW_DEBUG:
		show_debug(task, entry, &w);
		break;
	}
	return w.error;
}

/* ---- replying ---- */

static void reply_meta(const struct memcached *m, const char *word, struct mctext_writer *w) {
	const struct task *task = m->tasks.task;
	mctext_put(w, slice_str(word));
	for (const char *letter = m->meta.letters; *letter; letter++) {
		if (!meta_flag(m, *letter, task->keys[0], w) && *letter == 'c' && task->done) {
			mctext_put_number(w, " c", task->got);
		}
	}
	mctext_line(w, "");
}

static void reply_words(const struct memcached *m, struct mctext_writer *w) {
	const struct memcached_words *words = &m->plan.words;
	const struct task *task = m->tasks.task;
	const char *word = task->done ? words->done : task->others ? words->other
		: task->mine ? words->mine : words->gone;
	if (!word) {
		mctext_error(w, "SERVER_ERROR",
			slice_str("the key is not free yet, or another client has just taken it"));
	} else if (!m->meta.on) {
		mctext_line(w, word);
	} else if (!m->meta.quiet || word != words->done) {
		reply_meta(m, word, w);
	}
}

void memcached_reply(struct memcached *m, struct mctext_writer *w) {
	struct task *task = m->tasks.task;
	show_drop_lost(m, task);
	switch (m->plan.show) {
	case MEMCACHED_SHOW_NOTHING:
	case MEMCACHED_SHOW_FLAGS:
		reply_words(m, w);
		break;
	case MEMCACHED_SHOW_VALUE:
	case MEMCACHED_SHOW_UNIQUE:
		mctext_put(w, buffer_slice(&task->shown));
		mctext_line(w, "END");
		break;
	case MEMCACHED_SHOW_META:
	case MEMCACHED_SHOW_DEBUG:
		if (task->shown.size > 0) {
			mctext_put(w, buffer_slice(&task->shown));
		} else if (!m->meta.quiet) {
			reply_meta(m, "EN", w);
		}
		break;
	}
}

/* memcached_meta.c: the meta commands, whose flags say what is done and what is told. */
#include "memcached_impl.h"

#include "check.h"

/* What the flags of a meta command ask for, besides its reply. */
struct meta_read {
	/* The words of these flags without the letter; NULL data: the flag is not there. */
	struct slice time, unique, flags, mode;
};

/* Returns the place for what follows the letter of a flag; NULL if the flag has nothing, or is not
 * one of `known`. */
static struct slice *meta_place(struct meta_read *read, char letter) {
	switch (letter) {
	case 'T':
		return &read->time;
	case 'C':
		return &read->unique;
	case 'F':
		return &read->flags;
	case 'M':
		return &read->mode;
	default:
		return NULL;
	}
}

/* Adds a flag to those of the reply. Returns false if there are too many of them. */
static bool meta_wants(struct memcached_meta *meta, char letter) {
	const size_t size = strlen(meta->letters);
	if (size == MEMCACHED_META_MAX) {
		return false;
	}
	meta->letters[size] = letter;
	return true;
}

/* Reads one flag. Returns false if it is wrong. `does` are the letters of flags with a word that
 * the command knows, and `shows` those that its reply may have. */
static bool meta_flag_read(struct memcached_meta *meta, struct slice word, const char *does,
	const char *shows, struct meta_read *read) {
	const char letter = (char)word.data[0];
	const struct slice rest = slice_of(word.data + 1, word.size - 1);
	if (letter == '\0') {
		return false;
	}
	if (strchr(does, letter)) {
		struct slice *place = meta_place(read, letter);
		CHECK(place);
		*place = rest;
		return rest.size > 0;
	}
	if (letter == 'O') {
		if (rest.size == 0 || rest.size > MEMCACHED_OPAQUE_MAX) {
			return false;
		}
		*slice_put((uint8_t *)meta->opaque, rest) = '\0';
		return meta_wants(meta, letter);
	}
	if (rest.size > 0) {
		return false;
	}
	if (letter == 'q') {
		meta->quiet = true;
		return true;
	}
	if (letter == 'v' && strchr(shows, 'v')) {
		meta->value = true;
		return true;
	}
	return strchr(shows, letter) && meta_wants(meta, letter);
}

/* Reads the flags from word `first` on. Returns false if one was refused. */
static bool meta_read(const struct memcached_call *call, size_t first, const char *does,
	const char *shows, struct meta_read *out) {
	struct memcached_meta *meta = &call->memcached->meta;
	*meta = (struct memcached_meta){ .on = true };
	*out = (struct meta_read){ .time = { NULL, 0 } };
	for (size_t i = first; i < call->command->count; i++) {
		if (!meta_flag_read(meta, call->command->words[i], does, shows, out)) {
			memcached_wrong(call, "invalid flag: docs/memcached.md has those that Pawl "
				"knows");
			return false;
		}
	}
	return true;
}

static bool meta_unique(const struct memcached_call *call, const struct meta_read *read,
	struct memcached_work *work) {
	if (read->unique.data && !mctext_unsigned(read->unique, &work->unique)) {
		memcached_wrong(call, "bad token in command line format");
		return false;
	}
	return true;
}

enum dialect_step memcached_mg(const struct memcached_call *call) {
	struct memcached_plan plan = { .show = MEMCACHED_SHOW_META };
	struct memcached_work work = { .keys = call->command->words + 1, .count = 1 };
	struct meta_read read;
	if (!meta_read(call, 2, "T", "cfkstv", &read)
		|| (read.time.data && !memcached_time(call, read.time, &work))) {
		return DIALECT_DONE;
	}
	plan.act.mine = read.time.data ? TASK_EXTEND : TASK_NOTHING;
	return memcached_begin(call, &plan, &work);
}

/* Returns the plan of a mode of ms, or NULL. Both cases of a letter mean the same. */
static const struct memcached_plan *meta_mode(const struct meta_read *read) {
	const char mode = read->mode.size == 1 ? (char)(read->mode.data[0] | 0x20) : '\0';
	if (read->unique.data) {
		return !read->mode.data || mode == 's' ? &memcached_cas_plan : NULL;
	}
	return !read->mode.data || mode == 's' ? &memcached_set_plan
		: mode == 'e' ? &memcached_add_plan
		: mode == 'r' ? &memcached_replace_plan : NULL;
}

/* Says the words of a plan of the classic commands as the meta commands do. */
static const char *meta_word(const char *word) {
	static const char *const same[][2] = { { "STORED", "HD" }, { "NOT_STORED", "NS" },
		{ "EXISTS", "EX" }, { "NOT_FOUND", "NF" } };
	for (size_t i = 0; word && i < sizeof same / sizeof same[0]; i++) {
		if (strcmp(word, same[i][0]) == 0) {
			return same[i][1];
		}
	}
	return NULL;
}

enum dialect_step memcached_ms(const struct memcached_call *call) {
	struct memcached_work work = { .keys = call->command->words + 1, .count = 1,
		.value = call->command->data, .fresh = call->command->data };
	struct meta_read read;
	uint64_t flags = 0;
	if (!meta_read(call, 3, "TCFM", "ck", &read) || !meta_unique(call, &read, &work)) {
		return DIALECT_DONE;
	}
	const struct memcached_plan *mode = meta_mode(&read);
	if (!mode) {
		return memcached_wrong(call, "invalid mode: Pawl knows ME (add), MR (replace) and "
			"MS (set), and C with MS");
	}
	if (read.flags.data && (!mctext_unsigned(read.flags, &flags) || flags > UINT32_MAX)) {
		return memcached_wrong(call, "the client flags are a number of 32 bits");
	}
	call->memcached->flags = (uint32_t)flags;
	if (!memcached_time(call, read.time.data ? read.time : slice_str("0"), &work)) {
		return DIALECT_DONE;
	}
	struct memcached_plan plan = memcached_plan_of(call->memcached, mode);
	plan.words = (struct memcached_words){ meta_word(mode->words.done),
		meta_word(mode->words.mine), meta_word(mode->words.other),
		meta_word(mode->words.gone) };
	return memcached_begin(call, &plan, &work);
}

enum dialect_step memcached_md(const struct memcached_call *call) {
	struct memcached_plan plan = { .act.mine = TASK_DELETE, .words = { "HD", "NF", "EX",
		"NF" } };
	struct memcached_work work = { .keys = call->command->words + 1, .count = 1 };
	struct meta_read read;
	if (!meta_read(call, 2, "C", "k", &read) || !meta_unique(call, &read, &work)) {
		return DIALECT_DONE;
	}
	if (read.unique.data) {
		plan.act.compares = TASK_UNIQUE;
		plan.act.mine = TASK_RELEASE;
	}
	return memcached_begin(call, &plan, &work);
}

enum dialect_step memcached_ma(const struct memcached_call *call) {
	return memcached_no_number(call);
}

enum dialect_step memcached_me(const struct memcached_call *call) {
	static const struct memcached_plan plan = { .show = MEMCACHED_SHOW_DEBUG };
	const struct memcached_work work = { .keys = call->command->words + 1, .count = 1 };
	struct meta_read read;
	return meta_read(call, 2, "", "", &read) ? memcached_begin(call, &plan, &work)
		: DIALECT_DONE;
}

enum dialect_step memcached_mn(const struct memcached_call *call) {
	mctext_line(call->w, "MN");
	return DIALECT_DONE;
}

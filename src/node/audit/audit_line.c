/* audit_line.c: the fields of a line. */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "audit.h"
#include "check.h"
#include "json_text.h"
#include "origin.h"

/* How many bytes of the SHA-256 of a lock_id are written. */
#define DIGEST_BYTES 16

static char *line_room(struct audit_line *line, size_t most) {
	/* The fields of a line are bounded, so that all of them fit. */
	CHECK(most <= sizeof line->bytes - line->used);
	return line->bytes + line->used;
}

static void line_text(struct audit_line *line, const char *text) {
	const size_t size = strlen(text);
	memcpy(line_room(line, size), text, size);
	line->used += size;
}

static void line_name(struct audit_line *line, const char *name, const char *ending) {
	line_text(line, ",\"");
	line_text(line, name);
	line_text(line, ending);
}

void audit_bytes(struct audit_line *line, const char *name, struct slice bytes) {
	if (bytes.size == 0) {
		return;
	}
	const bool text = json_text_valid(bytes);
	line_name(line, name, text ? "\":\"" : "_hex\":\"");
	char *to = line_room(line, bytes.size * JSON_TEXT_GROWTH + 1);
	size_t size = text ? json_text_escape(to, bytes) : json_text_hex(to, bytes);
	to[size++] = '"';
	line->used += size;
}

void audit_text(struct audit_line *line, const char *name, const char *text) {
	struct slice shown = slice_of(text, text ? strlen(text) : 0);
	shown.size = shown.size < AUDIT_TEXT_MAX ? shown.size : AUDIT_TEXT_MAX;
	audit_bytes(line, name, shown);
}

void audit_number(struct audit_line *line, const char *name, uint64_t n) {
	line_name(line, name, "\":");
	line->used += (size_t)snprintf(line_room(line, 24), 24, "%" PRIu64, n);
}

void audit_true(struct audit_line *line, const char *name) {
	line_name(line, name, "\":true");
}

void audit_lock(struct audit_line *line, const struct id128 *lock_id) {
	uint8_t digest[EVP_MAX_MD_SIZE];
	if (id128_zero(*lock_id)) {
		return;
	}
	CHECK(EVP_Digest(lock_id->b, sizeof lock_id->b, digest, NULL, EVP_sha256(), NULL) == 1);
	line_name(line, "lock", "\":\"");
	char *to = line_room(line, 2 * DIGEST_BYTES + 1);
	size_t size = json_text_hex(to, slice_of(digest, DIGEST_BYTES));
	to[size++] = '"';
	line->used += size;
}

static void line_numbers(struct audit_line *line, struct permits set) {
	const char *before = "\":[";
	line_name(line, "slots", "");
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		if (permits_has(set, n)) {
			line->used += (size_t)snprintf(line_room(line, 16), 16, "%s%u", before, n);
			before = ",";
		}
	}
	line_text(line, "]");
}

void audit_mode(struct audit_line *line, const struct terms *terms) {
	audit_text(line, "mode", terms_semaphore(terms) ? "permits"
		: terms->of == MODE_SHARED ? "shared" : "exclusive");
	if (terms_semaphore(terms)) {
		const uint32_t numbers = permits_count(terms->set);
		audit_number(line, "permits", numbers ? numbers : terms->count);
		audit_number(line, "of", terms->of);
		if (numbers) {
			line_numbers(line, terms->set);
		}
	}
}

void audit_peer(const struct origin *from, char room[AUDIT_PEER_BYTES]) {
	if (from->uid == ORIGIN_UNKNOWN) {
		snprintf(room, AUDIT_PEER_BYTES, "%s", from->address);
	} else {
		snprintf(room, AUDIT_PEER_BYTES, "unix:uid=%" PRId64 ",pid=%" PRId64, from->uid,
			from->pid);
	}
}

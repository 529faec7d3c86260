/* driver_rights.c: compares the access rules of all nodes, which should be the same. Each node
 * tells the others the digest of its file, and which certificate it uses.
 */
#include <stdio.h>

#include "config_file.h"
#include "driver.h"
#include "log.h"
#include "pawl/error.h"

/* A node that no client can reach has no use for rules. It tells the others nothing, and compares
 * nothing. */
static bool rights_matter(const struct driver *d) {
	return d->config->listen_client_count > 0;
}

static void rights_print(const struct rights *rules, char out[2 * RIGHTS_DIGEST_BYTES + 1]) {
	uint8_t digest[RIGHTS_DIGEST_BYTES];
	if (!rules) {
		snprintf(out, 2 * RIGHTS_DIGEST_BYTES + 1, "none");
		return;
	}
	rights_digest(rules, digest);
	for (size_t i = 0; i < sizeof digest; i++) {
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	}
}

static void rights_compare_with(struct driver *d, uint32_t peer) {
	const struct peer_note *note = d->peers ? peers_note(d->peers, peer) : NULL;
	if (note && note->rights[0] && rights_matter(d) && strcmp(note->rights, d->rights) != 0) {
		log_untrusted(d->log, "rights_differ", LOG_TEXT("peer", d->nodes[peer]->name),
			LOG_TEXT("here", d->rights), LOG_TEXT("there", note->rights),
			LOG_TEXT("remedy",
				"put the same access rules ([acl] file) on all "
				"nodes, and reload them"));
	}
}

void driver_set_rights(struct driver *d) {
	struct problem warning;
	rights_print(d->config->rights, d->rights);
	for (unsigned n = 0; d->config->rights && rights_warning(d->config->rights, n, &warning);
		n++) {
		log_to(d->log, LEVEL_WARNING, "rights_warning", LOG_TEXT("why", warning.text));
	}
	if (!d->peers) {
		return;
	}
	d->notes = UINT64_MAX;
	for (uint32_t peer = 0; peer < d->context.peer_count; peer++) {
		rights_compare_with(d, peer);
	}
	driver_flush_later(d);
}

int driver_take_note(struct driver *d, uint32_t peer, struct slice body) {
	struct peer_note *known = peers_note(d->peers, peer), note;
	int error = peer_note_decode(body, &note);
	if (error || !known) {
		return error;
	}
	bool changed = strcmp(known->rights, note.rights) != 0;
	*known = note;
	if (changed) {
		rights_compare_with(d, peer);
	}
	/* Packets behind it may wait for the next turn. */
	driver_flush_later(d);
	return 0;
}

bool driver_put_note(struct driver *d, uint32_t peer) {
	struct peer_note note = { .rights = "" };
	struct buffer *to = d->peers ? peers_out(d->peers, peer) : NULL;
	/* A peer without a link is told when it has one. */
	d->notes &= ~((uint64_t)1 << peer);
	if (!to || !rights_matter(d) || !peers_has(d->peers, peer, PEER_FEATURE_NOTES)) {
		return false;
	}
	snprintf(note.rights, sizeof note.rights, "%s", d->rights);
	snprintf(note.serial, sizeof note.serial, "%s", d->own_certificate.serial);
	note.ends = d->own_certificate.ends > 0 ? (uint64_t)d->own_certificate.ends : 0;
	/* Without memory, the note is told at the next link or reload. */
	return peer_note_encode(&note, to) == 0;
}

/* config_admin.c: the section [admin]. Its port shows what the node does. So it is open on this
 * machine alone, or else only to clients that show a certificate. */
#include <stdio.h>

#include "config_setting.h"
#include "pawl/error.h"
#include "text.h"

/* Takes the next item of a list with commas and spaces from *list. Returns NULL at its end. */
static const char *admin_item(char **list) {
	return strtok_r(NULL, ", \t", list);
}

static int admin_readers(struct config_reading *r) {
	struct admin_config *admin = &r->config->admin;
	char *list = r->admin_readers;
	const char *name;
	while ((name = admin_item(&list)) != NULL) {
		if (admin->reader_count == ADMIN_READERS_MAX
			|| !text_copy(admin->readers[admin->reader_count],
				sizeof admin->readers[0], name)) {
			return config_wrong(r, r->setting_line[SETTING_ADMIN_READERS],
				"[admin] readers: at most %d names, of at most %d bytes each",
				ADMIN_READERS_MAX, TLS_NAME_MAX);
		}
		admin->reader_count++;
	}
	return 0;
}

static int admin_groups(struct config_reading *r) {
	struct key_groups *groups = &r->config->admin.groups;
	char *list = r->admin_groups;
	const char *prefix;
	while ((prefix = admin_item(&list)) != NULL) {
		if (groups->count == KEY_GROUPS_MAX
			|| !text_copy(groups->prefixes[groups->count], sizeof groups->prefixes[0],
				prefix)) {
			return config_wrong(r, r->setting_line[SETTING_ADMIN_GROUPS],
				"[admin] groups: at most %d prefixes of keys, of at most %d bytes "
				"each", KEY_GROUPS_MAX, KEY_GROUP_BYTES_MAX);
		}
		for (uint32_t i = 0; i < groups->count; i++) {
			if (strcmp(groups->prefixes[i], prefix) == 0) {
				return config_wrong(r, r->setting_line[SETTING_ADMIN_GROUPS],
					"[admin] groups: %s stands there twice", prefix);
			}
		}
		groups->count++;
	}
	return 0;
}

/* Without TLS and certificates of clients, the node could not know who reads. */
static int admin_outside(struct config_reading *r) {
	const struct node_config *c = r->config;
	unsigned line = r->setting_line[SETTING_ADMIN_LISTEN];
	if (c->admin_listen.kind != LISTEN_TLS) {
		return config_wrong(r, line,
			"[admin] listen = %s is outside loopback and needs TLS, also with "
			"insecure = yes: add [tls], or write 127.0.0.1:7119 or unix:/path",
			r->admin_listen);
	}
	if (c->tls.client_auth == CLIENT_AUTH_OFF) {
		return config_wrong(r, line,
			"[admin] listen = %s is outside loopback, where each client shows a "
			"certificate: write client_auth = required or optional in [tls], or "
			"listen on 127.0.0.1:7119 or unix:/path", r->admin_listen);
	}
	if (!c->acl_file[0] && c->admin.reader_count == 0) {
		return config_wrong(r, line,
			"[admin] listen = %s is outside loopback, and nobody may read there: "
			"without access rules ([acl] file) no certificate is an administrator's. "
			"Write readers = NAME in [admin] with the names of the clients that may, "
			"or add access rules", r->admin_listen);
	}
	return 0;
}

/* Without access rules no certificate is an administrator's. */
static int admin_actions(struct config_reading *r) {
	return !r->config->admin.actions || r->config->acl_file[0] ? 0
		: config_wrong(r, r->setting_line[SETTING_ADMIN_ACTIONS],
			"[admin] actions = yes is for administrators, and without access rules "
			"([acl] file) no certificate is an administrator's");
}

int config_finish_admin(struct config_reading *r) {
	struct listen_address *listen = &r->config->admin_listen;
	int error = admin_readers(r);
	error = error ? error : admin_groups(r);
	if (error || !r->admin_listen[0]) {
		return error;
	}
	const char *wrong = listen_address_parse(r->admin_listen, r->config->tls.on, listen);
	if (wrong) {
		return config_wrong(r, r->setting_line[SETTING_ADMIN_LISTEN],
			"[admin] listen = %s: %s", r->admin_listen, wrong);
	}
	if (!listen_address_loopback(listen)) {
		error = admin_outside(r);
		return error ? error : admin_actions(r);
	}
	if (r->config->admin.actions) {
		return config_wrong(r, r->setting_line[SETTING_ADMIN_ACTIONS],
			"[admin] actions = yes needs TLS, which [admin] listen = %s has not: "
			"listen on an address outside loopback, or leave actions off",
			r->admin_listen);
	}
	/* Programs on this machine need no certificate. */
	listen->kind = listen->kind == LISTEN_TLS ? LISTEN_PLAIN : listen->kind;
	return 0;
}

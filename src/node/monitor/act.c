/* act.c: what an administrator may do on the page of the admin port: ask a holder to release its
 * lock, and break a lock. It is off unless the configuration says otherwise.
 *
 * A browser shows its certificate to whatever page makes it send a request. So a POST counts only
 * if the browser says that the node's own page has sent it (Origin, Sec-Fetch-Site), and if it
 * brings a header field that no other page can send, with a token that no other page can read. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "check.h"
#include "log.h"
#include "monitor.h"

bool act_permitted(const struct monitor *m, const struct http_caller *caller) {
	const struct slice name = slice_str(caller->name);
	return m->driver->config->admin.actions && caller->tls && name.size > 0
		&& service_is_admin(m->service, name);
}

void act_token(const struct monitor *m, const struct http_caller *caller,
	char out[ACT_TOKEN_BYTES]) {
	uint8_t mac[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	CHECK(HMAC(EVP_sha256(), m->secret, sizeof m->secret, caller->certificate, TLS_DIGEST_BYTES,
		mac, &size) != NULL);
	CHECK(2 * size + 1 == ACT_TOKEN_BYTES);
	for (unsigned i = 0; i < size; i++) {
		snprintf(out + (size_t)2 * i, 3, "%02x", mac[i]);
	}
}

static bool act_token_right(const struct monitor *m, const struct http_caller *caller,
	struct slice said) {
	char token[ACT_TOKEN_BYTES];
	act_token(m, caller, token);
	return said.size == ACT_TOKEN_BYTES - 1
		&& CRYPTO_memcmp(said.data, token, ACT_TOKEN_BYTES - 1) == 0;
}

/* Returns NULL, or why the request is refused. */
static const char *act_objection(const struct monitor *m, const struct http_caller *caller,
	const struct http_request *request) {
	if (!act_permitted(m, caller)) {
		return "only an administrator's certificate may do this";
	}
	if (!http_from_own_page(request)) {
		return "the request does not come from this node's own page";
	}
	return act_token_right(m, caller, request->action) ? NULL
		: "the request does not bring this page's token: load the page again";
}

/* Reads the token of the lock from the query. Returns false if there is none. */
static bool act_lock_token(struct slice query, uint64_t *out) {
	uint8_t digits[20];
	const ssize_t size = http_query_value(query, "token", digits, sizeof digits);
	*out = 0;
	for (ssize_t i = 0; i < size; i++) {
		if (digits[i] < '0' || digits[i] > '9' || *out > (UINT64_MAX - 9) / 10) {
			return false;
		}
		*out = 10 * *out + (uint64_t)(digits[i] - '0');
	}
	return *out > 0;
}

static void act_do(struct monitor *m, const struct session_who *who, enum client_method method,
	const struct http_request *request, struct instant now, struct http_answer *answer) {
	uint8_t key[KEY_MAX], to[OWNER_MAX];
	const ssize_t key_size = http_query_value(request->query, "key", key, sizeof key);
	const ssize_t to_size = http_query_value(request->query, "to", to, sizeof to);
	struct core_request asked = { .op = method == CLIENT_BREAK ? CORE_BREAK : CORE_ASK,
		.identity = who->identity, .admin = true, .owner = who->identity,
		.key = slice_of(key, key_size > 0 ? (size_t)key_size : 0),
		.to = slice_of(to, to_size > 0 ? (size_t)to_size : 0) };
	if (asked.key.size == 0 || (to_size < 0 && http_query_has(request->query, "to"))
		|| (method == CLIENT_BREAK && !act_lock_token(request->query, &asked.token))) {
		show_refuse(answer, HTTP_BAD_REQUEST,
			"key must have 1 to 512 bytes, to at most 256; break needs the token of "
			"the lock\n");
	} else if (!service_may_ask(m->service, who, method, asked.key)) {
		log_untrusted(m->driver->log, "denied",
			LOG_TEXT("what", client_method_name(method)),
			LOG_BYTES("key", asked.key), LOG_BYTES("identity", who->identity),
			LOG_TEXT("from", who->from->address));
		service_page_denied(m->service, who, method, &asked, now);
		show_refuse(answer, HTTP_FORBIDDEN,
			"the access rules do not give you the right to this key\n");
	} else if (service_page_forbids(m->service, method)) {
		show_refuse(answer, HTTP_FORBIDDEN,
			"with [audit] strict = yes a lock is broken only when the audit file has "
			"it on the disk, which this page does not wait for: use 'pawl break'\n");
	} else {
		const uint64_t order = service_note_order(m->service, who, method, &asked, now);
		show_ask(m, &asked, now, NULL, service_page_asked(m->service, who, method, &asked,
			now, &m->alloc), order, answer);
	}
}

void act_answer(struct monitor *m, const struct http_caller *caller,
	const struct http_request *request, struct instant now, struct http_answer *answer) {
	static const struct {
		const char *path;
		enum client_method method;
	} paths[] = { { "/v1/break", CLIENT_BREAK }, { "/v1/ask_release", CLIENT_ASK_RELEASE } };
	const struct session_who who = { .identity = slice_str(caller->name),
		.from = caller->from };
	if (!m->driver->config->admin.actions) {
		show_refuse(answer, HTTP_METHOD_NOT_ALLOWED,
			"this port changes nothing: [admin] actions is off\n");
		answer->fields = "Allow: GET, HEAD\r\n";
		return;
	}
	const char *objection = act_objection(m, caller, request);
	if (objection) {
		log_untrusted(m->driver->log, "action_refused", LOG_BYTES("path", request->path),
			LOG_TEXT("identity", caller->name), LOG_TEXT("from", caller->from->address),
			LOG_TEXT("why", objection));
		show_refuse(answer, HTTP_FORBIDDEN, objection);
		page_text(&answer->body, "\n");
		return;
	}
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		if (slice_equal(request->path, slice_str(paths[i].path))) {
			act_do(m, &who, paths[i].method, request, now, answer);
		}
	}
}

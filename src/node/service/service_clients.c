/* service_clients.c: `clients` and `kick`: shows who is connected with this node, and ends
 * connections.
 */
#include "client_connections.h"
#include "pawl/error.h"
#include "service_impl.h"

struct clients_page {
	const struct service_call *call;
	struct client_connections answer;
	/* How many more entries the page may have. */
	uint32_t left;
	bool more;
};

/* A caller that may not end connections sees only its own. */
static bool clients_shows(const struct service_call *call, const struct session_view *view) {
	return service_has(call->service, call->who, RIGHT_CLUSTER) || view->client == call->client
		|| (call->who->identity.size > 0
		&& slice_equal(view->who.identity, call->who->identity));
}

static struct client_connection clients_describe(const struct service_call *call,
	const struct session_view *view) {
	const struct service *s = call->service;
	const struct origin *from = view->who.from;
	struct client_connection c = { .client = view->client, .identity = view->who.identity,
		.address = slice_str(from->address), .age = view->age, .silent = view->silent,
		.requests = view->requests, .open = view->open,
		.waits = requests_waiting(&s->requests, view->client),
		.watches = events_watches(&s->events, view->client), .received = view->received,
		.sent = view->sent, .unsent = view->unsent, .memory = view->memory,
		.own = view->client == call->client };
	c.present = c.own ? CLIENT_CONNECTION_OWN : 0;
	if (from->uid != ORIGIN_UNKNOWN) {
		c.present |= CLIENT_CONNECTION_PROCESS;
		c.uid = (uint32_t)from->uid;
		c.pid = (uint32_t)from->pid;
	}
	return c;
}

static bool clients_visit(void *ctx, const struct session_view *view) {
	struct clients_page *page = ctx;
	if (!clients_shows(page->call, view)) {
		return true;
	}
	page->more = page->left == 0;
	if (!page->more) {
		const struct client_connection c = clients_describe(page->call, view);
		client_connections_put(&page->answer, &c);
		page->left--;
	}
	return !page->more;
}

/* ---- shares ---- */

static struct client_share shares_describe(const struct share *share) {
	const struct slice name = slice_of(share->name + 1, share->name_size - 1);
	struct client_share c = { .present = CLIENT_SHARE_USED, .share = share->number };
	if (share->name[0] == '=' || share->name[0] == '+') {
		c.identity = name;
	} else {
		c.address = name;
		c.present |= CLIENT_SHARE_ADDRESS;
	}
	c.present |= share->name[0] == '#' ? 0 : CLIENT_SHARE_IDENTITY;
	for (unsigned kind = 0; kind < SHARE_KINDS; kind++) {
		c.used[kind] = share->used[kind];
		c.max[kind] = share->limits.max[kind];
		c.present |= c.max[kind] ? CLIENT_SHARE_LIMITED(kind) : 0;
	}
	return c;
}

/* A caller that may not end connections sees its own share, but not what others who come from its
 * address have. */
static void shares_put(struct clients_page *page) {
	const struct service_call *call = page->call;
	const struct sessions *sessions = call->service->sessions;
	bool all = service_has(call->service, call->who, RIGHT_CLUSTER);
	const struct share *share = sessions_share_after(sessions, call->request->client);
	for (; share && !page->more; share = shares_next(share)) {
		if (all || share == call->who->share->identity) {
			page->more = page->left == 0;
			if (!page->more) {
				const struct client_share c = shares_describe(share);
				client_shares_put(&page->answer, &c);
				page->left--;
			}
		}
	}
}

void service_clients(const struct service_call *call) {
	struct service *s = call->service;
	struct clients_page page = { .call = call, .left = call->request->core.limit };
	struct buffer *to = sessions_answer(s->sessions, call->client);
	if (to && call->request->shares) {
		client_shares_begin(&page.answer, call->request->msgid, to);
		shares_put(&page);
	} else if (to) {
		client_connections_begin(&page.answer, call->request->msgid, to);
		sessions_each(s->sessions, call->request->client, clients_visit, &page);
	}
	service_told(s, call->client, to ? client_connections_end(&page.answer,
			s->driver->context.node, page.more) : 0);
}

static void clients_kick(const struct service_call *call, uint64_t client,
	const struct session_who *kicked) {
	struct service *s = call->service;
	log_to(s->driver->log, LEVEL_NOTICE, "client_kicked", LOG_NUMBER("client", client),
		LOG_BYTES("kicked_identity", kicked->identity),
		LOG_TEXT("kicked_from", kicked->from->address),
		LOG_KNOWN("kicked_uid", kicked->from->uid),
		LOG_KNOWN("kicked_pid", kicked->from->pid), LOG_WHO(call->who));
	service_sever(s, client);
	service_tell_done(s, call->client, call->request->msgid);
}

void service_kick(const struct service_call *call) {
	struct service *s = call->service;
	uint32_t msgid = call->request->msgid;
	uint64_t client = call->request->client;
	struct session_who kicked;
	if (client == call->client) {
		service_refuse(s, client, msgid, PAWL_EBADREQUEST, "client",
			"is your own connection: just close it");
	} else if (!sessions_who(s->sessions, client, &kicked)) {
		service_refuse(s, call->client, msgid, PAWL_ENOTFOUND, "client",
			"this node has no such connection; it may have ended");
	} else {
		clients_kick(call, client, &kicked);
	}
}

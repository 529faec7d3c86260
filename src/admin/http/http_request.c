/* http_request.c: reads the line and the header fields of a request. */
#include "http_request.h"

/* What the header fields say. */
struct http_fields {
	struct slice host, origin, site, action;
	unsigned hosts, lengths;
	bool close, keep_alive;
};

/* ---- characters ---- */

static bool http_token_char(uint8_t c) {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
		|| (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Returns how many characters of a token stand at the front. */
static size_t http_token(struct slice s) {
	size_t n = 0;
	while (n < s.size && http_token_char(s.data[n])) {
		n++;
	}
	return n;
}

static uint8_t http_lower(uint8_t c) {
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

/* Compares without regard to case; `word` is in lower case. */
static bool http_is(struct slice s, const char *word) {
	size_t n = strlen(word);
	bool same = s.size == n;
	for (size_t i = 0; same && i < n; i++) {
		same = http_lower(s.data[i]) == (uint8_t)word[i];
	}
	return same;
}

static bool http_space(uint8_t c) {
	return c == ' ' || c == '\t';
}

static struct slice http_trim(struct slice s) {
	while (s.size && http_space(s.data[0])) {
		s = slice_of(s.data + 1, s.size - 1);
	}
	while (s.size && http_space(s.data[s.size - 1])) {
		s.size--;
	}
	return s;
}

static struct slice http_behind(struct slice s, size_t n) {
	return slice_of(s.data + n, s.size - n);
}

/* ---- the line ---- */

static enum http_status http_take_method(struct slice *line, struct http_request *out) {
	size_t n = http_token(*line);
	struct slice method = slice_of(line->data, n);
	if (n == 0 || n == line->size || line->data[n] != ' ') {
		return HTTP_BAD_REQUEST;
	}
	out->head = slice_equal(method, slice_str("HEAD"));
	out->post = slice_equal(method, slice_str("POST"));
	*line = http_behind(*line, n + 1);
	return out->head || out->post || slice_equal(method, slice_str("GET"))
		? HTTP_OK : HTTP_METHOD_NOT_ALLOWED;
}

static enum http_status http_take_target(struct slice *line, struct http_request *out) {
	size_t n = 0;
	while (n < line->size && line->data[n] > ' ' && line->data[n] < 0x7f
		&& line->data[n] != '#') {
		n++;
	}
	struct slice target = slice_of(line->data, n);
	if (n == 0 || target.data[0] != '/' || n == line->size || line->data[n] != ' ') {
		return HTTP_BAD_REQUEST;
	}
	if (n > HTTP_TARGET_BYTES_MAX) {
		return HTTP_URI_TOO_LONG;
	}
	const uint8_t *mark = memchr(target.data, '?', n);
	size_t path = mark ? (size_t)(mark - target.data) : n;
	out->path = slice_of(target.data, path);
	out->query = mark ? http_behind(target, path + 1) : slice_of(NULL, 0);
	*line = http_behind(*line, n + 1);
	return HTTP_OK;
}

static enum http_status http_take_version(struct slice version, struct http_request *out) {
	out->keep_alive = slice_equal(version, slice_str("HTTP/1.1"));
	if (out->keep_alive || slice_equal(version, slice_str("HTTP/1.0"))) {
		return HTTP_OK;
	}
	bool other = version.size == 8 && memcmp(version.data, "HTTP/", 5) == 0;
	return other ? HTTP_VERSION_NOT_SUPPORTED : HTTP_BAD_REQUEST;
}

/* A method that is refused is told only when the rest of the request has been understood, but what
 * is wrong with the line comes first. */
static enum http_status http_read_line(struct slice line, struct http_request *out) {
	enum http_status method = http_take_method(&line, out);
	if (method == HTTP_BAD_REQUEST) {
		return method;
	}
	enum http_status status = http_take_target(&line, out);
	status = status == HTTP_OK ? http_take_version(line, out) : status;
	return status == HTTP_OK ? method : status;
}

/* ---- the header fields ---- */

static void http_read_connection(struct slice value, struct http_fields *fields) {
	while (value.size > 0) {
		const uint8_t *comma = memchr(value.data, ',', value.size);
		size_t n = comma ? (size_t)(comma - value.data) : value.size;
		struct slice option = http_trim(slice_of(value.data, n));
		fields->close = fields->close || http_is(option, "close");
		fields->keep_alive = fields->keep_alive || http_is(option, "keep-alive");
		value = http_behind(value, comma ? n + 1 : n);
	}
}

/* A body of 0 bytes is none. Everything else is refused: to skip a body would mean to believe the
 * number of its bytes. */
static enum http_status http_read_length(struct slice value, struct http_fields *fields) {
	bool number = value.size > 0, zero = true;
	for (size_t i = 0; i < value.size; i++) {
		number = number && value.data[i] >= '0' && value.data[i] <= '9';
		zero = zero && value.data[i] == '0';
	}
	if (!number || fields->lengths++ > 0) {
		return HTTP_BAD_REQUEST;
	}
	return zero ? HTTP_OK : HTTP_CONTENT_TOO_LARGE;
}

/* Keeps the value of a field that may stand there once, and is not empty. */
static enum http_status http_keep(struct slice value, struct slice *out) {
	const bool good = out->size == 0 && value.size > 0;
	*out = value;
	return good ? HTTP_OK : HTTP_BAD_REQUEST;
}

static enum http_status http_read_field(struct slice line, struct http_fields *fields) {
	size_t n = http_token(line);
	if (n == 0 || n == line.size || line.data[n] != ':') {
		return HTTP_BAD_REQUEST;
	}
	struct slice name = slice_of(line.data, n), value = http_trim(http_behind(line, n + 1));
	for (size_t i = 0; i < value.size; i++) {
		if ((value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 0x7f) {
			return HTTP_BAD_REQUEST;
		}
	}
	if (http_is(name, "content-length")) {
		return http_read_length(value, fields);
	}
	if (http_is(name, "transfer-encoding")) {
		return HTTP_CONTENT_TOO_LARGE;
	}
	if (http_is(name, "origin")) {
		return http_keep(value, &fields->origin);
	}
	if (http_is(name, "sec-fetch-site")) {
		return http_keep(value, &fields->site);
	}
	if (http_is(name, "pawl-action")) {
		return http_keep(value, &fields->action);
	}
	if (http_is(name, "host")) {
		fields->hosts++;
		fields->host = value;
	} else if (http_is(name, "connection")) {
		http_read_connection(value, fields);
	}
	return HTTP_OK;
}

/* ---- a request ---- */

/* Takes a line from the front, without its end. Returns false if a line feed stands alone, or a
 * carriage return stands elsewhere than before a line feed. */
static bool http_take_line(struct slice *head, struct slice *out) {
	const uint8_t *end = memchr(head->data, '\n', head->size);
	size_t n = end ? (size_t)(end - head->data) : 0;
	if (n == 0 || head->data[n - 1] != '\r' || memchr(head->data, '\r', n - 1)) {
		return false;
	}
	*out = slice_of(head->data, n - 1);
	*head = http_behind(*head, n + 1);
	return true;
}

static enum http_status http_read_head(struct slice head, struct http_request *out) {
	struct http_fields fields = { 0 };
	struct slice line;
	enum http_status said = http_take_line(&head, &line)
		? http_read_line(line, out) : HTTP_BAD_REQUEST;
	if (said != HTTP_OK && said != HTTP_METHOD_NOT_ALLOWED) {
		return said;
	}
	for (unsigned count = 0; head.size > 2; count++) {
		if (count == HTTP_FIELDS_MAX) {
			return HTTP_FIELDS_TOO_LARGE;
		}
		enum http_status status = http_take_line(&head, &line)
			? http_read_field(line, &fields) : HTTP_BAD_REQUEST;
		if (status != HTTP_OK) {
			return said == HTTP_OK ? status : said;
		}
	}
	if (fields.hosts > 1 || (fields.hosts == 0 && out->keep_alive)) {
		return HTTP_BAD_REQUEST;
	}
	out->host = fields.host;
	out->origin = fields.origin;
	out->site = fields.site;
	out->action = fields.action;
	out->keep_alive = (out->keep_alive || fields.keep_alive) && !fields.close;
	return said;
}

enum http_read http_request_read(struct slice in, struct http_request *out, size_t *out_size,
	enum http_status *out_status) {
	size_t looked = in.size < HTTP_HEAD_BYTES_MAX ? in.size : HTTP_HEAD_BYTES_MAX;
	const uint8_t *end = looked ? memmem(in.data, looked, "\r\n\r\n", 4) : NULL;
	*out = (struct http_request){ .keep_alive = false };
	*out_status = HTTP_OK;
	if (!end) {
		bool wrong = looked > 0 && !http_token_char(in.data[0]);
		*out_status = wrong ? HTTP_BAD_REQUEST : HTTP_FIELDS_TOO_LARGE;
		return wrong || looked == HTTP_HEAD_BYTES_MAX ? HTTP_READ_REFUSED : HTTP_READ_MORE;
	}
	*out_size = (size_t)(end - in.data) + 4;
	*out_status = http_read_head(slice_of(in.data, *out_size), out);
	return *out_status == HTTP_OK ? HTTP_READ_COMPLETE : HTTP_READ_REFUSED;
}

bool http_from_own_page(const struct http_request *request) {
	static const char scheme[] = "https://";
	const size_t n = sizeof scheme - 1;
	const struct slice origin = request->origin;
	return origin.size > n && memcmp(origin.data, scheme, n) == 0
		&& slice_equal(http_behind(origin, n), request->host)
		&& slice_equal(request->site, slice_str("same-origin"));
}

/* Finds the name in the query. *out is what stands behind it: empty, or a '=' and the value. */
static bool http_query_find(struct slice query, const char *name, struct slice *out) {
	size_t wanted = strlen(name);
	while (query.size > 0) {
		const uint8_t *and = memchr(query.data, '&', query.size);
		size_t n = and ? (size_t)(and - query.data) : query.size;
		if (n >= wanted && memcmp(query.data, name, wanted) == 0
			&& (n == wanted || query.data[wanted] == '=')) {
			*out = slice_of(query.data + wanted, n - wanted);
			return true;
		}
		query = http_behind(query, and ? n + 1 : n);
	}
	return false;
}

bool http_query_has(struct slice query, const char *name) {
	struct slice behind;
	return http_query_find(query, name, &behind);
}

static int http_hex(uint8_t c) {
	return c >= '0' && c <= '9' ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool http_host_is_address(struct slice host) {
	const size_t word = strlen("localhost");
	if (host.size >= word && http_is(slice_of(host.data, word), "localhost")
		&& (host.size == word || host.data[word] == ':')) {
		return true;
	}
	/* An address of IPv6 has brackets; one of IPv4 has digits. A name of digits and dots alone
	 * is none that anybody can own. */
	bool v6 = host.size > 0 && host.data[0] == '[';
	for (size_t i = 0; i < host.size; i++) {
		uint8_t c = host.data[i];
		bool digit = (c >= '0' && c <= '9') || c == '.' || c == ':';
		if (!digit && !(v6 && (c == '[' || c == ']' || http_hex(c) >= 0))) {
			return false;
		}
	}
	return host.size > 0;
}

ssize_t http_query_value(struct slice query, const char *name, uint8_t *out, size_t room) {
	struct slice text;
	size_t size = 0;
	if (!http_query_find(query, name, &text)) {
		return -1;
	}
	for (size_t i = 1; i < text.size; i++, size++) {
		int value = text.data[i];
		if (value == '%') {
			int high = i + 2 < text.size ? http_hex(text.data[i + 1]) : -1;
			int low = i + 2 < text.size ? http_hex(text.data[i + 2]) : -1;
			value = high < 0 || low < 0 ? -1 : high << 4 | low;
			i += 2;
		}
		if (value < 0 || size == room) {
			return -1;
		}
		out[size] = (uint8_t)value;
	}
	return (ssize_t)size;
}

const char *http_status_text(enum http_status status) {
	switch (status) {
	case HTTP_OK:
		return "OK";
	case HTTP_BAD_REQUEST:
		return "Bad Request";
	case HTTP_FORBIDDEN:
		return "Forbidden";
	case HTTP_NOT_FOUND:
		return "Not Found";
	case HTTP_METHOD_NOT_ALLOWED:
		return "Method Not Allowed";
	case HTTP_CONTENT_TOO_LARGE:
		return "Content Too Large";
	case HTTP_URI_TOO_LONG:
		return "URI Too Long";
	case HTTP_FIELDS_TOO_LARGE:
		return "Request Header Fields Too Large";
	case HTTP_INTERNAL_ERROR:
		return "Internal Server Error";
	case HTTP_UNAVAILABLE:
		return "Service Unavailable";
	case HTTP_VERSION_NOT_SUPPORTED:
		return "HTTP Version Not Supported";
	}
	return "Unknown";
}

/* top_screen.c: the screen of pawl top, in a terminal of at least 80 columns and 24 lines; in a
 * smaller one, what does not fit is left out. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "field.h"
#include "top_impl.h"

/* The sequences of a terminal (ECMA-48, and the other screen of xterm). */
#define SCREEN_ENTER "\033[?1049h\033[?25l\033[2J"
#define SCREEN_LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define LINE_END "\033[K\n"
#define REST_CLEAR "\033[J"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

/* How many of the nodes are shown. */
#define NODES_SHOWN 7
#define COLUMNS_MAX 240

/* There is only one terminal, so this can be static. */
static struct {
	struct termios before;
	bool colour;
	unsigned lines, columns;
	/* The lines that may still be written. */
	unsigned left;
} screen;

bool top_screen_open(void) {
	const char *no_colour = getenv("NO_COLOR");
	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &screen.before) != 0) {
		return false;
	}
	struct termios raw = screen.before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	screen.colour = !no_colour || !*no_colour;
	fputs(SCREEN_ENTER, stdout);
	return true;
}

void top_screen_close(void) {
	fputs(SCREEN_LEAVE, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

bool top_screen_key(struct top *t) {
	unsigned char keys[32];
	const ssize_t got = read(STDIN_FILENO, keys, sizeof keys);
	if (got <= 0) {
		/* The terminal is gone. */
		return false;
	}
	for (ssize_t i = 0; i < got; i++) {
		const bool arrow = keys[i] == '\033' && i + 2 < got
			&& (keys[i + 1] == '[' || keys[i + 1] == 'O');
		const unsigned char key = arrow ? keys[i + 2] : keys[i];
		i += arrow ? 2 : 0;
		if (!arrow && (key == 'q' || key == 'Q')) {
			return false;
		}
		if (arrow && (key == 'C' || key == 'D')) {
			t->sort = (enum top_sort)((t->sort + (key == 'C' ? 1 : TOP_SORTS - 1))
				% TOP_SORTS);
			t->first = 0;
		} else if (arrow && key == 'B' && t->first + 1 < t->view.lists[t->sort].count) {
			t->first++;
		} else if (arrow && key == 'A' && t->first > 0) {
			t->first--;
		}
	}
	return true;
}

/* ---- drawing ---- */

/* Writes a line, cut off at the width of the screen. A colour of NULL means none. */
static void draw(const char *colour, const char *line) {
	const char *text = output_name(line);
	/* A character of UTF-8 has at most 4 bytes, of which the first counts. */
	size_t columns = 0, size = 0;
	while (text[size] && columns < screen.columns) {
		size++;
		while (((unsigned char)text[size] & 0xc0) == 0x80) {
			size++;
		}
		columns++;
	}
	if (screen.left == 0) {
		return;
	}
	screen.left--;
	const char *paint = screen.colour && colour ? colour : "";
	printf("%s%.*s%s%s", paint, (int)size, text, *paint ? PLAIN : "",
		screen.left > 0 ? LINE_END : "\033[K");
}

static void rate_text(char out[24], double rate) {
	snprintf(out, 24, rate < 0 ? "-" : "%.0f", rate);
}

static void draw_head(const struct top *t) {
	const struct top_view *v = &t->view;
	char line[COLUMNS_MAX], rates[TOP_TOTALS][24];
	const bool good = v->answering == t->count && v->voting == v->masters;
	snprintf(line, sizeof line,
		"pawl top: %zu of %zu nodes answer; %" PRId64 " of %" PRId64 " masters vote, %"
		PRId64 " are needed", v->answering, t->count, v->voting, v->masters, v->quorum);
	draw(v->answering == 0 || v->voting < v->quorum ? RED : good ? BOLD : YELLOW, line);
	for (unsigned i = 0; i < TOP_TOTALS; i++) {
		rate_text(rates[i], v->rates[i]);
	}
	snprintf(line, sizeof line,
		"per second: %s requests, %s refusals, %s grants, %s releases, %s lost",
		rates[TOP_REQUESTS], rates[TOP_REFUSALS], rates[TOP_GRANTS], rates[TOP_RELEASES],
		rates[TOP_LOSSES]);
	draw(NULL, line);
	snprintf(line, sizeof line, "%" PRId64 " requests wait", v->waiting);
	draw(NULL, line);
	draw(NULL, "");
}

static void draw_node(const struct top_node *n) {
	char line[COLUMNS_MAX], requests[24], grants[24];
	const char *word = top_node_word(n);
	const struct pawl_value *status = n->status ? n->status->tree : NULL;
	if (n->trouble[0] || !n->said) {
		snprintf(line, sizeof line, "%-16.16s %s", n->endpoint, n->trouble);
		draw(RED, line);
		return;
	}
	rate_text(requests, n->rates[TOP_REQUESTS]);
	rate_text(grants, n->rates[TOP_GRANTS]);
	snprintf(line, sizeof line,
		"%-16.16s %-8.8s %-10.10s %-9s %6.1f %8s %8s %7" PRId64,
		n->said->node, field_text(status, "role"), field_text(status, "state"), word,
		(double)n->took / 1000, requests, grants,
		field_int(n->said->tree, "waiting", 0));
	draw(*word == 'o' ? NULL : YELLOW, line);
}

/* A node that is silent or slow is always shown. */
static void draw_nodes(const struct top *t) {
	size_t shown = 0;
	draw(BOLD, "NODE             ROLE     STATE      ANSWER        MS    REQ/S GRANTS/S "
		"WAITING");
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < t->count && shown < NODES_SHOWN; i++) {
			const bool ok = *top_node_word(&t->nodes[i]) == 'o';
			if (ok == (pass > 0)) {
				draw_node(&t->nodes[i]);
				shown++;
			}
		}
	}
	if (shown < t->count) {
		char line[COLUMNS_MAX];
		snprintf(line, sizeof line, "and %zu more", t->count - shown);
		draw(NULL, line);
	}
	draw(NULL, "");
}

static void draw_titles(const struct top *t) {
	char line[COLUMNS_MAX] = "";
	size_t size = 0;
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		const bool chosen = i == t->sort;
		size += (size_t)snprintf(line + size, sizeof line - size, "%s%s%s ",
			chosen ? "[" : " ", top_lists[i].title, chosen ? "]" : " ");
	}
	snprintf(line + size, sizeof line - size, "  q ends");
	draw(BOLD, line);
}

/* Puts bytes into a text of this many columns, as far as they fit. */
static void text_of(char *out, size_t room, const unsigned char *bytes, size_t size, int width) {
	FILE *to = fmemopen(out, room, "w");
	if (to) {
		output_bytes(to, (struct pawl_bytes){ bytes, size }, width);
		fputc('\0', to);
		fclose(to);
	}
	out[room - 1] = '\0';
	size_t at = 0;
	for (int columns = 0; out[at] && columns < width; columns++) {
		at++;
		while (((unsigned char)out[at] & 0xc0) == 0x80) {
			at++;
		}
	}
	out[at] = '\0';
}

static void draw_list(const struct top *t) {
	char line[COLUMNS_MAX * 4 + 128], key[4 * TOP_KEY_BYTES + 64];
	char owner[4 * TOP_OWNER_BYTES + 64];
	const int wide = (int)screen.columns > 60 ? (int)screen.columns - 36 : 24;
	draw_titles(t);
	snprintf(line, sizeof line, "%-*s %12s  %s", wide, "KEY", top_lists[t->sort].column,
		t->sort == TOP_BY_HOLD ? "OWNER" : "");
	draw(BOLD, line);
	for (size_t i = t->first; i < t->view.lists[t->sort].count; i++) {
		const struct top_row *row = &t->view.lists[t->sort].rows[i];
		char number[32];
		text_of(key, sizeof key, row->key, row->key_size, wide);
		owner[0] = '\0';
		if (t->sort == TOP_BY_HOLD) {
			text_of(owner, sizeof owner, row->owner, row->owner_size, 20);
		}
		snprintf(number, sizeof number, "%" PRId64, row->number);
		snprintf(line, sizeof line, "%.816s %12.20s  %.80s", key,
			top_lists[t->sort].time ? output_duration(row->number) : number, owner);
		draw(NULL, line);
	}
}

void top_screen_draw(const struct top *t) {
	struct winsize size = { .ws_row = 0 };
	const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0
		&& size.ws_col > 0;
	screen.lines = known ? size.ws_row : 24;
	screen.columns = known ? size.ws_col : 80;
	screen.columns = screen.columns < COLUMNS_MAX ? screen.columns : COLUMNS_MAX - 1;
	screen.left = screen.lines;
	fputs(HOME, stdout);
	draw_head(t);
	draw_nodes(t);
	draw_list(t);
	fputs(REST_CLEAR, stdout);
}

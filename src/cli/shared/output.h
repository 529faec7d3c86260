/* output.h: what people see, and JSON for programs. */
#ifndef PAWL_CLI_OUTPUT_H
#define PAWL_CLI_OUTPUT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli.h"

/* Prints the help of the line's command; if it has none, the overview. */
void output_help(const struct cli_command_line *line, const char *common);
void output_misuse(bool json, const char *command, const char *text);

/* Prints a line with a label and a text. The texts of all lines are aligned. */
void output_field(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));
void output_field_bytes(const char *label, struct pawl_bytes bytes);
void output_field_duration(const char *label, int64_t ms);
/* Prints bytes as text, and what cannot be shown as \xNN. The text is padded with blanks to `width`
 * columns. */
void output_bytes(FILE *to, struct pawl_bytes bytes, int width);
/* Prints a text in the same way, but nothing if it is empty. Every text that others may have
 * chosen, and every sentence that has such a name in it, is printed by this or by one of the
 * functions around it: a terminal obeys no byte of it, and it does not end a line. */
void output_text(FILE *to, const char *text);
/* Prints a line in this way. */
void output_line(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void output_line_of(FILE *to, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
/* Returns such a text for another line, in memory that lasts until the eighth call after this
 * one. */
const char *output_name(const char *text);
/* Returns a duration such as "12.3s", in static storage until the fourth call after this one. */
const char *output_duration(int64_t ms);

/* ---- JSON (if memory runs out, these end the program) ---- */

/* Prints the object on one line, frees it, and returns 0. */
int output_json(json_t *take_object);
/* Sets `name` to a string. Bytes that are not UTF-8 are set as hexadecimal digits under
 * "NAME_hex". */
void output_json_bytes(json_t *object, const char *name, struct pawl_bytes bytes);
void output_json_id(json_t *object, const char *name, const struct pawl_id *id);
void output_json_set(json_t *object, const char *name, json_t *take_value);
/* Converts what a node sent; lock_id and value_seq become hexadecimal digits. NULL gives an empty
 * object. */
json_t *output_json_tree(const struct pawl_value *map);

/* Returns the bytes as hexadecimal digits, in memory that the caller frees. */
char *output_hex(struct pawl_bytes bytes);

#endif

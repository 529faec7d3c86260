/* output.h: what people see, and JSON for programs. */
#ifndef PAWL_CLI_OUTPUT_H
#define PAWL_CLI_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

void output_help(const struct cli_command_line *line, const char *common); /* without a command: the overview */
void output_misuse(bool json, const char *command, const char *text);

/* "label       text", labels aligned. */
void output_field(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));
void output_field_bytes(const char *label, struct pawl_bytes bytes);
void output_field_duration(const char *label, int64_t ms);
/* Bytes as text; what cannot be shown as \xNN. `width`: padded with blanks to so many columns. */
void output_bytes(FILE *to, struct pawl_bytes bytes, int width);
/* "12.3s"; in static storage until the next call but three. */
const char *output_duration(int64_t ms);

/* ---- JSON; memory running out ends the program ---- */

/* Prints on one line, frees, returns 0. */
int output_json(json_t *take_object);
/* Sets name to a string; bytes that are no UTF-8 are set as hexadecimal under "NAME_hex". */
void output_json_bytes(json_t *object, const char *name, struct pawl_bytes bytes);
void output_json_id(json_t *object, const char *name, const struct pawl_id *id);
void output_json_set(json_t *object, const char *name, json_t *take_value);
/* What a node sent: lock_id and value_seq become hexadecimal digits. NULL gives an empty object. */
json_t *output_json_tree(const struct pawl_value *map);

/* Hexadecimal, in memory of its own. */
char *output_hex(struct pawl_bytes bytes);

#endif

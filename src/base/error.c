/* error.c: codes and messages of errors, from the one table. */
#include "pawl/error.h"

#include <string.h>

struct error_row {
	int error;
	const char *code, *message;
};

static const struct error_row error_rows[] = {
	{ PAWL_OK, "ok", "done" },
#define ERROR_ROW(name, number, code, message) { name, code, message },
	PAWL_ERROR_TABLE(ERROR_ROW)
#undef ERROR_ROW
};

#define ERROR_ROWS (sizeof(error_rows) / sizeof(error_rows[0]))

static const struct error_row *error_row_of(int error) {
	for (size_t i = 0; i < ERROR_ROWS; i++) {
		if (error_rows[i].error == error) {
			return &error_rows[i];
		}
	}
	return NULL;
}

const char *pawl_error_code(int error) {
	const struct error_row *row = error_row_of(error);
	return row ? row->code : "unknown";
}

const char *pawl_error_message(int error) {
	const struct error_row *row = error_row_of(error);
	return row ? row->message : "an unknown error";
}

int pawl_error_from_code(const char *code) {
	for (size_t i = 0; i < ERROR_ROWS; i++) {
		if (strcmp(error_rows[i].code, code) == 0) {
			return error_rows[i].error;
		}
	}
	return PAWL_EPROTOCOL;
}

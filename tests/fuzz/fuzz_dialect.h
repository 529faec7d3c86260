/* fuzz_dialect.h: any bytes are commands of a dialect, or end its connection. */
#ifndef PAWL_FUZZ_DIALECT_H
#define PAWL_FUZZ_DIALECT_H

#include "dialect.h"
#include "fuzz.h"

struct fuzz_dialect {
	const struct dialect *dialect;
	void *server;
	int64_t unix_ms;
	/* The longest key of a request. */
	size_t key_max;
};

/* Serves the bytes as commands, whose requests are answered by the choice. */
void fuzz_dialect(const struct fuzz_dialect *f, struct slice in, unsigned choice);

#endif

/* fuzz_redis_script.c: any bytes have a normal form, or are refused. */
#include "fuzz.h"

#include "check.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const struct allocator alloc = alloc_libc(NULL);
	static const struct script_mappings none;
	struct buffer form;
	buffer_init(&form, &alloc, 8 * SCRIPT_BYTES_MAX);
	if (script_form(slice_of(data, size), &alloc, &form) == 0) {
		CHECK(form.size > 0);
		(void)script_find(buffer_slice(&form), &none, &alloc);
	} else {
		CHECK(script_find(slice_of(data, size), &none, &alloc) == NULL);
	}
	buffer_done(&form);
	return 0;
}

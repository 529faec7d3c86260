/* rights_method.c: the right that a method needs, by the method's name. */
#include "rights.h"

#include "client.h"

bool rights_of_method(struct slice method, enum right *out_right, bool *out_prefix) {
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		if (slice_equal(method, slice_str(client_method_name((enum client_method)i)))) {
			*out_right = client_method_right((enum client_method)i);
			*out_prefix = i == CLIENT_LIST || i == CLIENT_TOP;
			return true;
		}
	}
	return false;
}

/* rights_method.c: the right that a method needs, by the method's name. */
#include "rights.h"

#include "client.h"

bool rights_of_method(struct slice method, enum right *out_right, bool *out_prefix) {
	enum client_method found;
	if (!client_method_find(method, &found)) {
		return false;
	}
	*out_right = client_method_right(found);
	*out_prefix = found == CLIENT_LIST || found == CLIENT_TOP;
	return true;
}

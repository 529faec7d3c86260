#include "run.h"
void terms_demand(struct run *run) {
	(void)run;
}

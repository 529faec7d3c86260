/* decrees.c: every configuration that a node adopts was accepted by q masters of the previous one,
 * and there is one for each epoch (section 6, Proof). */
#include "decrees.h"

void decrees_accepted(struct decrees *d, uint64_t hash, uint64_t master) {
	uint32_t i = 0;
	while (i < d->value_count && d->values[i].hash != hash) {
		i++;
	}
	if (i == D_VALUES) {
		return;
	}
	struct d_value *v = &d->values[i];
	d->value_count += i == d->value_count;
	v->hash = hash;
	for (uint32_t k = 0; k < v->count; k++) {
		if (v->accepted_by[k] == master) {
			return;
		}
	}
	if (v->count < MASTERS_MAX) {
		v->accepted_by[v->count++] = master;
	}
}

static bool accepted_by(const struct decrees *d, uint64_t hash, struct id128 master) {
	for (uint32_t i = 0; i < d->value_count; i++) {
		const struct d_value *v = &d->values[i];
		for (uint32_t k = 0; v->hash == hash && k < v->count; k++) {
			if (v->accepted_by[k] == id128_word(master)) {
				return true;
			}
		}
	}
	return false;
}

bool decrees_all_pledged(const struct decrees *d, const struct config *config, uint64_t hash) {
	for (uint32_t i = 0; i < config_masters(config); i++) {
		if (!accepted_by(d, hash, config->nodes[i].id)) {
			return false;
		}
	}
	return true;
}

const char *decrees_adopted(struct decrees *d, const struct config *config, uint64_t hash,
	bool forced) {
	const uint64_t cluster = id128_word(config->cluster_id);
	for (uint32_t i = 0; i < d->epoch_count; i++) {
		const struct d_epoch *e = &d->epochs[i];
		if (e->cluster == cluster && e->epoch == config->epoch) {
			return e->hash == hash ? NULL : "there is one configuration for each epoch";
		}
	}
	if (d->epoch_count < D_VALUES) {
		d->epochs[d->epoch_count++] = (struct d_epoch){ cluster, config->epoch, hash };
	}
	if (config->epoch == 1 || forced || d->value_count == D_VALUES) {
		return NULL;
	}
	uint32_t accepted = 0;
	for (uint32_t i = 0; i < config->previous_master_count; i++) {
		accepted += accepted_by(d, hash, config->previous_masters[i].id);
	}
	return accepted <= config->previous_master_count / 2
		? "what a node adopts was accepted by q masters of the previous epoch" : NULL;
}

/* script.c: the scripts of the libraries, by the digests of their normal forms. `pawl redis-script
 * FILE` prints the digest of a script. The texts themselves belong to their authors and are not
 * here. */
#include "script.h"

#include "check.h"
#include "pawl/error.h"

static const struct script_meaning meanings[] = {
	{ .form = "8f4d42e76cbb4fad0f45e575441b8a269ebc173c", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1,
		.library = "the release that Redis documents: redis-py (to 3.4), redsync, "
			"Laravel, ShedLock, redlock-rb, bsm/redislock and others" },
	{ .form = "5698e40a14bc413f80773fec993b0a150155d76b", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1, .library = "the same with UNLINK: Spring Integration" },
	{ .form = "20ec5c2d73fce3bf06c662da0decd4971e247037", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1, .other = SCRIPT_NIL, .gone = SCRIPT_NIL,
		.library = "Spring Integration" },
	{ .form = "142cf948698e8e74874f68ef0f2f4e3f20838cec", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1, .library = "redis-py, release" },
	{ .form = "4240563d13194564d0a981073c60dd42aee55c4c", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1, .gone = -1, .library = "redsync 4, release" },
	{ .form = "2a9344ac05e1404221966f636938dfe0f0ce597e", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1, .other = -2, .gone = -1, .library = "Dapr, release" },
	{ .form = "2f58279bbe435e25fef1fbb9920079a52438c2ed", .kind = SCRIPT_RELEASE, .keys = 1,
		.value = 1, .library = "redis-semaphore, delIfEqual" },
	{ .form = "d5991e8393ecbd5185be5103062fde6f5b64a5a3", .kind = SCRIPT_RELEASE,
		.keys = SCRIPT_ANY_KEYS, .value = 1, .answer = SCRIPT_SAYS_COUNT,
		.library = "redlock for node 4 and 5, release" },
	{ .form = "a170a02924d436223050f919c99fd01f544a0933", .kind = SCRIPT_ADD_OR_RENEW,
		.keys = 1, .value = 1, .length = 2, .flag = 3, .library = "redis-py, extend" },
	{ .form = "89bef62202898b2cbe68bd07b5d40cf7d6dc755d", .kind = SCRIPT_RENEW, .keys = 1,
		.value = 1, .length = 2, .library = "redis-py, reacquire" },
	{ .form = "dc8ad6110baa7f60ed379b4db40a165d3c7e1ae1", .kind = SCRIPT_RENEW, .keys = 1,
		.value = 1, .length = 2, .library = "redsync, bsm/redislock and others, renew" },
	{ .form = "92501c2233520d90f49109a7bf0c4a1fc04a2a46", .kind = SCRIPT_RENEW, .keys = 1,
		.value = 1, .length = 2, .seconds = true, .library = "the same with EXPIRE" },
	{ .form = "ac52276514bd31e648d621eb7931ade96d9cea53", .kind = SCRIPT_RENEW, .keys = 1,
		.value = 1, .length = 2, .library = "redis-semaphore, expireIfEqual" },
	{ .form = "7aee5c20c8573227df2105d36dc94a1aeddc887e", .kind = SCRIPT_RENEW,
		.keys = SCRIPT_ANY_KEYS, .value = 1, .length = 2, .answer = SCRIPT_SAYS_COUNT,
		.library = "redlock for node 4 and 5, extend" },
	{ .form = "57cdbcdefce146905a5779119a9c214f23849ffc", .kind = SCRIPT_TAKE,
		.keys = SCRIPT_ANY_KEYS, .value = 1, .length = 2, .answer = SCRIPT_SAYS_COUNT,
		.library = "redlock for node 4 and 5, acquire" },
	{ .form = "0f6684c52f95c9c6745c165765147db00633e5ad", .kind = SCRIPT_TAKE, .keys = 1,
		.value = 1, .length = 2, .answer = SCRIPT_SAYS_OK, .other = SCRIPT_NIL,
		.library = "SET with NX and PX in a script" },
	{ .form = "fec1404623a6073439947e352ab3dd415756093b", .kind = SCRIPT_RENEW_OR_TAKE,
		.keys = 1, .value = 1, .length = 2, .flag = 3, .answer = SCRIPT_SAYS_OK,
		.other = SCRIPT_NIL, .gone = SCRIPT_NIL,
		.library = "redlock-rb, lock and extend" },
	{ .form = "6ec8a022fbf6bdf4fb651c46eedfd32d0b6625c5", .kind = SCRIPT_RENEW_OR_TAKE,
		.keys = 1, .value = 1, .length = 2, .library = "redsync 4, extend with SetNX" },
	{ .form = "6fd082c601ed9469259410de7f5c8d9ccf8383ef", .kind = SCRIPT_RENEW_OR_TAKE,
		.keys = 1, .value = 1, .length = 2, .other = SCRIPT_NIL, .gone = SCRIPT_NIL,
		.library = "Spring Integration, obtain" },
	{ .form = "a9aaf1f25844d427a6dd28e883fdb25bc4eaeca9", .kind = SCRIPT_RENEW_OR_TAKE,
		.keys = 1, .value = 1, .length = 3, .answer = SCRIPT_SAYS_OK, .other = SCRIPT_NIL,
		.gone = SCRIPT_NIL, .library = "bsm/redislock 0.9, obtain" },
	{ .form = "6781eaab2f0597bd0b0808d5d34bc292fda9e5ca", .kind = SCRIPT_TAKE,
		.keys = SCRIPT_ANY_KEYS, .value = 1, .length = 3, .answer = SCRIPT_SAYS_OK,
		.other = SCRIPT_NIL, .gone = SCRIPT_NIL, .library = "bsm/redislock 0.10, obtain" },
	{ .form = "5263a89c3909ae8e3136b856ba99545d5a45b364", .kind = SCRIPT_RENEW,
		.keys = SCRIPT_ANY_KEYS, .value = 1, .length = 2, .answer = SCRIPT_SAYS_OK,
		.other = SCRIPT_NIL, .gone = SCRIPT_NIL, .library = "bsm/redislock 0.10, refresh" },
	{ .form = "297465e2f1b290e75479bb3b743f1357eef69eb4", .kind = SCRIPT_RELEASE,
		.keys = SCRIPT_ANY_KEYS, .value = 1, .answer = SCRIPT_SAYS_OK,
		.other = SCRIPT_NIL, .gone = SCRIPT_NIL, .library = "bsm/redislock 0.10, release" },
	{ .form = "c32d659aaaa18e536e43130388d0aca9e53684dd", .kind = SCRIPT_LEFT_IF_MINE,
		.keys = 1, .value = 1, .other = SCRIPT_NIL, .gone = SCRIPT_NIL,
		.library = "bsm/redislock 0.10, TTL" },
	{ .form = "8241bcadb9353e0c75a10bc6fa97b8c276790713", .kind = SCRIPT_READ, .keys = 1,
		.library = "redlock-rb, value and what is left" },
	{ .form = "30cd4ff7ff9dea263f0fc63566fdf123fef27591", .kind = SCRIPT_LEFT_IF_MINE,
		.keys = 1, .value = 1, .other = -3, .gone = -3, .library = "bsm/redislock, TTL" },
	{ .form = "96950db21907f2d8a885c539618c61d51734cd0a", .kind = SCRIPT_TAKE,
		.keys = SCRIPT_ANY_KEYS, .database = 1, .value = 2, .length = 3,
		.answer = SCRIPT_SAYS_COUNT, .library = "@sesamecare-oss/redlock, acquire" },
	{ .form = "4ab88877e0e7c155d1e97fdbfa2244a5c2da78d5", .kind = SCRIPT_RENEW,
		.keys = SCRIPT_ANY_KEYS, .database = 1, .value = 2, .length = 3,
		.answer = SCRIPT_SAYS_COUNT, .library = "@sesamecare-oss/redlock, extend" },
	{ .form = "386892ad7c5938dbd91da056fcaab92657bc4779", .kind = SCRIPT_RELEASE,
		.keys = SCRIPT_ANY_KEYS, .database = 1, .value = 2, .answer = SCRIPT_SAYS_COUNT,
		.library = "@sesamecare-oss/redlock, release" },
};

/* Scripts as the packages of libraries send them, by the digests of their bytes and of their normal
 * forms: the first EVALSHA of one of them needs no SCRIPT LOAD before it. */
static const struct {
	const char *sha1, *form;
} texts[] = {
	/* redis-py 4.3.4 to 8.1.0: release, extend, reacquire */
	{ "c3f8721cbb97f72bc19e972846bd7aaf91901658", "142cf948698e8e74874f68ef0f2f4e3f20838cec" },
	{ "a4e8783852e6b949f9ef3a97212805108459a890", "a170a02924d436223050f919c99fd01f544a0933" },
	{ "1cac51482acf5858da00f6d685d68f886cd6b6b2", "89bef62202898b2cbe68bd07b5d40cf7d6dc755d" },
	/* redlock 4.2.0: acquire, extend, release */
	{ "e5a322e2634ef59a516e8ea150cb085afafee684", "57cdbcdefce146905a5779119a9c214f23849ffc" },
	{ "ce46f80993d5dac20dd066eb301a4e37994bdbed", "7aee5c20c8573227df2105d36dc94a1aeddc887e" },
	{ "0f0f23b9048b36752b5be114f357ba083449f908", "d5991e8393ecbd5185be5103062fde6f5b64a5a3" },
	/* redlock 5.0.0-beta.2: the same */
	{ "96da70f7716f27d278a5218544df37fd8b0a5e4c", "57cdbcdefce146905a5779119a9c214f23849ffc" },
	{ "aed6f382e410db8ba7926d4e5e9aab410bf2a78a", "7aee5c20c8573227df2105d36dc94a1aeddc887e" },
	{ "e4612211c9f8f51c257e26e056b0a654b3187242", "d5991e8393ecbd5185be5103062fde6f5b64a5a3" },
	/* redis-semaphore 5.6.2: delIfEqual, expireIfEqual */
	{ "7157921a7cc7cfba979acf6d63f073151df17d12", "2f58279bbe435e25fef1fbb9920079a52438c2ed" },
	{ "594683e49a64ebaf975caf5f8079a1d097c438f1", "ac52276514bd31e648d621eb7931ade96d9cea53" },
};

const char *script_kind_name(enum script_kind kind) {
	switch (kind) {
	case SCRIPT_TAKE:
		return "take";
	case SCRIPT_RENEW:
		return "renew";
	case SCRIPT_ADD:
		return "add";
	case SCRIPT_ADD_OR_RENEW:
		return "add-or-renew";
	case SCRIPT_RENEW_OR_TAKE:
		return "renew-or-take";
	case SCRIPT_RELEASE:
		return "release";
	case SCRIPT_READ:
		return "read";
	case SCRIPT_LEFT_IF_MINE:
		return "left-if-mine";
	}
	CHECK(false);
}

static const struct script_meaning *meaning_of(const char *form) {
	for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
		if (strcmp(meanings[i].form, form) == 0) {
			return &meanings[i];
		}
	}
	return NULL;
}

const struct script_meaning *script_find_form(const uint8_t sha1[SCRIPT_SHA1_BYTES]) {
	char form[2 * SCRIPT_SHA1_BYTES + 1];
	script_sha1_print(sha1, form);
	return meaning_of(form);
}

static const struct script_meaning *script_find_text(const uint8_t sha1[SCRIPT_SHA1_BYTES]) {
	char text[2 * SCRIPT_SHA1_BYTES + 1];
	script_sha1_print(sha1, text);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (strcmp(texts[i].sha1, text) == 0) {
			return meaning_of(texts[i].form);
		}
	}
	return NULL;
}

int script_describe(const void *script, size_t size, struct script_account *out) {
	const struct allocator alloc = alloc_libc(NULL);
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	struct buffer form;
	*out = (struct script_account){ .meaning = NULL };
	buffer_init(&form, &alloc, sizeof out->form);
	script_sha1(slice_of(script, size), sha1);
	script_sha1_print(sha1, out->sha1);
	const int error = script_form(slice_of(script, size), &alloc, &form);
	if (!error) {
		script_sha1(buffer_slice(&form), sha1);
		script_sha1_print(sha1, out->form_sha1);
		out->meaning = script_find_form(sha1);
		out->form_size = form.size;
		memcpy(out->form, form.data, form.size);
	}
	buffer_done(&form);
	return error == PAWL_EINVAL ? 0 : error;
}

const struct script_meaning *script_find(struct slice script,
	const struct script_mappings *mappings, const struct allocator *alloc) {
	struct buffer form;
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	buffer_init(&form, alloc, 2 * SCRIPT_BYTES_MAX);
	const struct script_meaning *found = NULL;
	if (script_form(script, alloc, &form) == 0) {
		script_sha1(buffer_slice(&form), sha1);
		found = script_find_form(sha1);
		found = found ? found : script_mappings_find(mappings, sha1);
	}
	buffer_done(&form);
	return found;
}

void scripts_map(struct scripts *s, const struct script_mappings *mappings) {
	*s = (struct scripts){ .mappings = *mappings };
}

const struct script_meaning *scripts_find(const struct scripts *s,
	const uint8_t sha1[SCRIPT_SHA1_BYTES]) {
	for (size_t i = 0; i < SCRIPTS_LEARNED_MAX && s->learned[i].meaning; i++) {
		if (memcmp(s->learned[i].sha1, sha1, SCRIPT_SHA1_BYTES) == 0) {
			return s->learned[i].meaning;
		}
	}
	const struct script_meaning *known = script_find_text(sha1);
	return known ? known : script_mappings_find(&s->mappings, sha1);
}

void scripts_learn(struct scripts *s, const uint8_t sha1[SCRIPT_SHA1_BYTES],
	const struct script_meaning *meaning) {
	if (!scripts_find(s, sha1)) {
		struct script_learned *place = &s->learned[s->next];
		memcpy(place->sha1, sha1, SCRIPT_SHA1_BYTES);
		place->meaning = meaning;
		s->next = (s->next + 1) % SCRIPTS_LEARNED_MAX;
	}
}

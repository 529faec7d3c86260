/* interrupted.c: takes, holds and releases locks in the blocking style, while a signal or another
 * thread wakes it at a random moment; then asks whether the keys are free. A key that is still held
 * after a tenth of its lease was left behind, and one that is held for longer is renewed.
 *
 * interrupted ENDPOINTS ROUNDS SEED. It prints what was interrupted how often. Its status is 0 if
 * nothing was left. */
#include <pawl/election.h>
#include <pawl/pawl.h>
#include <pawl/watch.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LEASE_MS 20000
/* Within this time the keys have to be free. */
#define FREE_MS (LEASE_MS / 10)

static const char *const keys[] = { "interrupted/a", "interrupted/b" };

/* What the signal and the thread wake. The thread does so under the lock, so that the client is not
 * freed meanwhile. The signal comes to the main thread only. */
static struct pawl *_Atomic to_wake;
static pthread_mutex_t waking = PTHREAD_MUTEX_INITIALIZER;

struct app {
	struct pawl_options options;
	struct pawl *client, *other;
	uint64_t random;
	/* The thread waits for this timer, until `over` is true. */
	int timer;
	pthread_t thread;
	atomic_bool over;
	/* Which call of this round is to be interrupted, and whether the thread does so. */
	unsigned chosen;
	bool by_thread;
	/* How many calls were made and interrupted, by kind. */
	unsigned done[5], interrupted[5];
};
enum { ACQUIRE, HOLD, UPDATE, RELEASE, LEAD };
static const char *const kinds[] = { "acquire", "hold", "update", "release", "lead" };

static void die(const char *what, int error) {
	printf("%s: %s\n", what, pawl_error_message(error));
	exit(1);
}

/* xorshift64*: the same seed makes the same choices. */
static uint32_t draw(struct app *a, uint32_t below) {
	a->random ^= a->random >> 12;
	a->random ^= a->random << 25;
	a->random ^= a->random >> 27;
	return (uint32_t)((a->random * 2685821657736338717u) >> 33) % below;
}

/* ---- what interrupts ---- */

static void on_signal(int number) {
	(void)number;
	pawl_wake(atomic_load(&to_wake));
}

static void *wake_when_the_timer_says_so(void *arg) {
	const struct app *a = arg;
	uint64_t count;
	while (!atomic_load(&a->over) && read(a->timer, &count, sizeof(count)) > 0) {
		(void)pthread_mutex_lock(&waking);
		pawl_wake(atomic_load(&to_wake));
		(void)pthread_mutex_unlock(&waking);
	}
	return NULL;
}

/* Lets the signal or the thread wake the client after so many microseconds; 0: not any more. */
static void wake_after(struct app *a, bool thread, long us) {
	const struct itimerval soon = { .it_value.tv_usec = us };
	const struct itimerspec soon_there = { .it_value.tv_nsec = us * 1000 };
	if (thread ? timerfd_settime(a->timer, 0, &soon_there, NULL) != 0
		: setitimer(ITIMER_REAL, &soon, NULL) != 0) {
		die("timer", PAWL_EIO);
	}
}

/* ---- a round ---- */

/* A call of this kind comes next. If it is the one to be interrupted, the wake comes before it, or
 * soon after it has begun. */
static void begin(struct app *a, unsigned kind) {
	if (kind == a->chosen && draw(a, 2)) {
		pawl_wake(a->client);
	} else if (kind == a->chosen) {
		wake_after(a, a->by_thread, 1 + (long)draw(a, draw(a, 2) ? 600 : 5000));
	}
}

static int note(struct app *a, unsigned kind, int error) {
	a->done[kind]++;
	a->interrupted[kind] += error == PAWL_EINTERRUPTED;
	if (error && error != PAWL_EINTERRUPTED && error != PAWL_EHELD) {
		die(kinds[kind], error);
	}
	return error;
}

static void hold(struct app *a, struct pawl_lock *lock) {
	struct pawl_result *result;
	begin(a, HOLD);
	(void)note(a, HOLD, pawl_poll(a->client, draw(a, 3)));
	if (draw(a, 2)) {
		begin(a, UPDATE);
		(void)note(a, UPDATE, pawl_lock_update(lock, pawl_str("v"), NULL, &result));
		pawl_result_free(result);
	}
	if (pawl_lock_error(lock)) {
		die("a lock that is held", pawl_lock_error(lock));
	}
}

static void take_one(struct app *a, uint32_t wait_ms) {
	const struct pawl_lock_options wanted = { .key = pawl_str(keys[0]), .lease_ms = LEASE_MS,
		.wait_ms = wait_ms, .terms.release_on_disconnect = draw(a, 4) == 0 };
	struct pawl_lock *lock;
	struct pawl_result *result;
	begin(a, ACQUIRE);
	int error = pawl_lock_acquire(a->client, &wanted, &lock, &result);
	pawl_result_free(result);
	if (note(a, ACQUIRE, error) == 0) {
		hold(a, lock);
		begin(a, RELEASE);
		(void)note(a, RELEASE, pawl_lock_release(lock));
	}
}

static void take_both(struct app *a, uint32_t wait_ms) {
	const struct pawl_lock_options wanted = { .lease_ms = LEASE_MS, .wait_ms = wait_ms };
	const struct pawl_key_item items[] = { { .key = pawl_str(keys[0]) },
		{ .key = pawl_str(keys[1]) } };
	struct pawl_lock *locks[2];
	begin(a, ACQUIRE);
	if (note(a, ACQUIRE, pawl_locks_acquire(a->client, &wanted, items, 2, locks, NULL)) == 0) {
		hold(a, locks[0]);
		begin(a, RELEASE);
		(void)note(a, RELEASE, pawl_locks_release(locks, 2));
	}
}

static void lead(struct app *a) {
	const struct pawl_election_options options = { .name = pawl_str(keys[0]),
		.lease_ms = LEASE_MS };
	struct pawl_election *election;
	int error = pawl_election_new(a->client, &options, &election);
	error = error ? error : pawl_election_campaign(election);
	begin(a, LEAD);
	for (int i = 0; !error && i < 3; i++) {
		error = note(a, LEAD, pawl_poll(a->client, 1));
	}
	pawl_election_free(election);
}

static struct pawl *new_client(const struct app *a) {
	struct pawl *client;
	int error = pawl_new(&a->options, &client, NULL);
	if (error) {
		die("pawl_new", error);
	}
	return client;
}

/* The next round interrupts a client that is not connected yet. */
static void change_client(struct app *a) {
	struct pawl *before = a->client;
	a->client = new_client(a);
	(void)pthread_mutex_lock(&waking);
	atomic_store(&to_wake, a->client);
	(void)pthread_mutex_unlock(&waking);
	pawl_free(before);
}

/* Waits until nobody holds the key, by asking a majority. */
static void await_free(struct app *a, const char *key) {
	const struct pawl_request request = { .method = PAWL_GET, .key = pawl_str(key),
		.quorum = true };
	bool held = true;
	for (int asked = 0; held; asked++) {
		struct pawl_result *result;
		int error = pawl_call(a->other, &request, &result);
		held = error == PAWL_EINDETERMINATE || result->entry.held;
		pawl_result_free(result);
		if (error && error != PAWL_EINDETERMINATE) {
			die("get", error);
		}
		if (held && asked == FREE_MS) {
			printf("%s is still held\n", key);
			exit(1);
		}
		/* What goes on in the background does so here. */
		(void)pawl_poll(a->client, held);
	}
}

static void play_round(struct app *a) {
	/* If another client holds the key, the acquire waits until the wake comes. The other client
	 * waits, too: an acquire that was given up may just be leaving the queue. */
	const bool busy = draw(a, 3) == 0;
	const struct pawl_lock_options wanted = { .key = pawl_str(keys[0]), .lease_ms = LEASE_MS,
		.wait_ms = FREE_MS };
	struct pawl_lock *lock = NULL;
	int error = busy ? pawl_lock_acquire(a->other, &wanted, &lock, NULL) : 0;
	if (error) {
		die("the other client", error);
	}
	const uint32_t kind = draw(a, 3);
	a->by_thread = draw(a, 2);
	a->chosen = kind == 0 ? LEAD : busy ? ACQUIRE : draw(a, LEAD);
	if (kind == 0) {
		lead(a);
	} else {
		(kind == 1 ? take_one : take_both)(a, busy || draw(a, 2) ? PAWL_FOREVER : 0);
	}
	wake_after(a, a->by_thread, 0);
	(void)pawl_poll(a->client, 0);
	(void)pawl_lock_release(lock);
	await_free(a, keys[0]);
	await_free(a, keys[1]);
	if (draw(a, 8) == 0) {
		change_client(a);
	}
}

/* ---- all rounds ---- */

static void on_renewed(struct pawl_lock *lock, void *arg) {
	(void)lock;
	++*(unsigned *)arg;
}

/* A lock that is held stays held, however often its holder is interrupted. */
static void hold_through_many_wakes(struct app *a) {
	unsigned renewed = 0;
	const struct pawl_lock_options wanted = { .key = pawl_str(keys[0]), .lease_ms = 300,
		.on_renewed = on_renewed, .arg = &renewed };
	struct pawl_lock *lock;
	int error = pawl_lock_acquire(a->client, &wanted, &lock, NULL);
	if (error) {
		die("acquire", error);
	}
	const struct itimerval again_and_again = { .it_interval.tv_usec = 1000,
		.it_value.tv_usec = 1000 };
	const struct itimerval never = { .it_value.tv_sec = 0 };
	(void)setitimer(ITIMER_REAL, &again_and_again, NULL);
	while (renewed < 6) {
		(void)pawl_poll(a->client, 1000);
		if (pawl_lock_error(lock)) {
			die("a lock that is held", pawl_lock_error(lock));
		}
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)pawl_poll(a->client, 0);
	error = pawl_lock_release(lock);
	if (error) {
		die("release", error);
	}
}

static void start_waking(struct app *a) {
	sigset_t all, before;
	const struct sigaction action = { .sa_handler = on_signal };
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	if (a->timer < 0 || sigaction(SIGALRM, &action, NULL) != 0
		|| pthread_create(&a->thread, NULL, wake_when_the_timer_says_so, a) != 0) {
		die("set up", PAWL_EIO);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_waking(struct app *a) {
	atomic_store(&a->over, true);
	wake_after(a, true, 1);
	(void)pthread_join(a->thread, NULL);
	close(a->timer);
}

int main(int argc, char **argv) {
	if (argc != 4) {
		fprintf(stderr, "usage: interrupted ENDPOINTS ROUNDS SEED\n");
		return 2;
	}
	struct app a = { .options.endpoints = argv[1],
		.random = strtoull(argv[3], NULL, 10) * 2 + 1 };
	const unsigned long rounds = strtoul(argv[2], NULL, 10);
	a.client = new_client(&a);
	a.other = new_client(&a);
	atomic_store(&to_wake, a.client);
	start_waking(&a);
	hold_through_many_wakes(&a);
	for (unsigned long i = 0; i < rounds; i++) {
		play_round(&a);
	}
	stop_waking(&a);
	pawl_free(a.client);
	pawl_free(a.other);
	printf("%lu rounds, and nothing was left", rounds);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		printf("; %s %u, interrupted %u", kinds[i], a.done[i], a.interrupted[i]);
	}
	printf("\n");
	return 0;
}

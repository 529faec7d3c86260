/* clock.c: a service of which one instance runs in the cluster. The program is its own candidate.
 *
 *     cc clock.c $(pkg-config --cflags --libs pawl) -o clock
 *     ./clock 127.0.0.1:7117 host-a
 *
 * Start it on several hosts, each with its own name. One of them prints; when that one ends, the
 * next one prints. */
#include <inttypes.h>
#include <pawl/election.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t stopping;

static void on_signal(int number) {
	(void)number;
	stopping = 1;
}

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	(void)election;
	(void)arg;
	printf("leading with token %" PRIu64 "\n", token);
	fflush(stdout);
}

/* This is also called when somebody has asked the leader to yield. Then cause is 0, and the next
 * candidate leads when this function has returned. */
static void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	(void)arg;
	printf("stepped down: %s; %" PRId64 " ms left to stop\n",
		cause ? pawl_error_message(cause) : "asked to", pawl_election_valid_ms(election));
	fflush(stdout);
}

static void on_failed(struct pawl_election *election, int error, const char *message,
	bool observing, void *arg) {
	(void)election;
	(void)error;
	(void)observing;
	(void)arg;
	fprintf(stderr, "no candidate any more: %s\n", message);
	stopping = 1;
}

static void on_resigned(struct pawl_result *take_result, void *arg) {
	bool *resigned = arg;
	*resigned = true;
	pawl_result_free(take_result);
}

static void serve(struct pawl *client, struct pawl_election *election) {
	while (!stopping && pawl_poll(client, 100) == 0) {
		if (pawl_election_valid_ms(election) > 0) { /* cheap: reads only clocks */
			printf("tick %" PRIu64 "\n", pawl_election_token(election));
			fflush(stdout);
		}
	}
	bool resigned = !pawl_election_leads(election) ||
		pawl_election_resign(election, on_resigned, &resigned) != 0;
	while (!resigned && pawl_poll(client, 100) == 0) {
	}
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: clock ENDPOINTS CANDIDATE\n");
		return 2;
	}
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	struct pawl_options options = { .endpoints = argv[1], .owner = pawl_str(argv[2]) };
	pawl_options_from_env(&options);
	struct pawl_election_options wanted = { .name = pawl_str("clock"),
		.value = pawl_str(argv[2]), .lease_ms = 5000, .release_on_disconnect = true,
		.again = true, .on_leading = on_leading, .on_stepped_down = on_stepped_down,
		.on_failed = on_failed };
	const char *problem = "no memory";
	struct pawl *client = NULL;
	struct pawl_election *election = NULL;
	int status = 1;
	if (pawl_new(&options, &client, &problem) == 0 &&
		pawl_election_new(client, &wanted, &election) == 0 &&
		pawl_election_campaign(election) == 0) {
		serve(client, election);
		status = 0;
	} else {
		fprintf(stderr, "%s\n", problem);
	}
	pawl_election_free(election);
	pawl_free(client);
	return status;
}

/* delay.c: carries IP packets between network namespaces, and delivers each one a fixed time after
 * it was sent. So programs in these namespaces are as far apart as machines at different sites:
 * also their connections are set up, acknowledged and noticed to be gone with the delay.
 *
 *   delay NAMESPACE=ADDRESS... DELAY,DELAY,...
 *
 * Each NAMESPACE is a file (/run/netns/NAME). The program makes a device "wan" there, and says
 * "ready". Whoever has started it then gives each device its IPv4 address, and sets it up. The
 * delays, in microseconds, are one for each sender and receiver: those of the packets from the
 * first namespace to each of them, then those from the second one, and so on. When the program's
 * input ends, it prints one line of JSON: how many packets it has delivered and dropped, and how
 * much later than it should it has delivered at the worst. It drops packets only when QUEUE_BYTES
 * are on their way. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MOST 16
#define PACKET_BYTES 65536
#define QUEUE_BYTES (64u << 20)
/* How many packets are read from one device before the others have their turn. */
#define BURST 64
/* Where an IPv4 header has the address of the receiver. */
#define RECEIVER_AT 16
#define HEADER_BYTES 20

struct packet {
	struct packet *next;
	/* When to deliver it, in ns of CLOCK_MONOTONIC. */
	int64_t due;
	size_t size;
	uint8_t bytes[];
};

/* Packets from one namespace to another. All have the same delay, so the first one is due first. */
struct way {
	struct packet *first, **end;
	int64_t delay_ns;
};

static struct {
	uint32_t hosts;
	struct pollfd devices[HOSTS_MOST + 1];
	in_addr_t addresses[HOSTS_MOST];
	struct way ways[HOSTS_MOST][HOSTS_MOST];
	size_t queued;
	uint64_t delivered, dropped;
	int64_t latest_ns;
} net;

static void fail(const char *what, const char *which) {
	fprintf(stderr, "delay: %s: %s: %s\n", which, what, strerror(errno));
	exit(1);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Makes the device in the namespace of this file, and stays in that namespace. */
static int device_new(const char *file) {
	struct ifreq wanted = { .ifr_name = "wan", .ifr_flags = IFF_TUN | IFF_NO_PI };
	int namespace = open(file, O_RDONLY | O_CLOEXEC);
	if (namespace < 0 || setns(namespace, CLONE_NEWNET) != 0) {
		fail("cannot enter the namespace", file);
	}
	close(namespace);
	int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (device < 0 || ioctl(device, TUNSETIFF, &wanted) != 0) {
		fail("cannot make the device wan", file);
	}
	return device;
}

/* Queues what was sent by this host, unless the receiver is none of the hosts. */
static void packet_take(uint32_t from, const uint8_t *bytes, size_t size) {
	in_addr_t receiver;
	uint32_t to = 0;
	if (size < HEADER_BYTES || bytes[0] >> 4 != 4) {
		return;
	}
	memcpy(&receiver, bytes + RECEIVER_AT, sizeof receiver);
	while (to < net.hosts && net.addresses[to] != receiver) {
		to++;
	}
	if (to == net.hosts) {
		return;
	}
	struct way *way = &net.ways[from][to];
	struct packet *p = net.queued + size <= QUEUE_BYTES ? malloc(sizeof *p + size) : NULL;
	if (!p) {
		net.dropped++;
		return;
	}
	*p = (struct packet){ .due = now() + way->delay_ns, .size = size };
	memcpy(p->bytes, bytes, size);
	net.queued += size;
	*way->end = p;
	way->end = &p->next;
}

static void device_read(uint32_t from) {
	static uint8_t bytes[PACKET_BYTES];
	for (int i = 0; i < BURST; i++) {
		ssize_t size = read(net.devices[from].fd, bytes, sizeof bytes);
		if (size <= 0) {
			return;
		}
		packet_take(from, bytes, (size_t)size);
	}
}

/* Delivers what is due to this host. */
static void way_deliver(struct way *way, uint32_t to) {
	for (int64_t late; way->first && (late = now() - way->first->due) >= 0;) {
		struct packet *p = way->first;
		const bool good = write(net.devices[to].fd, p->bytes, p->size) == (ssize_t)p->size;
		net.delivered += good;
		net.dropped += !good;
		net.latest_ns = late > net.latest_ns ? late : net.latest_ns;
		net.queued -= p->size;
		way->first = p->next;
		way->end = way->first ? way->end : &way->first;
		free(p);
	}
}

/* Delivers all that is due. Returns when the next packet is, or 0 if there is none. */
static int64_t deliver(void) {
	int64_t next = 0;
	for (uint32_t i = 0; i < net.hosts * net.hosts; i++) {
		struct way *way = &net.ways[i / net.hosts][i % net.hosts];
		way_deliver(way, i % net.hosts);
		if (way->first && (next == 0 || way->first->due < next)) {
			next = way->first->due;
		}
	}
	return next;
}

/* Carries packets until the input ends. */
static void carry(void) {
	char rest[64];
	struct pollfd *input = &net.devices[net.hosts];
	*input = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	do {
		const int64_t next = deliver(), wanted = next - now();
		const int64_t left = wanted > 0 ? wanted : 0;
		const struct timespec wait = { left / 1000000000, left % 1000000000 };
		if (ppoll(net.devices, net.hosts + 1, next ? &wait : NULL, NULL) < 0) {
			fail("cannot wait", "poll");
		}
		for (uint32_t i = 0; i < net.hosts; i++) {
			if (net.devices[i].revents) {
				device_read(i);
			}
		}
	} while (!input->revents || read(STDIN_FILENO, rest, sizeof rest) > 0);
}

static void misuse(void) {
	fprintf(stderr, "usage: delay NAMESPACE=ADDRESS... DELAY,DELAY,... (us; one for each "
		"sender and receiver; at most %d namespaces)\n", HOSTS_MOST);
	exit(2);
}

static void delays_read(const char *text) {
	for (uint32_t i = 0; i < net.hosts * net.hosts; i++) {
		struct way *way = &net.ways[i / net.hosts][i % net.hosts];
		char *end;
		way->end = &way->first;
		way->delay_ns = (int64_t)strtoul(text, &end, 10) * 1000;
		if (end == text || *end != (i + 1 < net.hosts * net.hosts ? ',' : '\0')) {
			misuse();
		}
		text = end + 1;
	}
}

int main(int argc, char **argv) {
	if (argc < 3 || argc > HOSTS_MOST + 2) {
		misuse();
	}
	net.hosts = (uint32_t)argc - 2;
	delays_read(argv[argc - 1]);
	for (uint32_t i = 0; i < net.hosts; i++) {
		char *address = strrchr(argv[i + 1], '=');
		if (!address || inet_pton(AF_INET, address + 1, &net.addresses[i]) != 1) {
			misuse();
		}
		*address = '\0';
		net.devices[i] = (struct pollfd){ .fd = device_new(argv[i + 1]),
			.events = POLLIN };
	}
	/* Without these a wait ends 50 us late, or when other programs have had their turns. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	(void)setpriority(PRIO_PROCESS, 0, -15);
	printf("ready\n");
	fflush(stdout);
	carry();
	printf("{\"delivered\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"latest_ms\": %.3f}\n",
		net.delivered, net.dropped, (double)net.latest_ns / 1e6);
	return 0;
}

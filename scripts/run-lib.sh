# run-lib.sh: the functions of scripts/run that tell and check, and those for the processes of its
# cluster. It is sourced after lib.sh. It expects nodes, spare, build, pawld, pawl and stay, and
# sets dir, pid, and the ports of each node: client_port, peer_port, admin_port, redis_port and
# memcached_port.
# shellcheck shell=bash
# shellcheck disable=SC2154 # scripts/run sets these variables

# ---- telling and checking ----

started_at=${EPOCHREALTIME/./}
now_ms() { echo $(((${EPOCHREALTIME/./} - started_at) / 1000)); }

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

title() {
	local ms
	ms=$(now_ms)
	printf '\n%s%3d.%d s  %s%s\n' "$bold" $((ms / 1000)) $((ms % 1000 / 100)) "$1" "$plain"
}
tell() { printf '         %s\n' "$*"; }
command_line() {
	local text
	text=$(printf ' %q' "$@")
	tell "\$ pawl$text"
}
indent() { sed 's/^/         | /'; }

# Says what went wrong, with the last lines of the logs. The EXIT trap stops the nodes.
fail() {
	printf '\nFAILED: %s\n' "$*" >&2
	local node
	for node in a b c d; do
		if [ -s "$dir/$node.log" ]; then
			printf -- '--- %s.log\n' "$node"
			tail -n 15 "$dir/$node.log"
		fi >&2
	done
	exit 1
}

# show COMMAND...: prints and runs a pawl command, and fails if the command fails.
show() {
	command_line "$@"
	local text status
	text=$("$pawl" "$@" 2>&1)
	status=$?
	[ -n "$text" ] && indent <<<"$text"
	[ $status = 0 ] || fail "pawl $* ended with status $status"
}

# refused CODE COMMAND...: prints and runs a pawl command that must be refused for this reason.
refused() {
	local code=$1 text status
	shift
	command_line "$@"
	text=$("$pawl" "$@" 2>&1)
	indent <<<"$text"
	text=$("$pawl" "$@" --json 2>/dev/null)
	status=$?
	[ $status = 1 ] && [ "$(field code <<<"$text")" = "$code" ] ||
		fail "pawl $* was not refused as $code: status $status, $text"
}

# field NAME: prints a number or string of the JSON object on stdin, which is on one line.
field() { sed -nE 's/.*"'"$1"'": *"?([^",}]*)"?[,}].*/\1/p'; }

# await SECONDS WHAT COMMAND...: waits until the command succeeds, and fails after that time.
await() {
	local seconds=$1 what=$2 end
	shift 2
	end=$(($(now_ms) + seconds * 1000))
	until "$@"; do
		[ "$(now_ms)" -lt $end ] || fail "$what: this did not happen within $seconds s"
		sleep 0.05
	done
}

# ---- processes ----

declare -A pid=() client_port=() peer_port=() admin_port=() redis_port=() memcached_port=()
jobs_started=()
dir=''

# Prints the processes that run with a configuration of the cluster that stays, whoever started
# them.
stayed() {
	local file argument
	for file in /proc/[0-9]*/cmdline; do
		while IFS= read -r -d '' argument; do
			[[ $argument == "$stay"/[abcd].conf ]] && basename "$(dirname "$file")"
		done 2>/dev/null <"$file"
	done
}

stop_stayed() {
	local process
	for process in $(stayed); do
		kill -CONT "$process" 2>/dev/null
		kill -TERM "$process" 2>/dev/null
	done
	for process in $(stayed); do
		tail --pid="$process" -s 0.05 -f /dev/null &
		local waiting=$!
		(sleep 5 && kill -KILL "$process") 2>/dev/null &
		wait $waiting
		kill $! 2>/dev/null
	done
}

cleanup() {
	local status=$? node job
	for job in "${jobs_started[@]}"; do kill "$job" 2>/dev/null; done
	for node in "${!pid[@]}"; do kill -KILL "${pid[$node]}" 2>/dev/null; done
	wait 2>/dev/null
	$once && [ -n "$dir" ] && rm -rf "$dir"
	exit $status
}

start_node() {
	setsid "$pawld" --config "$dir/$1.conf" >>"$dir/$1.log" 2>&1 </dev/null &
	pid[$1]=$!
	echo $! >"$dir/$1.pid"
}

# gone NODE: waits until a node that was told to end has ended.
gone() {
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}

# is_in_state STATE NODE: succeeds if the node answers that it is in this state.
is_in_state() {
	"$pawl" --endpoints "$(endpoint "$2")" status --json 2>/dev/null |
		grep -q "\"state\": *\"$1\""
}
votes() { is_in_state voting "$1"; }
set_endpoints() {
	PAWL_ENDPOINTS=$(endpoint "${nodes[0]}"),$(endpoint "${nodes[1]}"),$(endpoint "${nodes[2]}")
	export PAWL_ENDPOINTS
}
endpoint() { echo "tls://127.0.0.1:${client_port[$1]}"; }

port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Chooses the ports of the documentation, or those of the next free hundred if some are taken.
choose_ports() {
	local base node port offset
	for base in 7100 7200 7300 7400 7500 7600; do
		local ok=true
		offset=17
		for node in "${nodes[@]}" "$spare"; do
			client_port[$node]=$((base + offset))
			peer_port[$node]=$((base + offset + 1))
			admin_port[$node]=$((base + offset + 2))
			redis_port[$node]=$((base + offset - 1))
			memcached_port[$node]=$((base + offset - 2))
			for port in {-2..2}; do
				port_free $((base + offset + port)) || ok=false
			done
			offset=$((offset + 10))
		done
		$ok && return 0
	done
	fail "there are no free ports between 7115 and 7649: stop what uses them"
}

write_config() {
	local node
	{
		cat <<-END
			[node]
			name = $1
			state_dir = $dir/$1
			listen_peer = 127.0.0.1:${peer_port[$1]}
			advertise = 127.0.0.1:${peer_port[$1]}
			listen_client = 127.0.0.1:${client_port[$1]}
			listen_redis = 127.0.0.1:${redis_port[$1]}
			listen_memcached = 127.0.0.1:${memcached_port[$1]}

			# These times are short, so that the demonstration need not wait.
			# The defaults are 60s, 2s and 1s.
			[cluster]
			name = demo
			max_lease = 5s
			promise_timeout = 600ms
			request_timeout = 300ms

			[cluster.masters]
		END
		for node in "${nodes[@]}"; do
			echo "$node = 127.0.0.1:${peer_port[$node]}"
		done
		cat <<-END

			[tls]
			ca = $dir/tls/ca.crt
			cert = $dir/tls/$1.crt
			key = $dir/tls/$1.key
			client_auth = required

			[acl]
			file = $dir/rights.conf

			[admin]
			listen = 127.0.0.1:${admin_port[$1]}
		END
	} >"$dir/$1.conf"
	# It is written once, because nodes that were started before read it. plain is whoever reads
	# the page on this machine.
	[ -e "$dir/rights.conf" ] ||
		printf '[me]\nallow = all on *\n[plain]\nallow = read on *\n' >"$dir/rights.conf"
}

# Prints the URL at which a client of Redis reaches a node with the certificate of PAWL_CERT.
redis_url() {
	printf 'rediss://127.0.0.1:%s/?ssl_ca_certs=%s&ssl_certfile=%s&ssl_keyfile=%s' \
		"${redis_port[$1]}" "$PAWL_CACERT" "$PAWL_CERT" "$PAWL_CERT_KEY"
}

# Writes what a Prometheus needs to watch the nodes that run, with the alert rules.
write_prometheus() {
	local node targets=''
	for node in "${nodes[@]}"; do
		targets+="${targets:+, }\"127.0.0.1:${admin_port[$node]}\""
	done
	cat >"$dir/prometheus.yml" <<-END
		global: {scrape_interval: 5s, evaluation_interval: 5s}
		rule_files: [$root/share/prometheus/pawl.rules.yml]
		scrape_configs:
		  - job_name: pawl
		    static_configs:
		      - targets: [$targets]
	END
}

make_certificates() {
	local node
	show cert ca --dir "$dir/tls"
	for node in "${nodes[@]}" "$spare"; do
		"$pawl" cert node "$node" --dir "$dir/tls" --host 127.0.0.1,localhost >/dev/null ||
			fail "pawl cert node $node"
	done
	"$pawl" cert client me --dir "$dir/tls" >/dev/null || fail "pawl cert client me"
	tell "pawl cert node and pawl cert client have made one for each node and one for you, too"
}

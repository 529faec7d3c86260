# run-elections.sh: the part of scripts/run in which three application processes elect a leader. It
# is sourced after run-lib.sh. It expects the cluster of scripts/run, and uses its pawl, dir, once,
# pid and jobs_started.
# shellcheck shell=bash
# shellcheck disable=SC2154 # scripts/run sets these variables

declare -A candidate=() # The process of each candidate, by its name.
observers=()
shown=0 # How many lines of leader --watch have been printed.

# Writes the application, whose argument is its name. It notes when its term begins, and then writes
# a line of work each 100 ms until it is told to end.
write_application() {
	cat >"$dir/scheduler" <<-'END'
		#!/bin/bash
		trap 'exit 0' TERM
		echo "$EPOCHREALTIME $1 $PAWL_TOKEN" >>"$0.terms"
		while :; do
			echo "$1 $PAWL_TOKEN" >>"$0.work"
			sleep 0.1
		done
	END
	chmod +x "$dir/scheduler"
	: >"$dir/scheduler.terms"
}

# run_candidate NAME PORT OPTION...: starts one application process as a candidate.
run_candidate() {
	local name=$1 port=$2
	shift 2
	tell "\$ pawl elect scheduler --as $name --value 127.0.0.1:$port --lease 2s${*:+ $*}" \
		"-- ./scheduler $name &"
	"$pawl" elect scheduler --as "$name" --value "127.0.0.1:$port" --lease 2s "$@" -- \
		"$dir/scheduler" "$name" 2>>"$dir/elect.err" &
	candidate[$name]=$!
	jobs_started+=($!)
}

candidates_wait() {
	[ "$("$pawl" waiters scheduler --json 2>/dev/null | grep -o '"owner"' | wc -l)" = "$1" ]
}
terms() { wc -l <"$dir/scheduler.terms"; }
leads() { tail -n 1 "$dir/scheduler.terms" | grep -q " $1 "; }
leader_token() { "$pawl" leader scheduler --json 2>/dev/null | field token; }
works() { [ "$(tail -n 1 "$dir/scheduler.work" 2>/dev/null)" = "$1 $2" ]; }
observed() { tail -n 1 "$dir/leaders" | grep -q "^$1 leads"; }

# Shows what pawl leader --watch has printed since the last time.
show_leaders() {
	tail -n +$((shown + 1)) "$dir/leaders" | sed 's/^/         leader --watch | /'
	shown=$(wc -l <"$dir/leaders")
}

# elected NAME SINCE: waits until the application of NAME works as the leader, and says how long
# after SINCE its term began.
elected() {
	await 10 "$1 leads" leads "$1"
	await 5 "pawl leader --watch tells of $1" observed "$1"
	show_leaders
	local began
	began=$(tail -n 1 "$dir/scheduler.terms" | cut -d' ' -f1)
	took=$(((${began/./} - started_at) / 1000 - $2))
}

show_election() {
	title "An election: three application processes, one leads"
	write_application
	"$pawl" leader scheduler --watch >"$dir/leaders" 2>>"$dir/elect.err" &
	observers=($!)
	"$pawl" watch --exact scheduler >"$dir/events" 2>>"$dir/elect.err" &
	observers+=($!)
	jobs_started+=("${observers[@]}")
	await 5 "pawl leader --watch" grep -q nobody "$dir/leaders"
	local name n=0 started
	for name in oslo paris rome; do
		started=$(now_ms)
		run_candidate $name $((8081 + n))
		[ $n = 0 ] && elected oslo "$started"
		await 5 "candidate $name" candidates_wait $n
		n=$((n + 1))
	done
	show waiters scheduler
	show leader scheduler
}

show_failover() {
	title "The leader is killed"
	local killed
	killed=$(now_ms)
	kill -KILL "${candidate[oslo]}"
	wait "${candidate[oslo]}" 2>/dev/null
	tell "\$ kill -9 oslo"
	elected paris "$killed"
	tell "paris leads $took ms after the kill: not before the lease of 2 s was over." \
		"The application of oslo is gone by then"
	[ "$took" -lt 3500 ] || fail "failover took $took ms"
	run_candidate oslo 8081
	await 5 "candidate oslo waits again" candidates_wait 2
}

show_transfer() {
	title "Leadership is handed to a candidate that is named"
	local asked
	asked=$(now_ms)
	show ask-release scheduler --to oslo
	elected oslo "$asked"
	tell "paris ended its work and handed over to oslo, although rome had waited for longer." \
		"It took $took ms, because no lease had to run out"
	await 5 "candidate paris waits again" candidates_wait 2
}

show_priority() {
	title "A candidate of a higher priority takes over"
	local started
	started=$(now_ms)
	run_candidate milan 8084 --priority 10 --takeover
	elected milan "$started"
	tell "milan leads $took ms after its start: it asked oslo, which has priority 0, to yield"
	await 5 "candidate oslo waits again" candidates_wait 3
}

show_leader_stays() {
	title "A master is killed; leadership stays"
	local token before
	token=$(leader_token)
	works milan "$token" || fail "milan does not work"
	tell "\$ kill -9 master b"
	kill -KILL "${pid[b]}"
	gone b
	before=$(now_ms)
	two_leases() { [ "$(now_ms)" -gt $((before + 4000)) ]; }
	await 6 "two leases pass" two_leases
	works milan "$token" ||
		fail "milan does not work any more: $(tail -n 1 "$dir/scheduler.work")"
	[ "$(leader_token)" = "$token" ] || fail "the leader has changed"
	tell "two leases later milan still leads, with the same token $token, and works." \
		"pawl explain shows why, and who is next:"
	show explain scheduler
	start_node b
	await 10 "master b votes again" votes b
}

# Checks that no line of work of an earlier term comes after one of a later term, so no two
# candidates ever led at the same time.
one_at_a_time() { awk '$2 < last { exit 1 } { last = $2 }' "$dir/scheduler.work"; }

end_election() {
	title "What pawl watch has seen of all that"
	local name
	for name in rome paris oslo milan; do
		kill -TERM "${candidate[$name]}"
		wait "${candidate[$name]}" 2>/dev/null
	done
	await 5 "pawl leader --watch tells that nobody leads" observed_nobody
	kill "${observers[@]}"
	wait "${observers[@]}" 2>/dev/null
	indent <"$dir/events"
	one_at_a_time || fail "work of an earlier term was done during a later one"
	tell "$(terms) terms, $(wc -l <"$dir/scheduler.work") lines of work: no line of a term" \
		"comes after one of a later term, so only one led at a time"
}
observed_nobody() { tail -n 1 "$dir/leaders" | grep -q '^nobody'; }

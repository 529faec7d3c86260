#!/bin/sh
# worker.sh DIRECTORY COMMAND...: does the jobs DIRECTORY/NAME.job. COMMAND gets such a file as its
# last argument, and prints the result. Start any number of workers, on all hosts that share the
# directory.
set -u
directory=$1 errors=$(mktemp)
shift
for job in "$directory"/*.job; do
	# shellcheck disable=SC2016 # the inner shell's variables
	pawl run "queue/$(basename "$job")" --lease 5s --release-on-disconnect -- sh -u -c '
		job=$1
		shift
		[ -e "$job" ] || exit 0 # done by another worker meanwhile
		"$@" "$job" >"$job.$PAWL_TOKEN" || exit 10
		mv "$job.$PAWL_TOKEN" "${job%.job}.result" && rm "$job"
		echo "$job with token $PAWL_TOKEN"
	' sh "$job" "$@" 2>"$errors"
	case $? in
	0 | 115) ;; # 115: another worker has it
	10)
		cat "$errors" >&2
		echo "$job: not done" >&2
		;;
	*)
		cat "$errors" >&2
		break
		;;
	esac
done
rm -f "$errors"

#!/bin/sh
# nightly.sh DIRECTORY COMMAND...: cron starts this on every host at the same minute. On one of them
# it runs COMMAND, which prints the report of the day. All hosts share DIRECTORY.
set -eu
report=$1/report-$(date -u +%F).txt
shift

# shellcheck disable=SC2016 # the inner shell's variables
exec pawl run nightly-report --lease 5s --wait 10m --release-on-disconnect -- sh -eu -c '
	report=$1
	shift
	if [ -e "$report" ]; then
		echo "made already"
		exit 0
	fi
	"$@" >"$report.$PAWL_TOKEN" # a name that nobody else writes to
	mv "$report.$PAWL_TOKEN" "$report"
	echo "made with token $PAWL_TOKEN"
' sh "$report" "$@"

#!/bin/sh
# clock.sh FILE: a service that writes the time each second until it is told to stop. All that it
# knows of the election is its token.
trap 'kill "$!" 2>/dev/null; echo "$PAWL_TOKEN stops" >>"$1"; exit 0' TERM INT
while :; do
	echo "$PAWL_TOKEN $(date -u +%T)" >>"$1"
	sleep 1 &
	wait $!
done

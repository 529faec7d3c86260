#!/bin/sh
# limit.sh NAME PERMITS COMMAND...: runs COMMAND, but lets at most PERMITS of them begin in any
# second, over all hosts. PAWL_SLOTS tells COMMAND which permit it has.
name=$1 permits=$2
shift 2
# shellcheck disable=SC2016 # the inner shell's variables
exec pawl run "$name" --permits 1 --of "$permits" --lease 5s --wait 1m \
	--release-on-disconnect --lock-delay 1s -- sh -c '
	"$@"
	status=$?
	sleep 1 # the permit is given back a second after COMMAND is over
	exit $status
' sh "$@"

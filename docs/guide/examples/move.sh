#!/bin/sh
# move.sh DIRECTORY FROM TO AMOUNT: takes AMOUNT from the number in DIRECTORY/FROM, and adds it to
# the number in DIRECTORY/TO.
set -eu
# shellcheck disable=SC2016 # the inner shell's variables
exec pawl run "account/$2" "account/$3" --lease 5s --wait 1m -- sh -eu -c '
	from=$(cat "$1/$2") to=$(cat "$1/$3")
	[ "$from" -ge "$4" ]
	echo $((from - $4)) >"$1/$2"
	echo $((to + $4)) >"$1/$3"
' sh "$1" "$2" "$3" "$4"

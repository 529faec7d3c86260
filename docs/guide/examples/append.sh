#!/bin/sh
# append.sh FILE NAME TOKEN LINE: guards a plain file. It appends LINE to FILE, unless somebody with
# a higher token of the lock NAME was here before. Every writer has to use this script, on the one
# machine that has the file.
set -eu
# shellcheck disable=SC2016 # the inner shell's variables
exec flock "$1.lock" sh -eu -c '
	pawl fence check "$1.fence" "$2" "$3"
	printf "%s\n" "$4" >>"$1"
' sh "$1" "$2" "$3" "$4"

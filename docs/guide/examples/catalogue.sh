#!/bin/sh
# catalogue.sh FILE read: prints FILE; many readers may do this at once, on any host.
# catalogue.sh FILE write COMMAND...: writes the output of COMMAND to FILE, alone.
set -eu
file=$1 what=$2
shift 2
case $what in
read)
	exec pawl run catalogue --shared --lease 5s --wait 1m -- cat "$file"
	;;
write)
	# shellcheck disable=SC2016 # the inner shell's variables
	exec pawl run catalogue --lease 5s --wait 1m -- sh -eu -c '
		file=$1
		shift
		"$@" >"$file"
		pawl downgrade "$PAWL_KEY" "$PAWL_LOCK_ID" >&2 # now readers may come, not writers
		wc -l <"$file"
	' sh "$file" "$@"
	;;
*)
	echo "usage: catalogue.sh FILE read | FILE write COMMAND..." >&2
	exit 2
	;;
esac

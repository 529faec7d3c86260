#!/bin/sh
# shards-worker.sh NAME WORKER: holds NAME/workers/WORKER, and says which of twelve shards are its own, whenever that changes.
# shellcheck disable=SC2016 # awk's and the inner shell's variables
exec pawl run "$1/workers/$2" --lease 5s --wait 10s --release-on-disconnect -- sh -c '
	pawl leader "$1" --watch | awk -v me="$2" "
		/^nobody leads/ { print \"shards:\"; fflush() }
		/ leads, token / {
			of = split(substr(\$0, index(\$0, \", value \") + 8), workers, \" \")
			line = \"shards:\"
			for (i = 0; i < 12; i++) if (of && workers[i % of + 1] == me) line = line \" \" i
			print line
			fflush()
		}"
' sh "$1" "$2"

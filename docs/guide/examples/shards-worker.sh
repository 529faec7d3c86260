#!/bin/sh
# shards-worker.sh NAME WORKER: prints which of the twelve shards this worker has, at each change.
# It runs while the worker holds its key:
#     pawl run NAME/workers/WORKER --release-on-disconnect -- shards-worker.sh NAME WORKER
pawl leader "$1" --watch | while read -r line; do
	case $line in
	*", value "*) workers=${line#*, value } ;;
	*) workers= ;; # nobody leads, or nothing is proclaimed yet
	esac
	place=12 count=0
	for worker in $workers; do
		[ "$worker" = "$2" ] && place=$count
		count=$((count + 1))
	done
	shards=
	while [ "$place" -lt 12 ]; do
		shards="$shards $place"
		place=$((place + count))
	done
	echo "shards:$shards"
done

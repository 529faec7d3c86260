#!/bin/sh
# shards-leader.sh: the work of the leader, for `pawl elect NAME -- shards-leader.sh`. At each
# change of the keys NAME/workers/ it proclaims the list of workers.
pawl watch "$PAWL_KEY/workers/" | while read -r _; do
	workers=$(pawl ls "$PAWL_KEY/workers/" |
		awk 'NR > 1 { sub(".*/", "", $1); printf "%s ", $1 }')
	pawl update "$PAWL_KEY" "$PAWL_LOCK_ID" "$workers" >/dev/null || exit
done

#!/bin/sh
# shards-leader.sh: what the leader does, under `pawl elect NAME -- shards-leader.sh`: at each change among NAME/workers/ it
# proclaims who is there.
pawl watch "$PAWL_KEY/workers/" | while read -r _; do
	workers=$(pawl ls "$PAWL_KEY/workers/" | awk 'NR > 1 { sub(".*/", "", $1); printf "%s ", $1 }')
	pawl update "$PAWL_KEY" "$PAWL_LOCK_ID" "$workers" >/dev/null || exit
done

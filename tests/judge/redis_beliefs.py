"""What holders of scripts/judge-redis believe, as lines of a history."""

# By how much beliefs may overlap: a holder's thread may run only some time after the answer came.
LATE_NS = 100 * 1000 * 1000


def line_of(belief, number):
    """Returns a belief as a line of a history. That a thread may run late is allowed for, except in
    a belief that is exact. Without a lock_id each belief is one in a lock of its own."""
    begin, end = belief["begin"], belief["end"]
    until = end if belief.get("exact") else max(end - LATE_NS, min(begin + 1, end))
    more = {k: v for k, v in belief.items() if k not in ("begin", "end")}
    return {"op": "believe", "id": number, "process": belief["who"], "invoke": begin,
            "return": begin, "until": until, "lock_id": "%d-%d" % (belief["who"], number), **more}

"""The language of cases, explained: what kit.py --explain prints."""

from matching import WORDS

TEXT = """\
A CASE is a JSON object with `level` (1 to 4), `why` (a sentence that names the rule and the page
that has it), `nodes` and `steps`, and perhaps `tls` and `client`. What a client may freely choose
is not asked for.

NODES: a map from a name to the rules of that node, in order, or to "refused" for a port where
nobody listens. In every text, ${NAME} stands for the endpoint of a node, and ${folder} for an empty
folder. PAWL_ENDPOINTS has all endpoints, in the order of the case; `connect` may name some by the
names of their nodes. A client may begin with any of them unless it is told prefer_first.

TLS: a case may have `tls`, a map from the names of nodes to how they meet a client, whose endpoints
then begin with tls://. The client knows one authority (PAWL_CACERT).
  right, other_name, unknown_authority, expired   it shows the right certificate; one for
                     node.example; one of an authority that the client does not know; one whose
                     time is over
  wants_certificate  it shows the right one, and wants one of the client
  plain              it does not know TLS: its rules for `connect` say what it answers
`client` may have a `certificate` (right, or unknown_authority) for the client, and a `server_name`.

A RULE says how a node answers a request. The first rule that takes the request is used up by it:
  on         the method, or a list of methods; `connect` is a connection that is accepted
  where      takes only requests with these parameters
  times      takes so many requests (default 1), and must get so many until the case ends; "any": as
             many as come, perhaps none
  want       parameters that the request has to have; otherwise the case fails
  same       fields that have to be as in the previous request with this method, at any node
  differs    fields that must not be as in the previous request with this method
  like       {field: "METHOD.FIELD"}: has to be as that field was in the last request with that
             method
  since      {"request": method, "ms": N}: the time since the last request with that method
  answer     see below (default: {"grant": {}}); a list is done in order
  after_ms   the answer comes so much later
`ping`, `release` and `unwatch` are answered even without a rule. Any other request that no rule
takes (any more) fails the case: so a request that must not be repeated has one rule. A field may be
a path, such as locks.0.lock_id. An extend has `locks` here even if it came in the form for one
lock. lock_id and party are compared as lower-case hex digits, all other bytes as text, or as
{"hex": "..."}.

AN ANSWER is one of these:
  {"grant": {...}}        what a node answers that serves the request, changed by these fields. For
                          several locks `locks` is a map from key to the fields of that lock, for
                          example {"locks": {"k": {"error": {"code": "lost"}}}} in an extend
  {"result": {...}}       exactly this result
  {"error": "held"}       an error, by its code or as a map with a code
  {"last_word": "quota"}  an error under msgid 0, after which the node closes the connection
  {"event": {...}}        an event of the watch on this connection; {"notify": [name, [{...}]]} any
                          other notification; {"message": ...} any message
  {"silence": true}       nothing; {"hang": true} nothing from now on, not even to pings, until a
                          step plays `resume`; then the node answers what has come meanwhile
  {"close": true}, {"reset": true}   the end of the connection, in order or by a reset
  {"garbage": "text"}     these bytes
  {"half": ANSWER}, {"twice": ANSWER}, {"bytewise": ANSWER}   the first half of its bytes; all of
                          them twice; all of them one by one
  {"wide": ANSWER}        each number, text, list and map in its longest form
  {"other_msgid": ANSWER} under a msgid that nobody has used
  {"pause_ms": N}
In answers {"$hex": "ff00"} is a bin, {"$bin": "x"} and {"$str": "x"} are the text as bin and str
(the fields of the protocol have their own kind without this), {"$u64": 7} (u8 to i64) is a number
in this form, and {"$times": ["x", 1000]} a long text.

STEPS are done in order. A step is one of these:
  {"do": COMMAND, parameters...}    a command for the runner (README.md), with what has to come:
      ok, error      the result, or the error (a code or a map); default: any result
      either         a list of {"ok": ...} and {"error": ...}: one of these
      within_ms      how long it may take (default 20 s); at_least_ms: how long it takes at least
      start          a name: the answer is not awaited, but by {"await": NAME, ok..., within_ms...},
                     and {"do": "cancel", "command": NAME} cancels it
  {"event": "lost", "lock" or "watch": NAME, "want": {...}, "within_ms": N, "next": true}
      the next event that is as wanted; next: the next event of all is as wanted
  {"no_event": "lost", "lock": NAME, "for_ms": N, "where": {...}}
  {"request": METHOD, "node": NAME, "where", "want", "same", "differs", "like", "since",
   "within_ms"}
      the first request that no such step has had yet
  {"no_request": METHOD, "node": NAME, "where": {...}, "for_ms": N}
  {"count": METHOD, "node": NAME, "where": {...}, "want": N}     so many have come until now
  {"order": ["a ping", "b get"]}    the first requests of these kinds came in this order
  {"play": "hang", "node": NAME}    also: resume; stop (as if it was killed) and start; cut and
                                    reset, which end its connections
  {"send": {"event": {...}}, "node": NAME}   a notification without a request
  {"pause_ms": N}

A COMPARISON: a map matches if its fields do, whatever further fields there are; a list if all of
its items do; all else if it is the same. A map with these words alone compares by them:
%s
BESIDES, each case fails if the runner tells a loss twice, or one that no step has awaited; if an
answer to `valid` is longer than what is left of what nodes have granted, counted from the moment at
which the request came, or of the lease to which the lock was shortened since; if a token is not a
string of digits; if the client sends what is no request; or if the runner does not end with status
0.
"""


def text():
    return TEXT % "".join("  %-8s %s\n" % (word, meaning) for word, meaning in WORDS.items())

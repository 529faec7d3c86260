------------------------------ MODULE PawlValues ------------------------------
(* Section 2, Update and Compare and release (docs/protocol/writes.md): the value of *)
(* one lock that is held all the time, until a release that expects a value ends it. *)
(* The leases themselves are in Pawl; here a master may lose its record whenever a   *)
(* quorum of the others has it, because they have accepted an extension that it has  *)
(* missed, and it may learn the record again from any copy that was ever made.       *)
EXTENDS Integers, FiniteSets, Sequences, TLC

CONSTANTS Masters, Bound, Broken

VARIABLES
  record,  \* master -> its record; not in the domain, if it lacks the lock
  clock,   \* master -> its clock
  lost,    \* master -> the highest ballot that it noted, or may have, and lost with a record
  dead,    \* the masters that have the tombstone of the lock
  copied,  \* all copies of the record's value that nodes may have
  ops,     \* the updates and releases, in the order in which they began
  taken,   \* <<a value that a caller expected, what was answered to be there instead>>
  spent,   \* how much of Bound is used up
  wrong    \* the dishonest answers; empty unless a rule is broken

vars == <<record, clock, lost, dead, copied, ops, taken, spent, wrong>>

Off(rule) == rule \in Broken
May(what) == spent[what] < Bound[what]
Spend(what) == May(what) /\ spent' = [spent EXCEPT ![what] = @ + 1]
Has(f, key) == key \in DOMAIN f
Put(f, key, value) == (key :> value) @@ f
Without(f, keys) == [key \in DOMAIN f \ keys |-> f[key]]
Larger(x, y) == IF x < y THEN y ELSE x
Enough(set) == Cardinality(set) > Cardinality(Masters) \div 2

(* A ballot is the clock of a coordinator, and the number of the operation that drew it. *)
Zero == <<0, 0>>
First == <<1, 0>>
Above(a, b) == a[1] > b[1] \/ (a[1] = b[1] /\ a[2] > b[2])
Higher(a, b) == IF Above(a, b) THEN a ELSE b

(* The first value is 0; an update writes the number of its operation, so no value comes twice. *)
Copy(value, ballot, last) == [value |-> value, ballot |-> ballot, last |-> last]
Value(m) == Copy(record[m].value, record[m].ballot, record[m].last)

(* A record that comes to a master which lacks it. It counts if it is not older than what *)
(* the master has noted and lost.                                                         *)
Made(m, copy) ==
  [value |-> copy.value, ballot |-> copy.ballot, last |-> copy.last,
   top |-> Higher(lost[m], copy.ballot),  \* the highest ballot noted
   noted |-> clock[m],
   whole |-> ~Above(lost[m], copy.ballot)]

Counts(m) == \/ record[m].whole
             \/ record[m].ballot[1] > record[m].noted
             \/ Off("which-masters-count")

(* An acquire has been granted. Its commit has reached a quorum, and may reach others late. *)
Init ==
  /\ \E set \in SUBSET Masters :
       /\ Enough(set)
       /\ record = [m \in set |-> [value |-> 0, ballot |-> First, last |-> FALSE, top |-> First,
                                   noted |-> 0, whole |-> TRUE]]
       /\ clock = [m \in Masters |-> IF m \in set THEN 1 ELSE 0]
  /\ lost = [m \in Masters |-> Zero]
  /\ dead = {}
  /\ copied = {Copy(0, First, FALSE)}
  /\ ops = <<>>
  /\ taken = {}
  /\ spent = [what \in DOMAIN Bound |-> 0]
  /\ wrong = {}

(*------------------------------- Records come and go -----------------------------*)

OthersHave(m) == Enough(DOMAIN record \ {m})

(* The lease ends at a master that has missed an extension. *)
Lose(m) ==
  /\ Spend("lose")
  /\ Has(record, m) /\ OthersHave(m)
  /\ lost' = [lost EXCEPT ![m] =
       IF Off("a-promise-notes-the-ballot/forgotten") THEN @ ELSE Higher(@, record[m].top)]
  /\ record' = Without(record, {m})
  /\ UNCHANGED <<clock, dead, copied, ops, taken, wrong>>

(* A master starts without its memory, and votes again by waiting. What it has noted is not *)
(* above its clock, which it has on disk.                                                   *)
Restart(m) ==
  /\ Spend("restart")
  /\ OthersHave(m)
  /\ lost' = [lost EXCEPT ![m] =
       IF Off("a-promise-notes-the-ballot/below-that-clock") THEN Zero ELSE <<clock[m], 99>>]
  /\ record' = Without(record, {m})
  /\ dead' = dead \ {m}
  /\ UNCHANGED <<clock, copied, ops, taken, wrong>>

(* A master learns the record, or a late commit reaches it: with whatever value some node knows. *)
Learn(m, copy) ==
  /\ Spend("learn")
  /\ ~Has(record, m) /\ m \notin dead
  /\ record' = Put(record, m, Made(m, copy))
  /\ clock' = [clock EXCEPT ![m] = Larger(@, 1)]
  /\ UNCHANGED <<lost, dead, copied, ops, taken, wrong>>

(* The variant in which a repeat of the acquire brings its own value, under a ballot that it *)
(* has drawn only now.                                                                       *)
Repeat(m) ==
  /\ Off("a-repeat-never-changes-the-value")
  /\ Spend("learn")
  /\ ~Has(record, m) /\ m \notin dead
  /\ record' = Put(record, m, Made(m, Copy(0, <<clock[m] + 2, 98>>, FALSE)))
  /\ clock' = [clock EXCEPT ![m] = @ + 2]
  /\ UNCHANGED <<lost, dead, copied, ops, taken, wrong>>

(*---------------------------------- Operations -----------------------------------*)

Blame(what, honest) == wrong' = IF honest THEN wrong ELSE wrong \cup {what}

(* Prepare: a master that has the lock notes the ballot and reports its value. *)
MayPrepare(m, ballot) ==
  /\ Has(record, m)
  /\ ballot[1] > record[m].noted
  /\ Above(ballot, record[m].top)

Prepared(m, ballot) == [record[m] EXCEPT !.top = ballot]

(* A Prepare that reaches fewer than q only stands in the way of others, and is left out.   *)
(* `kind` is "update" or "release", and `expected` the value that the caller has read. *)
Begin(kind, expected, time, now) ==
  LET ballot == <<time + 1, Len(ops) + 1>>
      notes == ~(Off("the-last-value") /\ kind = "release")
  IN /\ Spend(kind)
     /\ \A m \in now : MayPrepare(m, ballot)
     /\ record' = [m \in DOMAIN record |->
          IF m \in now /\ notes THEN Prepared(m, ballot) ELSE record[m]]
     /\ clock' = [m \in Masters |-> IF m \in now THEN Larger(clock[m], time + 1) ELSE clock[m]]
     /\ ops' = Append(ops, [kind |-> kind, expected |-> expected, ballot |-> ballot,
          phase |-> "prepare",
          reports |-> [m \in {n \in now : Counts(n)} |-> Value(m)],
          copy |-> Copy(0, Zero, FALSE), tells |-> "", took |-> {}])
     /\ UNCHANGED <<lost, dead, copied, taken, wrong>>

Newest(reports) ==
  CHOOSE copy \in {reports[m] : m \in DOMAIN reports} :
    \A m \in DOMAIN reports : ~Above(reports[m].ballot, copy.ballot)

(* What is written, and what is answered once q masters have taken it. *)
Judged(op, i) ==
  LET newest == Newest(op.reports)
  IN IF newest.last /\ ~Off("whoever-finds-a-last-value/not-completed")
     THEN <<Copy(newest.value, op.ballot, TRUE), "lost">>
     ELSE IF newest.value # op.expected
     THEN <<Copy(newest.value, op.ballot, FALSE), "mismatch">>
     ELSE IF op.kind = "release"
     THEN <<Copy(newest.value, op.ballot, TRUE), "released">>
     ELSE <<Copy(i, op.ballot, FALSE), "updated">>

MayTake(m, ballot) ==
  /\ Has(record, m)
  /\ ~Above(record[m].top, ballot) \/ Off("ballots")
  /\ Above(ballot, record[m].ballot) \/ Off("ballots")

Taken(m, copy) ==
  [record[m] EXCEPT !.value = copy.value, !.ballot = copy.ballot, !.last = copy.last,
                    !.top = Higher(@, copy.ballot)]

Write(i, now) ==
  LET op == ops[i] result == Judged(op, i) copy == result[1] IN
  /\ op.phase = "prepare" /\ DOMAIN op.reports # {} /\ Enough(DOMAIN op.reports)
  /\ \A m \in now : MayTake(m, copy.ballot)
  /\ record' = [m \in DOMAIN record |-> IF m \in now THEN Taken(m, copy) ELSE record[m]]
  /\ copied' = copied \cup {copy}
  /\ ops' = [ops EXCEPT ![i].phase = "write", ![i].copy = copy, ![i].tells = result[2],
                        ![i].took = now, ![i].reports = <<>>]
  /\ UNCHANGED <<clock, lost, dead, taken, spent, wrong>>

LateWrite(i, m) ==
  LET op == ops[i] IN
  /\ Spend("late")
  /\ op.phase \in {"write", "done"} /\ m \notin op.took
  /\ MayTake(m, op.copy.ballot)
  /\ record' = [record EXCEPT ![m] = Taken(m, op.copy)]
  /\ ops' = [ops EXCEPT ![i].took = @ \cup {m}]
  /\ UNCHANGED <<clock, lost, dead, copied, taken, wrong>>

Written(op) ==
  \/ op.phase = "write"
     /\ \/ Enough(op.took)
        \/ op.took # {} /\ Off("whoever-finds-a-last-value/few") /\ op.copy.last
        \/ op.tells = "mismatch" /\ Off("a-mismatch-is-written-back")
        \/ op.tells = "released" /\ (Off("the-last-value") \/ Off("the-last-value/at-once"))

(* Whether a value was written by operation i, or on top of what that wrote. *)
Released == 100
RECURSIVE Follows(_, _)
Follows(value, i) == value = i \/ (value \in DOMAIN ops /\ Follows(ops[value].expected, i))

(* The answer. Whoever has written a last value goes on to release the lock. A success is honest *)
(* if whatever else was answered to have replaced the expected value has followed from it.       *)
Finish(i) ==
  LET op == ops[i]
      instead == IF op.tells = "released" THEN Released ELSE op.copy.value
  IN /\ Written(op)
     /\ ops' = [ops EXCEPT ![i].phase = IF op.copy.last THEN "release" ELSE "done"]
     /\ taken' = IF op.tells = "lost" THEN taken ELSE taken \cup {<<op.expected, instead>>}
     /\ Blame(op.tells, op.tells \in {"updated", "released"} =>
                         \A pair \in taken : pair[1] = op.expected => Follows(pair[2], i))
     /\ UNCHANGED <<record, clock, lost, dead, copied, spent>>

(* The release, exactly by lock_id, at some of the masters; at the others it may come late. *)
Release(i, now) ==
  /\ ops[i].phase = "release"
  /\ now # {}
  /\ record' = Without(record, now)
  /\ dead' = dead \cup now
  /\ ops' = [ops EXCEPT ![i].phase = "done"]
  /\ UNCHANGED <<clock, lost, copied, taken, spent, wrong>>

Next ==
  \/ \E m \in Masters : \/ Lose(m) \/ Restart(m) \/ Repeat(m)
                        \/ \E copy \in copied : Learn(m, copy)
  \/ \E kind \in {"update", "release"} :
       /\ May(kind)
       /\ \E expected \in {copy.value : copy \in copied}, time \in {clock[m] : m \in Masters} :
            \E now \in SUBSET {m \in DOMAIN record : MayPrepare(m, <<time + 1, Len(ops) + 1>>)} :
              Enough(now) /\ Begin(kind, expected, time, now)
  \/ \E i \in DOMAIN ops :
       \/ \E now \in SUBSET DOMAIN record : Write(i, now) \/ Release(i, now)
       \/ Finish(i)
       \/ \E m \in DOMAIN record : LateWrite(i, m)

Spec == Init /\ [][Next]_vars

(* Of all updates and releases that expect the same value at most one succeeds, and none     *)
(* does once another caller was refused because that value is superseded.                    *)
NoLostUpdate == "updated" \notin wrong
HonestRelease == "released" \notin wrong
=============================================================================

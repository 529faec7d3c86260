------------------------------ MODULE PawlRestart ------------------------------
(* Section 4 (docs/protocol/restart.md): a master without its memory, snapshots,    *)
(* merging, and how it votes again. Taking a table over in a new epoch (section 6)   *)
(* merges in the same way.                                                           *)
EXTENDS PawlWrites

(* A snapshot is the table of its source at the moment of its end. It has no promises. *)
Snapshot(t) == IF Off("snapshots") THEN t ELSE [t EXCEPT !.promise = Empty]

(*------------------------------------ Merging -----------------------------------*)

(* `from` is a set of names of sources, and t the snapshot of each. *)
MergedRecord(lock, from, t) ==
  LET with == {s \in from : Has(t[s].held, lock)}
      noted == {t[s].held[lock].noted : s \in with}
               \cup (IF Off("merging/noted") THEN {} ELSE {t[s].clock : s \in from \ with})
      names == {t[s].held[lock].name : s \in with}
      left == {t[s].held[lock].left : s \in with}
      order == {t[s].held[lock].order : s \in with}
  IN [token |-> Max({t[s].held[lock].token : s \in with}),
      noted |-> Max(noted),
      left  |-> IF Off("merging/end") THEN Min(left) ELSE Max(left),
      order |-> IF Off("the-order/copies") THEN 0 ELSE Max(order),
      name  |-> IF Cardinality(names) = 1 THEN Max(names) ELSE 0]

Merged(from, t, clock) ==
  LET dead == UNION {t[s].dead : s \in from}
      held == (UNION {DOMAIN t[s].held : s \in from}) \ dead
      highest == Max({clock} \cup (IF Off("merging/clock") THEN {} ELSE {t[s].clock : s \in from}))
      whole == {s \in from : DOMAIN t[s].promise # {}}
  IN Reserve([clock |-> highest, disk |-> clock,
              held |-> [lock \in held |-> MergedRecord(lock, from, t)],
              promise |-> IF whole = {} THEN Empty ELSE t[CHOOSE s \in whole : TRUE].promise,
              dead |-> dead,
              closed |-> Max({t[s].closed : s \in from})])

(*------------------------------------ Restart -----------------------------------*)

(* What a node is as a source of the handover of its epoch: it remembers the previous *)
(* epoch, or has forgotten it, or has never voted in its life.                        *)
Forgot(state) == IF state.ever THEN "forgot" ELSE "never"

(* It starts without its memory; its clock is the reservation on disk. *)
Restart(m) ==
  /\ Spend("restart")
  /\ table' = [table EXCEPT ![m] = Table(@.disk)]
  /\ copies' = [copies EXCEPT ![m] = Empty]
  /\ member' = [member EXCEPT ![m].votes = Off("recovering") /\ member[m].voted, ![m].timer = 0,
                  ![m].source = Forgot(member[m]),
                  ![m].decree = IF Off("a-decree-is-on-disk") THEN Empty ELSE @]
  /\ UNCHANGED <<chosen, rounds, client, shut, wrong>>

(* A master begins to vote. Before its first vote in an epoch it writes that mark. *)
Vote(m, t) ==
  /\ table' = [table EXCEPT ![m] = t]
  /\ copies' = [copies EXCEPT ![m] = Empty]
  /\ member' = [member EXCEPT ![m].votes = TRUE, ![m].voted = TRUE, ![m].ever = TRUE,
                  ![m].timer = 0]
  /\ UNCHANGED <<chosen, rounds, client, shut, spent, wrong>>

Recovers(m) == ~member[m].votes /\ m \in Masters(member[m].conf)

(* Another master that votes in this epoch may give a copy for rejoining, once answers to what *)
(* was accepted before the start do not count any more.                                         *)
MayGive(m, source) ==
  /\ Recovers(m) /\ source # m
  /\ source \in Masters(member[m].conf) /\ member[source].conf = member[m].conf
  /\ member[source].votes \/ Off("rejoining/recovering")
  /\ member[m].voted => member[m].timer >= RequestTimeout \/ Off("rejoining/wait")

Copy(m, way, source, t) ==
  /\ ~Has(copies[m], <<way, source>>)
  /\ copies' = [copies EXCEPT ![m] = Put(@, <<way, source>>, Snapshot(t))]
  /\ UNCHANGED <<table, member, chosen, rounds, client, shut, spent, wrong>>

CopyToRejoin(m, source) == MayGive(m, source) /\ Copy(m, "rejoin", source, table[source])

EnoughToRejoin(m, from) ==
  /\ from # {}
  /\ Cardinality(from) >= Cover(Masters(member[m].conf)) - (IF Off("rejoining/few") THEN 1 ELSE 0)

Given(m, way) == {from[2] : from \in {key \in DOMAIN copies[m] : key[1] = way}}
Copies(m, way) == [source \in Given(m, way) |-> copies[m][<<way, source>>]]

Rejoin(m) ==
  LET from == Given(m, "rejoin") IN
  /\ Recovers(m) /\ EnoughToRejoin(m, from)
  /\ Vote(m, Merged(from, Copies(m, "rejoin"), table[m].clock))

(* The same, if nothing happens between the copies. *)
RejoinAtOnce(m, from) ==
  /\ \A source \in from : MayGive(m, source)
  /\ EnoughToRejoin(m, from)
  /\ Vote(m, Merged(from, [source \in from |-> Snapshot(table[source])], table[m].clock))

(* All that it ever accepted is over. Only for an epoch in which it has voted. *)
WaitOver(m) ==
  /\ Recovers(m)
  /\ member[m].voted \/ Off("rejoining-instead-of-a-handover/wait")
  /\ member[m].timer >= (IF Off("waiting-after-a-start") THEN RequestTimeout ELSE MaxLease)
  /\ Vote(m, Table(table[m].clock))

(*--------------------------------- A planned stop --------------------------------*)

(* A whole planned stop: it starts again with the memory that it has written to a side file. *)
(* The file is consumed; a restart from a file that is still there is the variant.       *)
Stop(m) ==
  /\ Spend("stop")
  /\ member[m].votes
  /\ member' = [member EXCEPT ![m].side = Put(@, "table", table[m])]
  /\ UNCHANGED <<table, copies, chosen, rounds, client, shut, wrong>>

StartAgain(m) ==
  /\ Off("the-side-file-is-consumed")
  /\ Has(member[m].side, "table") /\ member[m].votes
  /\ table' = [table EXCEPT ![m] = [member[m].side["table"] EXCEPT !.promise = Empty]]
  /\ member' = [member EXCEPT ![m].side = Empty]
  /\ UNCHANGED <<copies, chosen, rounds, client, shut, spent, wrong>>
=============================================================================

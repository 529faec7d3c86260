------------------------------ MODULE PawlMembership ------------------------------
(* Section 6 (docs/protocol/membership.md): the decree, adopting, and voting in the     *)
(* new epoch.                                                                           *)
EXTENDS PawlRestart

(*----------------------------------- The decree ---------------------------------*)

(* Only masters that have voted in their epoch answer, and none accepts two successors. *)
(* (Paxos lets one replace what was accepted and not chosen; here it just stays.)        *)
AcceptDecree(now, conf, set) ==
  LET next == Append(conf, set)
      agree == {m \in Masters(conf) : member[m].decree = Put(Empty, conf, next)}
  IN /\ Spend("accept")
     /\ now # {}
     /\ \A m \in now :
          /\ member[m].conf = conf /\ m \in Masters(conf)
          /\ member[m].voted \/ Off("who-answers-a-decree")
          /\ ~Has(member[m].decree, conf)
     /\ member' = Change(member, now,
                         LAMBDA state : [state EXCEPT !.decree = Put(Empty, conf, next)])
     /\ chosen' = IF Cardinality(agree \cup now) >= Quorum(Masters(conf))
                  THEN chosen \cup {next} ELSE chosen
     /\ UNCHANGED <<table, copies, rounds, client, shut, wrong>>

(*------------------------------------ Adopting ----------------------------------*)

(* How the configuration was proven to the node is not modelled: it is one that was chosen.   *)
(* Epochs with the same masters are one epoch, for a node that adopts them one by one.        *)
Adopted(state, conf) ==
  LET next == Len(conf) = Len(state.conf) + 1
      same == next /\ Masters(conf) = Previous(conf)
      unmarked == Off("recovering-masters-are-marked") /\ ~state.votes
  IN IF same
     THEN [state EXCEPT !.conf = conf, !.voted = @ /\ ~unmarked, !.ever = @ /\ ~unmarked]
     ELSE [state EXCEPT !.conf = conf, !.votes = FALSE, !.voted = FALSE, !.timer = 0,
             !.source = IF next /\ state.votes THEN "remembers"
                        ELSE IF Off("a-master-that-skips-an-epoch") /\ ~next THEN "never"
                        ELSE Forgot(state)]

Adopt(now, conf) ==
  /\ conf \in chosen
  /\ now # {} /\ \A m \in now : Len(conf) > Len(member[m].conf)
  /\ member' = Change(member, now, LAMBDA state : Adopted(state, conf))
  /\ table' = Change(table, now, LAMBDA t : [t EXCEPT !.promise = Empty])
  /\ copies' = Change(copies, now, LAMBDA c : Empty)
  /\ UNCHANGED <<chosen, rounds, client, shut, spent, wrong>>

(* The variant in which it takes effect before it is on disk: the node has said that it has   *)
(* adopted the configuration, loses power, and starts in the previous one.                    *)
Unadopt(m) ==
  /\ Off("a-configuration-takes-effect")
  /\ Spend("restart")
  /\ Len(member[m].conf) > 1 /\ ~member[m].voted /\ member[m].ever
  /\ table' = [table EXCEPT ![m] = Table(@.disk)]
  /\ member' = [member EXCEPT ![m].conf = SubSeq(@, 1, Len(@) - 1), ![m].votes = FALSE,
                  ![m].voted = TRUE, ![m].timer = 0]
  /\ UNCHANGED <<copies, chosen, rounds, client, shut, wrong>>

(*------------------------------ Voting in the new epoch -------------------------*)

(* A source of the handover is a master of the previous epoch that has adopted this one. *)
MayHandOver(m, source) ==
  LET conf == member[m].conf state == member[source] IN
  /\ Recovers(m) /\ ~member[m].voted /\ Len(conf) > 1
  /\ source \in Previous(conf)
  /\ state.conf = conf \/ (Off("the-handover/not-adopted") /\ state.votes)
  /\ state.source = "forgot" => state.timer >= MaxLease \/ Off("the-handover/restarted")

(* Only who remembers has anything to tell but its clock. *)
Told(m, source) ==
  IF member[source].source = "remembers" \/ member[source].conf # member[m].conf
  THEN Snapshot(table[source]) ELSE Table(table[source].clock)

CopyToHandOver(m, source) ==
  MayHandOver(m, source) /\ Copy(m, "handover", source, Told(m, source))

EnoughToHandOver(m, from) ==
  /\ from # {}
  /\ Cardinality(from)
       >= Cover(Previous(member[m].conf)) - (IF Off("the-handover/few") THEN 1 ELSE 0)

HandOver(m) ==
  LET from == Given(m, "handover") IN
  /\ Recovers(m) /\ EnoughToHandOver(m, from)
  /\ Vote(m, Merged(from, Copies(m, "handover"), table[m].clock))

HandOverAtOnce(m, from) ==
  /\ \A source \in from : MayHandOver(m, source)
  /\ EnoughToHandOver(m, from)
  /\ Vote(m, Merged(from, [source \in from |-> Told(m, source)], table[m].clock))
=============================================================================

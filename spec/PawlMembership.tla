------------------------------ MODULE PawlMembership ------------------------------
(* Section 6 (docs/protocol/membership.md): the decree, adopting, and voting in the     *)
(* new epoch.                                                                           *)
EXTENDS PawlRestart

(*----------------------------------- The decree ---------------------------------*)

(* Only masters that have voted in their epoch answer, and none accepts two successors. *)
(* (Paxos lets one replace what was accepted and not chosen; here it just stays.)        *)
AcceptDecree(m, set) ==
  LET conf == member[m].conf next == Append(conf, set)
      agree == {n \in Masters(conf) : Has(member[n].decree, conf) /\ member[n].decree[conf] = next}
  IN /\ Spend("accept")
     /\ Len(conf) < Len(Sets) /\ set \in Sets[Len(conf) + 1]
     /\ m \in Masters(conf)
     /\ member[m].voted \/ Off("who-answers-a-decree")
     /\ ~Has(member[m].decree, conf)
     /\ member' = [member EXCEPT ![m].decree = Put(@, conf, next)]
     /\ chosen' = IF Cardinality(agree \cup {m}) >= Quorum(Masters(conf))
                  THEN chosen \cup {next} ELSE chosen
     /\ UNCHANGED <<table, copies, rounds, client, shut, wrong>>

(*------------------------------------ Adopting ----------------------------------*)

(* How the configuration was proven to the node is not modelled: it is one that was chosen. *)
Adopted(state, conf) ==
  LET next == Len(conf) = Len(state.conf) + 1
      same == next /\ Masters(conf) = Previous(conf)
      source == IF next /\ state.votes THEN "remembers"
                ELSE IF Off("a-master-that-skips-an-epoch") /\ ~next THEN "never"
                ELSE Forgot(state)
  IN IF same
     THEN [state EXCEPT !.conf = conf,
             !.voted = @ /\ (state.votes \/ ~Off("recovering-masters-are-marked")),
             !.source = IF Off("recovering-masters-are-marked") /\ ~state.votes
                        THEN "never" ELSE @]
     ELSE [state EXCEPT !.conf = conf, !.votes = FALSE, !.voted = FALSE, !.timer = 0,
             !.source = IF Off("recovering-masters-are-marked") /\ state.source = "never"
                           /\ ~state.votes
                        THEN "never" ELSE source]

Adopt(m, conf) ==
  /\ conf \in chosen
  /\ Len(conf) > Len(member[m].conf)
  /\ member' = [member EXCEPT ![m] = Adopted(@, conf)]
  /\ table' = [table EXCEPT ![m].promise = Empty]
  /\ copies' = [copies EXCEPT ![m] = Empty]
  /\ UNCHANGED <<chosen, rounds, client, shut, spent, wrong>>

(* Without the disk: the node has said that it has adopted the configuration, and starts *)
(* again in the previous one.                                                            *)
Unadopt(m) ==
  /\ Off("a-configuration-takes-effect")
  /\ Len(member[m].conf) > 1 /\ ~member[m].voted
  /\ member' = [member EXCEPT ![m].conf = SubSeq(@, 1, Len(@) - 1), ![m].votes = TRUE,
                  ![m].voted = TRUE]
  /\ UNCHANGED <<table, copies, chosen, rounds, client, shut, spent, wrong>>

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

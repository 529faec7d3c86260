--------------------------------- MODULE Pawl ---------------------------------
(* The abstract machine of docs/protocol.md, sections 1, 2, 4 and 6, for one key. *)
(* docs/spec.md leads a reader through it.                                        *)
EXTENDS PawlMembership

Init ==
  LET born == CHOOSE set \in Sets[1] : TRUE IN
  /\ table = [n \in Nodes |-> Table(0)]
  /\ member = [n \in Nodes |->
       [conf   |-> <<born>>,    \* on disk
        votes  |-> n \in born,  \* whether it votes
        voted  |-> n \in born,  \* on disk: it has voted in its epoch
        ever   |-> n \in born,  \* on disk: it has voted in its life
        decree |-> Empty,       \* on disk: configuration -> the successor that it accepted
        source |-> "never",     \* what it is as a source of the handover of its epoch
        timer  |-> MaxLease,    \* the time since it started, adopted an epoch or began to vote
        side   |-> Empty]]      \* its side file
  /\ copies = [n \in Nodes |-> Empty]
  /\ chosen = {<<born>>}
  /\ rounds = <<>>
  /\ client = [lock \in Locks |->
       [belief |-> 0,           \* for how long it believes that it holds the lock
        token  |-> 0,           \* the highest token that it was answered
        order  |-> 0,           \* the number of its last shortening
        gone   |-> FALSE]]      \* it has released the lock, or was told that it is lost
  /\ shut = 0
  /\ spent = [what \in DOMAIN Bound |-> 0]
  /\ wrong = {}

Reached(conf, Would(_)) == {m \in Masters(conf) : Would(m)}
(* The sets of masters that contain a quorum. *)
Large(set, conf) == {now \in SUBSET set : now # {} /\ Enough(now, conf)}

(* One of them at most: the others of a round come late, or learn. *)
Few(set) == {now \in SUBSET set : Cardinality(now) < 2}

(* A round is done in one step, or it is one of the slow ones, of which there are as many as *)
(* Bound says. A slow one reaches any of the masters at once, and others later.               *)
Sends(lock, conf) ==
  \/ /\ May("acquire")
     /\ \E lease \in Leases :
          LET round == Round("acquire", lock, conf, lease)
              willing == Reached(conf, LAMBDA m : MayPromise(m, round))
          IN \/ /\ \E now \in Large(Reached(conf, LAMBDA m : Votes(m, conf)), conf) :
                     Take(lock, conf, lease, now)
                /\ spent' = Spent({"acquire"})
             \/ /\ May("slow")
                /\ \E now \in IF May("part") THEN SUBSET willing ELSE {willing} :
                     /\ Acquire(lock, conf, lease, now)
                     /\ spent' = Spent({"acquire", "slow"}
                                       \cup IF now = willing THEN {} ELSE {"part"})
  \/ /\ May("extend")
     /\ \E i \in DOMAIN rounds : rounds[i].lock = lock
     /\ \E lease \in Leases, keeps \in Keeps :
          \/ /\ \E now \in Large(Reached(conf, LAMBDA m : Votes(m, conf)), conf) :
                  Renew(lock, conf, lease, keeps, now)
             /\ spent' = Spent({"extend"})
          \/ /\ May("open")
             /\ \E now \in Few(Reached(conf, LAMBDA m : Has(table[m].held, lock))) :
                  Extend(lock, conf, lease, keeps, now)
             /\ spent' = Spent({"extend", "open"})
  \/ /\ May("shorten")
     /\ \E lease \in Leases :
          \E now \in {{}} \cup Large(Reached(conf, LAMBDA m : Has(table[m].held, lock)), conf) :
            Shorten(lock, conf, lease, now)
  \/ /\ May("release")
     /\ \E i \in DOMAIN rounds : rounds[i].lock = lock
     /\ \E close \in Close :
          \E now \in {{}} \cup Large(Reached(conf, LAMBDA m : Votes(m, conf)), conf) :
            Release(lock, conf, close, now)

GoesOn(i) ==
  LET round == rounds[i] IN
  \/ /\ round.phase = "promise"
     /\ \E token \in UNION {Drawn(round, quorum) : quorum \in Quorums(round)} :
          \E now \in SUBSET Reached(round.conf,
                                   LAMBDA m : MayCommit(m, [round EXCEPT !.token = token])) :
            Commit(i, token, now)
  \/ Granted(i)
  \/ /\ Bound["withdraw"] > 0 /\ round.phase = "promise"
     /\ \E now \in SUBSET Reached(round.conf, LAMBDA m : Votes(m, round.conf)) : Withdraw(i, now)
  \/ /\ Bound["rollback"] > 0 /\ round.phase = "commit"
     /\ \E now \in SUBSET Reached(round.conf, LAMBDA m : Votes(m, round.conf)) : RollBack(i, now)
  \/ /\ round.kind = "extend" /\ round.phase = "open"
     /\ \E quorum \in SUBSET Accepted(round) : Held(i, quorum)
  \/ Lost(i)
  \/ ReleaseAnswered(i)
  \/ \E m \in Nodes : Learn(i, m) \/ Lacks(i, m) \/ LearnClosed(i, m)
  \/ /\ May("late")
     /\ \E m \in Nodes :
          \/ LatePromise(i, m) \/ LateCommit(i, m) \/ LateRollBack(i, m)
          \/ LateExtend(i, m) \/ LateRelease(i, m)

Steps(m) ==
  \/ Raise(m)
  \/ Restart(m) \/ Rejoin(m) \/ WaitOver(m) \/ Stop(m) \/ StartAgain(m)
  \/ HandOver(m) \/ Unadopt(m)
  \/ /\ ~member[m].votes
     /\ \/ \E from \in SUBSET Nodes : RejoinAtOnce(m, from) \/ HandOverAtOnce(m, from)
        \/ /\ Bound["copies"] > 0
           /\ \E source \in Nodes : CopyToRejoin(m, source) \/ CopyToHandOver(m, source)

Changes ==
  \/ \E conf \in chosen : \E now \in SUBSET Nodes : Adopt(now, conf)
  \/ /\ May("accept")
     /\ \E conf \in Configurations :
          /\ Len(conf) < Len(Sets)
          /\ \E set \in Sets[Len(conf) + 1], now \in SUBSET Masters(conf) :
               AcceptDecree(now, conf, set)

Next ==
  \/ \E lock \in Locks, conf \in Configurations : Sends(lock, conf)
  \/ \E i \in DOMAIN rounds : GoesOn(i)
  \/ \E m \in Nodes : Steps(m)
  \/ /\ May("lapse")
     /\ LET all == {m \in Nodes : table[m].promise # Empty}
        IN all # {} /\ (Lapse(all) \/ \E m \in all : Lapse(all \ {m}))
  \/ Changes
  \/ Tick

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What must always hold (docs/protocol.md, section 8) *)

Exclusion == \A one, other \in Locks :
               client[one].belief > 0 /\ client[other].belief > 0 => one = other

TokenOrder == "token" \notin wrong

(* No quorum could give a token again that was answered. *)
TokensCovered ==
  \A lock \in Locks, conf \in Configurations :
    LET below == {m \in Masters(conf) : Votes(m, conf) /\ table[m].clock < client[lock].token}
    IN Cardinality(below) < Quorum(Masters(conf))

HonestHeld == "held" \notin wrong
HonestLost == "lost" \notin wrong

(* No quorum could grant the key to another while it is believed. *)
Covered ==
  \A lock \in Locks : client[lock].belief > 0 =>
    \A conf \in Configurations :
      LET free == {m \in Masters(conf) : Votes(m, conf) /\ ~Has(table[m].held, lock)}
      IN Cardinality(free) < Quorum(Masters(conf))

StaysReleased == \A m \in Nodes : table[m].dead \cap DOMAIN table[m].held = {}

StaysClosed == shut > 0 => \A lock \in Locks : client[lock].belief = 0

OneConfiguration == \A one, other \in chosen : Len(one) = Len(other) => one = other
=============================================================================

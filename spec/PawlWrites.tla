------------------------------ MODULE PawlWrites ------------------------------
(* Section 2 (docs/protocol/writes.md): promise, commit, extend, learn, shorten,   *)
(* release, roll back; and the passing of time.                                    *)
(*                                                                                 *)
(* A coordinator sends a round to all masters. The masters in the set `now` of an  *)
(* action handle it in the same step, the others later (Late...) or never, in any  *)
(* order. An answer reaches the coordinator at any time between the step that made *)
(* it and the step that counts it.                                                 *)
EXTENDS PawlState

Round(kind, lock, conf, lease) ==
  [kind    |-> kind,    \* "acquire", "extend" or "release"
   lock    |-> lock,
   conf    |-> conf,    \* the configuration under which the round is sent
   lease   |-> lease,
   phase   |-> "open",  \* an acquire: "promise", "commit"; then "done", or "failed"
   age     |-> 0,       \* the time since the round was sent
   token   |-> 0,       \* of the commit; of an extension, the token that its caller knows
   order   |-> client[lock].order,
   shorten |-> FALSE,
   keeps   |-> TRUE,    \* whether the caller keeps its deadline
   close   |-> 0,
   asked   |-> {},      \* the masters that have handled the request for a promise
   seen    |-> {},      \* the masters that have handled the commit, extension or release
   undone  |-> {},      \* the masters that have handled the roll-back
   answers |-> Empty,   \* master -> its answer
   lacked  |-> {}]      \* the masters that have lacked the lock_id since the round was sent

Last == Len(rounds)
Send(round) == rounds' = Append(rounds, round)

(* A master that gets a record has not lacked it any more, for all rounds under way. *)
Gained(all, lock, now) ==
  [i \in DOMAIN all |-> IF all[i].kind = "extend" /\ all[i].lock = lock
                        THEN [all[i] EXCEPT !.lacked = @ \ now] ELSE all[i]]

(* What the client of a lock may rely on when a round is answered: from the moment *)
(* at which the round was sent, by its own clock, which may be slow.               *)
Trust(round) ==
  LET counted == IF Off("commit/from-the-answer") THEN round.lease ELSE round.lease - round.age
  IN counted + (IF Off("commit/drift") THEN Drift ELSE 0)

InTime(round) == round.age < RequestTimeout \/ Off("answers-that-come-in-time")

(* What was answered for other locks has smaller tokens. *)
TokenIsNew(lock, token) == \A other \in Locks \ {lock} : client[other].token < token

(* An extension is not answered with an earlier token than its caller knows. If a repeat of the *)
(* acquire names a shorter lease than the lock has, it may be, and the holder uses the highest.  *)
NotEarlier(token, known) == token >= known \/ Cardinality(Leases) > 1

Blame(what, honest) == wrong' = IF honest THEN wrong ELSE wrong \cup {what}

(*----------------------------- What a master accepts ----------------------------*)

R1(m, round) ==
  \/ Off("r1")
  \/ /\ \A other \in Others(m, round.lock) :
          Off("r1/token") /\ round.token > table[m].held[other].token
     /\ table[m].closed = 0
  \/ /\ Contested(m) /\ Has(table[m].held, round.lock)
     /\ \/ Off("what-a-contested-key-accepts/commit")
        \/ /\ Off("what-a-contested-key-accepts/token")
           /\ \A other \in Others(m, round.lock) : round.token > table[m].held[other].token

Noted(t, lock) == IF Has(t.held, lock) THEN t.held[lock].noted
                  ELSE IF Has(t.promise, lock) THEN t.promise[lock].noted ELSE t.clock

R2(m, round) ==
  LET t == table[m] lock == round.lock
      known == Has(t.held, lock) \/ Has(t.promise, lock)
  IN \/ Off(IF known THEN "r2/first" ELSE "r2/second")
     \/ round.token > Noted(t, lock)

R3(m, round) == round.lock \notin table[m].dead \/ Off("r3")
R5(round) == round.lease <= MaxLease \/ Off("r5")

(* A record that is accepted: token, end and name of one that is there, and of this one. *)
Record(t, lock, token, lease, order, name) ==
  LET old == t.held[lock]
  IN IF Has(t.held, lock)
     THEN [token |-> Larger(old.token, token), noted |-> old.noted,
           left  |-> IF Off("the-later-end") THEN lease ELSE Larger(old.left, lease),
           order |-> Larger(old.order, order),
           name  |-> IF old.name = name THEN name ELSE 0]
     ELSE [token |-> token, noted |-> Noted(t, lock), left |-> lease, order |-> order,
           name  |-> name]

Accept(t, lock, token, lease, order, name) ==
  LET kept == IF Off("a-record-displaces-promises") THEN Without(t.promise, {lock}) ELSE Empty
      held == Put(t.held, lock, Record(t, lock, token, lease, order, name))
  IN Hear([t EXCEPT !.held = held, !.promise = kept], token)

(*------------------------------------ Acquire -----------------------------------*)

MayPromise(m, round) ==
  /\ Votes(m, round.conf)
  /\ R1(m, [round EXCEPT !.token = table[m].clock + 1])
  /\ R3(m, round)
  /\ DOMAIN table[m].promise \subseteq {round.lock}

(* A held record never becomes a promise; a repeated promise keeps what it noted. *)
Promise(t, lock, i) ==
  LET made == Put(t.promise, lock, [noted |-> Noted(t, lock), round |-> i])
  IN IF ~Has(t.held, lock) THEN [t EXCEPT !.promise = made]
     ELSE IF Off("a-held-record-never-becomes-a-promise")
          THEN [t EXCEPT !.promise = made, !.held = Without(@, {lock})]
          ELSE t

PromiseAnswer(t, lock) ==
  [noted |-> Noted(t, lock), token |-> IF Has(t.held, lock) THEN t.held[lock].token ELSE 0]

Acquire(lock, conf, lease, now) ==
  LET round == [Round("acquire", lock, conf, lease) EXCEPT !.phase = "promise", !.asked = now,
                  !.answers = [m \in now |-> PromiseAnswer(table[m], lock)]]
  IN /\ ~client[lock].gone
     /\ Send(round)
     /\ table' = Change(table, now, LAMBDA t : Promise(t, lock, Last + 1))
     /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

(* On a link the request for a promise comes before the commit. *)
LatePromise(i, m) ==
  LET round == rounds[i] IN
  /\ round.kind = "acquire" /\ round.phase \in {"promise", "commit"}
  /\ m \in Masters(round.conf) \ (round.asked \cup round.seen)
  /\ Spend("late")
  /\ MayPromise(m, round)
  /\ table' = [table EXCEPT ![m] = Promise(@, round.lock, i)]
  /\ rounds' = [rounds EXCEPT ![i].asked = @ \cup {m},
                  ![i].answers = IF round.phase = "promise"
                                 THEN Put(@, m, PromiseAnswer(table[m], round.lock)) ELSE @]
  /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

Quorums(round) == {set \in SUBSET DOMAIN round.answers : set # {} /\ Enough(set, round.conf)}

(* The tokens that may be drawn from the promises of a quorum. The coordinator may be any node, *)
(* whose own clock may be above what was reported, or one that has heard of nothing.            *)
Drawn(round, quorum) ==
  LET answer == round.answers
      reported == {answer[m].noted : m \in quorum} \cup {answer[m].token : m \in quorum}
      own == {answer[m].token : m \in quorum}
  IN IF /\ Cardinality(own) = 1 /\ own # {0}
        /\ \A m \in quorum : answer[m].noted < answer[m].token
     THEN own
     ELSE {1 + Max(reported \cup {clock}) : clock \in {0} \cup {table[n].clock : n \in Nodes}}

MayCommit(m, round) ==
  Votes(m, round.conf) /\ R1(m, round) /\ R2(m, round) /\ R3(m, round) /\ R5(round)

Commit(i, token, now) ==
  LET old == rounds[i]
      kept == IF Off("an-answer-counts-once/round") THEN old.answers ELSE Empty
      round == [old EXCEPT !.phase = "commit", !.token = token, !.seen = now,
                  !.answers = [m \in now |-> TRUE] @@ kept]
  IN /\ old.phase = "promise"
     /\ \A m \in now : MayCommit(m, round)
     /\ rounds' = Gained([rounds EXCEPT ![i] = round], old.lock, now)
     /\ table' = Change(table, now,
                   LAMBDA t : Accept(t, old.lock, token, old.lease, old.order, i))
     /\ UNCHANGED <<member, copies, chosen, client, shut, spent, wrong>>

LateCommit(i, m) ==
  LET round == rounds[i] IN
  /\ round.kind = "acquire" /\ round.token > 0
  /\ m \in Masters(round.conf) \ (round.seen \cup round.undone)
  /\ Spend("late")
  /\ MayCommit(m, round)
  /\ table' = [table EXCEPT ![m] =
                 Accept(@, round.lock, round.token, round.lease, round.order, i)]
  /\ rounds' = Gained([rounds EXCEPT ![i].seen = @ \cup {m},
                         ![i].answers = IF round.phase = "commit" THEN Put(@, m, TRUE) ELSE @],
                      round.lock, {m})
  /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

(* A round that is over. Its age does not matter any more. *)
Over(round, phase) == [round EXCEPT !.phase = phase, !.age = 0, !.answers = Empty, !.lacked = {}]

(* What a coordinator answers when the masters in `quorum` have accepted the token. *)
Grant(round, token) ==
  LET lock == round.lock IN
  /\ InTime(round) /\ Trust(round) > 0
  /\ ~client[lock].gone /\ round.order = client[lock].order
  /\ client' = [client EXCEPT ![lock].belief = Larger(@, Trust(round)),
                              ![lock].token = Larger(@, token)]
  /\ Blame("token", TokenIsNew(lock, token))

(* Both phases at once: all masters that may promise do, the masters in `now` take the commit,  *)
(* and the others' promises have lapsed. It is what the slow steps do when nothing intervenes.  *)
Take(lock, conf, lease, now) ==
  LET asked == {m \in Masters(conf) : MayPromise(m, Round("acquire", lock, conf, lease))}
      old == [Round("acquire", lock, conf, lease) EXCEPT
                !.answers = [m \in asked |-> PromiseAnswer(table[m], lock)]]
  IN /\ Enough(asked, conf) /\ asked # {}
     /\ \E token \in UNION {Drawn(old, quorum) : quorum \in Quorums(old)} :
          LET round == [old EXCEPT !.token = token, !.seen = now, !.phase = "done",
                          !.answers = Empty]
          IN /\ \A m \in now : MayCommit(m, round)
             /\ Grant(round, token)
             /\ rounds' = Gained(Append(rounds, round), lock, now)
             /\ table' = Change(table, now,
                  LAMBDA t : Accept(t, lock, token, lease, round.order, Last + 1))
     /\ UNCHANGED <<member, copies, chosen, shut>>

Granted(i) ==
  LET round == rounds[i] IN
  /\ round.phase = "commit"
  /\ Enough(DOMAIN round.answers, round.conf)
  /\ Grant(round, round.token)
  /\ rounds' = [rounds EXCEPT ![i] = Over(@, "done")]
  /\ UNCHANGED <<table, member, copies, chosen, shut, spent>>

(*------------------------------- Withdraw, roll back ----------------------------*)

(* Promises end: by a withdrawal, with the link, or because their time is over. *)
Lapse(now) ==
  /\ Spend("lapse")
  /\ \A m \in now : table[m].promise # Empty
  /\ table' = Change(table, now, LAMBDA t : [t EXCEPT !.promise = Empty])
  /\ UNCHANGED <<member, copies, chosen, rounds, client, shut, wrong>>

(* An attempt is given up in the promise phase. It drops its own promise, and nothing else. *)
Withdrawn(t, lock, i) ==
  IF Off("withdraw-drops-its-own-alone")
  THEN [t EXCEPT !.held = Without(@, {lock})]
  ELSE IF Has(t.promise, lock) /\ t.promise[lock].round = i
       THEN [t EXCEPT !.promise = Without(@, {lock})] ELSE t

Withdraw(i, now) ==
  LET round == rounds[i] IN
  /\ round.phase = "promise"
  /\ now \subseteq {m \in Masters(round.conf) : Votes(m, round.conf)}
  /\ table' = Change(table, now, LAMBDA t : Withdrawn(t, round.lock, i))
  /\ rounds' = [rounds EXCEPT ![i] = Over(@, "failed")]
  /\ UNCHANGED <<member, copies, chosen, client, shut, spent, wrong>>

(* What a failed commit has left is rolled back, under the name of its attempt (section 11). *)
RolledBack(t, lock, i) ==
  IF Has(t.held, lock) /\ (t.held[lock].name = i \/ Off("rolled-back-by-name"))
  THEN [t EXCEPT !.held = Without(@, {lock})] ELSE t

RollBack(i, now) ==
  LET round == rounds[i] IN
  /\ Bound["rollback"] > 0
  /\ round.phase = "commit"
  /\ now \subseteq {m \in Masters(round.conf) : Votes(m, round.conf)}
  /\ table' = Change(table, now, LAMBDA t : RolledBack(t, round.lock, i))
  /\ rounds' = [rounds EXCEPT ![i] = [Over(@, "failed") EXCEPT !.undone = now]]
  /\ UNCHANGED <<member, copies, chosen, client, shut, spent, wrong>>

LateRollBack(i, m) ==
  LET round == rounds[i] IN
  /\ round.phase = "failed" /\ round.token > 0
  /\ m \in Masters(round.conf) \ round.undone
  /\ member[m].votes
  /\ Spend("late")
  /\ table' = [table EXCEPT ![m] = RolledBack(@, round.lock, i)]
  /\ rounds' = [rounds EXCEPT ![i].undone = @ \cup {m}]
  /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

(*----------------------------- Extend, learn, shorten ---------------------------*)

(* Whether a master that has the lock may lengthen it. On a contested key, not yet. *)
Ripe(m) == ~Contested(m) \/ member[m].timer >= RequestTimeout
           \/ Off("what-a-contested-key-accepts/at-once")

MayExtend(m, round) ==
  Votes(m, round.conf) /\ Has(table[m].held, round.lock) /\ Ripe(m) /\ R5(round)

Extended(t, round) ==
  LET old == t.held[round.lock]
      first == IF Off("a-master-shortens") THEN TRUE ELSE old.order < round.order
      after == Accept(t, round.lock, old.token, round.lease, round.order, 0)
  IN IF round.shorten /\ first
     THEN [after EXCEPT !.held[round.lock].left = round.lease] ELSE after

(* Whether the master had the lock: no lease of another one came in between. *)
Had(m, lock) ==
  LET record == table[m].held[lock]
  IN /\ record.token > record.noted
     /\ ~Contested(m) \/ Off("had-or-learned")

Answer(m, lock) == [token |-> table[m].held[lock].token, had |-> Had(m, lock)]

Lacking(conf, lock) == {m \in Masters(conf) : ~Has(table[m].held, lock)}

Extend(lock, conf, lease, keeps, now) ==
  LET order == IF Off("the-order") THEN 0 ELSE client[lock].order
      round == [Round("extend", lock, conf, lease) EXCEPT !.keeps = keeps, !.order = order,
                  !.token = client[lock].token, !.seen = now, !.lacked = Lacking(conf, lock),
                  !.answers = [m \in now |-> Answer(m, lock)]]
  IN /\ ~client[lock].gone
     /\ keeps => client[lock].belief > 0
     /\ \E i \in DOMAIN rounds : rounds[i].lock = lock
     /\ \A m \in now : MayExtend(m, round)
     /\ Send(round)
     /\ table' = Change(table, now, LAMBDA t : Extended(t, round))
     /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

(* The holder gives up its trust first, and takes the next order. *)
Shorten(lock, conf, lease, now) ==
  LET order == client[lock].order + 1
      round == [Round("extend", lock, conf, lease) EXCEPT !.order = order, !.shorten = TRUE,
                  !.token = client[lock].token, !.seen = now, !.lacked = Lacking(conf, lock),
                  !.answers = [m \in now |-> Answer(m, lock)]]
  IN /\ Spend("shorten")
     /\ ~client[lock].gone /\ client[lock].belief > 0
     /\ \A m \in now : MayExtend(m, round)
     /\ Send(round)
     /\ client' = [client EXCEPT ![lock].order = order,
                     ![lock].belief = IF @ > lease THEN lease ELSE @]
     /\ table' = Change(table, now, LAMBDA t : Extended(t, round))
     /\ UNCHANGED <<member, copies, chosen, shut, wrong>>

LateExtend(i, m) ==
  LET round == rounds[i] IN
  /\ round.kind = "extend"
  /\ m \in Masters(round.conf) \ round.seen
  /\ Spend("late")
  /\ MayExtend(m, round)
  /\ table' = [table EXCEPT ![m] = Extended(@, round)]
  /\ rounds' = [rounds EXCEPT ![i].seen = @ \cup {m},
                  ![i].answers = IF round.phase = "open" THEN Put(@, m, Answer(m, round.lock))
                                 ELSE @]
  /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

(* The masters that have answered that they have lengthened the lock. *)
Accepted(round) == {m \in DOMAIN round.answers : round.answers[m].token > 0}
(* Those that have answered that they lack it, or cannot have it. *)
Refused(round) == DOMAIN round.answers \ Accepted(round)

(* A master that lacks the record, or has an earlier token, is sent the record of a *)
(* master that has accepted, and accepts it by the same rules.                      *)
MayLearn(m, round) ==
  /\ Votes(m, round.conf)
  /\ R1(m, round) \/ Off("r1/extension")
  /\ R3(m, round) /\ R5(round)

Learn(i, m) ==
  LET round == rounds[i] lock == round.lock
      token == Max({round.answers[n].token : n \in Accepted(round)})
      had == m \in Accepted(round) /\ round.answers[m].had
      after == Accept(table[m], lock, token, round.lease, round.order, 0)
  IN /\ round.kind = "extend" /\ round.phase = "open"
     /\ m \in Masters(round.conf) /\ Accepted(round) # {}
     /\ IF m \in Accepted(round) THEN round.answers[m].token < token
        ELSE ~Has(table[m].held, lock)
     /\ MayLearn(m, round)
     /\ table' = [table EXCEPT ![m] = after]
     /\ rounds' = Gained([rounds EXCEPT ![i].seen = @ \cup {m},
                            ![i].answers = Put(@, m, [token |-> token, had |-> had])],
                         lock, {m})
     /\ UNCHANGED <<member, copies, chosen, client, shut, spent, wrong>>

(* An extension is answered. For a caller that keeps no deadline only masters that *had* *)
(* the lock count. All that count have it under one token.                               *)
Held(i, quorum) ==
  LET round == rounds[i] lock == round.lock
      tokens == {round.answers[m].token : m \in quorum}
      token == IF Off("the-token-of-an-extension/earlier") THEN Min(tokens) ELSE Max(tokens)
  IN /\ round.phase = "open"
     /\ Enough(quorum, round.conf)
     /\ \A m \in quorum : round.keeps \/ round.answers[m].had
                          \/ Off("callers-that-keep-no-deadline")
     /\ Cardinality(tokens) = 1 \/ Off("the-token-of-an-extension")
                                \/ Off("the-token-of-an-extension/earlier")
     /\ InTime(round) /\ Trust(round) > 0
     /\ ~client[lock].gone
     /\ round.order = client[lock].order \/ Off("the-order")
     /\ round.keeps => client[lock].belief > 0 \/ Off("the-deadline")
     /\ client' = [client EXCEPT ![lock].belief = Larger(@, Trust(round)),
                                 ![lock].token = Larger(@, token)]
     /\ Blame("held", TokenIsNew(lock, token) /\ NotEarlier(token, round.token))
     /\ rounds' = [rounds EXCEPT ![i] = Over(@, "done")]
     /\ UNCHANGED <<table, member, copies, chosen, shut, spent>>

(* An extension that nothing intervenes in: the masters in `now` that have the lock lengthen it, *)
(* the others in `now` learn it, and the answer is given.                                        *)
Renew(lock, conf, lease, keeps, now) ==
  LET order == IF Off("the-order") THEN 0 ELSE client[lock].order
      round == [Round("extend", lock, conf, lease) EXCEPT !.phase = "done", !.keeps = keeps,
                  !.order = order, !.seen = now]
      with == {m \in now : Has(table[m].held, lock)}
      tokens == {table[m].held[lock].token : m \in with}
      told == IF Off("the-token-of-an-extension/earlier") THEN Min(tokens) ELSE Max(tokens)
      token(m) == IF m \in with /\ Off("the-token-of-an-extension") THEN table[m].held[lock].token
                  ELSE Max(tokens)
      counts == {m \in now : keeps \/ (m \in with /\ Had(m, lock))
                                     \/ Off("callers-that-keep-no-deadline")}
  IN /\ with # {} /\ Enough(counts, conf)
     /\ ~client[lock].gone
     /\ keeps => client[lock].belief > 0
     /\ round.order = client[lock].order \/ Off("the-order")
     /\ \A m \in now : IF m \in with THEN MayExtend(m, round) ELSE MayLearn(m, round)
     /\ client' = [client EXCEPT ![lock].belief = Larger(@, Trust(round)),
                                 ![lock].token = Larger(@, told)]
     /\ Blame("held", TokenIsNew(lock, told) /\ NotEarlier(told, client[lock].token))
     /\ rounds' = Gained(Append(rounds, round), lock, now)
     /\ table' = [m \in Nodes |->
          IF m \notin now THEN table[m]
          ELSE Accept(IF m \in with THEN Extended(table[m], round) ELSE table[m],
                      lock, token(m), lease, order, 0)]
     /\ UNCHANGED <<member, copies, chosen, shut>>

(* A master answers that it lacks the lock, or may not learn it. *)
Lacks(i, m) ==
  LET round == rounds[i] IN
  /\ Bound["lost"] > 0
  /\ round.kind = "extend" /\ round.phase = "open"
  /\ m \in Masters(round.conf) \ DOMAIN round.answers
  /\ Votes(m, round.conf)
  /\ ~Has(table[m].held, round.lock) \/ (~Ripe(m) /\ Off("not-yet-lengthened"))
  /\ rounds' = [rounds EXCEPT ![i].answers = Put(@, m, [token |-> 0, had |-> FALSE])]
  /\ UNCHANGED <<table, member, copies, chosen, client, shut, spent, wrong>>

(* "Lost": there was a moment at which fewer than q had it, and q have answered. *)
Lost(i) ==
  LET round == rounds[i] lock == round.lock
      set == Masters(round.conf)
      certain == {m \in Refused(round) : \/ m \in round.lacked
                                         \/ Off("lost/one-after-the-other")
                                         \/ Off("not-yet-lengthened") /\ Has(table[m].held, lock)}
  IN /\ round.kind = "extend" /\ round.phase = "open"
     /\ Cardinality(certain) > Cardinality(set) - Quorum(set)
     /\ Cardinality(DOMAIN round.answers) >= Quorum(set) \/ Off("lost/few-answers")
     /\ Accepted(round) = {} \/ \A m \in certain : Others(m, lock) # {} \/ lock \in table[m].dead
     /\ Blame("lost", client[lock].belief = 0)
     /\ client' = [client EXCEPT ![lock].gone = TRUE, ![lock].belief = 0]
     /\ rounds' = [rounds EXCEPT ![i] = Over(@, "failed")]
     /\ UNCHANGED <<table, member, copies, chosen, shut, spent>>

(*------------------------------------ Release -----------------------------------*)

(* Exactly by lock_id. With closing, the record that keeps the key closed takes the *)
(* place of the lock's in the same step.                                            *)
Released(t, lock, close) ==
  LET gone == IF Off("exactly-by-lock_id/owner") THEN DOMAIN t.held ELSE {lock}
      had == DOMAIN t.held \cap gone # {}
  IN [t EXCEPT !.held = Without(@, gone), !.promise = Without(@, gone), !.dead = @ \cup {lock},
               !.closed = IF had /\ ~Off("what-keeps-the-key-closed") THEN Larger(@, close) ELSE @]

Closes(m, lock, close) == close > 0 /\ Has(table[m].held, lock)

Release(lock, conf, close, now) ==
  LET round == [Round("release", lock, conf, 0) EXCEPT !.close = close, !.seen = now,
                  !.order = 0,
                  !.answers = [m \in now |-> IF close = 0 THEN TRUE ELSE Closes(m, lock, close)]]
  IN /\ Spend("release")
     /\ ~client[lock].gone
     /\ \E i \in DOMAIN rounds : rounds[i].lock = lock
     /\ \A m \in now : Votes(m, conf)
     /\ Send(round)
     /\ client' = [client EXCEPT ![lock].gone = TRUE,
                     ![lock].belief = IF Off("exactly-by-lock_id/one-handle") THEN @ ELSE 0]
     /\ table' = Change(table, now, LAMBDA t : Released(t, lock, close))
     /\ UNCHANGED <<member, copies, chosen, shut, wrong>>

(* It is sent until all have acknowledged it, also under later configurations. What is *)
(* sent later names what is left of the time.                                          *)
LateRelease(i, m) ==
  LET round == rounds[i] left == round.close - round.age IN
  /\ round.kind = "release"
  /\ m \notin round.seen
  /\ member[m].votes
  /\ Spend("late")
  /\ table' = [table EXCEPT ![m] = Released(@, round.lock, left)]
  /\ rounds' = [rounds EXCEPT ![i].seen = @ \cup {m},
                  ![i].answers = IF round.phase = "open" /\ m \in Masters(round.conf)
                                 THEN Put(@, m, IF round.close = 0 THEN TRUE
                                                ELSE Closes(m, round.lock, left)) ELSE @]
  /\ UNCHANGED <<member, copies, chosen, client, shut, wrong>>

(* A master that lacked the lock is sent the record that keeps the key closed. *)
LearnClosed(i, m) ==
  LET round == rounds[i] left == round.close - round.age IN
  /\ round.kind = "release" /\ round.phase = "open" /\ left > 0
  /\ Has(round.answers, m) /\ ~round.answers[m]
  /\ \E n \in DOMAIN round.answers : round.answers[n]
  /\ Votes(m, round.conf) /\ DOMAIN table[m].held = {}
  /\ table' = [table EXCEPT ![m].closed = Larger(@, left)]
  /\ rounds' = [rounds EXCEPT ![i].answers[m] = TRUE]
  /\ UNCHANGED <<member, copies, chosen, client, shut, spent, wrong>>

(* The release is answered: with closing, once q masters keep the key closed. *)
ReleaseAnswered(i) ==
  LET round == rounds[i] left == round.close - round.age
      closing == {m \in DOMAIN round.answers : round.answers[m]}
  IN /\ round.kind = "release" /\ round.phase = "open" /\ round.close > 0
     /\ Enough(IF Off("a-quorum-keeps-the-key-closed") THEN DOMAIN round.answers ELSE closing,
               round.conf)
     /\ closing # {} /\ round.age < RequestTimeout
     /\ shut' = Larger(shut, left)
     /\ rounds' = [rounds EXCEPT ![i] = [Over(@, "done") EXCEPT !.age = round.age]]
     /\ UNCHANGED <<table, member, copies, chosen, client, spent, wrong>>

(*------------------------------------- Time -------------------------------------*)

(* A tick of the fastest clocks, which are those of masters; those of clients are as slow *)
(* as they may be (Trust). What has ended is dropped before the next message is handled.  *)
Older(held) ==
  LET live == {lock \in DOMAIN held : held[lock].left > 1}
  IN [lock \in live |-> [held[lock] EXCEPT !.left = Less(@)]]

OlderTable(t) == [t EXCEPT !.held = Older(@), !.closed = Less(@)]

Aged(round) ==
  IF round.phase \in {"commit", "open"} \/ (round.kind = "release" /\ round.close > 0)
  THEN [round EXCEPT !.age = More(@)] ELSE round

Tick ==
  /\ Spend("tick")
  /\ table' = [m \in Nodes |-> OlderTable(table[m])]
  /\ copies' = [m \in Nodes |-> [from \in DOMAIN copies[m] |-> OlderTable(copies[m][from])]]
  /\ member' = [m \in Nodes |-> [member[m] EXCEPT !.timer = More(@)]]
  /\ rounds' = [i \in DOMAIN rounds |-> Aged(rounds[i])]
  /\ client' = [lock \in Locks |-> [client[lock] EXCEPT !.belief = Less(@)]]
  /\ shut' = Less(shut)
  /\ UNCHANGED <<chosen, wrong>>

(* Another key, or a frame, raises the clock of a node. *)
Raise(m) ==
  /\ Spend("raise")
  /\ LET clock == table[m].clock + 1
         heard == IF Off("the-clock-reservation/accepted")
                  THEN [table[m] EXCEPT !.clock = clock] ELSE Hear(table[m], clock)
     IN table' = [table EXCEPT ![m] = heard]
  /\ UNCHANGED <<member, copies, chosen, rounds, client, shut, wrong>>
=============================================================================

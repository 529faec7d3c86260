------------------------------ MODULE PawlState ------------------------------
(* What a node keeps (docs/protocol/model.md): the constants, the variables, and *)
(* the small functions that the other modules use. There is one key.             *)
EXTENDS Integers, FiniteSets, Sequences, TLC

CONSTANTS
  Sets,           \* the sets of masters of the epochs: a sequence of sets of alternatives
  Locks,          \* the lock_ids, each of one acquisition by one client
  Leases,         \* the leases that clients ask for, in ticks
  MaxLease,       \* `max_lease` of the configuration, in ticks
  RequestTimeout, \* `request_timeout`, in ticks
  Drift,          \* what the slowest clock loses on the fastest one in a lease, in ticks
  Close,          \* for how long a release keeps the key closed: a set of ticks, 0 is not at all
  Keeps,          \* whether a caller of extend keeps its deadline: a subset of BOOLEAN
  Bound,          \* how much may happen: [what |-> how often], see Spend
  Broken          \* the names of the rules that are switched off: a set of strings

VARIABLES
  table,          \* node -> what it has in memory, with its clock and the reservation of it
  member,         \* node -> its configuration, whether it votes, and what it has on disk
  copies,         \* node -> the snapshots that it has got and has not merged yet
  chosen,         \* the configurations that were chosen, epoch 1 among them
  rounds,         \* the rounds of all coordinators, in the order in which they were sent
  client,         \* lock_id -> what its client believes
  shut,           \* for how long the key was promised to stay closed yet
  spent,          \* how much of Bound is used up
  wrong           \* what was answered and is not true; stays empty unless a rule is broken

vars == <<table, member, copies, chosen, rounds, client, shut, spent, wrong>>

Off(rule) == rule \in Broken

(* Functions and numbers *)

Empty == <<>>
Has(f, key) == key \in DOMAIN f
Put(f, key, value) == (key :> value) @@ f
Without(f, keys) == [key \in DOMAIN f \ keys |-> f[key]]
Change(f, keys, New(_)) == [key \in DOMAIN f |-> IF key \in keys THEN New(f[key]) ELSE f[key]]
Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Larger(x, y) == IF x < y THEN y ELSE x
Less(n) == IF n > 0 THEN n - 1 ELSE 0
More(n) == IF n < MaxLease THEN n + 1 ELSE n

(* What is bounded in a behaviour, so that there are finitely many. *)

May(what) == spent[what] < Bound[what]
Spent(whats) == [what \in DOMAIN spent |-> spent[what] + IF what \in whats THEN 1 ELSE 0]
Spend(what) == May(what) /\ spent' = Spent({what})

(* Configurations. One is the sequence of the sets of masters up to its own. The *)
(* length is its epoch, and equality is what a frame's epoch and hash show.      *)

Masters(conf) == conf[Len(conf)]
Previous(conf) == conf[Len(conf) - 1]
Nodes == UNION {UNION Sets[epoch] : epoch \in DOMAIN Sets}
Configurations == {member[n].conf : n \in Nodes}

Quorum(set) == Cardinality(set) \div 2 + 1
(* So many masters contain one of every quorum. *)
Cover(set) == Cardinality(set) - Quorum(set) + 1
(* Whether the answers of these masters are a quorum, each counted once. *)
Enough(answered, conf) ==
  LET again == IF Off("an-answer-counts-once") /\ answered # {} THEN 1 ELSE 0
  IN Cardinality(answered) + again >= Quorum(Masters(conf))

(* The table of a node. A record or promise that is past its end is not in it. *)

Table(clock) ==
  [clock   |-> clock,  \* the Lamport clock over tokens
   disk    |-> clock,  \* the clock reservation
   held    |-> Empty,  \* lock_id -> [token, noted, left, order, name]
   promise |-> Empty,  \* lock_id -> [noted, round]; at most one, as all locks exclude each other
   dead    |-> {},     \* the tombstones of released lock_ids
   closed  |-> 0]      \* for how long the key is kept closed after a release with closing

Votes(m, conf) == member[m].votes /\ member[m].conf = conf
Others(m, lock) == DOMAIN table[m].held \ {lock}
Contested(m) == Cardinality(DOMAIN table[m].held) > 1

(* The reservation on disk follows the clock before a vote leaves (The clock reservation). *)
Reserve(t) ==
  [t EXCEPT !.disk = CASE Off("the-clock-reservation") -> 0
                       [] Off("the-clock-reservation/accepted") -> @
                       [] OTHER -> Larger(@, t.clock)]
Hear(t, clock) ==
  LET heard == Larger(t.clock, clock)
  IN IF Off("the-clock-reservation/accepted")
     THEN [t EXCEPT !.clock = heard, !.disk = Larger(@, clock)]
     ELSE Reserve([t EXCEPT !.clock = heard])
=============================================================================

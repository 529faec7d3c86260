"use strict";
// What the page says of trouble, and what an operator is to do about it. The remedies are those of
// pawl cluster show, where this node's status is enough to give them.

function verdict(s) {
  const spare = s.voting - s.quorum, all = s.masters.length;
  if (s.quorum === 0) return ["bad", "This node belongs to no cluster yet."];
  if (spare < 0) {
    return ["bad", "No quorum: " + count(s.voting, "master votes", "masters vote") + ", "
      + s.quorum + " are needed. Nothing is granted or extended."];
  }
  const fail = spare === 0 ? "No further master may fail."
    : count(spare, "master may fail", "masters may fail") + ".";
  if (!s.ready) return ["bad", "This node is not ready: " + s.not_ready + ". " + fail];
  if (s.voting < all) {
    return ["warn", "A quorum votes, but only " + s.voting + " of " + all + " masters. " + fail];
  }
  if (!s.complete) {
    return ["warn", "A quorum votes; the last change waits for " + s.missing.join(", ") + ". "
      + fail];
  }
  return ["good", "A quorum votes: " + (all === 1 ? "the only master." : "all " + all
    + " masters. " + fail)];
}

// ---- what to do ----

// This node cannot tell a node that is down from one that it is cut off from.
function absentRemedy(s, p) {
  const why = p.trouble ? " (" + p.trouble + ")" : "";
  const spare = s.peers.find((o) => o.role === "replica" && o.linked && !o.stranger && !o.self);
  const runs = p.node + " has no link with " + s.node + why + ". If it runs, repair what is between"
    + " them, in both directions, and do not restart it. If not, ";
  if (p.role !== "master") {
    return runs + "start it, or remove it: pawl cluster remove " + p.node;
  }
  if (s.voting < s.quorum) return runs + "start it";
  return runs + "start it, or replace it: "
    + (spare ? "" : "pawl cluster add-replica NEW HOST:PORT, then ")
    + "pawl cluster replace " + p.node + " " + (spare ? spare.node : "NEW");
}

function nodeRemedy(s, p) {
  if (p.self || (p.role !== "master" && p.role !== "replica")) return null;
  if (p.stranger) {
    return p.node + " answers with a new identity: it has lost its state file, or another machine"
      + " uses its name. If this machine is to be " + p.node + ", give it that place again: pawl"
      + " cluster replace " + p.node + " " + p.node;
  }
  if (!p.linked) return absentRemedy(s, p);
  if (p.other_epoch) {
    return p.node + " has not adopted epoch " + s.epoch
      + " yet: wait; if this does not change, read its log";
  }
  if (p.role === "master" && !p.voting) {
    return p.node + " does not vote yet: wait; if this does not change, read its log";
  }
  return null;
}

function certificateRemedy(p) {
  return p.certificate_ends && p.certificate_ends * 1000 < Date.now()
    ? "the certificate of " + p.node + " has ended, so nobody makes a new link with it: issue a new"
      + " one (pawl cert node " + p.node + " --host ...), install it, and reload: systemctl reload"
      + " pawld" : null;
}

// Returns what to do, a sentence each.
function remedies(s) {
  const out = [];
  if (s.quorum === 0) out.push("start all initial masters");
  if (s.voting < s.quorum) {
    out.push("start the masters that are down. If a majority of the machines is lost for good,"
      + " read pawl cluster force --help");
  }
  for (const p of s.peers) out.push(nodeRemedy(s, p), certificateRemedy(p));
  if (s.state === "drained") out.push(s.node + " was drained and does not vote: stop and start it");
  if (s.change) out.push("a change is in progress (" + s.change.step + "): wait for it");
  return out.filter((sentence) => sentence);
}

// ---- limits and certificates ----

// What is full counts as trouble, although the node is ready: it refuses whoever needs more.
function limitText(l) {
  return (l.reached ? "A limit of this node is reached, and it refuses what needs more: "
    : "A limit of this node is nearly reached: ") + l.name + ", " + l.used + " of " + l.limit
    + (l.most ? ", at least " + l.most + " of them of " + (text(l, "whose")
      || "somebody without a name") : "") + ". pawl clients --shares says who has most.";
}

function showLimits(s) {
  $("limits").replaceChildren(...s.limits.map((l) => make("p", limitText(l),
    "verdict " + (l.reached ? "bad" : "warn"))));
  if (s.audit_trouble) {
    $("limits").append(make("p", "The audit file of this node lacks lines: " + s.audit_trouble
      + ".", "verdict bad"));
  }
}

// A node whose certificate has ended seems to be well as long as its connections stand.
function showCertificates(s) {
  for (const p of s.peers) {
    if (p.certificate_ends && p.certificate_ends * 1000 < Date.now()) {
      $("limits").append(make("p", "The certificate of " + p.node
        + " has ended: over TLS it gets no new connection.", "verdict bad"));
    }
  }
}

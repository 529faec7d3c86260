"use strict";
// The page of the admin port. It shows what /v1/ answers. Every text of the cluster goes into the
// page as text, never as HTML.
const $ = (id) => document.getElementById(id);

function make(tag, text, kind) {
  const e = document.createElement(tag);
  if (text !== undefined && text !== null) e.textContent = text;
  if (kind) e.className = kind;
  return e;
}

// ---- words ----

function span(ms) {
  if (ms < 0 || ms === null || ms === undefined) return "-";
  if (ms < 1000) return Math.round(ms) + " ms";
  const s = ms / 1000;
  if (s < 60) return (s < 10 ? s.toFixed(1) : Math.round(s)) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}
// A field of bytes that are no UTF-8 has the ending _hex.
function text(map, name) {
  if (map[name] !== undefined && map[name] !== null) return map[name];
  return map[name + "_hex"] !== undefined ? "0x" + map[name + "_hex"] : "";
}
function count(n, one, many) {
  return n + " " + (n === 1 ? one : many);
}
function rate(n) {
  return n === null ? "-" : n >= 100 ? Math.round(n) : n.toFixed(1);
}

// ---- tables ----

// A cell is a text, {text, kind}, or an element.
function row(cells) {
  const tr = make("tr");
  for (const cell of cells) {
    const td = make("td");
    if (cell instanceof Node) td.append(cell);
    else if (cell && cell.mark) td.append(make("span", cell.text, cell.mark));
    else if (cell && cell.kind) { td.textContent = cell.text; td.className = cell.kind; }
    else td.textContent = cell;
    tr.append(td);
  }
  return tr;
}
function number(value) { return {text: value, kind: "n"}; }
function key(value) { return {text: value, kind: "key"}; }
function fill(table, rows, none) {
  const body = table.tBodies[0];
  body.replaceChildren(...rows);
  if (rows.length === 0 && none) {
    const td = make("td", none, "none");
    td.colSpan = table.tHead.rows[0].cells.length;
    const tr = make("tr");
    tr.append(td);
    body.append(tr);
  }
}

// ---- the cluster ----

let before = null;
const totals = {requests: "Requests a second", refusals: "Refusals a second",
  grants: "Grants a second", releases: "Releases a second", losses: "Losses a second"};

function rates(top) {
  const now = performance.now(), found = {};
  for (const name of Object.keys(totals)) {
    found[name] = before && top[name] >= before.top[name]
      ? (top[name] - before.top[name]) * 1000 / (now - before.now) : null;
  }
  before = {top, now};
  return found;
}

function nodeState(s, p) {
  if (p.self) {
    return {text: s.ready ? s.state : s.state + ", not ready", mark: s.ready ? "good" : "bad"};
  }
  if (p.stranger) return {text: "has lost its state", mark: "bad"};
  if (!p.linked) return {text: "not linked" + (p.trouble ? ": " + p.trouble : ""), mark: "bad"};
  if (p.other_epoch) return {text: "in another epoch", mark: "warn"};
  if (p.role === "master" && !p.voting) return {text: "does not vote", mark: "bad"};
  return {text: p.role === "master" ? "voting" : "linked", mark: "good"};
}

function ends(seconds) {
  if (!seconds) return "-";
  const days = (seconds * 1000 - Date.now()) / 86400000;
  const said = new Date(seconds * 1000).toISOString().slice(0, 10);
  return {text: said, mark: days < 0 ? "bad" : days < 14 ? "warn" : "good"};
}

function nodeRow(s, p) {
  const behind = p.self && s.following ? s.following.age_ms === null ? "unknown"
    : span(s.following.age_ms) : p.follows ? count(p.lag, "entry", "entries") : "-";
  return row([p.node, p.role, nodeState(s, p),
    number(p.self || !p.linked || !p.round_trip_us ? "-"
      : (p.round_trip_us / 1000).toFixed(2) + " ms"),
    number(behind), p.version || "-", ends(p.certificate_ends)]);
}

// Leaves the list alone while it says the same, so that a selected command stays selected.
function showRemedies(s) {
  const said = remedies(s), list = $("todo");
  if ([...list.children].map((e) => e.textContent).join("\n") !== said.join("\n")) {
    list.replaceChildren(...said.map((sentence) => make("li", sentence)));
  }
  $("remedies").hidden = said.length === 0;
}

function showCluster(s, top) {
  const [kind, said] = verdict(s), found = rates(top);
  if ($("verdict").textContent !== said) $("verdict").textContent = said;
  $("verdict").className = "verdict " + kind;
  $("who").textContent = s.cluster + " as " + s.node + " sees it";
  showLimits(s);
  showCertificates(s);
  showRemedies(s);
  document.title = (kind === "good" && !$("limits").firstChild ? "" : "! ") + "Pawl " + s.cluster;
  const facts = [["Epoch", s.epoch], ["Held leases", s.held], ["Keys", s.keys],
    ["Requests that wait here", top.waiting], ["Clients here", s.clients],
    ...Object.keys(totals).map((name) => [totals[name], rate(found[name])])];
  if (s.change) facts.push(["Change under way", s.change.step]);
  $("facts").replaceChildren(...facts.map(([name, value]) => {
    const div = make("div");
    div.append(make("dt", name), make("dd", value));
    return div;
  }));
  fill($("nodes"), s.peers.map((p) => nodeRow(s, p)), "No node is known.");
}

// ---- hot keys ----

const lists = [
  ["longest_queues", "Longest queues (of keys whose home is here)",
    "Waiting", (k) => k.waiting],
  ["oldest_waiters", "Oldest waiters (of this node's clients)", "Waited",
    (k) => span(k.waited_ms)],
  ["oldest_holders", "Held for longest", "Held for", (k) => span(k.held_ms)],
  ["most_granted", "Granted most often in the last minute", "Granted", (k) => k.granted],
];

function explainButton(name) {
  const button = make("button", "Explain");
  button.type = "button";
  button.setAttribute("aria-label", "Explain " + name);
  button.addEventListener("click", () => explain(name));
  return button;
}

function makeLists() {
  for (const [id, title, column] of lists) {
    const div = make("div"), table = make("table"), head = make("tr");
    table.id = id;
    table.createTHead().append(head);
    head.append(make("th", "Key"), make("th", column, "n"));
    table.createTBody();
    div.append(make("h3", title), table);
    $("lists").append(div);
  }
}

function showKeys(top) {
  for (const [id, , , value] of lists) {
    fill($(id), top[id].map((k) => row([key(text(k, "key")), number(value(k))])), "None");
  }
}

// ---- asking ----

class Refusal extends Error {}

async function ask(path, params, how) {
  const url = path + "?" + Object.entries(params)
    .map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
  const answer = await fetch(url, {cache: "no-store", ...how});
  const type = answer.headers.get("Content-Type") || "";
  if (!type.startsWith("application/json")) throw new Refusal((await answer.text()).trim());
  const said = await answer.json();
  if (said.code) throw new Refusal(said.message || said.code);
  return said;
}

// ---- elections and queues ----

function holderRow(name, h, owners) {
  const next = make("ol");
  next.append(...owners.slice(0, 5).map((owner) => make("li", owner)));
  if (owners.length > 5) next.append(make("li", "and " + (owners.length - 5) + " more"));
  return row([key(name), h.held ? text(h, "owner") || "without a name" : "nobody",
    number(h.held ? span(h.held_ms) : "-"), number(h.held ? h.token : "-"),
    owners.length ? next : "-"]);
}

// Looks at the keys with waiters, the keys held for longest, and the first keys.
async function showQueues() {
  let waiters, listed;
  try {
    waiters = await ask("/v1/waiters", {prefix: ""});
    listed = await ask("/v1/list", {prefix: ""});
  } catch (problem) {
    for (const id of ["leaders", "queues"]) fill($(id), [], "Not known: " + problem.message);
    return;
  }
  const queues = new Map(), elections = new Set(), holders = new Map();
  for (const w of waiters.waiters) {
    const name = text(w, "key");
    if (!queues.has(name)) queues.set(name, []);
    queues.get(name).push(text(w, "owner") || "without a name");
    if (w.election) elections.add(name);
  }
  for (const k of listed.keys) holders.set(text(k, "key"), k);
  const wanted = [...queues.keys()].slice(0, 40)
    .concat(before ? before.top.oldest_holders.map((k) => text(k, "key")) : []);
  for (const name of new Set(wanted)) {
    if (!holders.has(name) && !name.startsWith("0x")) {
      try { holders.set(name, await ask("/v1/get", {key: name})); } catch (problem) { continue; }
    }
  }
  for (const [name, h] of holders) if (h.election) elections.add(name);
  const rows = (names) => names.slice(0, 20).map((name) => holderRow(name,
    holders.get(name) || {held: false}, queues.get(name) || []));
  fill($("leaders"), rows([...elections].sort()), "Nobody leads, and there is no candidate.");
  fill($("queues"), rows([...queues.keys()].filter((name) => !elections.has(name))),
    "Nobody waits.");
  $("more").hidden = !waiters.more && !listed.more;
}

// ---- search ----

async function search(prefix) {
  $("why").replaceChildren();
  let said;
  try {
    said = await ask("/v1/list", {prefix});
  } catch (problem) {
    $("results").hidden = true;
    $("found").textContent = problem.message;
    return;
  }
  $("found").textContent = count(said.keys.length, "key", "keys") + (said.more
    ? ", and there are more: search for a longer beginning" : "");
  $("results").hidden = said.keys.length === 0;
  fill($("results"), said.keys.map((k) => {
    const name = text(k, "key");
    const tr = row([key(name), text(k, "owner") || "without a name",
      k.holders > 1 ? k.mode + ", " + k.holders + " holders" : k.mode,
      number(span(k.remaining_ms)), number(k.token), ""]);
    if (k.key !== undefined) tr.lastChild.append(explainButton(name));
    return tr;
  }));
}

// Says in sentences why a key is as it is.
function sentences(name, said) {
  const out = [], voting = said.masters.filter((m) => m.state === "voting");
  const silent = said.masters.filter((m) => m.state !== "voting");
  const home = said.masters.find((m) => m.home), waiting = home ? home.waiting || 0 : 0;
  const knowing = voting.filter((m) => (m.records || []).length > 0);
  if (said.held) {
    out.push(name + " is held by " + (text(said, "owner") || "somebody without a name")
      + (said.mode === "exclusive" ? "" : " (" + said.mode + ")") + " since "
      + span(said.held_ms) + ", with the token " + said.token + ".");
    out.push("If it is not extended, the lease ends in " + span(said.remaining_ms)
      + " at most.");
    if (said.label) out.push("The holder calls itself " + said.label + ".");
  } else {
    out.push("Nobody holds " + name + ".");
  }
  if (said.contested) {
    out.push("Masters know holders that exclude each other. Nothing is granted until one is left.");
  }
  out.push(knowing.length + " of " + count(voting.length, "voting master knows",
    "voting masters know") + " a holder" + (knowing.length ? ": "
    + knowing.map((m) => m.node).join(", ") : "") + ".");
  if (silent.length) {
    out.push("No word from " + silent.map((m) => m.node + " (" + m.state.replace("_", " ")
      + ")").join(", ") + ".");
  }
  const promised = voting.filter((m) => m.promise).length;
  if (promised) {
    out.push(count(promised, "master has", "masters have")
      + " promised the key to a request that is under way.");
  }
  out.push(waiting ? count(waiting, "request waits", "requests wait") + " for it, at "
    + home.node + ". " + (said.held ? "The first of them gets the key when it is released, "
    + "or when the lease ends." : "The first of them should get the key now.")
    : "Nobody waits for it.");
  return out.concat(...said.deadlocks.map(ringSentences));
}

function ringSentences(d) {
  const ring = d.ring, who = (m) => text(m, "owner") || "somebody without a name";
  return ["Deadlock: " + ring.map((m, i) => who(m) + " waits for " + text(m, "key") + ", which "
    + who(ring[(i + 1) % ring.length]) + " holds (at " + m.node + ")").join("; ") + ".",
  d.refused ? "The first of them was refused, with the error deadlock."
    : "One of them must release what it holds: the first is the youngest."];
}

async function explain(name) {
  const why = $("why"), title = make("h3", "Why: " + name);
  seen = null;
  $("done").textContent = "";
  try {
    const said = await ask("/v1/explain", {key: name});
    why.replaceChildren(title, ...sentences(name, said).map((s) => make("p", s)));
    if (said.held) seen = {name, said};
  } catch (problem) {
    why.replaceChildren(title, make("p", problem.message));
  }
  $("acts").hidden = !token || !seen;
  why.focus();
}

// ---- what an administrator may do ----

// What every request must bring, if this page may do anything; and the key that is explained, with
// what was said of it.
let token = "", seen = null;

async function askActions() {
  try {
    const said = await ask("/v1/actions", {});
    if (!said.permitted) return;
    token = said.token;
    $("may").textContent = "Your certificate may break locks here.";
  } catch (problem) { /* Then the page shows, and changes nothing. */ }
}

// Ends the question that is open, with whether the reader is sure.
let decide = () => {};

// Returns whether the reader is sure. A question that is still open is answered with no.
function sure(title, said, yes) {
  const dialog = $("sure");
  $("sure-title").textContent = title;
  $("sure-text").textContent = said;
  $("sure-yes").textContent = yes;
  dialog.returnValue = "no";
  decide(false);
  return new Promise((resolve) => {
    decide = resolve;
    dialog.showModal();
  });
}

async function act(path, params, title, text, yes, done) {
  if (!await sure(title, text, yes)) return;
  let said;
  try {
    said = done(await ask(path, params, {method: "POST", headers: {"Pawl-Action": token}}));
  } catch (problem) {
    said = "Nothing was done: " + problem.message;
  }
  await explain(params.key);
  $("done").textContent = said;
  showRecent();
}

function breakLock() {
  const {name, said} = seen, owner = text(said, "owner") || "somebody without a name";
  act("/v1/break", {key: name, token: said.token}, "Break the lock of " + name + "?", owner
    + " may not extend it any more, and loses it when its lease ends, in "
    + span(said.remaining_ms) + " at most. Then the next one gets the key.", "Break it",
  (answer) => answer.broken ? "Broken. " + owner + " may not extend it any more."
    : "It was not held any more.");
}

function askRelease() {
  const {name, said} = seen, owner = text(said, "owner") || "the holder";
  act("/v1/ask_release", {key: name}, "Ask " + owner + " to release " + name + "?",
    "The holder is told that you ask, and decides itself.", "Ask",
    (answer) => answer.reached ? count(answer.reached, "client was", "clients were") + " told."
      : "Nobody who could release it listens.");
}

// ---- recent ----

const causes = {expired: "Lease ended", taken: "Broken, or lost with its connection"};

// How many rows are shown until somebody wants all of them.
const RECENT = 10;
let folded = true;

function orderText(e) {
  const what = e.method.replaceAll("_", " ");
  if (e.result === undefined) return {text: what + ": not answered yet", mark: "warn"};
  return e.result === "ok" ? {text: what, mark: "bad"}
    : {text: what + ": not done (" + e.result.replaceAll("_", " ") + ")", kind: "none"};
}

function recentRows(said) {
  const all = said.losses.map((e) => [e.ago_ms, row([number(span(e.ago_ms)),
    {text: causes[e.cause] || e.cause, mark: "warn"}, key(text(e, "key")),
    text(e, "owner") || "without a name", number(e.token)])])
    .concat(said.orders.map((e) => [e.ago_ms, row([number(span(e.ago_ms)), orderText(e),
      key(text(e, "subject")), text(e, "identity") || "without a name", number("")])]));
  return all.sort((a, b) => a[0] - b[0]).slice(0, 200).map((e) => e[1]);
}

async function showRecent() {
  let rows = [];
  try {
    rows = recentRows(await ask("/v1/recent", {}));
    $("calm").hidden = rows.length > 0;
  } catch (problem) {
    $("calm").hidden = false;
    $("calm").textContent = problem.message;
  }
  fill($("events"), folded ? rows.slice(0, RECENT) : rows);
  $("events").hidden = rows.length === 0;
  $("fold").hidden = rows.length <= RECENT;
  $("fold").textContent = folded ? "Show all " + rows.length : "Show the last " + RECENT;
  $("fold").setAttribute("aria-expanded", String(!folded));
}

// ---- life ----

let heard = 0;

function trouble(said) {
  if ($("trouble").textContent !== (said || "")) $("trouble").textContent = said || "";
  $("trouble").hidden = !said;
}

function listen() {
  const live = new EventSource("/v1/live");
  live.addEventListener("message", (event) => {
    const said = JSON.parse(event.data);
    heard = performance.now();
    trouble("");
    showCluster(said.status, said.top);
    showKeys(said.top);
  });
  live.addEventListener("error", () => {
    if (live.readyState === EventSource.CLOSED) {
      // It was refused: a plain request says why.
      ask("/v1/top", {}).then(() => trouble("The node does not send events: too many read them."),
        (problem) => trouble("This node shows nothing here: " + problem.message));
      setTimeout(listen, 5000);
    }
  });
}

function beat() {
  const ago = performance.now() - heard;
  $("beat").textContent = heard ? "Last news " + span(ago) + " ago." : "No news yet.";
  if (heard && ago > 5000) trouble("The node has said nothing for " + span(ago) + ".");
}

makeLists();
askActions();
listen();
showQueues();
showRecent();
setInterval(beat, 1000);
setInterval(() => { if (!document.hidden) { showQueues(); showRecent(); } }, 5000);
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  search($("prefix").value);
});
// The event comes later than the end of the dialog, which may be open for the next question by then.
$("sure").addEventListener("close", () => {
  if (!$("sure").open) decide($("sure").returnValue === "yes");
});
$("break").addEventListener("click", breakLock);
$("ask").addEventListener("click", askRelease);
$("fold").addEventListener("click", () => { folded = !folded; showRecent(); });

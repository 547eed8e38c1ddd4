// Taking part by hand. A result that is to be shared is sent; a private one is only counted in this browser.
import { setText, show } from "./page.js";
import { place } from "./live.js";

const element = (name) => document.getElementById(name);
const section = element("play");
const base = `/v1/collaborations/${place.dataset.id}`;
const KEY = `partage-play-${place.dataset.id}-${place.dataset.agent}`;
const whole = new Intl.NumberFormat("en-US");

// What must survive a reload: the pull that waits for its result, the id of a request whose answer may be lost, and
// the private results by arm, as [count, sum].
let kept = { pending: null, request: null, own: {} };
try { kept = { ...kept, ...JSON.parse(localStorage.getItem(KEY)) }; } catch { /* storage may be forbidden or damaged */ }
const keep = () => { try { localStorage.setItem(KEY, JSON.stringify(kept)); } catch { /* then only for this page */ } };

async function send(path, body) {
  const headers = { "Content-Type": "application/json", "x-csrf-token": document.body.dataset.csrf };
  const answer = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { ok: answer.ok, status: answer.status, found: await answer.json() };
}

function draw() {
  const pull = kept.pending;
  show(element("play-idle"), !pull);
  show(element("play-form"), Boolean(pull));
  if (pull) {
    setText(element("play-arm"), pull.arm);
    setText(element("play-who"), pull.share
      ? "You share this arm: all members will see the result. If it takes long, the claim may lapse; a late result still counts."
      : "This result is yours alone. It stays in this browser and is never sent.");
    setText(element("play-send"), pull.share ? "Send" : "Note it here");
    show(element("play-skip"), true);
    setText(element("play-skip"), pull.share ? "I cannot try it now" : "Continue without noting it");
  }
  const arms = Object.entries(kept.own);
  show(element("play-notes"), arms.length > 0);
  element("play-notes").querySelector("tbody").replaceChildren(...arms.map(([arm, [number, sum]]) => {
    const row = document.createElement("tr");
    row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: arm }));
    for (const text of [whole.format(number), (sum / number).toFixed(3)]) row.append(Object.assign(document.createElement("td"), { className: "num", textContent: text }));
    return row;
  }));
}

function say(where, sentence) {
  setText(element(where), sentence ?? "");
  show(element(where), Boolean(sentence));
}

const SILENT = "The server does not answer; try again.";

async function ask() {
  const button = element("play-ask");
  button.disabled = true;
  say("play-refused");
  say("play-said", " ");
  kept.request ??= [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  keep();
  try {
    const { ok, found } = await send("/ask", { request: kept.request });
    if (!ok) { say("play-refused", found.error); kept.request = null; keep(); return; }
    kept = { ...kept, request: null, pending: { pull: found.pull, arm: found.arm, share: found.share } };
    keep();
    draw();
    element("play-arm").focus();
  } catch { say("play-refused", SILENT); } finally { button.disabled = false; }
}

function done(sentence) {
  kept.pending = null;
  keep();
  element("play-reward").value = "";
  say("play-error");
  draw();
  say("play-said", sentence);
  element("play-ask").focus();
}

async function result(reward) {
  const pull = kept.pending;
  if (!pull) return;
  if (!pull.share) { // it never leaves the browser
    const [number, sum] = kept.own[pull.arm] ?? [0, 0];
    kept.own[pull.arm] = [number + 1, sum + reward];
    done("Noted here, and nowhere else.");
    return;
  }
  const buttons = element("play-form").querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  try {
    const { ok, status, found } = await send("/tell", { pull: pull.pull, reward });
    if (ok) done("Sent. All members see it.");
    else if ([403, 404, 409].includes(status)) { done(""); say("play-refused", found.error); } // it can never be sent
    else say("play-error", found.error);
  } catch { say("play-error", SILENT); } finally { for (const button of buttons) button.disabled = false; }
}

// A number as people write it: 0.7, 0,7 or 70 %.
export function numberOf(text) {
  const match = text.trim().match(/^(\d*[.,]?\d*)\s*(%?)$/);
  const number = match && /\d/.test(match[1]) ? Number(match[1].replace(",", ".")) / (match[2] ? 100 : 1) : NaN;
  return number >= 0 && number <= 1 ? number : null;
}

// The page's snapshot: a claim that another page or a program has open, and whether one can still play.
export function follow(me, board) {
  if (!section) return;
  if (board.closed || me.left || me.aside) { show(section, false); return; }
  if (me.claim && (!kept.pending || (kept.pending.share && kept.pending.pull !== me.claim.pull))) {
    kept.pending = { pull: me.claim.pull, arm: board.arms[me.claim.arm].name, share: true };
    if (!kept.skipped?.includes(me.claim.pull)) draw();
    else kept.pending = null;
  }
}

if (section) {
  element("play-ask").addEventListener("click", ask);
  for (const button of section.querySelectorAll("[data-reward]")) button.addEventListener("click", () => result(Number(button.dataset.reward)));
  element("play-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const reward = numberOf(element("play-reward").value);
    if (reward === null) { say("play-error", "This must be a number from 0 to 1, such as 0.7 or 70 %."); element("play-reward").focus(); return; }
    result(reward);
  });
  element("play-skip").addEventListener("click", () => {
    const { share, pull } = kept.pending;
    if (share) kept.skipped = [...(kept.skipped ?? []), pull].slice(-5);
    done(share ? "Nothing was sent. The claim lapses by itself; until then, asking gives you the same arm." : "");
  });
  element("play-forget").addEventListener("click", () => { kept.own = {}; keep(); draw(); });
  draw();
}

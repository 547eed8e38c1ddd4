// What the operator's page and a member's page share: the stream, the board, the feed.
import { setText, show } from "./page.js";
import { next } from "./patch.js";

export const place = document.getElementById("live");
const whole = new Intl.NumberFormat("en-US");
export const count = (number) => whole.format(number);
export const things = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
const MOST_ROWS = 24; // arms that are shown at first

// --- the stream ---------------------------------------------------------------------------------------------

const connection = document.getElementById("connection");

let doubt = 0;

function connected(state) {
  clearTimeout(doubt);
  doubt = 0;
  const words = { live: "live", lost: "reconnecting…", closed: "closed" };
  setText(connection, words[state]);
  connection.className = `tag tag-${state}`;
  place.dataset.connection = state;
}

export function listen(onBoard, onMoney) {
  let source = null;
  let pause = 1000;
  const last = {};
  let snapshot = null; // as the stream has it, whether it is drawn or not
  let frame = 0;
  // Several messages before the next frame are drawn once. A page in the background draws when it becomes visible.
  const draw = () => {
    frame = 0;
    if (last.board) { onBoard(last.board); last.board = null; }
    if (last.money) { onMoney(last.money); last.money = null; }
  };
  const take = (name) => (event) => {
    const came = JSON.parse(event.data);
    if (name === "money") {
      last.money = came;
      ended.money = came.closed;
    } else {
      last.board = snapshot = name === "patch" ? next(snapshot, came) : came;
      ended.board = snapshot.board.closed;
    }
    if (ended.board && ended.money) { source.close(); connected("closed"); } else connected("live");
    pause = 1000;
    if (!frame) frame = requestAnimationFrame(draw);
  };
  const ended = { board: false, money: false };
  const open = () => {
    source = new EventSource(place.dataset.events);
    source.addEventListener("board", take("board"));
    source.addEventListener("patch", take("patch"));
    source.addEventListener("money", take("money"));
    source.addEventListener("error", async () => {
      doubt ||= setTimeout(() => connected("lost"), 1500); // a stream that reopens quickly needs no warning
      if (source.readyState !== EventSource.CLOSED) return; // the browser retries by itself
      try {
        const answer = await fetch(`/v1/collaborations/${place.dataset.id}/board`);
        if (answer.status === 401) { location.reload(); return; } // the session is over
      } catch { /* not there yet */ }
      setTimeout(open, pause);
      pause = Math.min(2 * pause, 15000);
    });
  };
  open();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

// --- the board ----------------------------------------------------------------------------------------------

const rows = [...document.querySelectorAll("#arms .arm")].map((row) => ({
  row,
  tags: row.querySelector(".tags"),
  band: row.querySelector(".band"),
  mean: row.querySelector(".mean"),
  limit: row.querySelector(".limit"),
  value: row.querySelector(".value"),
  radius: row.querySelector(".radius"),
  more: row.querySelector(".more"),
  proof: row.querySelector(".proof"),
  needs: row.querySelector(".needs"),
}));
const many = rows.length > MOST_ROWS;
const allArms = document.getElementById("all-arms");
if (many) {
  document.getElementById("arms").classList.add("short");
  allArms.hidden = false;
  allArms.textContent = `Show all ${count(rows.length)} arms`;
  allArms.addEventListener("click", () => {
    document.getElementById("arms").classList.remove("short");
    allArms.hidden = true;
  });
}

function tagsOf(arm, board) {
  const tags = [];
  if (arm.name === board.leader) tags.push(["leader", "leader"]);
  if (arm.public && !arm.active) tags.push(["eliminated", "eliminated"]);
  else if (arm.sharers === 0) tags.push(["unshared", "nobody shares it"]);
  else if (!board.closed && arm.settleable === false) tags.push(["unshared", "too few share it"]);
  else if (!board.closed && arm.open) tags.push(["open", arm.claims ? `open, ${things(arm.claims, "claim")}` : "open"]);
  else if (!board.closed && arm.name !== board.leader) tags.push(["waits", "waiting"]);
  if (!board.closed && arm.stalled && arm.active) tags.push(["stalled", "not reported"]);
  return tags;
}

const about = (number) => (number < 10 ? count(number) : count(Number(number.toPrecision(2))));

// What the rule's own test says of an arm: the evidence against it, and what it still takes.
function drawProof(parts, arm, index, board, weighing) {
  const evidence = weighing?.evidence[index];
  const out = arm.public && !arm.active;
  const tested = weighing?.threshold != null && (evidence != null || out);
  show(parts.proof, tested);
  if (tested) parts.proof.firstElementChild.style.width = `${out ? 100 : Math.min(100, (100 * evidence) / weighing.threshold)}%`;
  const says = [];
  if (tested && !out) says.push(`evidence ${evidence.toFixed(1)} of ${weighing.threshold.toFixed(1)}`);
  const more = board.closed || arm.name === board.leader ? null : weighing?.more[index];
  if (more != null && more > 0 && arm.active) says.push(`about ${about(more)} more ${more === 1 ? "result" : "results"}`);
  setText(parts.needs, says.join(", "));
  show(parts.needs, says.length > 0);
}

export function drawBoard({ board, weighing }) {
  if (board.arms.length > rows.length) { window.location.reload(); return; } // an arm was added
  const leader = board.arms.find((arm) => arm.name === board.leader);
  // Where the rule tests by intervals, an arm is eliminated once its band ends below the highest lower end of all.
  const lows = place.dataset.byIntervals === "1" ? board.arms.filter((arm) => arm.mean != null).map((arm) => arm.mean - arm.radius) : [];
  const limit = lows.length ? lows.reduce((highest, low) => Math.max(highest, low)) : null;
  board.arms.forEach((arm, index) => {
    const parts = rows[index];
    const tags = tagsOf(arm, board);
    const key = tags.join("|");
    if (parts.key !== key) {
      parts.key = key;
      parts.tags.replaceChildren(...tags.map(([kind, word]) => {
        const tag = document.createElement("span");
        tag.className = `tag tag-${kind}`;
        tag.textContent = word;
        return tag;
      }));
      parts.row.classList.toggle("is-leader", arm.name === board.leader);
      parts.row.classList.toggle("is-eliminated", arm.public && !arm.active);
      parts.row.classList.toggle("is-unshared", arm.sharers === 0 && !(arm.public && !arm.active));
    }
    const known = arm.mean != null;
    show(parts.band, known && place.dataset.byIntervals === "1");
    drawProof(parts, arm, index, board, weighing);
    show(parts.mean, known);
    show(parts.limit, limit != null && limit > 0);
    if (limit != null) parts.limit.style.left = `${100 * limit}%`;
    if (known) {
      const low = Math.max(0, arm.mean - arm.radius);
      const high = Math.min(1, arm.mean + arm.radius);
      parts.band.style.left = `${100 * low}%`;
      parts.band.style.width = `${100 * (high - low)}%`;
      parts.mean.style.left = `${100 * arm.mean}%`;
    }
    setText(parts.value, known ? arm.mean.toFixed(3) : "–");
    setText(parts.radius, known && place.dataset.byIntervals === "1" ? ` ± ${Math.min(1, arm.radius).toFixed(3)}` : "");
    setText(parts.more, known ? things(arm.broadcasts, "broadcast") : "no broadcasts yet");
  });
  if (many) { // the best first, eliminated ones last
    const rank = board.arms.map((arm, index) => [arm.active ? 1 : 0, arm.mean ?? -1, -index]);
    const order = rank.map((_, index) => index).sort((a, b) =>
      rank[b][0] - rank[a][0] || rank[b][1] - rank[a][1] || rank[b][2] - rank[a][2]);
    order.forEach((index, rank) => {
      rows[index].row.style.order = rank;
      rows[index].row.classList.toggle("beyond", rank >= MOST_ROWS);
    });
  }
  setText(document.getElementById("leader"), leader ? leader.name : "none yet");
  setText(document.getElementById("leader-mean"),
    leader?.mean != null ? `mean ${leader.mean.toFixed(3)}` : "no broadcasts yet");
  const clock = document.getElementById("clock");
  show(clock, board.clock > 0); // only where the rule reads it
  setText(clock, `Together the members have made about ${things(board.clock, "pull")}.`);
  drawSays(board, weighing);
  speak(board);
}

// --- what the board waits for, and what was taken off it ------------------------------------------------------

const LONG = 10; // seconds that a claim is open before the page names it
const says = document.getElementById("board-says");
let drawn = null;

function since(seconds) {
  if (seconds < 60) return things(Math.floor(seconds), "second");
  return seconds < 3600 ? things(Math.floor(seconds / 60), "minute") : things(Math.floor(seconds / 3600), "hour");
}

function drawSays(board, weighing) {
  drawn = { board, weighing };
  const sentences = board.waiting.map((claim) => [claim, (Date.now() - claim.since) / 1000])
    .filter(([, seconds]) => seconds >= LONG)
    .map(([claim, seconds]) => `Waiting for ${claim.name}: ${claim.arm}, since ${since(seconds)}.`);
  if (!board.closed) {
    for (const arm of board.arms.filter((one) => one.stalled && one.active)) {
      if (arm.used_up) sentences.push(`No other option waits for ${arm.name}: nobody who shares it has pulls left.`);
      else sentences.push(`${arm.name} is left out of the balance until it is reported: its last ${things(arm.lapses, "claim")} ended without a report.`);
    }
  }
  const more = board.closed ? [] : (weighing?.more ?? []).filter((one) => one != null && one > 0);
  const contenders = board.arms.filter((arm) => arm.public && arm.active && arm.name !== board.leader).length;
  if (more.length && more.length === contenders) {
    sentences.push(`If the means stay as they are, about ${about(more.reduce((sum, one) => sum + one, 0))} more results of the other arms settle which one is best.`);
  }
  if (board.ends && !board.closed) {
    const day = new Date(board.ends).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
    sentences.push(`By the paces that they declared, those who share options will have made all their pulls by ${day}.`);
  }
  for (const one of board.set_aside) sentences.push(`The operator set the broadcasts of ${one.name} aside: ${one.reason}`);
  for (const one of board.disagreements) sentences.push(one.text);
  sentences.push(...board.notes);
  show(says, sentences.length > 0);
  const text = sentences.join("\n");
  if (says.dataset.text === text) return;
  says.dataset.text = text;
  says.replaceChildren(...sentences.map((sentence) => {
    const item = document.createElement("li");
    item.textContent = sentence;
    return item;
  }));
}

setInterval(() => { if (drawn) drawSays(drawn.board, drawn.weighing); }, 5000); // time passes, even if nothing is reported

// --- for screen readers: what matters, at most every ten seconds --------------------------------------------

const spoken = document.getElementById("spoken");
let spokenText = null;
let spokenAt = 0;

function speak(board) {
  const left = board.arms.filter((arm) => arm.active).length;
  const text = board.closed ? "The collaboration is closed."
    : board.leader ? `${board.leader} leads; ${things(left, "arm")} active.` : "";
  if (text === spokenText || (Date.now() - spokenAt < 10000 && !board.closed)) return;
  if (spokenText !== null) { setText(spoken, text); spokenAt = Date.now(); }
  spokenText = text;
}

// --- the feed -----------------------------------------------------------------------------------------------

const list = document.getElementById("feed");
const lines = new Map(); // by key
const notes = []; // changes that this page saw on the board: eliminations, a new leader
let before = null;

function note(time, key, kind, text, arm) {
  notes.unshift({ key, time, kind, text, arm });
  notes.length = Math.min(notes.length, 20);
}

function observe(snapshot) {
  const board = snapshot.board;
  if (before && board.version > before.version) {
    board.arms.forEach((arm, index) => {
      const was = before.arms[index];
      if (was.active && !arm.active) note(snapshot.time, `eliminated${index}-${board.version}`, "eliminated", `${arm.name} was eliminated`, index);
      if (!was.active && arm.active && was.public) note(snapshot.time, `active${index}-${board.version}`, "eliminated", `${arm.name} is active again`, index);
    });
    if (before.leader !== board.leader && board.leader) {
      const index = board.arms.findIndex((arm) => arm.name === board.leader);
      note(snapshot.time, `leader${board.version}`, "leader", `${board.leader} is the new leader`, index);
    }
  }
  before = board;
}

const clockOf = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function drawFeed(snapshot) {
  observe(snapshot);
  const oldest = snapshot.feed.length ? snapshot.feed[snapshot.feed.length - 1].time : 0;
  const said = [...notes.filter((one) => one.time >= oldest), ...snapshot.feed].sort((a, b) => b.time - a.time).slice(0, 40);
  const kept = new Set();
  const items = said.map((one) => {
    kept.add(one.key);
    let item = lines.get(one.key);
    if (!item) {
      item = document.createElement("li");
      item.className = `said said-${one.kind}${one.arm == null ? "" : ` c${one.arm % 8}`}`;
      const dot = document.createElement("span");
      dot.className = "dot";
      dot.ariaHidden = "true";
      const text = document.createElement("span");
      const time = document.createElement("time");
      item.append(dot, text, time);
      lines.set(one.key, item);
    }
    setText(item.children[1], one.text);
    setText(item.children[2], clockOf.format(one.time));
    return item;
  });
  for (const key of lines.keys()) if (!kept.has(key)) lines.delete(key);
  // In place, so that scrolling and selections are kept.
  items.forEach((item, place) => { if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null); });
  while (list.children.length > items.length) list.lastChild.remove();
  show(document.getElementById("feed-empty"), items.length === 0);
}

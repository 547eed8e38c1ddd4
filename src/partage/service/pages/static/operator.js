// The operator's page: agents and money, the close.
import { setText, show, toast } from "./page.js";
import { account } from "./account.js";
import { addPoint, broadcasts, loadHistory } from "./chart.js";
import { count, drawBoard, drawFeed, listen, place, things } from "./live.js";

const id = place.dataset.id;
const csrf = document.body.dataset.csrf;
const element = (name) => document.getElementById(name);
const MOST_AGENTS = 50;
let latest = null;
let money = null;

// --- agents ---------------------------------------------------------------------------------------------------

const rows = new Map();
let showAll = false;

function cell(kind, label) {
  const made = document.createElement(kind);
  if (label) { made.className = "num"; made.dataset.label = label; }
  return made;
}

function rowOf(agent) {
  let found = rows.get(agent.agent);
  if (found) return found;
  const row = document.createElement("tr");
  const name = cell("th");
  name.scope = "row";
  const title = document.createElement("button");
  title.type = "button";
  title.className = "name link";
  title.title = "How these amounts come about";
  title.addEventListener("click", () => explain(agent.agent));
  const gone = document.createElement("span");
  gone.className = "tag tag-left";
  gone.textContent = "left";
  name.append(title, " ", gone);
  const shares = cell("td");
  shares.className = "shares";
  const numbers = ["Explore", "Commit", "Compensation", "Charge"].map((label) => cell("td", label));
  const net = cell("td", "Net");
  const amount = document.createElement("strong");
  const word = document.createElement("span");
  word.className = "word";
  net.append(word, " ", amount);
  row.append(name, shares, ...numbers, net);
  found = { row, title, gone, shares, numbers, net, amount, word, key: null };
  rows.set(agent.agent, found);
  element("agents").append(row);
  return found;
}

function drawShares(found, shares, arms) {
  const key = shares.join();
  if (found.key === key) return;
  found.key = key;
  const words = document.createElement("span");
  const names = shares.map((arm) => arms[arm].name).join(", ") || "nothing";
  words.title = names;
  words.textContent = shares.length ? `${shares.length} of ${arms.length}` : "nothing";
  const spoken = document.createElement("span");
  spoken.className = "sr";
  spoken.textContent = `: ${names}`;
  found.shares.replaceChildren();
  if (arms.length <= 16) {
    const strip = document.createElement("span");
    strip.className = "strip";
    strip.ariaHidden = "true";
    strip.title = names;
    arms.forEach((_, arm) => {
      const mark = document.createElement("i");
      mark.className = shares.includes(arm) ? `c${arm % 8} on` : "off";
      strip.append(mark);
    });
    found.shares.append(strip);
  }
  found.shares.append(words, spoken);
}

function drawAgents() {
  if (!latest) return;
  const { agents, board } = latest;
  const amounts = new Map((money?.rows ?? []).map((row) => [row.agent, row]));
  agents.forEach((agent, place) => {
    const found = rowOf(agent);
    show(found.row, showAll || place < MOST_AGENTS);
    setText(found.title, agent.name);
    show(found.gone, agent.left);
    found.row.classList.toggle("is-gone", agent.left);
    drawShares(found, agent.shares, board.arms);
    const row = amounts.get(agent.agent);
    const numbers = [count(agent.explore), count(agent.commit), row?.compensation ?? "–", row?.charge ?? "–"];
    numbers.forEach((text, place) => setText(found.numbers[place], text));
    setText(found.amount, row ? row.net : "–");
    setText(found.word, row ? row.word : "");
    found.net.className = `num net net-${row?.word ?? "even"}`;
  });
  show(element("no-agents"), agents.length === 0);
  show(element("agents-table"), agents.length > 0);
  const more = element("all-agents");
  show(more, !showAll && agents.length > MOST_AGENTS);
  setText(more, `Show all ${count(agents.length)} agents`);
  const totals = element("totals");
  show(totals, agents.length > 0 && money != null);
  if (money) {
    const sum = (field) => count(agents.reduce((total, agent) => total + agent[field], 0));
    [sum("explore"), sum("commit"), money.compensation, money.charge]
      .forEach((text, place) => setText(totals.rows[0].cells[place + 2], text));
    const words = [{ gains: "pay", loses: "receive", even: "even" }, { gains: "receives", loses: "pays", even: "even" }];
    [...totals.rows].forEach((row, place) => {
      setText(row.querySelector(".word"), words[place][money.profit_word]);
      setText(row.querySelector("strong"), money.profit.replace("−", ""));
    });
  }
}

element("all-agents").addEventListener("click", () => { showAll = true; drawAgents(); });

// --- one agent's account, in a dialog ----------------------------------------------------------------------------

async function explain(agent) {
  const dialog = element("account-dialog");
  if (await account(id, agent, element("account"))) dialog.showModal();
}
element("account-done").addEventListener("click", () => element("account-dialog").close());

// --- the tiles -----------------------------------------------------------------------------------------------

function drawTiles(snapshot) {
  const { board, agents } = snapshot;
  const left = board.arms.filter((arm) => arm.active);
  const eliminated = board.arms.filter((arm) => arm.public && !arm.active).length;
  setText(element("in-play"), count(left.length));
  setText(element("in-play-of"), `of ${count(board.arms.length)}${eliminated ? `, ${count(eliminated)} eliminated` : ""}`);
  setText(element("broadcasts"), count(broadcasts(board)));
  setText(element("agents-count"), `by ${things(agents.length, "agent")}`);
  setText(element("board-note"), "");
  setText(element("close-arms"), `${count(left.length)} of ${count(board.arms.length)}`);
  const open = board.arms.reduce((total, arm) => total + arm.claims, 0);
  const named = board.waiting.map((claim) => `${claim.name} for ${claim.arm}`);
  if (open > named.length) named.push(`${count(open - named.length)} more`);
  setText(element("close-claims"), count(open));
  setText(element("close-out"), `Still out: ${named.join(", ")}.`);
  show(element("close-out"), open > 0);
  if (board.closed) {
    show(element("close-button"), false);
    if (element("close-dialog").open) element("close-dialog").close();
  }
}

const unit = (view, amount) => (view.currency ? `${amount} ${view.currency}` : amount);

function drawMoney(view) {
  money = view;
  setText(element("money-title"), view.closed ? "Settlement" : "Agents");
  setText(element("net-head"), view.closed ? "Net" : "Net if it closed now");
  setText(element("money-note"), view.settlement === "none" ? "No money moves in this collaboration."
    : view.closed ? `Final, by the settlement ${view.settlement}. The net amounts and the controller's profit sum to zero.`
      : `What each agent would receive or pay if it closed now, by the settlement ${view.settlement}.${view.finished ? "" : " Pulls of active arms are not compensated."}`);
  const limits = [];
  if (view.prepaid) limits.push(`Every member prepaid ${view.prepaid}, can lose no more, and gets back that and the net.`);
  if (view.limit != null) limits.push(`The operator can lose ${view.limit} at most.`);
  if (view.currency && view.settlement !== "none") limits.push(`Amounts are in ${view.currency}.`);
  setText(element("money-limits"), limits.join(" "));
  setText(element("profit-label"), view.closed ? "Controller's profit" : "Controller's profit if it closed now");
  setText(element("profit"), unit(view, view.profit));
  setText(element("profit-word"), { gains: "the controller gains", loses: "the controller loses", even: "neither gain nor loss" }[view.profit_word]);
  element("profit").className = `net-${{ gains: "receives", loses: "pays", even: "even" }[view.profit_word]}`;
  setText(element("close-profit"), unit(view, view.profit));
  const warning = element("money-warning");
  const sentences = [];
  if (view.settlement !== "none") {
    if (!view.finished && view.closed) sentences.push("It was closed with more than one active arm. Their pulls are not compensated, so a member may have lost by taking part.");
    if (view.scale) sentences.push(`Not all compensations can be paid${view.closed ? "" : " yet"}: ${view.scale} of each is.`);
    else if (!view.viable) sentences.push(`The charges do not cover the compensations${view.closed ? "" : " yet"}; the controller pays the difference.`);
    if (view.disagree) sentences.push("Members see arms differently, as the board says. Rates are the same for all of them.");
  }
  show(warning, sentences.length > 0 && (latest?.agents.length ?? 0) > 0 && (latest?.board.version ?? 0) > 0);
  setText(warning, sentences.join(" "));
  drawAgents();
}

// --- the close ------------------------------------------------------------------------------------------------

element("close-button")?.addEventListener("click", () => element("close-dialog").showModal());
element("close-confirm").addEventListener("click", async (event) => {
  const button = event.currentTarget;
  button.disabled = true;
  try {
    const answer = await fetch(`/v1/collaborations/${id}/close`, { method: "POST", headers: { "x-csrf-token": csrf } });
    if (!answer.ok) {
      setText(element("close-error"), (await answer.json()).error);
      show(element("close-error"), true);
    } else {
      element("close-dialog").close();
      const title = element("money-title");
      title.tabIndex = -1;
      title.focus(); // which scrolls the settlement into view
      toast("Closed. The settlement is final.");
    }
  } catch {
    setText(element("close-error"), "The server does not answer; try again.");
    show(element("close-error"), true);
  } finally {
    button.disabled = false;
  }
});

// --- updates --------------------------------------------------------------------------------------------------

listen((snapshot) => {
  const first = !latest;
  const others = !first && (latest.agents.length !== snapshot.agents.length || latest.board.closed !== snapshot.board.closed);
  const fewer = !first && latest.board.set_aside.length !== snapshot.board.set_aside.length;
  latest = snapshot;
  drawBoard(snapshot);
  drawTiles(snapshot);
  drawAgents();
  drawFeed(snapshot);
  if (first || fewer) loadHistory(snapshot);
  else addPoint(snapshot);
  if (others) htmx.trigger("#invite-list", "refresh"); // an invite was used, or none can be used any more
}, drawMoney);

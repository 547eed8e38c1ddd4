// A member's page: their money, their pulls, what they share.
import { setText, show } from "./page.js";
import { account } from "./account.js";
import { addPoint, loadHistory } from "./chart.js";
import { count, drawBoard, drawFeed, listen, place, things } from "./live.js";
import { follow } from "./play.js";

const element = (name) => document.getElementById(name);
const horizon = Number(place.dataset.horizon);

function drawPulls(me, arms) {
  const body = element("pulls").tBodies[0];
  if (!body.rows.length) {
    arms.forEach((arm, index) => {
      const row = body.insertRow();
      row.className = `c${index % 8}`;
      const name = document.createElement("th");
      name.scope = "row";
      const dot = document.createElement("span");
      dot.className = "dot";
      const text = document.createElement("span");
      text.textContent = arm.name;
      name.append(dot, text);
      row.append(name);
      for (const label of ["Explore", "Commit"]) Object.assign(row.insertCell(), { className: "num" }).dataset.label = label;
    });
  }
  arms.forEach((_, index) => {
    const row = body.rows[index];
    setText(row.cells[1], count(me.explore[index]));
    setText(row.cells[2], count(me.commit[index]));
    show(row, me.explore[index] + me.commit[index] > 0);
  });
  const any = me.explore.some(Boolean) || me.commit.some(Boolean);
  show(element("pulls"), any);
  show(element("pulls-empty"), !any && me.unnamed === 0);
  show(element("unnamed"), me.unnamed > 0);
  setText(element("unnamed"), `${things(me.unnamed, "commit pull")} whose arm stays with you; ${me.unnamed === 1 ? "it is" : "they are"} not compensated.`);
}

function drawShares(me, closed) {
  if (document.querySelector("#consent .htmx-request")) return; // a change is being sent
  const shares = new Set(me.shares);
  for (const box of document.querySelectorAll("#consent input[type=checkbox]")) {
    const shared = shares.has(Number(box.id.slice("share-".length)));
    if (box.checked !== shared) box.checked = shared;
    box.disabled = closed || me.left || me.aside || "signed" in element("consent").dataset;
  }
}

function drawMoney(view) {
  const row = view.rows[0];
  setText(element("net-label"), view.closed ? "Settled" : "If it closed now");
  if (!row || view.settlement === "none") {
    setText(element("net"), "no money moves");
    setText(element("net-parts"), "");
    element("net").className = "net-even";
    account(place.dataset.id, place.dataset.agent, element("account"));
    return;
  }
  const words = view.closed ? { receives: "you receive", pays: "you pay", even: "you are even" }
    : { receives: "you would receive", pays: "you would pay", even: "you would be even" };
  setText(element("net"), row.word === "even" ? words.even : `${words[row.word]} ${row.net}${view.currency ? ` ${view.currency}` : ""}`);
  const parts = [`compensation ${row.compensation} minus charge ${row.charge}`];
  if (view.prepaid) parts.unshift(`you prepaid ${view.prepaid} and ${view.closed ? "get" : "would get"} back ${row.back}${view.currency ? ` ${view.currency}` : ""}`);
  if (view.scale) parts.push(`${view.scale} of each compensation is paid`);
  if (!view.finished && !view.closed) parts.push("pulls of active arms are not compensated");
  if (view.disagree) parts.push("members see arms differently, and rates are the same for all of them");
  setText(element("net-parts"), parts.join("; "));
  element("net").className = `net-${row.word}`;
  account(place.dataset.id, place.dataset.agent, element("account"));
}

element("leave-button")?.addEventListener("click", () => element("leave-dialog").showModal());
element("leave-confirm").addEventListener("click", async () => {
  const refuse = (sentence) => { setText(element("leave-error"), sentence); show(element("leave-error"), true); };
  try {
    const headers = { "x-csrf-token": document.body.dataset.csrf };
    const answer = await fetch(`/v1/collaborations/${place.dataset.id}/agents/me`, { method: "DELETE", headers });
    if (answer.ok) element("leave-dialog").close();
    else refuse((await answer.json()).error);
  } catch { refuse("The server does not answer; try again."); }
});

let latest = null;

listen((snapshot) => {
  const { board, me } = snapshot;
  const first = !latest;
  const fewer = !first && latest.set_aside.length !== board.set_aside.length;
  latest = board;
  drawBoard(snapshot);
  follow(me, board);
  drawPulls(me, board.arms);
  drawShares(me, board.closed);
  setText(element("used"), count(me.used));
  setText(element("used-of"), `of ${count(horizon)}`);
  element("progress").value = me.used;
  setText(element("agents-count"), things(board.agents, "agent"));
  drawFeed(snapshot);
  if (first || fewer) loadHistory(snapshot);
  else addPoint(snapshot);
  if (board.closed || me.left) show(element("leave-button"), false);
}, drawMoney);

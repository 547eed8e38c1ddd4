// How the amounts of one member come about: pulls x gap x value for each arm, then scale, charge and ceiling.
import { setText, show, toast } from "./page.js";

const whole = new Intl.NumberFormat("en-US");

// Amounts are whole micro-units; small ones are shown to the last of them.
export function money(micro, currency = "") {
  const digits = Math.abs(micro) < 1e6 && micro % 10000 !== 0 ? 6 : 2;
  const text = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits }).format(Math.abs(micro) / 1e6);
  const sign = micro < 0 && Number(text.replaceAll(",", "")) !== 0 ? "−" : "";
  return `${sign}${text}${currency ? ` ${currency}` : ""}`;
}

function cells(row, texts) {
  texts.forEach((text, place) => {
    const cell = row.appendChild(document.createElement(place ? "td" : "th"));
    if (place) cell.className = "num"; else cell.scope = "row";
    cell.textContent = text;
  });
}

function draw(view, root) {
  const amount = (micro) => money(micro, view.currency);
  setText(root.querySelector("#account-who"), `${view.name}${view.closed ? "" : ", if it closed now"}`);
  const table = root.querySelector(".paid");
  const body = table.tBodies[0];
  body.replaceChildren();
  for (const arm of view.arms.filter((one) => one.pulls)) {
    cells(body.insertRow(), [arm.arm, whole.format(arm.pulls), arm.rate ? arm.rate.toPrecision(3) : "0", String(view.value), money(arm.amount)]);
  }
  show(table, body.rows.length > 0 && view.settlement !== "none");
  const facts = [];
  if (view.settlement !== "none") {
    facts.push(["Earned", amount(view.earned)]);
    if (view.scale < 1) facts.push(["Scale", `${(Math.floor(10000 * view.scale) / 100).toFixed(2)} %`]);
    facts.push(["Compensation", amount(view.compensation)]);
    if (view.common_charge != null) facts.push(["Common charge", amount(view.common_charge)]);
    if (view.ceiling != null && !view.prepaid) facts.push(["Ceiling", amount(view.ceiling)]);
    facts.push(["Charge", amount(view.charge)]);
    if (view.prepaid) facts.push(["Prepaid (D)", amount(view.prepaid)], ["Underwriting (U)", amount(view.underwriting ?? 0)]);
    facts.push([view.net < 0 ? "To pay: charge minus compensation" : "To receive: compensation minus charge", amount(Math.abs(view.net))]);
  }
  root.querySelector(".facts").replaceChildren(...facts.map(([term, text]) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("dt"), { textContent: term }), Object.assign(document.createElement("dd"), { textContent: text }));
    return row;
  }));
  root.querySelector(".why").replaceChildren(...view.text.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

// Reads an account and draws it; returns whether that worked.
export async function account(collaboration, agent, root) {
  try {
    const answer = await fetch(`/v1/collaborations/${collaboration}/agents/${agent}/account`);
    const view = await answer.json();
    if (answer.ok) draw(view, root);
    else toast(view.error);
    return answer.ok;
  } catch {
    toast("The server does not answer; try again.");
    return false;
  }
}

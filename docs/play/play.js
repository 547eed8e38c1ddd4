// The page that plays: reads the choices, starts the worker, draws what it posts.
const START = [0.9, 0.8, 0.7, 0.5, 0.3];
const LETTERS = "ABCDE";
const find = (id) => document.getElementById(`play-${id}`);
const page = document.getElementById("play");

let seed = 1;
let playing = false;
let ended = false;
let worker;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawing(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const digits = (value) => value.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const whole = (value) => value.toLocaleString("en", { maximumFractionDigits: 0 });

// --- choices -------------------------------------------------------------------------------------------------------

function layOut() {
  const arms = Number(find("arms").value);
  const members = Number(find("members").value);
  find("arms-shown").textContent = arms;
  find("members-shown").textContent = members;
  const means = [...find("means").querySelectorAll("input")].map((input) => input.value);
  find("means").replaceChildren(
    ...START.slice(0, arms).map((start, arm) => {
      const input = element("input", { type: "range", min: 0, max: 1, step: 0.01, value: means[arm] ?? start });
      const shown = element("output", {}, Number(input.value).toFixed(2));
      input.addEventListener("input", () => { shown.textContent = Number(input.value).toFixed(2); });
      return element("label", { class: "play-line" }, `Arm ${LETTERS[arm]} `, input, " ", shown);
    }),
  );
  const known = new Map([...find("shares").querySelectorAll("input")].map((box) => [box.name, box.checked]));
  const heading = element("tr", {}, element("th", {}, "Member"));
  for (let arm = 0; arm < arms; arm += 1) heading.append(element("th", {}, LETTERS[arm]));
  const rows = [heading];
  for (let member = 0; member < members; member += 1) {
    const row = element("tr", {}, element("th", { scope: "row" }, `${member + 1}`));
    for (let arm = 0; arm < arms; arm += 1) {
      const name = `shares-${member}-${arm}`;
      const label = `Member ${member + 1} shares arm ${LETTERS[arm]}`;
      const box = element("input", { type: "checkbox", name, "aria-label": label });
      box.checked = known.get(name) ?? member % arms === arm;
      row.append(element("td", {}, box));
    }
    rows.push(row);
  }
  find("shares").replaceChildren(...rows);
}

function choices() {
  const means = [...find("means").querySelectorAll("input")].map((input) => Number(input.value));
  const shares = [...find("shares").rows].slice(1).map((row) =>
    [...row.querySelectorAll("input")].flatMap((box, arm) => (box.checked ? [arm] : [])),
  );
  const [rule, alone] = ["rule", "alone"].map((id) => find(id).value);
  const settlement = find("settlement");
  const paper = settlement.querySelector("[value=paper]");
  paper.disabled = rule !== "balanced-etc"; // the paper defines it for its own rule
  if (paper.disabled && settlement.value === "paper") settlement.value = "pool";
  return { means, shares, horizon: Number(find("horizon").value), rule, settlement: settlement.value, alone, seed };
}

function restart() {
  playing = ended = false;
  find("go").textContent = "Play";
  worker.postMessage({ kind: "start", choices: choices() });
}

function go() {
  if (ended) {
    seed += 1;
    restart();
  }
  playing = !playing;
  find("go").textContent = playing ? "Pause" : "Play";
  worker.postMessage({ kind: playing ? "play" : "pause", slowly: find("slow").checked });
}

// --- what is shown -------------------------------------------------------------------------------------------------

function drawBoard(arms) {
  const height = 46;
  const svg = drawing("svg", { viewBox: `0 0 400 ${arms.length * height}`, role: "img", "aria-label": "The board" });
  const x = (mean) => 56 + 334 * mean;
  arms.forEach((arm, number) => {
    const y = number * height + 30;
    const kind = arm.state.replaceAll(" ", "-");
    const row = drawing("g", { class: `play-arm ${kind}` });
    row.append(drawing("text", { x: 0, y: y + 4, class: "play-name" }, `Arm ${LETTERS[number]}`));
    row.append(drawing("text", { x: 56, y: y - 12, class: "play-state" }, `${arm.state}, ${whole(arm.count)} shared`));
    row.append(drawing("line", { x1: x(0), x2: x(1), y1: y, y2: y, class: "play-axis" }));
    if (arm.mean !== null) {
      row.append(drawing("line", { x1: x(arm.low), x2: x(arm.high), y1: y, y2: y, class: "play-band" }));
      row.append(drawing("circle", { cx: x(arm.mean), cy: y, r: 5, class: "play-mean" }));
    }
    row.append(drawing("line", { x1: x(arm.true), x2: x(arm.true), y1: y - 8, y2: y + 8, class: "play-true" }));
    svg.append(row);
  });
  find("board").replaceChildren(svg);
}

function drawCurve(curve, horizon) {
  const highest = Math.max(1, ...curve.map(([, together, alone]) => Math.max(together, alone)));
  const [x, y] = [(step) => 46 + (350 * step) / horizon, (lost) => 166 - (150 * lost) / highest];
  const svg = drawing("svg", { viewBox: "0 0 400 190", role: "img", "aria-label": "Regret over time" });
  for (const share of [0, 0.5, 1]) {
    const lost = share * highest;
    svg.append(drawing("line", { x1: 46, x2: 396, y1: y(lost), y2: y(lost), class: "play-axis" }));
    svg.append(drawing("text", { x: 40, y: y(lost) + 4, "text-anchor": "end" }, whole(lost)));
  }
  svg.append(drawing("text", { x: 46, y: 184 }, "0"));
  svg.append(drawing("text", { x: 396, y: 184, "text-anchor": "end" }, `${whole(horizon)} pulls each`));
  for (const [column, kind] of [[2, "alone"], [1, "together"]]) {
    const points = curve.map((row) => `${x(row[0])},${y(row[column])}`).join(" ");
    svg.append(drawing("polyline", { points, class: `play-${kind}` }));
  }
  find("curve").replaceChildren(svg);
}

function legend(kind, text) {
  return element("strong", { class: `play-key play-key-${kind}` }, text);
}

function drawRegret(shown) {
  find("regret").replaceChildren(
    legend("together", `together ${digits(shown.regret)}`), " · ",
    legend("alone", `alone ${digits(shown.alone)}`),
    ` after ${whole(shown.step)} of ${whole(shown.horizon)} pulls each; ${whole(shown.broadcasts)} results were shared`,
  );
}

function drawAccounts(settlement) {
  const titles = ["Member", "Regret", "Received", "Paid", "Cost of taking part", "Regret alone"];
  const rows = settlement.agents.map((agent, number) => {
    const cost = agent.regret - agent.received + agent.paid;
    const cells = [agent.regret, agent.received, agent.paid, cost, agent.alone].map((value) => element("td", {}, digits(value)));
    cells[3].className = cost <= agent.alone ? "play-better" : "play-worse";
    return element("tr", {}, element("th", { scope: "row" }, `${number + 1}`), ...cells);
  });
  const heading = element("tr", {}, ...titles.map((title) => element("th", {}, title)));
  find("accounts").replaceChildren(heading, ...rows);
  const short = settlement.profit < -0.05
    ? `The charges do not cover the compensations: the controller loses ${digits(-settlement.profit)}.`
    : "What members prepaid does not cover all compensations, so these are scaled down.";
  const words = [
    settlement.finished ? "" : "More than one arm may still be the best, so not every loss is compensated.",
    settlement.viable ? "The charges cover the compensations." : short,
  ];
  find("verdict").textContent = words.join(" ").trim();
}

function draw(shown) {
  drawBoard(shown.arms);
  drawRegret(shown);
  drawCurve(shown.curve, shown.horizon);
  drawAccounts(shown.settlement);
  page.dataset.step = shown.step;
  if (shown.step === shown.horizon) {
    playing = false;
    ended = true;
    find("go").textContent = "Play";
  }
}

function fail(why) {
  page.dataset.state = "failed";
  find("status").hidden = false;
  find("status").textContent = why;
}

function begin() {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onerror = () => fail(
    "Python could not be loaded. This copy of the site was built without it, or was opened as a file: build it with `make docs` and open it over HTTP.",
  );
  worker.onmessage = ({ data }) => {
    if (data.kind === "failed") fail(`Something went wrong: ${data.why}`);
    if (data.kind === "shown") draw(data.shown);
    if (data.kind === "ready") {
      page.dataset.state = "ready";
      for (const [id, hidden] of [["status", true], ["form", false], ["shown", false]]) find(id).hidden = hidden;
      restart();
    }
  };
  layOut();
  for (const id of ["arms", "members"]) find(id).addEventListener("input", layOut);
  find("form").addEventListener("submit", (event) => event.preventDefault());
  find("form").addEventListener("change", (event) => { if (event.target !== find("slow")) restart(); });
  find("go").addEventListener("click", go);
  find("again").addEventListener("click", () => {
    seed += 1;
    restart();
    go();
  });
}

begin();

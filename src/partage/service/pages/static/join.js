// Joining: the invite is in the fragment of the address, which browsers do not send. It is sent only as a bearer token.
import { setText, show } from "./page.js";

const element = (name) => document.getElementById(name);
const [, collaboration, code] = location.hash.match(/^#([^.]+)\.(.+)$/) ?? [];
const headers = { "Authorization": `Bearer ${code}`, "Content-Type": "application/json" };

function problem(sentence) {
  show(element("join-form"), false);
  show(element("join-problem"), true);
  setText(element("join-sentence"), sentence);
}

// The request id stays the same in this tab until the join has worked: repeating a lost join gives the same token.
const kept = {
  key: `partage-join-${collaboration}-${code?.slice(-8)}`,
  id: null,
  read() { try { this.id ??= sessionStorage.getItem(this.key); } catch { /* storage may be forbidden */ } return this.id; },
  made() {
    if (!this.read()) {
      this.id = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      try { sessionStorage.setItem(this.key, this.id); } catch { /* then only for this page */ }
    }
    return this.id;
  },
  forget() { try { sessionStorage.removeItem(this.key); } catch { /* it was not stored */ } },
};

// Where members sign, only a program can join: it makes the key that a browser does not have.
function withProgram(found) {
  setText(element("signed-name"), found.name);
  setText(element("signed-money"), found.books ? `${found.terms} ${found.books}` : found.terms);
  setText(element("signed-snippet"), [
    "from partage.client import Agent",
    "agent = Agent.join(",
    `    ${JSON.stringify(location.origin)}, ${JSON.stringify(collaboration)},`,
    `    ${JSON.stringify(code)},`,
    `    name="YOUR NAME", shares=${JSON.stringify(found.arms)}, state="partage.json")`,
    "while True:",
    "    pull = agent.ask()  # pull.arm is what to try",
    "    agent.tell(pull, my_result(pull.arm))  # a number from 0 to 1",
  ].join("\n"));
  show(element("join-signed"), true);
}

// What a member can expect, by simulation. It may take a while, or there may be none.
async function forecast(after) {
  const card = element("forecast");
  after.after(card);
  show(card, true);
  try {
    const answer = await fetch("/join/forecast", { method: "POST", headers, body: JSON.stringify({ collaboration }) });
    if (answer.status !== 200) { show(card, false); return; }
    card.innerHTML = await answer.text(); // a template of this server, in which names are escaped
  } catch { show(card, false); }
}

async function look() {
  if (!code) { problem("An invite link ends with a code after the # sign. Copy the whole link that you received."); return; }
  let found;
  try {
    const answer = await fetch("/join", { method: "POST", headers, body: JSON.stringify({ collaboration }) });
    found = await answer.json();
    if (!answer.ok) { problem(found.error); return; }
  } catch { problem("The server does not answer; reload the page to try again."); return; }
  if (found.closed) { problem(`${found.name} is closed. Nobody can join any more.`); return; }
  if (found.used && !kept.read()) { problem("This invite has already been used. If you used it, log in with the token you got then; otherwise ask for another invite."); return; }
  document.title = `Join ${found.name} · Partage`;
  if (found.signed) { withProgram(found); forecast(element("join-signed")); return; }
  setText(element("join-name"), found.name);
  const number = new Intl.NumberFormat("en-US");
  setText(element("join-facts"), `${found.arms.length} options to choose from, ${found.agents ? `${number.format(found.agents)} ${found.agents === 1 ? "member" : "members"} so far` : "no members yet"}, ${number.format(found.horizon)} tries each.`);
  setText(element("horizon-most"), `all ${number.format(found.horizon)}`);
  element("horizon").max = found.horizon;
  show(element("join-form").querySelector("details"), found.format > 5);
  setText(element("join-money"), found.books ? `${found.terms} ${found.books}` : found.terms);
  show(element("join-interval"), found.claim_interval > 0);
  setText(element("join-interval"), `You are asked for a result at most once every ${number.format(found.claim_interval)} ${found.claim_interval === 1 ? "second" : "seconds"}.`);
  element("join-arms").replaceChildren(...found.arms.map((name, arm) => {
    const item = document.createElement("li");
    item.className = `c${arm % 8}`;
    const label = document.createElement("label");
    const dot = document.createElement("span");
    dot.className = "dot";
    const text = document.createElement("span");
    text.className = "name";
    text.textContent = name;
    const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "share", value: name });
    label.append(box, dot, text);
    item.append(label);
    return item;
  }));
  show(element("join-form"), true);
  forecast(element("join-meaning"));
}

const boxes = () => [...document.querySelectorAll("input[name=share]")];
for (const [button, checked] of [["all", true], ["none", false]]) {
  element(button).addEventListener("click", () => { for (const box of boxes()) box.checked = checked; });
}

element("join-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = element("join-form").querySelector("button.primary");
  const refuse = (sentence) => { setText(element("join-error"), sentence); show(element("join-error"), true); };
  show(element("join-error"), false);
  button.disabled = true;
  try {
    const shares = boxes().filter((box) => box.checked).map((box) => box.value);
    const name = element("name").value.trim();
    const declared = Object.fromEntries(["horizon", "pace"].filter((one) => element(one).value).map((one) => [one, Number(element(one).value)]));
    const body = JSON.stringify({ name, shares, request: kept.made(), ...declared });
    const answer = await fetch(`/v1/collaborations/${encodeURIComponent(collaboration)}/agents`, { method: "POST", headers, body });
    const joined = await answer.json();
    if (!answer.ok) { refuse(joined.error); return; }
    const login = new URLSearchParams({ token: joined.token, login: element("join").dataset.login });
    await fetch("/login", { method: "POST", body: login, redirect: "manual" });
    kept.forget();
    history.replaceState(null, "", "/join"); // the code has been used
    setText(element("joined-name"), element("join-name").textContent);
    element("token").value = joined.token;
    setText(element("snippet"), [
      "from partage.client import Agent",
      `agent = Agent(${JSON.stringify(location.origin)}, ${JSON.stringify(collaboration)}, "YOUR TOKEN")`,
      "while True:",
      "    pull = agent.ask()  # pull.arm is what to try",
      "    agent.tell(pull, my_result(pull.arm))  # a number from 0 to 1",
    ].join("\n"));
    show(element("join-form"), false);
    show(element("joined"), true);
    element("joined-name").focus();
  } catch {
    refuse("The server does not answer; try again.");
  } finally {
    button.disabled = false;
  }
});

addEventListener("hashchange", () => location.reload());
look();

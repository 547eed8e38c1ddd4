// The page that verifies dropped files. They are read here, in the browser.
import { setText, show } from "./page.js";
import { linesOf, readNote, readReceipt, readState, verify } from "./ledger.js";

const element = (name) => document.getElementById(name);
const SMALL = 4 * 2 ** 20; // bytes: notes, receipts and state files are smaller
const given = { ledger: null, notes: [], receipts: [], states: [], unknown: [] };

// What a file is, by its content.
async function sort(file) {
  const start = await file.slice(0, 9).text();
  if (start.startsWith('{"head":"')) { given.ledger = file; return; }
  const text = file.size <= SMALL ? await file.text() : "";
  const [note, state, receipt] = [readNote(text), readState(text), readReceipt(text)];
  if (note) given.notes.push(note);
  else if (state) given.states.push(state);
  else if (receipt) given.receipts.push(receipt);
  else if (/\.(ndjson|jsonl)$/.test(file.name)) given.ledger = file; // a damaged one
  else given.unknown.push(file.name);
}

function list(name, sentences, kind) {
  element(name).replaceChildren(...sentences.map((text) => Object.assign(document.createElement("li"), { className: kind, textContent: text })));
  show(element(name), sentences.length > 0);
}

function drawBoard(board) {
  show(element("ledger-board"), Boolean(board));
  element("ledger-board").querySelector("tbody").replaceChildren(...(board ?? []).map((arm) => {
    const row = document.createElement("tr");
    row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: arm.name }));
    for (const text of [String(arm.broadcasts), arm.mean == null ? "–" : arm.mean.toFixed(3)]) row.append(Object.assign(document.createElement("td"), { className: "num", textContent: text }));
    return row;
  }));
}

async function run() {
  const verdict = element("verdict");
  show(element("result"), true);
  verdict.dataset.done = "";
  list("checked", [], "right");
  list("left-open", [], "open");
  drawBoard(null);
  if (given.unknown.length) { setText(verdict, `This is no ledger, checkpoint, receipt or state file: ${given.unknown.join(", ")}.`); verdict.className = "error"; verdict.dataset.done = "unknown"; return; }
  if (!given.ledger) { setText(verdict, "Now add the ledger."); verdict.className = "muted"; verdict.dataset.done = "waits"; return; }
  setText(verdict, "Verifying…");
  verdict.className = "muted";
  const progress = (lines) => setText(verdict, `Verifying… ${new Intl.NumberFormat("en-US").format(lines)} lines`);
  try {
    const found = await verify(linesOf(given.ledger), { ...given, progress });
    verdict.className = found.ok ? "right-verdict" : "error";
    setText(verdict, found.ok ? `Valid: ${found.name}${found.closed ? ", closed" : ""}.` : `${found.line ? `Line ${new Intl.NumberFormat("en-US").format(found.line)}: ` : ""}${found.problem}`);
    list("checked", found.checked, "right");
    list("left-open", found.open, "open");
    drawBoard(found.ok ? found.board : null);
    setText(element("ledger-head"), found.head);
    setText(element("ledger-root"), found.root);
    show(element("ledger-facts"), found.ok);
    verdict.dataset.done = found.ok ? "valid" : "wrong";
  } catch (error) {
    verdict.className = "error";
    setText(verdict, error?.name === "NotSupportedError" ? "This browser cannot check Ed25519 signatures. Use a newer one, or partage verify." : "The file cannot be read.");
    verdict.dataset.done = "failed";
  }
}

async function take(files) {
  given.unknown = [];
  for (const file of files) await sort(file);
  const parts = [];
  if (given.ledger) parts.push(given.ledger.name);
  for (const [kind, noun] of [["notes", "checkpoint"], ["receipts", "receipt"], ["states", "state file"]]) {
    if (given[kind].length) parts.push(`${given[kind].length} ${noun}${given[kind].length === 1 ? "" : "s"}`);
  }
  setText(element("given"), parts.join(", "));
  await run();
}

const drop = element("drop");
if (!crypto.subtle) {
  show(element("no-crypto"), true);
  show(drop, false);
}
for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
drop.addEventListener("drop", (event) => take([...event.dataTransfer.files]));
element("files").addEventListener("change", (event) => { take([...event.target.files]); event.target.value = ""; });
element("again").addEventListener("click", () => {
  Object.assign(given, { ledger: null, notes: [], receipts: [], states: [], unknown: [] });
  setText(element("given"), "");
  show(element("result"), false);
});

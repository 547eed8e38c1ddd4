// Verifies a ledger in the browser: hashes, tree, signed checkpoints, receipts. Nothing is sent anywhere.
//
//   row_hash = SHA-256(salt, row)          head = SHA-256(head before, row_hash)
//   leaf     = SHA-256(0, row_hash)        node = SHA-256(1, left, right), as in RFC 6962
//
// It does not replay the rule or compute the settlement again; `partage verify` does.

const NEWEST = 7; // the newest format that this page reads
const GENESIS = "0".repeat(64);
const SHOWN = /^\{"head":"([0-9a-f]{64})","row":(.*),"salt":"([0-9a-f]{32})"(?:,"tally":(\{.*\}))?\}\n?$/s;
const HIDDEN = /^\{"head":"([0-9a-f]{64})","row_hash":"([0-9a-f]{64})","seq":([1-9][0-9]{0,15})\}\n?$/;
const NOTE = /^([^\s+]+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n$/;
const BAD_HASH = "its hash does not match: this row, or a line before it, was changed.";
const BATCH = 256; // lines whose rows are hashed at a time

export class Wrong extends Error {
  constructor(sentence, inLine = true) { super(sentence); this.inLine = inLine; }
}

// --- bytes ------------------------------------------------------------------------------------------------------

const utf8 = new TextEncoder();
const count = (number) => new Intl.NumberFormat("en-US").format(number);
const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const same = (one, other) => one.length === other.length && one.every((byte, place) => byte === other[place]);

// Bytes from base64; null if the text is anything else, or another encoding of the same bytes.
function fromBase64(text, length) {
  try {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return bytes.length === length && toBase64(bytes) === text ? bytes : null;
  } catch { return null; }
}

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { whole.set(part, at); at += part.length; }
  return whole;
}

const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
const leafHash = (entry) => sha256(Uint8Array.of(0), entry);
const nodeHash = (left, right) => sha256(Uint8Array.of(1), left, right);

// One character for each byte, so that regular expressions see the bytes as they are.
function characters(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

const bytesOf = (text) => Uint8Array.from(text, (sign) => sign.charCodeAt(0));

// Yields the lines of a file, each with its newline.
export async function* linesOf(file) {
  let rest = new Uint8Array(0);
  const reader = file.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const part = rest.length ? joined(rest, value) : value;
    let from = 0;
    for (let end = part.indexOf(10); end >= 0; end = part.indexOf(10, from)) {
      yield part.subarray(from, end + 1);
      from = end + 1;
    }
    rest = part.slice(from);
  }
  if (rest.length) yield rest;
}

// --- lines ------------------------------------------------------------------------------------------------------

function readRow(body) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    const event = JSON.parse(text);
    if (typeof event?.kind !== "string" || !Number.isInteger(event.seq)) throw new Error();
    // The controller writes no spaces between values, and sorts keys.
    const plain = !/\s/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, ""));
    const keys = Object.keys(event);
    return { event, canonical: plain && keys.every((key, place) => !place || keys[place - 1] < key) };
  } catch { return null; }
}

// A line as it stands: its stated head, the hash of its row, and the row. Its place in the chain is checked later.
async function parsed(line) {
  const text = characters(line);
  const hidden = HIDDEN.exec(text);
  if (hidden) return { head: hidden[1], hash: fromHex(hidden[2]), seq: Number(hidden[3]), event: null, canonical: true };
  const shown = SHOWN.exec(text);
  if (!shown) {
    if (!text.trim()) return { error: "it is empty." };
    if (!text.endsWith("\n") && text.startsWith('{"head"')) return { error: "the file ends in the middle of it; download the ledger again." };
    return { error: 'it is not a line of a ledger: {"head":…,"row":…,"salt":…} or {"head":…,"row_hash":…,"seq":…}.' };
  }
  const body = bytesOf(shown[2]);
  return { head: shown[1], hash: await sha256(fromHex(shown[3]), body), ...(readRow(body) ?? { event: undefined, canonical: true }) };
}

// --- what follows from the rows, without the rule ----------------------------------------------------------------

class Replay {
  constructor() {
    this.create = null;
    this.members = new Map(); // by agent: name, shares, key, aside
    this.claims = new Map(); // by pull: agent, arm, told
    this.arms = []; // their names
    this.told = []; // rewards by arm, of all members
    this.tells = [];
    this.past = []; // past rewards: agent, arm, rewards
    this.commits = new Map(); // by agent: pulls by arm, and those without one
    this.version = 0;
    this.closed = null;
    this.hidden = 0;
  }

  take(event) {
    if (this.closed) throw new Wrong("it comes after the close, which is the last line of a ledger.");
    if (!this.create) {
      if (event?.kind !== "create") throw new Wrong("it is not the line that creates the collaboration, with which every ledger begins.");
      if ((event.format ?? 1) > NEWEST) throw new Wrong(`it cannot be read. The ledger has format ${event.format}, and this page reads formats up to ${NEWEST}.`);
      this.create = event;
      this.arms = [...event.arms];
      this.told = Array(event.most_arms ?? event.arms.length).fill(0);
      return;
    }
    if (event === null) { this.hidden += 1; return; }
    if (event.kind === "create") throw new Wrong("it creates the collaboration a second time.");
    if ((event.format ?? 1) !== (this.create.format ?? 1)) throw new Wrong("its format is not that of the collaboration.");
    this[event.kind]?.(event);
  }

  member(event) {
    const found = this.members.get(event.agent);
    if (!found) throw new Wrong(`there is no agent ${event.agent}.`);
    return found;
  }

  join(event) {
    if (this.members.has(event.agent)) throw new Wrong(`agent ${event.agent} has joined already.`);
    this.members.set(event.agent, { name: event.name, shares: new Set(event.shares), key: event.key ?? "", aside: false });
  }

  arm(event) {
    if (this.arms.length >= this.told.length) throw new Wrong("it adds an arm beyond the number that was declared at creation.");
    if (this.arms.includes(event.name)) throw new Wrong("it adds an arm that is there already.");
    this.arms.push(event.name);
  }

  consent(event) { this.member(event).shares = new Set(event.shares); }

  leave(event) { this.member(event).shares = new Set(); }

  remove(event) { this.member(event).shares = new Set(); }

  rotate(event) { if (event.key) this.member(event).key = event.key; }

  "set-aside"(event) {
    const member = this.member(event);
    member.shares = new Set();
    member.aside = true;
    this.version = event.version;
  }

  claim(event) {
    if (!this.member(event).shares.has(event.arm)) throw new Wrong(`agent ${event.agent} does not share the arm that it is to explore.`);
    this.claims.set(event.seq, { agent: event.agent, arm: event.arm, told: false });
  }

  tell(event) {
    const claim = this.claims.get(event.pull);
    if (!claim || claim.agent !== event.agent || claim.arm !== event.arm || claim.told) throw new Wrong("it reports a pull that was not handed out so, or that was reported before.");
    if (!(event.reward >= 0 && event.reward <= 1)) throw new Wrong("its reward is not from 0 to 1.");
    if (event.version !== this.version + 1) throw new Wrong("its version does not follow from the broadcasts before it.");
    claim.told = true;
    this.version = event.version;
    this.told[event.arm] += 1;
    this.tells.push(event);
  }

  attach(event) {
    const member = this.member(event);
    if (!this.create.histories || event.rewards.length > this.create.histories) throw new Wrong("it attaches more past rewards than the collaboration takes.");
    if (!member.shares.has(event.arm) || member.aside) throw new Wrong(`agent ${event.agent} does not share the arm whose past rewards it attaches.`);
    if (this.past.some((one) => one.agent === event.agent && one.arm === event.arm)) throw new Wrong(`agent ${event.agent} has attached past rewards of this arm before.`);
    if ([...this.claims.values()].some((claim) => claim.agent === event.agent) || this.commits.has(event.agent)) throw new Wrong(`agent ${event.agent} has pulled before it attaches past rewards.`);
    if (!event.rewards.every((reward) => reward >= 0 && reward <= 1)) throw new Wrong("a past reward is not from 0 to 1.");
    if (event.version !== this.version + 1) throw new Wrong("its version does not follow from the broadcasts before it.");
    this.version = event.version;
    this.past.push(event);
  }

  commit(event) {
    this.member(event);
    const own = this.commits.get(event.agent) ?? { arms: new Map(), unnamed: 0 };
    for (const run of event.runs) own.arms.set(run.arm, (own.arms.get(run.arm) ?? 0) + run.pulls);
    own.unnamed += event.unnamed ?? 0;
    this.commits.set(event.agent, own);
  }

  close(event) {
    if (event.explore.join() !== this.told.join()) throw new Wrong("its explore pulls are not those of the ledger.");
    this.closed = event;
  }

  // Where members may lie, past rewards enter the record slowly, which this page does not follow.
  get pastLeftOut() { return this.past.length > 0 && Boolean(this.create.parameters?.tolerate); }

  // Broadcasts and mean of each arm, without the members who were set aside.
  board() {
    const past = this.pastLeftOut ? [] : this.past;
    return this.arms.map((name, arm) => {
      const mine = (event) => event.arm === arm && !this.members.get(event.agent).aside;
      const rewards = [...past.filter(mine).flatMap((event) => event.rewards), ...this.tells.filter(mine).map((tell) => tell.reward)];
      return { name, broadcasts: rewards.length, mean: rewards.length ? rewards.reduce((sum, one) => sum + one, 0) / rewards.length : null };
    });
  }
}

// --- the tree, and proofs in it ----------------------------------------------------------------------------------

class Tree {
  constructor() { this.size = 0; this.full = []; } // the roots of full subtrees, the largest first, as [size, hash]

  async add(entry) {
    let node = [1, await leafHash(entry)];
    this.size += 1;
    while (this.full.length && this.full[this.full.length - 1][0] === node[0]) {
      const left = this.full.pop();
      node = [2 * node[0], await nodeHash(left[1], node[1])];
    }
    this.full.push(node);
  }

  async root() {
    if (!this.size) return sha256();
    let found = this.full[this.full.length - 1][1];
    for (let at = this.full.length - 2; at >= 0; at -= 1) found = await nodeHash(this.full[at][1], found);
    return found;
  }
}

const odd = (number) => number % 2 === 1;
const half = (number) => Math.floor(number / 2);

// RFC 9162, section 2.1.3.2.
export async function provesInclusion(proof, leaf, index, size, root) {
  if (!(index >= 0 && index < size) || proof.some((step) => !step)) return false;
  let [place, last, found] = [index, size - 1, leaf];
  for (const step of proof) {
    if (last === 0) return false;
    if (odd(place) || place === last) {
      found = await nodeHash(step, found);
      while (!odd(place) && place) { place = half(place); last = half(last); }
    } else found = await nodeHash(found, step);
    place = half(place);
    last = half(last);
  }
  return last === 0 && same(found, root);
}

// --- checkpoints, as signed notes --------------------------------------------------------------------------------

export function readNote(text) {
  const at = text.lastIndexOf("\n\n");
  if (at < 0 || !text.endsWith("\n")) return null;
  const signed = text.slice(0, at + 1);
  const stated = NOTE.exec(signed);
  const lines = text.slice(at + 2, -1).split("\n").map((line) => /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/.exec(line));
  if (!stated || lines.some((line) => !line)) return null;
  const root = fromBase64(stated[3], 32);
  return root && { text: signed, origin: stated[1], size: Number(stated[2]), root, signatures: lines.map((line) => [line[1], line[2]]) };
}

async function signedBy(key, signature, message) {
  const raw = fromBase64(key, 32);
  if (!raw) return false;
  const made = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, made, signature, message);
}

// The contents of the signatures of this name whose key id is that of the key.
async function contents(note, name, kind, key, length) {
  const raw = fromBase64(key, 32);
  if (!raw) return [];
  const id = (await sha256(utf8.encode(`${name}\n`), Uint8Array.of(kind), raw)).subarray(0, 4);
  return note.signatures.filter(([other]) => other === name).map(([, content]) => fromBase64(content, 4 + length))
    .filter((content) => content && same(content.subarray(0, 4), id)).map((content) => content.subarray(4));
}

async function isSigned(note, key) {
  const made = await contents(note, note.origin, 1, key, 64);
  const right = await Promise.all(made.map((signature) => signedBy(key, signature, utf8.encode(note.text))));
  return right.length > 0 && right.every(Boolean);
}

async function isCosigned(note, agent, key) {
  const made = await contents(note, `${note.origin}/${agent}`, 4, key, 72);
  const right = await Promise.all(made.map((content) => {
    const time = content.subarray(0, 8).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
    return signedBy(key, content.subarray(8), utf8.encode(`cosignature/v1\ntime ${time}\n${note.text}`));
  }));
  return right.length > 0 && right.every(Boolean);
}

// --- receipts ---------------------------------------------------------------------------------------------------

// The row of a receipt, byte for byte: parsing it and writing it again could change its numbers.
function rawRow(text) {
  const at = /"row"\s*:\s*(?=\{)/.exec(text);
  if (!at) return null;
  const from = at.index + at[0].length;
  let [depth, inText] = [0, false];
  for (let place = from; place < text.length; place += 1) {
    const sign = text[place];
    if (inText) { if (sign === "\\") place += 1; else if (sign === '"') inText = false; continue; }
    if (sign === '"') inText = true;
    else if (sign === "{") depth += 1;
    else if (sign === "}") { depth -= 1; if (!depth) return text.slice(from, place + 1); }
  }
  return null;
}

// A receipt, or an answer of the API that has one; null if the text is neither.
export function readReceipt(text) {
  try {
    const found = JSON.parse(text);
    const receipt = found.receipt ?? found;
    const row = rawRow(text);
    if (!row || typeof receipt.salt !== "string" || typeof receipt.checkpoint !== "string" || !Array.isArray(receipt.inclusion)) return null;
    return { row: utf8.encode(row), salt: receipt.salt, checkpoint: receipt.checkpoint, inclusion: receipt.inclusion, seq: JSON.parse(row).seq };
  } catch { return null; }
}

// A client's state file; null if the text is none.
export function readState(text) {
  try {
    const found = JSON.parse(text);
    return typeof found.collaboration === "string" && typeof found.agent === "string" && found.receipted ? found : null;
  } catch { return null; }
}

// --- the whole ---------------------------------------------------------------------------------------------------

async function checkNote(note, replay, roots, size, key) {
  if (note.origin !== `partage/${replay.create.collaboration}`) throw new Wrong(`A checkpoint is of another ledger, ${note.origin}.`, false);
  if (key && !(await isSigned(note, key))) throw new Wrong(`The checkpoint after ${count(note.size)} lines is not signed by the ledger's key.`, false);
  if (note.size > size) throw new Wrong(`The ledger was cut: it has ${count(size)} lines, and a checkpoint was made after ${count(note.size)}.`, false);
  if (!same(note.root, roots.get(note.size))) throw new Wrong(`The history was rewritten: the first ${count(note.size)} lines are not those of the checkpoint.`, false);
  const cosigned = [];
  for (const [agent, member] of replay.members) if (member.key && await isCosigned(note, agent, member.key)) cosigned.push(member.name);
  return cosigned;
}

async function checkReceipt(receipt, replay, rows, key) {
  const note = readNote(receipt.checkpoint);
  if (!note || note.origin !== `partage/${replay.create.collaboration}` || (key && !(await isSigned(note, key)))) throw new Wrong("The checkpoint of a receipt is not signed by the ledger's key.", false);
  if (!/^[0-9a-f]{32}$/.test(receipt.salt) || !Number.isInteger(receipt.seq)) throw new Wrong("The row of a receipt cannot be read.", false);
  const hash = await sha256(fromHex(receipt.salt), receipt.row);
  const proof = receipt.inclusion.map((step) => fromBase64(step, 32));
  if (!(await provesInclusion(proof, await leafHash(hash), receipt.seq - 1, note.size, note.root))) throw new Wrong("A receipt does not prove that its row is in the ledger.", false);
  if (!rows.has(receipt.seq)) throw new Wrong(`The ledger was cut: a receipt is of row ${count(receipt.seq)}.`, false);
  if (!same(rows.get(receipt.seq), hash)) throw new Wrong(`The history was rewritten: row ${count(receipt.seq)} is not the one of a receipt.`, false);
}

function checkState(state, replay) {
  if (state.collaboration !== replay.create.collaboration) throw new Wrong(`The state file is of another collaboration, ${state.collaboration}.`, false);
  const own = replay.commits.get(state.agent) ?? { arms: new Map(), unnamed: 0 };
  const compare = (what, shown, receipted) => {
    if (shown < receipted) throw new Wrong(`Rows of agent ${state.agent} are hidden: this copy shows ${count(shown)} of its ${what}, and the controller gave receipts for ${count(receipted)}.`, false);
  };
  for (const [arm, pulls] of Object.entries(state.receipted.commits ?? {})) compare(`commit pulls of arm ${arm}`, own.arms.get(replay.arms.indexOf(arm)) ?? 0, pulls);
  compare("commit pulls without an arm", own.unnamed, state.receipted.unnamed ?? 0);
}

// Verifies the lines of a ledger against notes, receipts and state files. Returns { ok, problem, line, ... }.
export async function verify(lines, { notes = [], receipts = [], states = [], progress = () => {} } = {}) {
  const [tree, replay] = [new Tree(), new Replay()];
  let [number, head] = [0, GENESIS];
  const kept = states.filter((state) => state.checkpoint).map((state) => readNote(state.checkpoint)).filter(Boolean);
  const wanted = new Set([...notes, ...kept].map((note) => note.size));
  const roots = new Map([[0, await tree.root()]]);
  const rows = new Map(receipts.map((receipt) => [receipt.seq, null]));
  const found = { ok: false, lines: 0, head, problem: null, line: null, checked: [], open: [] };

  async function take(line) {
    if (line.error) throw new Wrong(line.error);
    const hash = toHex(await sha256(fromHex(head), line.hash));
    if (line.event === undefined) throw new Wrong(hash === line.head ? "its row is not an event." : BAD_HASH);
    const seq = line.event ? line.event.seq : line.seq;
    if (seq !== number + 1) throw new Wrong(`its number is ${count(seq)} instead of ${count(number + 1)}: a line is missing, repeated or out of place.`);
    if (hash !== line.head) throw new Wrong(BAD_HASH);
    if (!line.canonical) throw new Wrong("its row is not in canonical form: the controller writes the same event in other bytes.");
    replay.take(line.event);
    await tree.add(line.hash);
    number += 1;
    head = hash;
    if (wanted.has(number)) roots.set(number, await tree.root());
    if (rows.has(number)) rows.set(number, line.hash);
  }

  try {
    let batch = [];
    const flush = async () => {
      for (const line of await Promise.all(batch.map(parsed))) await take(line);
      batch = [];
      progress(number);
    };
    for await (const line of lines) { batch.push(line); if (batch.length >= BATCH) await flush(); }
    await flush();
    if (!number) throw new Wrong("The file is empty.", false);
    for (const [seq, hash] of rows) if (!hash) rows.delete(seq);
    const stated = replay.create.key ?? null;
    const key = stated ?? states.map((state) => state.log_key).find(Boolean) ?? null;
    const cosigners = new Set();
    for (const note of [...notes, ...kept]) for (const name of await checkNote(note, replay, roots, number, key)) cosigners.add(name);
    for (const receipt of receipts) await checkReceipt(receipt, replay, rows, key);
    for (const state of states) checkState(state, replay);
    describe(found, { replay, notes: [...notes, ...kept], receipts, states, number, head, key, cosigners });
    found.ok = true;
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    found.problem = error.message;
    found.line = error.inLine ? number + 1 : null;
  }
  return { ...found, lines: number, head, root: toBase64(await tree.root()) };
}

function describe(found, { replay, notes, receipts, states, number, head, key, cosigners }) {
  const { create, closed } = replay;
  found.name = create.name;
  found.board = replay.board();
  found.closed = Boolean(closed);
  found.checked.push(`The hashes of all ${count(number)} lines match, up to the head ${head}: no line was changed, removed or inserted without changing all lines after it.`);
  found.checked.push("Every report answers a claim that was handed out for it, on an arm that its agent shared, and none was counted twice.");
  if (closed) found.checked.push("The close event states the explore pulls of each arm as they are in the ledger.");
  if (notes.length) found.checked.push(`${notes.length === 1 ? "The checkpoint belongs" : `All ${notes.length} checkpoints belong`} to this ledger${key ? ", signed by its key" : ""}${cosigners.size ? ` and cosigned by ${[...cosigners].join(", ")}` : ""}.`);
  if (receipts.length) found.checked.push(`${receipts.length === 1 ? "The receipt proves its row" : `All ${receipts.length} receipts prove their rows`}, which ${receipts.length === 1 ? "is" : "are"} in this ledger.`);
  if (states.length) found.checked.push("All commit pulls that the state file has receipts for are shown.");
  found.open.push("This page does not replay the rule, nor compute the board's eliminations and the settlement again. The command partage verify does, with the same file.");
  if (!notes.length && !receipts.length) found.open.push("No checkpoint or receipt was given: a ledger rewritten as a whole would also pass. Drop them together with the ledger.");
  if (notes.length && !key) found.open.push("The first line states no key, so no signature was checked.");
  if (replay.past.length) found.open.push(`Members attached past rewards; whether they are all that they saw, nobody can check.${replay.pastLeftOut ? " They are left out of the board below, because here they enter it slowly." : ""}`);
  if (replay.hidden) found.open.push(`${count(replay.hidden)} lines are hidden: other agents' commit pulls. Their hashes were checked, not what they say.`);
  if (!states.length && replay.hidden) found.open.push("No hidden line is of the copy's owner: only its client's state file can show that.");
}

// Python in a thread of its own, so that the page stays responsive. Plays in short turns and posts what to show.
import { loadPyodide } from "./runtime/pyodide.mjs";

const TURN = 40; // milliseconds of play between two messages
let python, show, turn;

async function load() {
  python = await loadPyodide({ indexURL: new URL("./runtime/", import.meta.url).href });
  const files = await fetch(new URL("./runtime/partage.zip", import.meta.url));
  if (!files.ok) throw new Error(`partage.zip: ${files.status}`);
  python.unpackArchive(await files.arrayBuffer(), "zip");
  python.runPython("import play");
}

const ready = load().then(
  () => postMessage({ kind: "ready" }),
  (error) => postMessage({ kind: "failed", why: String(error) }),
);

function advance(steps) {
  return JSON.parse(show.advance_json(steps));
}

function start(choices) {
  clearTimeout(turn);
  if (show) show.destroy();
  const Show = python.globals.get("play").Show;
  const given = python.toPy(choices);
  show = Show(given);
  given.destroy();
  postMessage({ kind: "shown", shown: advance(0) });
}

function play(slowly) {
  const began = performance.now();
  let shown = advance(1);
  let steps = 1;
  while (!slowly && shown.step < shown.horizon && performance.now() - began < TURN) {
    steps = Math.min(2 * steps, 64);
    shown = advance(steps);
  }
  postMessage({ kind: "shown", shown });
  turn = shown.step < shown.horizon ? setTimeout(play, slowly ? 50 : 0, slowly) : undefined;
}

onmessage = async ({ data }) => {
  await ready;
  try {
    clearTimeout(turn);
    if (data.kind === "start") start(data.choices);
    if (data.kind === "play") play(data.slowly);
  } catch (error) {
    postMessage({ kind: "failed", why: String(error) });
  }
};

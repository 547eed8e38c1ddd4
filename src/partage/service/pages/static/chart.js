// The chart of both pages: broadcasts or means of each arm, over time or over broadcasts.
import { setText } from "./page.js";
import { count, place } from "./live.js";

const element = (name) => document.getElementById(name);
const MOST_LINES = 16;
const HEIGHT = 260;
const chart = { over: "time", of: "means", points: [], means: [], plot: null, arms: [], whole: true };
let board = null;

export const broadcasts = (seen) => seen.arms.reduce((total, arm) => total + arm.broadcasts, 0);

function colourOf(name) {
  const probe = element("chart");
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

// The arms that get a line: those that were broadcast, and if there are many, the most frequent ones.
function shown() {
  const known = board.arms.map((_, index) => index).filter((index) => board.arms[index].broadcasts > 0);
  if (known.length > MOST_LINES) known.sort((a, b) => board.arms[b].broadcasts - board.arms[a].broadcasts || a - b).length = MOST_LINES;
  return known.sort((a, b) => a - b);
}

function data() {
  const x = chart.points.map((point) => (chart.over === "time" ? point[0] / 1000 : point[1]));
  const of = (arm) => (chart.of === "means" ? chart.means.map((point) => point[arm]) : chart.points.map((point) => point[arm + 2]));
  return [x, ...chart.arms.map(of)];
}

function draw() {
  if (!board || chart.points.length < 2) { // an empty chart would show a time axis of several years
    setText(element("chart-note"), "No broadcasts yet.");
    return;
  }
  setText(element("chart-note"), chart.whole ? "" : "The chart begins 50,000 events ago.");
  chart.plot?.destroy();
  chart.arms = shown();
  const ink = colourOf("--muted");
  const lines = colourOf("--line");
  const axis = { stroke: ink, grid: { stroke: lines, width: 1 }, ticks: { stroke: lines, width: 1 }, font: `12px ${getComputedStyle(document.body).fontFamily}` };
  const means = chart.of === "means";
  chart.plot = new uPlot({
    width: element("chart").clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { points: { size: 6 } },
    scales: { x: { time: chart.over === "time" }, y: { range: means ? [0, 1] : (_, low, high) => [0, Math.max(4, high * 1.05)] } },
    axes: [{ ...axis, space: 70, values: (_, ticks, __, ___, step) => ticks.map((tick) => tickText(tick, step)) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => (means ? String(tick) : count(tick))) }],
    series: [
      {},
      ...chart.arms.map((arm) => ({
        label: board.arms[arm].name,
        stroke: colourOf(`--arm-${arm % 8}`),
        width: 2,
        dash: arm % 16 >= 8 ? [6, 4] : undefined,
        points: { show: false },
      })),
    ],
  }, data(), element("chart"));
  legend();
}

function tickText(tick, step) {
  if (chart.over !== "time") return count(tick);
  const parts = step < 60 ? { hour: "2-digit", minute: "2-digit", second: "2-digit" }
    : step < 86400 ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
  return new Date(1000 * tick).toLocaleString("en-GB", parts);
}

function legend() {
  const list = element("legend");
  if (list.dataset.arms !== chart.arms.join()) {
    list.dataset.arms = chart.arms.join();
    list.replaceChildren(...chart.arms.map((arm) => {
      const item = document.createElement("li");
      item.className = `c${arm % 8}`;
      const dot = document.createElement("span");
      dot.className = "dot";
      const name = document.createElement("span");
      name.textContent = board.arms[arm].name;
      item.append(dot, name, document.createElement("b"));
      return item;
    }));
  }
  const text = (arm) => (chart.of === "means" ? (arm.mean ?? 0).toFixed(3) : count(arm.broadcasts));
  chart.arms.forEach((arm, index) => setText(list.children[index].lastChild, text(board.arms[arm])));
}

// Adds a point for a new broadcast.
export function addPoint(snapshot) {
  board = snapshot.board;
  const last = chart.points[chart.points.length - 1];
  const total = broadcasts(board);
  if (!last || last[1] >= total) return;
  chart.points.push([snapshot.time, total, ...board.arms.map((arm) => arm.broadcasts)]);
  chart.means.push(board.arms.map((arm) => arm.mean));
  if (chart.points.length > 600) {
    const keep = (_, index, all) => index % 2 === 0 || index === all.length - 1;
    chart.points = chart.points.filter(keep);
    chart.means = chart.means.filter(keep);
  }
  if (chart.plot && chart.arms.join() === shown().join()) {
    chart.plot.setData(data());
    legend();
  } else draw();
}

// Reads what happened before this page was opened.
export async function loadHistory(snapshot) {
  board = snapshot.board;
  const answer = await fetch(`/c/${place.dataset.id}/history`);
  if (!answer.ok) return;
  const found = await answer.json();
  chart.points = found.points;
  chart.means = found.means;
  chart.whole = found.whole;
  addPoint({ board, time: snapshot.time });
  draw();
}

for (const choice of ["over", "of"]) {
  const buttons = document.querySelectorAll(`[data-${choice}]`);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      chart[choice] = button.dataset[choice];
      for (const other of buttons) other.ariaPressed = String(other === button);
      draw();
    });
  }
}
new ResizeObserver(() => {
  if (chart.plot && chart.plot.width !== element("chart").clientWidth) chart.plot.setSize({ width: element("chart").clientWidth, height: HEIGHT });
}).observe(element("chart"));
addEventListener("partage-theme", draw);

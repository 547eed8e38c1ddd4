// What every page needs: copy buttons, times in the reader's time zone, hints in forms, errors.

export function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

export function show(element, visible) {
  if (element) element.hidden = !visible;
}

export function toast(sentence) {
  const box = document.getElementById("toast");
  box.textContent = sentence;
  box.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { box.hidden = true; }, 8000);
}

async function copy(button, text, field) {
  const before = button.dataset.before ?? (button.dataset.before = button.innerHTML);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain http, scripts have no clipboard; execCommand still works.
    if (field?.select) field.select();
    else getSelection().selectAllChildren(field ?? button);
    if (!document.execCommand("copy")) { toast("This browser does not let pages copy. Select the text and copy it yourself."); return; }
  }
  button.textContent = "Copied";
  setTimeout(() => { button.innerHTML = before; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-all]");
  if (!button) return;
  if (button.dataset.copy) {
    const field = document.getElementById(button.dataset.copy);
    copy(button, field.value ?? field.textContent, field);
  } else {
    const list = button.closest("section, div").querySelector(`.${button.dataset.copyAll}`);
    copy(button, [...list.querySelectorAll("input")].map((field) => field.value).join("\n"), list);
  }
});

function times(root) {
  for (const element of root.querySelectorAll("time[data-time]")) {
    const time = new Date(Number(element.dataset.time));
    element.dateTime = time.toISOString();
    element.textContent = time.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  }
}

// A select says what the chosen option means. Fields that the option does not take are hidden, and options of the
// settlement that do not fit the rule are disabled.
function explain(select) {
  const chosen = select.selectedOptions[0];
  const hint = document.getElementById(select.dataset.explains);
  if (hint) hint.textContent = chosen.dataset.text;
  for (const field of document.querySelectorAll(`[data-taken-by="${select.id}"]`)) {
    const taken = chosen.dataset.takes.split(" ").includes(field.dataset.name);
    field.hidden = !taken;
    field.querySelector("input, select").disabled = !taken;
  }
  if (chosen.dataset.settlements) {
    const fitting = chosen.dataset.settlements.split(" ");
    const settlement = document.getElementById("settlement");
    for (const option of settlement.options) option.disabled = option.value !== "" && !fitting.includes(option.value);
    if (settlement.selectedOptions[0]?.disabled) {
      settlement.value = settlement.dataset.default;
      explain(settlement);
    }
  }
}

function prepare(root) {
  // The server may not know its public address; the browser knows the one it uses.
  for (const field of root.querySelectorAll(".links input")) if (field.value.startsWith("/")) field.value = location.origin + field.value;
  times(root);
  for (const select of root.querySelectorAll("select[data-explains]")) explain(select);
}

document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-explains]")) explain(event.target);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button[data-fill]");
  if (button) document.getElementById(button.dataset.fill).value = button.dataset.value;
});

document.addEventListener("htmx:afterSettle", (event) => {
  prepare(document);
  const wrong = event.target.querySelector?.("[aria-invalid]");
  if (wrong) wrong.focus();
  const made = document.getElementById("created");
  if (made) { made.tabIndex = -1; made.focus(); }
});

document.addEventListener("htmx:responseError", (event) => {
  let sentence = "Something went wrong; try again.";
  try { sentence = JSON.parse(event.detail.xhr.responseText).error ?? sentence; } catch { /* not ours */ }
  if (event.detail.xhr.status === 401) { location.reload(); return; }
  toast(sentence);
});
document.addEventListener("htmx:sendError", () => toast("The server does not answer; try again."));

prepare(document);

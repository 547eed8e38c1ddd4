// Loaded in the head, before anything is drawn: a click that comes before the scripts that serve it waits for them.
// Otherwise it would do nothing, or send a form without them. Return in a form counts as a click on its button.
(() => {
  let held = null;
  const hold = (event) => {
    const control = event.target.closest?.("button, label, input[type=checkbox]");
    if (!control || control.closest("form[method=post]")) return; // the browser serves these alone
    event.preventDefault();
    event.stopPropagation();
    held = control;
  };
  document.addEventListener("click", hold, true);
  // Deferred scripts and modules have run by then; the timer lets their own listeners of this event go first.
  addEventListener("DOMContentLoaded", () => setTimeout(() => {
    document.removeEventListener("click", hold, true);
    held?.click();
  }));
})();

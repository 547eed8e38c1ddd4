// Loaded in the head, before anything is drawn: the theme chosen here, otherwise the system's.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("partage-theme"); } catch { /* storage may be forbidden */ }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const show = () => { button.textContent = dark() ? "Light" : "Dark"; button.ariaLabel = `Switch to ${dark() ? "light" : "dark"} colours`; };
    button.hidden = false;
    show();
    system.addEventListener("change", () => { show(); dispatchEvent(new Event("partage-theme")); });
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("partage-theme", root.dataset.theme); } catch { /* then only for this page */ }
      show();
      dispatchEvent(new Event("partage-theme"));
    });
  });
})();

/* Colours: the reader's choice, and what the charts, which are pixels, read of it. */
const root = document.documentElement;
const redraws = new Set();

function colour(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

function redrawAll() {
  for (const redraw of redraws) redraw();
}

function showTheme(choice) {
  if (choice === "auto") delete root.dataset.theme;
  else root.dataset.theme = choice;
  for (const button of document.querySelectorAll(".theme button")) {
    button.setAttribute("aria-pressed", String(button.dataset.theme === choice));
  }
}

function chooseTheme(choice) {
  showTheme(choice);
  try {
    if (choice === "auto") localStorage.removeItem("weir-lab-theme");
    else localStorage.setItem("weir-lab-theme", choice);
  } catch (error) { /* No storage: the choice holds until the page is closed. */ }
  redrawAll();
}

for (const button of document.querySelectorAll(".theme button")) {
  button.addEventListener("click", () => chooseTheme(button.dataset.theme));
}
showTheme(root.dataset.theme || "auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

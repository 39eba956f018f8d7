/* Colours: the reader's choice. */
const root = document.documentElement;

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
}

for (const button of document.querySelectorAll(".theme button")) {
  button.addEventListener("click", () => chooseTheme(button.dataset.theme));
}
showTheme(root.dataset.theme || "auto");

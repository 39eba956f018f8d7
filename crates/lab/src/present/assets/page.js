/* A figure's row may lie in what is folded. */
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let at = target.parentElement; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
  }
  target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
}
addEventListener("hashchange", reveal);
document.addEventListener("click", (event) => {
  /* The same link once more. */
  const link = event.target.closest("a[href^='#']");
  if (link && link.getAttribute("href") === location.hash) reveal();
});
reveal();

/* The contents: folded on a phone, marked where the reader is. */
const contents = document.querySelector(".contents details");
const links = new Map();
const watcher = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (!one.isIntersecting) continue;
    for (const link of links.values()) link.removeAttribute("aria-current");
    const link = links.get(one.target.id);
    if (link) link.setAttribute("aria-current", "true");
  }
}, { rootMargin: "-12% 0px -78% 0px" });
if (contents) {
  const wide = matchMedia("(min-width: 1180px)");
  const fold = () => { contents.open = wide.matches; };
  fold();
  wide.addEventListener("change", fold);
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) contents.open = false;
  });
  for (const a of contents.querySelectorAll("a")) links.set(a.hash.slice(1), a);
  for (const part of document.querySelectorAll("main > section")) watcher.observe(part);
}

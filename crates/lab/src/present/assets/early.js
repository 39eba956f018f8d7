/* Before anything is drawn: that there is JavaScript, and the colours that the reader chose. */
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  try {
    var theme = localStorage.getItem("weir-lab-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch (error) { /* A page from disk may have no storage: the system's colours then. */ }
})();

/* What each part of the page is before charts are drawn into it: what has not changed, stays. */
const partsAsWritten = new Map(
  [...document.querySelectorAll("main > section")].map((part) => [part.id, part.outerHTML]));

/* Follows a campaign: how it stands, and each part of the page that has become another. It asks
   nobody but the server that the page is from, and says when that is gone. */
const RENEW_MS = 3000;
const AGAIN_MS = 3000;
const WORDS = {
  "waiting": ["waiting", "even"], "running": ["measuring", "ahead"], "silent": ["silent", "caution"],
  "ended": ["through", "even"], "interrupted": ["interrupted", "caution"],
  "cut-off": ["cut off", "behind"], "unreadable": ["not readable", "behind"],
};
const byId = (id) => document.getElementById(id);
let seen = JSON.parse(byId("live-seen").textContent);
let seenAt = Date.now();
let shownVersion = seen.version;
let shownStanding = seen.standing;
let renewedAt = Date.now();
let isRenewing = false;
window.weirLive = { renewals: 0 };

/* Each part of the page as it was written: one that has not changed stays as the reader left it. */
const partsAsWritten = new Map(
  [...document.querySelectorAll("main > section")].map((part) => [part.id, part.outerHTML]));

function spell(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (h) return `${h} h ${m} min`;
  return m ? `${m} min ${s} s` : `${s} s`;
}

/* A run's own clocks go on between two events; those of one that has ended stand. */
function showSeen() {
  const [word, kind] = WORDS[seen.standing];
  const chip = byId("live-word");
  if (chip.textContent !== word) chip.textContent = word;
  chip.className = `chip ${kind}`;
  byId("live-words").textContent = seen.words;
  const isOn = seen.standing === "running" || seen.standing === "silent";
  const since = (Date.now() - seenAt) / 1000;
  byId("live-step").hidden = !seen.step;
  if (!seen.step) return;
  byId("live-title").textContent = seen.step.title;
  byId("live-bar").max = Math.max(1, seen.step.of);
  byId("live-bar").value = seen.step.done;
  byId("live-steps").textContent = `${seen.step.done.toLocaleString("en")} of ${seen.step.of.toLocaleString("en")}`;
  byId("live-gone").textContent = spell(seen.elapsed_s + (isOn ? since : 0));
  byId("live-left").textContent = spell(seen.step.left_s - (isOn ? seen.age_s + since : 0));
  byId("live-trials").textContent = seen.trials.toLocaleString("en")
    + (seen.failed ? `, ${seen.failed.toLocaleString("en")} without a figure` : "");
  byId("live-age").textContent = `${spell(seen.age_s + since)} ago`;
}

/* What the reader has opened stays open. */
function keepFolds(from, to) {
  const folds = to.querySelectorAll("details");
  from.querySelectorAll("details").forEach((one, index) => {
    const other = folds[index];
    if (other && other.querySelector("summary").textContent === one.querySelector("summary").textContent) {
      other.open = one.open;
    }
  });
}

/* Takes the new page's parts; a page of other parts is another campaign's, and is loaded whole. */
function takePage(next) {
  const parts = [...next.querySelectorAll("main > section")];
  const known = [...document.querySelectorAll("main > section")];
  const isSame = parts.length === known.length && parts.every((part, index) => part.id === known[index].id);
  if (!isSame) {
    location.reload();
    return;
  }
  /* The part that the reader looks at stays where it is. */
  const at = known.find((part) => part.getBoundingClientRect().bottom > 60) || known[0];
  const top = at ? at.getBoundingClientRect().top : 0;
  parts.forEach((part, index) => {
    const text = part.outerHTML;
    if (text === partsAsWritten.get(part.id)) return;
    partsAsWritten.set(part.id, text);
    const own = document.adoptNode(part);
    keepFolds(known[index], own);
    known[index].replaceWith(own);
    watcher.unobserve(known[index]);
    watcher.observe(own);
  });
  if (!at) return;
  const now = document.getElementById(at.id);
  scrollBy({ top: now.getBoundingClientRect().top - top, behavior: "instant" });
}

async function renew() {
  if (isRenewing || document.hidden) return;
  if (seen.version === shownVersion && seen.standing === shownStanding) return;
  const isOn = seen.standing === "running";
  if (isOn && Date.now() - renewedAt < RENEW_MS) return;
  isRenewing = true;
  try {
    const reply = await fetch("/", { cache: "no-store" });
    if (!reply.ok) throw new Error(await reply.text());
    const next = new DOMParser().parseFromString(await reply.text(), "text/html");
    /* The page may be a little older than what is seen: it is asked for again then. */
    const told = JSON.parse(next.getElementById("live-seen").textContent);
    takePage(next);
    [shownVersion, shownStanding] = [told.version, told.standing];
    window.weirLive.renewals += 1;
  } catch (error) {
    goneAway(`The page could not be renewed: ${error.message}`);
  } finally {
    renewedAt = Date.now();
    isRenewing = false;
  }
}

function goneAway(words) {
  byId("live-gone-away").textContent = words;
  byId("live-gone-away").hidden = !words;
}

function follow() {
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    seen = JSON.parse(event.data);
    seenAt = Date.now();
    goneAway("");
    showSeen();
    renew();
  };
  events.onerror = () => {
    const when = new Date(seenAt).toLocaleTimeString();
    goneAway(`The server does not answer; this is what was known at ${when}.`);
    events.close();
    setTimeout(follow, AGAIN_MS);
  };
}

showSeen();
follow();
setInterval(() => { showSeen(); renew(); }, 1000);

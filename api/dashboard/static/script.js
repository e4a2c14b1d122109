// What makes the pages nicer. All of them work without it.
"use strict";

// Times: the reader's own terms, with the exact moment on hover. Without the script they stand in UTC.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

function showTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-day])")) {
    const at = new Date(element.dateTime);
    if (isNaN(at)) continue;
    const seconds = (at - Date.now()) / 1000;
    element.title = exact.format(at);
    if (Math.abs(seconds) >= 30 * 86400) {
      element.textContent = day.format(at);
      continue;
    }
    const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) || ["second", 0];
    element.textContent = length ? relative.format(Math.trunc(seconds / length), unit) : "just now";
  }
}
showTimes();
setInterval(showTimes, 30000);

// The reader's time zone, in which reports count.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `linkstream-zone=${zone}; path=/dashboard; max-age=31536000; samesite=lax`;

// On narrow screens the navigation scrolls: to where the reader is.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// say lets screen readers say something.
function say(text) {
  document.getElementById("said").textContent = text;
}

// Copy: <button type="button" data-copy="ID of an element or input" hidden> copies its text; without an ID, the button's value is copied.
// If the button has elements, the first is its label.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const label = button.firstElementChild ?? button, text = label.textContent;
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : button;
    try {
      await navigator.clipboard.writeText((source.value ?? source.textContent).trim());
      label.textContent = "Copied";
    } catch {
      label.textContent = "Not copied";
    }
    say(label.textContent);
    setTimeout(() => { label.textContent = text; say(""); }, 2000);
  });
}

// Show: <button type="button" data-show="IDs of password fields" aria-pressed="false" hidden> shows what was typed.
for (const button of document.querySelectorAll("button[data-show]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const show = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", show);
    for (const id of button.dataset.show.split(" ")) document.getElementById(id).type = show ? "text" : "password";
  });
}

// Confirmations close like menus do.
function closeConfirms(except) {
  for (const open of document.querySelectorAll("details.confirm[open]")) if (!open.contains(except)) open.open = false;
}
document.addEventListener("click", (event) => closeConfirms(event.target));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.activeElement.closest("details.confirm[open]")?.querySelector("summary").focus();
  closeConfirms(null);
});

// A page that answers a form: reloading it gets the page instead of sending the form again.
const instead = document.querySelector("[data-reload]");
if (instead) history.replaceState(null, "", instead.dataset.reload);

// The first field with a problem is where the reader goes on, or what has just been made.
(document.querySelector("[aria-invalid=true]") ?? document.getElementById("made"))?.focus();

// Files that are too large are not sent.
for (const field of document.querySelectorAll("input[type=file][data-max]"))
  field.addEventListener("change", () =>
    field.setCustomValidity(field.files[0]?.size > field.dataset.max ? "The file is larger than 32 MiB. Import it in parts." : ""));

// What was typed outlasts a session that ends, however long it is: this tab keeps it until a page comes that is not the sign-in.
const isTyped = (field) => field.type !== "hidden" || field.name === "version"; // which says what was edited

function keepTyped(form) {
  const fields = [...form.elements].filter((field) => field.name && isTyped(field));
  if (!fields.length || fields.some((field) => field.type === "password" || field.type === "file")) return;
  const values = fields.map((field) => [field.name, field.type === "checkbox" ? field.checked : field.value]);
  try {
    sessionStorage.setItem("typed", JSON.stringify(
      { page: location.pathname, action: form.getAttribute("action"), values: Object.fromEntries(values) }));
  } catch { /* no room, or none allowed: what fits into an address is kept by the service */ }
}

function fillIn({ page, action, values }) {
  const form = document.querySelector(`form[action="${action}"]`);
  if (page !== location.pathname || !form || !document.referrer.startsWith(location.origin + "/dashboard/sign-in")) return;
  for (const field of form.elements) {
    if (!(field.name in values) || !isTyped(field)) continue;
    if (field.type === "checkbox") field.checked = values[field.name];
    else field.value = values[field.name];
    if (field.value && field.type !== "checkbox") field.closest("details")?.setAttribute("open", "");
  }
}

if (!location.pathname.startsWith("/dashboard/sign-"))
  try {
    const typed = sessionStorage.getItem("typed");
    sessionStorage.removeItem("typed");
    if (typed) fillIn(JSON.parse(typed));
  } catch { /* none allowed */ }

// Forms are sent once, however often the button is pressed.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    keepTyped(form);
    setTimeout(() => { delete form.dataset.sent; }, 5000);
  });
}

// Live: the parts of a page that count are fetched again while somebody can see them, as often as the page says. A part is an
// element with an ID and data-part; what is open in it stays open, and the focus where it is. A page that is not up to date says
// so. Errors make the polls slower, the end of the session stops them.
const live = document.querySelector("[data-live]");
const parts = new Map();
const every = Number(live?.dataset.every), slowest = 30000, patience = 5000;
let tag = live?.dataset.tag, pause = every, failures = 0, current = Date.now(), timer, polling = false, over = false;

function take(html) {
  for (const fresh of new DOMParser().parseFromString(html, "text/html").querySelectorAll("[data-part]")) {
    if ("done" in fresh.dataset) { // nothing changes any more, and the whole page has what there is to do
      over = true;
      location.reload();
      return;
    }
    const old = document.getElementById(fresh.id);
    if (!old || parts.get(fresh.id) === fresh.innerHTML) continue;
    parts.set(fresh.id, fresh.innerHTML);
    const open = [...old.querySelectorAll("details[open]")].map((details) => details.id);
    const scrolled = old.querySelector(".chart-scroll")?.scrollTop;
    const focused = old.contains(document.activeElement) && document.activeElement;
    old.innerHTML = fresh.innerHTML;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (scrolled) old.querySelector(".chart-scroll").scrollTop = scrolled;
    if (focused) [...old.querySelectorAll(focused.localName)].find((element) => element.className === focused.className &&
      element.getAttribute("href") === focused.getAttribute("href"))?.focus({ preventScroll: true });
  }
  showTimes();
}

// tellAge says why the page is not up to date; "" if it is. path leads to where the reader can change that.
function tellAge(why, label, path) {
  const place = document.getElementById("age");
  document.documentElement.classList.toggle("stale", why !== "");
  if (place.dataset.why === why) return;
  place.dataset.why = why;
  place.replaceChildren();
  if (!why) return;
  const message = document.createElement("p");
  message.className = "alert warn";
  message.textContent = `${why} The numbers are those of ${new Date(current).toLocaleTimeString()}. `;
  if (path) {
    const link = document.createElement("a");
    link.href = path;
    link.textContent = label;
    message.append(link);
  }
  place.append(message);
}

async function refresh() {
  polling = true;
  try {
    const answer = await fetch(live.dataset.live,
      { headers: { "If-None-Match": tag }, redirect: "manual", signal: AbortSignal.timeout(patience) });
    if (answer.type === "opaqueredirect" || answer.status === 403) {
      over = true;
      tellAge("Your session has ended.", "Sign in again", location.href);
    } else if (answer.status === 404) {
      over = true;
      tellAge("This link does not exist any more.", "See all links", "/dashboard/links");
    } else {
      if (answer.status !== 304) { // which says that nothing has changed
        if (!answer.ok) throw new Error(answer.statusText);
        take(await answer.text());
        tag = answer.headers.get("ETag");
      }
      pause = every;
      failures = 0;
      current = Date.now();
      tellAge("");
    }
  } catch {
    if (document.hidden) return; // browsers may stop requests of pages that nobody sees
    pause = Math.min(1000 * 2 ** failures, slowest);
    if (++failures > 1 || Date.now() - current > every + patience) tellAge("The service does not answer.", "Load the page again", location.href);
  } finally {
    polling = false;
    schedule();
  }
}

function schedule() {
  clearTimeout(timer);
  if (!over && !document.hidden) timer = setTimeout(refresh, pause);
}

// refreshNow asks at once when the reader comes back, or the network does.
function refreshNow() {
  clearTimeout(timer);
  if (!over && !polling && !document.hidden) refresh();
}

if (live) {
  document.addEventListener("visibilitychange", refreshNow);
  addEventListener("online", refreshNow);
  schedule();
}

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

// On narrow screens the navigation scrolls: to where the reader is.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Copy: <button type="button" data-copy="ID of an element or input" hidden> copies its text.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const label = button.textContent;
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText((source.value ?? source.textContent).trim());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
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

// The first field with a problem is where the reader goes on.
document.querySelector("[aria-invalid=true]")?.focus();

// Forms are sent once, however often the button is pressed.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    setTimeout(() => { delete form.dataset.sent; }, 5000);
  });
}

// Live: the parts of a page that count are fetched again every other second, while somebody can see them. A part is an
// element with an ID and data-part; what is open in it stays open, and the focus where it is. Errors make it slower, the end
// of the session stops it.
const live = document.querySelector("[data-live]");
const parts = new Map();
let pause = 2000, seen;

function take(html) {
  for (const fresh of new DOMParser().parseFromString(html, "text/html").querySelectorAll("[data-part]")) {
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

async function refresh() {
  if (!document.hidden) {
    try {
      const headers = seen ? { "If-None-Match": seen } : {};
      const answer = await fetch(live.dataset.live, { headers, redirect: "manual", signal: AbortSignal.timeout(10000) });
      if (answer.type === "opaqueredirect" || answer.status === 404) return; // signed out, or gone
      if (answer.status !== 304) { // which says that nothing has changed
        if (!answer.ok) throw new Error(answer.statusText);
        take(await answer.text());
        seen = answer.headers.get("ETag");
      }
      pause = 2000;
    } catch {
      pause = Math.min(2 * pause, 60000);
    }
  }
  setTimeout(refresh, pause);
}
if (live) setTimeout(refresh, pause);

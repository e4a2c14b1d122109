// What makes the pages nicer. All of them work without it.
"use strict";

// Times: in one form, as the reader's language writes dates, with the exact moment on hover, in the time zone of the page.
const monthForm = { month: "short", year: "numeric" }, dayForm = { day: "numeric", ...monthForm };
const exact = dates({ dateStyle: "full", timeStyle: "long" }), day = dates(dayForm);

function dates(style, timeZone = document.documentElement.dataset.zone) {
  try {
    return new Intl.DateTimeFormat(navigator.language, { ...style, timeZone });
  } catch { // a zone that the browser does not know
    return new Intl.DateTimeFormat(navigator.language, style);
  }
}

// Days, and hours of days, whose zone is that of the page already.
const civil = dates(dayForm, "UTC"), civilHour = dates({ ...dayForm, hour: "2-digit", minute: "2-digit" }, "UTC");
const civilShort = dates({ day: "numeric", month: "short" }, "UTC"), civilMonth = dates(monthForm, "UTC");

function showDates() {
  const show = (name, form = name.includes(" ") ? civilHour : civil) => form.format(new Date(name.replace(" ", "T") + (name.includes(" ") ? "Z" : "")));
  for (const bar of document.querySelectorAll(".chart-bar")) {
    const title = bar.querySelector("title");
    title.textContent = show(bar.dataset.date) + title.textContent.slice(title.textContent.lastIndexOf(": "));
  }
  for (const time of document.querySelectorAll("time[data-civil]")) time.textContent = show(time.dateTime);
  for (const label of document.querySelectorAll("text[data-day]")) label.textContent = show(label.dataset.day, civilShort);
  for (const label of document.querySelectorAll("text[data-month]")) label.textContent = show(label.dataset.month, civilMonth);
}
showDates();
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

function showTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-civil], [data-clock])")) {
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

// The browser's time zone, which counts unless the account names another one.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `linkstream-zone=${zone}; path=/dashboard; max-age=31536000; samesite=lax`;
for (const list of document.querySelectorAll("#zones")) list.append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name)));

// On narrow screens the navigation scrolls: to where the reader is.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// say lets screen readers say something.
function say(text) {
  document.getElementById("said").textContent = text;
}

// Copy: <button type="button" data-copy="ID of an element or input" hidden> copies its text; without an ID, the button's value is copied.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : button;
    button.textContent = await copy((source.value ?? source.textContent).trim(), button) ? "Copied" : "Press Ctrl+C";
    say(button.textContent);
    setTimeout(() => { button.textContent = label; say(""); }, 2000);
  });
}

// copy puts a text on the clipboard. Pages of plain http have no navigator.clipboard: there a field with the text is selected and
// copied. If the browser refuses that, too, the field stays until it loses the focus, so that the reader can copy it.
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* missing, or not allowed */ }
  const field = document.createElement("textarea");
  field.className = "to-copy";
  field.readOnly = true;
  field.value = text;
  field.setAttribute("aria-label", "Text to copy");
  button.before(field);
  field.select();
  if (!document.execCommand("copy")) {
    field.addEventListener("blur", () => field.remove());
    return false;
  }
  field.remove();
  button.focus({ preventScroll: true });
  return true;
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

// Menus and confirmations close when the reader goes elsewhere. In a menu the arrow keys, Home and End move between its items.
const popups = "details.menu[open], details.confirm[open]";

function closeOthers(target) {
  for (const open of document.querySelectorAll(popups)) if (!open.contains(target)) open.open = false;
}

function moveInMenu(event) {
  const menu = event.target.closest("details.menu:has(> .items)");
  if (!menu || !["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return;
  event.preventDefault();
  menu.open = true;
  const items = [...menu.querySelectorAll(".items :is(a, button, summary)")].filter((item) => item.checkVisibility());
  const at = items.indexOf(event.target), last = items.length - 1;
  const to = { ArrowDown: at < last ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : last, Home: 0, End: last }[event.key];
  items[to].focus();
}

document.addEventListener("click", (event) => closeOthers(event.target));
document.addEventListener("focusout", (event) => {
  if (event.relatedTarget && event.target.closest(popups)) closeOthers(event.relatedTarget);
});
document.addEventListener("keydown", (event) => {
  moveInMenu(event);
  const popup = event.key === "Escape" && document.activeElement.closest(popups);
  if (!popup) return;
  popup.querySelector("summary").focus();
  popup.open = false;
});

// The form for a new link has a page of its own. The list fetches it from there, also by the key C, and puts the focus on its first field.
// Readers who dictate can switch that key off (WCAG 2.1.4); this browser remembers it.
const create = document.getElementById("create"), toggle = document.querySelector("[data-shortcut]");

const createLabel = create?.textContent, createIsQuiet = create?.classList.contains("quiet");

async function openCreate() {
  let form = document.getElementById("new");
  if (!form && create) form = await fetchCreate();
  if (!form) return;
  form.hidden = false;
  showCreate(true);
  form.querySelector("[name=long_url]").focus();
}

async function fetchCreate() {
  if (create.ariaBusy) return null;
  create.ariaBusy = "true";
  try {
    const answer = await fetch(create.href, { redirect: "error" });
    if (!answer.ok) throw new Error(answer.statusText);
    const form = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("new");
    for (const script of form.querySelectorAll("script")) { // those of a parsed document do not run
      const running = document.createElement("script");
      running.src = script.getAttribute("src");
      script.replaceWith(running);
    }
    create.closest(".list-head").after(form);
    for (const made of form.querySelectorAll("form")) watchForm(made);
    return form;
  } catch {
    location.href = create.href;
    return null;
  } finally {
    create.ariaBusy = null;
  }
}

function showCreate(open) {
  if (!create) return;
  create.ariaExpanded = String(open);
  create.textContent = open ? "Close" : createLabel;
  create.classList.toggle("quiet", open || createIsQuiet);
}

function shortcutIsOn() {
  try {
    return localStorage.getItem("shortcut") !== "off";
  } catch { // no storage allowed
    return true;
  }
}

function showShortcut() {
  toggle.hidden = false;
  toggle.textContent = shortcutIsOn() ? "Switch off key C" : "Switch on key C";
  toggle.title = "C opens the form for a new link";
}

if (create) {
  create.role = "button";
  showCreate(false);
  create.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (create.ariaExpanded === "false") {
      openCreate();
      return;
    }
    document.getElementById("new").hidden = true;
    showCreate(false);
  });
  create.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    create.click();
  });
}
if (toggle) {
  showShortcut();
  toggle.addEventListener("click", () => {
    try {
      localStorage.setItem("shortcut", shortcutIsOn() ? "off" : "on");
    } catch { /* it stays on */ }
    showShortcut();
    say(shortcutIsOn() ? "Key C is on" : "Key C is off");
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || typing || !shortcutIsOn()) return;
    event.preventDefault();
    openCreate();
  });
}

// A page that answers a form: reloading it gets the page instead of sending the form again.
const instead = document.querySelector("[data-reload]");
if (instead) history.replaceState(null, "", instead.dataset.reload);

// The first field with a problem is where the reader goes on, or the button that copies what has just been made.
(document.querySelector("[aria-invalid=true]") ?? document.querySelector("#made [data-copy]"))?.focus();

// An action on a row of a list leads back to the list: the row stays where it was on the screen, and has the focus. Where it is gone,
// the next row has it. A link that leads to the same report, of another period or of fewer clicks, keeps the place on the page.
const rows = [...document.querySelectorAll(".links tbody tr")];
for (const row of rows) row.tabIndex = -1;

function keepPlace(control) {
  const row = control?.closest(".links tbody tr"), within = control?.closest("[data-stay]"), list = within && control.closest("section");
  const place = { page: location.pathname, row: rows.indexOf(row), top: (row ?? list ?? within)?.getBoundingClientRect().top,
    stay: within?.dataset.stay, list: list?.querySelector("h2").textContent };
  if (!row && !within) return;
  try {
    sessionStorage.setItem("place", JSON.stringify(place));
  } catch { /* the address names the row, or the report */ }
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-stay] a:not([download])");
  if (!link) return;
  keepPlace(link);
  link.hash = ""; // it is the place for browsers without the script
});

function findPlace() {
  const named = rows.find((row) => "#" + row.id === location.hash);
  let place = {};
  try {
    place = JSON.parse(sessionStorage.getItem("place")) ?? {};
    sessionStorage.removeItem("place");
  } catch { /* none allowed */ }
  if (place.stay && place.page === location.pathname) {
    const within = document.querySelector(`[data-stay="${place.stay}"]`) ?? document.querySelector("[data-stay=report]");
    const list = [...document.querySelectorAll("[data-stay] section")].find((section) => section.querySelector("h2")?.textContent === place.list);
    if (list ?? within) scrollBy(0, (list ?? within).getBoundingClientRect().top - place.top);
    within?.focus({ preventScroll: true });
    return;
  }
  const row = named ?? (place.page === location.pathname ? rows[Math.min(place.row, rows.length - 1)] : null);
  if (row && place.page === location.pathname) scrollBy(0, row.getBoundingClientRect().top - place.top);
  row?.focus({ preventScroll: place.page === location.pathname });
}
findPlace();

// Tags: a field of tags offers those of the account for the word that is typed.
let tags;

async function suggestTags(field) {
  tags ??= fetch("/dashboard/tags.txt", { redirect: "error" }).then((answer) => answer.ok ? answer.text() : "").then((text) => text.split("\n").filter(Boolean), () => []);
  const known = await tags, [, before, word] = field.value.match(/^(.*?)([^\s,]*)$/s);
  let list = document.getElementById("known-tags");
  if (!list) {
    list = document.createElement("datalist");
    list.id = "known-tags";
    document.body.append(list);
  }
  field.setAttribute("list", list.id);
  const taken = before.split(/[\s,]+/);
  list.replaceChildren(...known.filter((tag) => tag.startsWith(word) && !taken.includes(tag)).slice(0, 20).map((tag) => new Option("", before + tag)));
}
for (const kind of ["focusin", "input"]) document.addEventListener(kind, (event) => {
  if (event.target.matches("[data-tags]")) suggestTags(event.target);
});

// Files that are too large are not sent.
for (const field of document.querySelectorAll("input[type=file][data-max]"))
  field.addEventListener("change", () =>
    field.setCustomValidity(field.files[0]?.size > field.dataset.max ? "The file is larger than 32 MiB. Import it in parts." : ""));

// What was typed outlasts a session that ends, a network that fails and a click on a link: this tab keeps it until the service has taken it,
// and fills it in again where it was typed.
const draftHere = `typed ${location.pathname}`, came = new Map(); // the values that each form came with
const refused = location.pathname.startsWith("/dashboard/sign-") || !!document.querySelector("[data-refused]");

function stored(key, value) {
  try {
    if (value === undefined) return JSON.parse(sessionStorage.getItem(key));
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch { /* no room, or none allowed: what fits into an address is kept by the service */ }
  return null;
}

function typedIn(form) {
  const fields = [...form.elements].filter((field) => field.name && field.localName !== "button" &&
    (field.type !== "hidden" || field.name === "version")); // which says what was edited
  return fields.some((field) => field.type === "password" || field.type === "file") ? [] : fields;
}

const draftName = (field) => field.type === "checkbox" ? `${field.name}=${field.value}` : field.name;
const draftOf = (form) => Object.fromEntries(typedIn(form).map((field) => [draftName(field), field.type === "checkbox" ? field.checked : field.value]));

function fillIn(form, values) {
  for (const field of typedIn(form)) {
    const value = values[draftName(field)];
    if (value === undefined) continue;
    if (field.type === "checkbox") field.checked = value;
    else field.value = value;
    if (value && field.type !== "checkbox" && field.type !== "hidden")
      for (let place = field.closest("details"); place; place = place.parentElement.closest("details")) place.open = true;
  }
}

// watchForm fills in what is kept of a form, and says so.
function watchForm(form) {
  sendOnce(form);
  if (form.matches("#chosen, #row") || !typedIn(form).length) return;
  const first = draftOf(form), draft = stored(draftHere);
  came.set(form, first);
  if (refused || draft?.action !== form.getAttribute("action")) return;
  fillIn(form, draft.values);
  const note = document.createElement("p"), discard = document.createElement("button");
  note.className = "notice apart draft";
  note.setAttribute("role", "status");
  note.append("What you typed is back. It is not saved yet.", discard);
  discard.type = "button";
  discard.className = "button quiet small";
  discard.textContent = "Discard it";
  discard.addEventListener("click", () => {
    fillIn(form, first);
    note.remove();
  });
  form.prepend(note);
}

function keepTyped() {
  for (const [form, first] of came) {
    const values = draftOf(form);
    const typed = JSON.stringify(values) !== JSON.stringify(first) || refused && (came.size === 1 || form.querySelector("[aria-invalid=true]"));
    if (!form.isConnected || !typed) continue;
    stored(draftHere, { action: form.getAttribute("action"), values });
    return;
  }
  stored(draftHere, null);
}
addEventListener("pagehide", keepTyped);

// A page to which a form has led, and that is no refusal, says that what was sent has been taken.
const sent = stored("sent");
if (sent) {
  const led = document.referrer && `typed ${new URL(document.referrer).pathname}` === sent;
  if (!refused) stored("sent", null);
  if (!refused && led && performance.getEntriesByType("navigation")[0]?.type !== "back_forward") stored(sent, null);
}

// Selection: the box in the heading checks all of the page, and what can be done with the chosen links appears once there are any.
const picks = [...document.querySelectorAll(".pick input[name]")], pickAll = document.getElementById("pick-all");
const chosen = document.getElementById("chosen");

function showChosen() {
  const count = picks.filter((box) => box.checked).length;
  pickAll.checked = count === picks.length;
  pickAll.indeterminate = count > 0 && !pickAll.checked;
  if (!chosen) return;
  const all = chosen.elements.all?.checked;
  chosen.classList.toggle("none", count === 0 && !all);
  document.getElementById("chosen-count").textContent = all ? "All selected" : `${count} selected`;
}

if (pickAll) {
  pickAll.hidden = false;
  chosen?.classList.add("floats");
  pickAll.addEventListener("change", () => {
    for (const box of picks) box.checked = pickAll.checked;
  });
  document.addEventListener("change", showChosen);
  addEventListener("pageshow", showChosen); // Back restores the boxes
  showChosen();
}

// Forms are sent once, however often the button is pressed, which says that it waits.
function sendOnce(form) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    if (came.has(form)) stored("sent", draftHere);
    keepPlace(event.submitter);
    event.submitter?.setAttribute("aria-busy", "true");
    setTimeout(release, 5000, form);
  });
}

function release(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}
for (const form of document.querySelectorAll("form[method=post]")) watchForm(form);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) release(form);
  for (const form of came.keys()) if (!stored(draftHere)) came.set(form, draftOf(form)); // it was sent and taken
});

// Charts: the numbers of a bar are shown when it is tapped or pointed at, or chosen by the arrow keys as on a slider.
function readCharts(at) {
  for (const plot of document.querySelectorAll(".chart-plot:not([tabindex])")) {
    const bars = plot.querySelectorAll(".chart-bar"), value = plot.closest(".chart").querySelector(".chart-value");
    if (bars.length === 0) continue;
    const choose = (at) => {
      plot.querySelector(".chosen")?.classList.remove("chosen");
      bars[at].classList.add("chosen");
      value.textContent = bars[at].querySelector("title").textContent;
      plot.setAttribute("aria-valuenow", at);
      plot.setAttribute("aria-valuetext", value.textContent);
    };
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -7, PageUp: 7, Home: -bars.length, End: bars.length };
    const last = bars.length - 1, chosen = () => Number(plot.getAttribute("aria-valuenow"));
    for (const [name, text] of [["role", "slider"], ["tabindex", "0"], ["aria-valuemin", "0"], ["aria-valuemax", last], ["aria-valuenow", last],
      ["aria-valuetext", bars[last].querySelector("title").textContent]]) plot.setAttribute(name, text);
    value.hidden = false;
    if (at) choose(Math.min(at, last));
    plot.addEventListener("focus", () => choose(chosen()));
    plot.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      choose(Math.max(0, Math.min(last, chosen() + moves[event.key])));
    });
    for (const kind of ["pointerover", "pointerdown"]) plot.addEventListener(kind, (event) => {
      const at = [...bars].indexOf(event.target.closest(".chart-bar"));
      if (at >= 0) choose(at);
    });
  }
}
readCharts();

// Live: the parts of a page that count are fetched again while somebody can see them: when a stream says that clicks have been counted,
// at most as often as the page says, and without the stream as often as that. A part is an element with an ID and data-part; what is open
// in it stays open, and the focus where it is. A page that is not up to date says so. Errors make the polls slower, the end of the session
// stops them, and the reader may pause them.
const live = document.querySelector("[data-live]");
const parts = new Map();
const every = Number(live?.dataset.every), calm = 5000, slowest = 30000, patience = 5000;
let tag = live?.dataset.tag, pause = every, failures = 0, current = Date.now(), timer, polling = false, over = false, paused = false;
let stream, news = false, asked = Date.now(), deaf = 0; // deaf: no stream until then

// listen opens the stream. A page that nobody sees has none: browsers have few connections for all pages of a service.
function listen() {
  const link = live.dataset.stream; // "": all links
  if (stream || link === undefined || Date.now() < deaf) return;
  const end = () => {
    deafen();
    deaf = Date.now() + slowest;
  };
  stream = new EventSource(`/dashboard/live${link && `?link=${link}`}`);
  for (const [type, before] of [["counts", () => {}], ["error", end]]) stream.addEventListener(type, () => {
    before();
    news = true;
    if (!polling && failures === 0) schedule();
  });
}

function deafen() {
  stream?.close();
  stream = undefined;
}

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
    const chosen = old.querySelector(".chosen")?.closest(".chart-plot").getAttribute("aria-valuenow");
    old.innerHTML = fresh.innerHTML;
    readCharts(chosen);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (scrolled) old.querySelector(".chart-scroll").scrollTop = scrolled;
    if (focused) [...old.querySelectorAll(focused.localName)].find((element) => element.getAttribute("class") === focused.getAttribute("class") &&
      element.getAttribute("href") === focused.getAttribute("href"))?.focus({ preventScroll: true });
  }
  showTimes();
  showDates();
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
  news = false;
  asked = Date.now();
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
      if (!paused) tellAge("");
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
  if (over || paused || document.hidden) {
    deafen();
    return;
  }
  listen();
  let wait = pause;
  if (failures === 0 && news) wait = Math.max(0, asked + every - Date.now());
  else if (failures === 0 && stream) wait = Math.max(every, calm);
  timer = setTimeout(refresh, wait);
}

// refreshNow asks at once when the reader comes back or goes on, or the network does.
function refreshNow() {
  if (over || polling || paused || document.hidden) {
    if (!polling) schedule();
    return;
  }
  clearTimeout(timer);
  refresh();
}

if (live) {
  document.addEventListener("visibilitychange", refreshNow);
  addEventListener("online", refreshNow);
  const button = document.createElement("button");
  button.className = "link";
  button.type = "button";
  button.textContent = "Pause updates";
  const head = document.querySelector(".page-head");
  (document.querySelector(".list-count, .link-head:not(.card) .actions, .page-head .actions") ?? head).append(button);
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    tellAge(paused ? "Updates are paused." : "");
    refreshNow();
  });
  schedule();
}

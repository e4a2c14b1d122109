// Charts: the numbers of a bar are shown beside it while it is tapped or pointed at, or chosen by the arrow keys as on a slider.
function readCharts(at) {
  for (const plot of document.querySelectorAll(".chart-plot:not([tabindex])")) {
    const chart = plot.closest(".chart"), value = chart.querySelector(".chart-value"), bars = plot.querySelector(".chart-bars");
    const rows = chart.querySelectorAll("tbody tr"), mark = bars.querySelector("rect"); // a row per bar, the newest first
    if (rows.length === 0) continue;
    bars.querySelector(".chart-titles")?.remove(); // which are for browsers without the script
    const names = [...chart.querySelectorAll("thead th")].map((name) => name.textContent), { show, top } = chart.dataset;
    const last = rows.length - 1, columns = bars.viewBox.baseVal.width, chosen = () => Number(plot.getAttribute("aria-valuenow"));
    const shown = [show, ...(show === "Total" ? ["People", "Bots", "Imported"] : []), "Before"].filter((name) => names.includes(name));
    const read = (at) => shown.map((name) => [name === "Total" ? "Clicks" : name, rows[last - at].cells[names.indexOf(name)]?.textContent])
      .filter(([, number]) => number);
    const dated = (at) => rows[last - at].cells[0].textContent;
    const says = (at) => `${dated(at)}: ${read(at).map(([name, number]) => `${number} ${name.toLowerCase()}`).join(", ")}`;
    const part = (name, text, kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });
    const choose = (at) => {
      mark.classList.add("chosen");
      mark.setAttribute("x", at);
      const numbers = read(at);
      value.replaceChildren(part("strong", dated(at)), ...numbers.flatMap(([name, number]) =>
        [part("span", name, `key key-${name.toLowerCase()}`), part("span", number)]));
      value.hidden = false;
      plot.setAttribute("aria-valuenow", at);
      plot.setAttribute("aria-valuetext", says(at));
      const room = value.parentNode.getBoundingClientRect(), { left, width } = plot.getBoundingClientRect();
      const begin = left - room.left + at * width / columns, end = begin + width / columns + 8;
      const height = Math.max(...numbers.map(([, number]) => Number(number.replaceAll(",", "")))) / top * 240;
      value.style.left = `${Math.max(0, end + value.offsetWidth > room.width ? begin - 8 - value.offsetWidth : end)}px`;
      value.style.top = `${Math.max(0, Math.min(256 - height, 256 - value.offsetHeight))}px`;
    };
    const leave = () => {
      mark.classList.remove("chosen");
      value.hidden = true;
    };
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -7, PageUp: 7, Home: -rows.length, End: rows.length };
    for (const [name, text] of [["role", "slider"], ["tabindex", "0"], ["aria-valuemin", "0"], ["aria-valuemax", last], ["aria-valuenow", last],
      ["aria-valuetext", says(last)]]) plot.setAttribute(name, text);
    if (at) choose(Math.min(at, last));
    plot.addEventListener("focus", () => choose(chosen()));
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      if (!(event.key in moves)) return;
      event.preventDefault();
      choose(Math.max(0, Math.min(last, chosen() + moves[event.key])));
    });
    for (const kind of ["pointermove", "pointerdown"]) plot.addEventListener(kind, (event) => {
      const { left, width } = plot.getBoundingClientRect();
      choose(Math.max(0, Math.min(last, Math.floor((event.clientX - left) / width * columns))));
    });
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && document.activeElement !== plot) leave();
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
    const hour = old.querySelector(".heat-cells > rect")?.parentNode.getAttribute("aria-valuenow");
    old.innerHTML = fresh.innerHTML;
    readCharts(chosen);
    readHeat(hour);
    readTabs();
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (scrolled) old.querySelector(".chart-scroll").scrollTop = scrolled;
    if (focused) [...old.querySelectorAll(focused.localName)].find((element) => ["class", "href", "name", "value"].every((name) =>
      element.getAttribute(name) === focused.getAttribute(name)))?.focus({ preventScroll: true });
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
  message.textContent = `${why} The numbers are those of ${new Date(current).toLocaleTimeString(english)}. `;
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
      const list = document.querySelector(".crumb a"), all = list?.textContent.toLowerCase(); // shared reports have none
      if (list) tellAge(`This ${all.replace(/s$/, "")} no longer exists.`, `See all ${all}`, list.href);
      else tellAge("This report is no longer shared.");
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
    if (++failures > 1 || Date.now() - current > every + patience) tellAge("The service does not answer.", "Reload", location.href);
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
  const button = document.getElementById("pause");
  const tell = () => {
    button.textContent = paused ? "Paused · Resume" : "Live · Pause";
    button.classList.toggle("paused", paused);
  };
  button.hidden = false;
  tell();
  button.addEventListener("click", () => {
    paused = !paused;
    tell();
    tellAge(paused ? "Updates are paused." : "");
    refreshNow();
  });
  schedule();
}

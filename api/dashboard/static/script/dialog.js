// Dialogs: a link with data-dialog, the one of a row that edits its link, and the one to a new link show the main part of their page in a
// dialog: "drawer" at the right, "modal" in the middle. Without the script they lead to that page. Forms in the dialog are sent from there,
// and the page behind then shows what has changed. The dialog is the first element of the page: its IDs count, not those behind it.
const opensPane = ":is(a[data-dialog], a[data-create], main .links a[href$='/edit'])", pane = document.createElement("dialog");
pane.setAttribute("aria-labelledby", "pane-title");
let paneLink, panePath, behindIsOld = false;

const pageOf = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html");

async function openPane(link) {
  if (pane.ariaBusy) return;
  pane.ariaBusy = "true";
  try {
    const answer = await fetch(link.href, { redirect: "error" });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = await pageOf(answer);
    const focused = document.activeElement; // by a key, it is not the link
    if (!pane.open) paneLink = focused === document.body ? link : focused;
    panePath = link.pathname;
    pane.className = `pane ${link.dataset.dialog ?? ("create" in link.dataset ? "modal" : "drawer")}`;
    showPane(page);
  } catch {
    location.href = link.href;
  } finally {
    pane.ariaBusy = null;
  }
}

// showPane shows a page in the dialog, where the first problem or field has the focus.
function showPane(page) {
  const within = page.getElementById("main"), close = document.createElement("button");
  within.querySelector("h1, h2").id = "pane-title";
  close.type = "button";
  close.className = "button quiet small close";
  close.textContent = "Close";
  close.addEventListener("click", () => pane.close());
  keepPane();
  if (!pane.open) document.body.prepend(pane);
  pane.replaceChildren(...within.children, close);
  for (const script of pane.querySelectorAll("script")) { // what was in a parsed document does not run
    const running = document.createElement("script");
    running.src = script.getAttribute("src");
    script.replaceWith(running);
  }
  if (!pane.open) pane.showModal();
  enhance(pane);
  showTimes();
  showDates();
  if (!pane.querySelector("[data-refused]")) for (const form of pane.querySelectorAll("form")) fillInDraft(form);
  previewLink(pane.querySelector("[data-shorten]"));
  const field = pane.querySelector("[aria-invalid=true]") ?? pane.querySelector("[autofocus], #made, .with-button > [data-copy]") ??
    pane.querySelector("form :is(input:not([type=hidden]), select, textarea)") ?? close;
  field.focus();
  if (!field.matches("[aria-invalid=true], select, button")) field.select?.();
}

// enhance does for elements that have been put into the page what the scripts do for those that come with it.
function enhance(within) {
  showCopies(within);
  showShows(within);
  for (const form of within.querySelectorAll("form[method=post]")) watchForm(form);
}

// keepPane keeps what was typed into the dialog and not sent.
function keepPane() {
  for (const form of pane.querySelectorAll("form")) {
    const first = came.get(form);
    if (first && JSON.stringify(first) !== JSON.stringify(draftOf(form))) stored(draftKey(form), draftOf(form));
    came.delete(form);
  }
}

async function sendPane(form, button) {
  const sent = fetch(button?.getAttribute("formaction") ?? form.getAttribute("action"),
    { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
  const read = sent.then(async (answer) => [answer, await pageOf(answer)]);
  const copied = form.matches("[data-shorten]") && copySoon(read.then(([, page]) => page.getElementById("made-url").href));
  try {
    const [answer, page] = await read, to = new URL(answer.url);
    if (to.pathname.startsWith("/dashboard/sign-")) {
      location.href = answer.url;
      return;
    }
    if (answer.redirected) { // it was taken
      stored(draftKey(form), null);
      came.delete(form);
      form.reset();
      behindIsOld = true;
    }
    if (page.querySelector("[data-reload]")?.dataset.reload === location.pathname) behindIsOld = true; // it has what was made
    if (!answer.redirected || to.pathname === panePath) {
      showPane(page);
      if (pane.querySelector("#made")) showCopied(await copied);
      return;
    }
    behindIsOld = false;
    pane.close();
    await renewPage(page, answer.url);
  } catch {
    const note = form.querySelector(":scope > .alert") ?? document.createElement("p");
    note.className = "alert";
    note.setAttribute("role", "alert");
    note.textContent = "The service does not answer. Try again in a moment.";
    form.prepend(note);
  } finally {
    stored("sent", null);
    release(form);
  }
}

// renewPage shows in the page behind what has changed, and the notice of the page to which a form has led.
async function renewPage(led, url) {
  const address = (of) => of.split("#")[0], notice = led?.querySelector("main > .notice");
  let page = led;
  if (!led || address(url) !== address(location.href)) {
    const answer = await fetch(location.href, { redirect: "error" }).catch(() => null);
    if (!answer?.ok) { // such as that of a link which has another name now
      location.href = url ?? location.href;
      return;
    }
    page = await pageOf(answer);
  }
  const behind = document.getElementById("main"), fresh = page.getElementById("main");
  for (const old of [...behind.children, ...fresh.children]) if (old.matches(".notice, #said")) old.remove();
  morph(behind, fresh);
  behind.insertAdjacentHTML("afterbegin", '<p class="visually-hidden" role="status" id="said"></p>');
  if (notice) {
    behind.firstElementChild.after(notice);
    enhance(notice);
    setTimeout(() => say(notice.querySelector("p").textContent), 100); // a new status is told when its text changes
  }
  for (const row of rows()) row.tabIndex = -1;
  showChosen();
  showTimes();
  showDates();
  readCharts();
  readHeat();
  readTabs();
  focusOpener();
}

// morph makes an element of the page equal to a fresh one. Elements that are in both stay, with their listeners, their focus and what the
// reader has opened.
function morph(old, fresh) {
  if (old.isEqualNode(fresh) || old.id === "chosen") return;
  if (old.nodeType !== Node.ELEMENT_NODE || old.localName !== fresh.localName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    if (fresh.nodeType === Node.ELEMENT_NODE) enhance(fresh);
    return;
  }
  const byScript = /^(hidden|open|tabindex|role|aria-.*)$/;
  for (const { name } of [...old.attributes]) if (!byScript.test(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (!byScript.test(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [was, now] = [[...old.childNodes], [...fresh.childNodes]];
  if (was.length === now.length) was.forEach((child, i) => morph(child, now[i]));
  else {
    old.replaceChildren(...now);
    enhance(old);
  }
}

// focusOpener goes back to the link that opened the dialog, or to the menu with it.
function focusOpener() {
  const link = paneLink?.isConnected ? paneLink
    : document.getElementById(paneLink?.id) ?? [...document.querySelectorAll(opensPane)].find((other) => other.href === paneLink?.href);
  const to = link?.checkVisibility() ? link : link?.closest("details")?.querySelector("summary");
  (to ?? document.getElementById("main")).focus({ preventScroll: true });
}

pane.addEventListener("close", () => {
  keepPane();
  pane.remove();
  focusOpener();
  if (behindIsOld) renewPage();
  behindIsOld = false;
});
pane.addEventListener("mousedown", (event) => {
  if (event.target === pane && !inside(event)) pane.close();
});

// inside reports whether a pointer is on the dialog, not on what is around it.
function inside({ clientX, clientY }) {
  const { left, right, top, bottom } = pane.getBoundingClientRect();
  return clientX >= left && clientX <= right && clientY >= top && clientY <= bottom;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(`${opensPane}, .pane a[data-close]`);
  if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || link.pathname === location.pathname) return;
  event.preventDefault();
  if ("close" in link.dataset) pane.close();
  else openPane(link);
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !pane.contains(form) || form.method !== "post" || form.enctype.startsWith("multipart") || "leave" in form.dataset) return;
  event.preventDefault();
  sendPane(form, event.submitter);
});

// New links: the form for a new link has a page of its own. On other pages a dialog shows it, by the button of the bar and by the key C.
const newLink = "/dashboard/links/new", createDialog = document.createElement("dialog");
createDialog.className = "dialog create";
createDialog.setAttribute("aria-labelledby", "create-title");

const pageOf = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html");

// openCreate shows the form in the dialog. If that fails, the browser goes to its page.
async function openCreate() {
  if (createDialog.ariaBusy) return;
  createDialog.ariaBusy = "true";
  try {
    const answer = await fetch(newLink, { redirect: "error" });
    if (!answer.ok) throw new Error(answer.statusText);
    showCreate(await pageOf(answer));
  } catch {
    location.href = newLink;
  } finally {
    createDialog.ariaBusy = null;
  }
}

// showCreate shows a page in the dialog, which is the first element: its IDs count, not those of the page behind it.
function showCreate(page) {
  const within = page.getElementById("main"), close = document.createElement("button");
  for (const script of within.querySelectorAll("script")) { // those of a parsed document do not run
    const running = document.createElement("script");
    running.src = script.getAttribute("src");
    script.replaceWith(running);
  }
  within.querySelector("h1").id = "create-title";
  close.type = "button";
  close.className = "button quiet small close";
  close.textContent = "Close";
  close.addEventListener("click", () => createDialog.close());
  keepCreate();
  if (!createDialog.open) document.body.prepend(createDialog); // first: labels look for their fields at once
  createDialog.replaceChildren(...within.children, close);
  if (!createDialog.open) createDialog.showModal();
  showCopies(createDialog);
  for (const form of createDialog.querySelectorAll("form[data-shorten]")) {
    watchForm(form);
    if (!createDialog.querySelector("[data-refused]")) fillInDraft(form);
    previewLink(form);
  }
  (createDialog.querySelector("[aria-invalid=true]") ?? createDialog.querySelector("[name=long_url], #made"))?.focus();
}

// keepCreate keeps what was typed into the dialog and not sent.
function keepCreate() {
  for (const form of createDialog.querySelectorAll("form")) {
    const first = came.get(form);
    if (first && JSON.stringify(first) !== JSON.stringify(draftOf(form))) stored(draftKey(form), draftOf(form));
    came.delete(form);
  }
}

// createLink sends a form. The dialog shows the new link, which is copied, or what is wrong.
async function createLink(form) {
  const sent = fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  const made = sent.then(async (answer) => [answer, await pageOf(answer)]);
  const copied = copySoon(made.then(([, page]) => page.getElementById("made-url").href));
  try {
    const [answer, page] = await made;
    if (answer.redirected && !page.getElementById("made")) { // to the sign-in, which keeps what was typed
      location.href = answer.url;
      return;
    }
    if (page.getElementById("made")) {
      stored(draftKey(form), null);
      came.delete(form);
      form.reset();
    }
    showCreate(page);
    if (!createDialog.querySelector("#made")) return;
    showCopied(await copied);
    renewBehind();
  } catch {
    const note = form.querySelector(".alert") ?? document.createElement("p");
    note.className = "alert";
    note.setAttribute("role", "alert");
    note.textContent = "The service does not answer. Try again in a moment.";
    form.prepend(note);
  } finally {
    stored("sent", null);
    release(form);
  }
}

// copySoon copies a text that is still to come. Browsers let pages copy only soon after a key or a click, and Safari only if it begins then.
async function copySoon(text) {
  const blob = text.then((text) => new Blob([text], { type: "text/plain" }));
  blob.catch(() => {}); // nothing was made
  try {
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    return true;
  } catch { // missing, or not allowed
    return false;
  }
}

// showCopied says whether a new link is on the clipboard. The next link is a key away.
async function showCopied(done) {
  const button = document.querySelector("#made [data-copy]");
  done ||= await copy(document.getElementById("made-url").href, button);
  document.querySelector(".made-copied").textContent = done ? "Copied to the clipboard." : "The browser did not let this page copy it.";
  if (done) document.querySelector("#made [data-create]").focus();
}

// renewBehind shows the new link on the page behind the dialog.
function renewBehind() {
  if (document.querySelector("main.list")) createDialog.addEventListener("close", () => location.reload(), { once: true });
  else if (live) refreshNow();
}

// previewLink shows beside a form what the link will be, while somebody types.
function previewLink(form) {
  const place = form.querySelector(".will-be"), field = (name) => form.elements[name]?.value.trim() ?? "";
  if (!place) return;
  const part = (name) => place.querySelector(`.will-be-${name}`), code = place.querySelector("img");
  let drawing;
  code.addEventListener("load", () => code.hidden = false);
  code.addEventListener("error", () => code.hidden = true);
  const show = () => {
    const host = form.elements.domain_id.selectedOptions[0].text, alias = field("custom_alias");
    const small = /^[\w-]+$/.test(alias) ? alias.toLowerCase() : alias;
    part("short").textContent = `${host}/${small || "…"}`;
    let url = field("long_url");
    try {
      const parsed = new URL(/^[a-z][a-z0-9+.-]*:/i.test(url) ? url : `https://${url}`);
      for (const input of form.querySelectorAll("[name^=utm_]")) if (input.value) parsed.searchParams.set(input.name, input.value);
      url = parsed.href;
    } catch { /* not a URL yet */ }
    part("long").textContent = url && `leads to ${url}`;
    const card = ["title", "description", "image"].map((name) => [name, field(`card.${name}`)]);
    for (const [name, text] of card) part(name).textContent = text && name === "image" ? `Image: ${text}` : text;
    part("host").textContent = host;
    place.querySelector("figure").hidden = card.every(([, text]) => !text);
    part("card").hidden = !place.querySelector("figure").hidden;
    clearTimeout(drawing);
    drawing = setTimeout(() => {
      const path = `/dashboard/preview.svg?${new URLSearchParams({ custom_alias: small, domain_id: field("domain_id") })}`;
      if (!small) code.hidden = true;
      else if (code.getAttribute("src") !== path) code.src = path;
      else code.hidden = false;
    }, 250);
  };
  for (const kind of ["input", "change"]) form.addEventListener(kind, show);
  place.hidden = false;
  show();
}

createDialog.addEventListener("close", () => {
  keepCreate();
  createDialog.remove();
});
createDialog.addEventListener("click", (event) => {
  if (event.target === createDialog) createDialog.close(); // around it
});
document.addEventListener("click", (event) => {
  const way = event.target.closest("a[data-create]");
  if (!way || event.ctrlKey || event.metaKey || event.shiftKey || location.pathname === newLink) return;
  event.preventDefault();
  openCreate();
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !form.matches("[data-shorten]") || event.submitter?.name || location.pathname === newLink) return;
  event.preventDefault();
  createLink(form);
});
for (const form of document.querySelectorAll("form[data-shorten]")) previewLink(form);
if (document.getElementById("made-url")) copySoon(Promise.resolve(document.getElementById("made-url").href)).then((done) => done && showCopied(true));

// A step of a new account is done as soon as its link is opened; the service says so when the click is counted.
document.addEventListener("click", (event) => event.target.closest(".step [data-opened]")?.closest(".step").classList.add("done"));

// Tags: a field of tags offers the account's tags for the typed word.
let tags;

async function suggestTags(field) {
  tags ??= fetch("/dashboard/tags.txt", { redirect: "error" }).then((answer) => answer.ok ? answer.text() : "").then((text) => text.split("\n").filter(Boolean), () => []);
  const known = await tags, [, before, word] = field.value.normalize("NFKC").toLowerCase().match(/^(.*?)([^\s,]*)$/s); // see schema.Fold
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

// An alias is checked while it is typed.
let aliasCheck;

async function checkAlias(field) {
  const domain = field.form.elements.domain_id?.value ?? field.dataset.alias, alias = field.value.trim();
  const asked = new URLSearchParams({ alias, domain_id: domain, hash: field.dataset.hash ?? "" });
  const answer = alias && await fetch(`/dashboard/alias.txt?${asked}`, { redirect: "error" }).catch(() => null);
  const problem = answer?.ok ? await answer.text() : "";
  if (alias !== field.value.trim()) return; // it has changed meanwhile
  let note = field.parentElement.querySelector(".checked");
  if (!note) {
    note = document.createElement("p");
    note.className = "hint checked";
    note.setAttribute("role", "status");
    field.after(note);
  }
  note.textContent = problem;
}
for (const kind of ["input", "change"]) document.addEventListener(kind, (event) => {
  const field = event.target.matches("[data-alias]") ? event.target : event.target.name === "domain_id" && event.target.form?.querySelector("[data-alias]");
  if (!field) return;
  clearTimeout(aliasCheck);
  aliasCheck = setTimeout(checkAlias, 300, field);
});

// Files that are too large are not sent.
for (const field of document.querySelectorAll("input[type=file][data-max]"))
  field.addEventListener("change", () =>
    field.setCustomValidity(field.files[0]?.size > field.dataset.max ? "The file is larger than 32 MiB. Import it in parts." : ""));

// What was typed outlasts a session that ends, a network that fails and a click on a link: this tab keeps it until the service has taken it,
// and fills it in again. A draft belongs to the address to which its form is sent, where a refused form is shown again.
const came = new Map(); // the values that each form came with
const refused = location.pathname.startsWith("/dashboard/sign-") || !!document.querySelector("[data-refused]");
const draftKey = (form) => `typed ${form.getAttribute("action")}`;

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

// wasRefused reports whether the page shows a form again because of what it has, which is not saved.
const wasRefused = (form) => refused && (!!form.querySelector("[aria-invalid=true]") || came.size === 1);

// watchForm keeps what is typed into a form.
function watchForm(form) {
  sendOnce(form);
  if (!form.matches("#chosen, #row, .quick") && !form.querySelector(".pick") && typedIn(form).length) came.set(form, draftOf(form));
}

// fillInDraft fills in what is kept of a form, and says so.
function fillInDraft(form) {
  const first = came.get(form), draft = first && stored(draftKey(form));
  if (!draft || wasRefused(form)) return;
  fillIn(form, draft);
  const note = document.createElement("p"), discard = document.createElement("button");
  note.className = "notice apart draft";
  note.setAttribute("role", "status");
  note.append("Unsaved changes restored", discard);
  discard.type = "button";
  discard.className = "button quiet small";
  discard.textContent = "Discard";
  discard.addEventListener("click", () => {
    fillIn(form, first);
    note.remove();
  });
  form.prepend(note);
}

function keepTyped() {
  for (const [form, first] of came) {
    const values = draftOf(form), typed = JSON.stringify(values) !== JSON.stringify(first) || wasRefused(form);
    if (form.isConnected) stored(draftKey(form), typed ? values : null);
  }
}
addEventListener("pagehide", keepTyped);

// A page to which a form has led, and that is no refusal, says that what was sent has been taken.
const sent = stored("sent"), led = sent && document.referrer && new URL(document.referrer).pathname === sent.from;
stored("sent", null);
if (led && !refused && performance.getEntriesByType("navigation")[0]?.type !== "back_forward") stored(sent.draft, null);

// Selection: the box in the heading checks all of the page, and what can be done with the chosen links appears once there are any.
const picks = () => [...document.querySelectorAll(".pick input[name]")];

function showChosen() {
  const boxes = picks(), count = boxes.filter((box) => box.checked).length;
  const pickAll = document.getElementById("pick-all"), chosen = document.getElementById("chosen");
  if (!pickAll) return;
  pickAll.hidden = false;
  pickAll.checked = count === boxes.length;
  pickAll.indeterminate = count > 0 && !pickAll.checked;
  if (!chosen) return;
  chosen.classList.add("floats");
  const all = chosen.elements.all?.checked;
  chosen.classList.toggle("none", count === 0 && !all);
  document.getElementById("chosen-count").textContent = all ? "All selected" : `${count} selected`;
}

document.addEventListener("change", ({ target }) => {
  if (target.id === "pick-all") for (const box of picks()) box.checked = target.checked;
  showChosen();
});
addEventListener("pageshow", showChosen); // Back restores the boxes
showChosen();

// Forms are sent once, however often the button is pressed, which says that it waits.
function sendOnce(form) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    if (came.has(form)) stored("sent", { draft: draftKey(form), from: location.pathname });
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
for (const form of came.keys()) fillInDraft(form);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) release(form);
  for (const form of came.keys()) if (!stored(draftKey(form))) came.set(form, draftOf(form)); // it was sent and taken
});

// A form that undoes many things in parts is sent again until all are done.
document.querySelector("form[data-continue]")?.requestSubmit();

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
    for (const made of form.querySelectorAll("form")) {
      watchForm(made);
      fillInDraft(made);
    }
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

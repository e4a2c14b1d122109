// Keys: C creates a link, G and a letter lead to a page, and in lists keys move a cursor, which is the focus of a row. Readers who dictate can
// switch them off (WCAG 2.1.4); this browser remembers it. The dialog of ? says them all.
const keyWords = [["c", "Create a link"], ["/", "Search"], ["g o", "Go to the overview"], ["g l", "Go to the links"], ["g r", "Go to the report"],
  ["j ↓", "Next row"], ["k ↑", "Row before"], ["x", "Select the row, Shift and a click a range"], ["Enter", "Open the row"], ["?", "Keyboard shortcuts"]];
const places = { o: "/dashboard", l: "/dashboard/links", r: "/dashboard/report" };
let going = false, lastPick = null; // whether G was the key before

function keysAreOn() {
  try {
    return localStorage.getItem("shortcut") !== "off";
  } catch { // no storage allowed
    return true;
  }
}

function switchKeys(on) {
  try {
    localStorage.setItem("shortcut", on ? "on" : "off");
  } catch { /* they stay on */ }
  say(keysAreOn() ? "Keyboard shortcuts are on" : "Keyboard shortcuts are off");
}

function showKeys() {
  const dialog = document.createElement("dialog"), title = document.createElement("h2"), list = document.createElement("dl");
  const label = document.createElement("label"), box = document.createElement("input"), close = document.createElement("button");
  dialog.className = "dialog keys";
  title.id = "keys-title";
  title.textContent = "Keyboard shortcuts";
  dialog.setAttribute("aria-labelledby", title.id);
  for (const [keys, what] of keyWords) {
    const term = document.createElement("dt"), meaning = document.createElement("dd");
    for (const key of keys.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
    meaning.textContent = what;
    list.append(term, meaning);
  }
  label.className = "check";
  box.type = "checkbox";
  box.checked = keysAreOn();
  box.addEventListener("change", () => switchKeys(box.checked));
  label.append(box, "Keyboard shortcuts are on");
  close.type = "button";
  close.className = "button quiet small close";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, label, close);
  dialog.addEventListener("close", () => {
    dialog.remove();
    showToggle();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // around it
  });
  document.body.append(dialog);
  dialog.showModal();
}

const help = document.querySelector("[data-keys]"), toggle = help && document.createElement("button");

function showToggle() {
  if (toggle) toggle.textContent = keysAreOn() ? "Switch shortcuts off" : "Switch shortcuts on";
}

if (help) {
  help.hidden = false;
  help.after(toggle);
  showToggle();
  toggle.addEventListener("click", () => {
    switchKeys(!keysAreOn());
    showToggle();
  });
  help.addEventListener("click", showKeys);
}

// moveCursor moves the cursor by rows, and reports whether it could.
function moveCursor(by) {
  const at = rows().indexOf(document.activeElement.closest("tr"));
  const row = rows()[at < 0 ? 0 : at + by];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
  return !!row;
}

const keyActions = {
  c: () => document.querySelector("[data-create]"),
  "/": () => {
    const field = document.querySelector("[role=search] [type=search]");
    field?.select();
    field?.focus();
    return !!field;
  },
  "?": () => {
    showKeys();
    return true;
  },
  x: () => document.activeElement.closest("tr")?.querySelector(".pick input"),
  Enter: () => document.activeElement.matches(".links tbody tr") && document.activeElement.querySelector(".wide a"),
};
keyActions.j = keyActions.ArrowDown = () => moveCursor(1);
keyActions.k = keyActions.ArrowUp = () => moveCursor(-1);

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable], dialog");
  const arrow = event.key.startsWith("Arrow") && event.target.closest("details, [tabindex='0']");
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing || arrow || !keysAreOn()) return;
  const way = going && places[event.key] && document.querySelector(`.bar nav a[href="${places[event.key]}"]`);
  going = event.key === "g";
  const does = way || (Object.hasOwn(keyActions, event.key) && keyActions[event.key]());
  if (!does) return;
  event.preventDefault();
  if (does !== true) does.click(); // an element
});

// Shift and a click check all boxes from the one before.
document.addEventListener("click", (event) => {
  const boxes = picks(), at = boxes.indexOf(event.target), before = boxes.indexOf(lastPick);
  if (at < 0) return;
  if (event.shiftKey && before >= 0)
    for (const box of boxes.slice(Math.min(at, before), Math.max(at, before) + 1)) box.checked = event.target.checked;
  lastPick = event.target;
});

// A row's menu: what the page of the link has, too, is added when the menu opens, with an icon each.
const rowMenu = { Open: "external-link", Copy: "copy", "QR code": "qr-code", Report: "chart-column", Share: "share-2", Edit: "pencil",
  Rename: "link-2", Duplicate: "copy-plus", "Switch off": "power-off", "Switch on": "power", Delete: "trash-2" };
const iconFile = document.querySelector(".icon use")?.getAttribute("href").split("#")[0];

function iconOf(name) {
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg"), use = document.createElementNS(icon.namespaceURI, "use");
  icon.setAttribute("class", "icon");
  icon.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${iconFile}#${name}`);
  icon.append(use);
  return icon;
}

function copyButton() {
  const button = Object.assign(document.createElement("button"), { textContent: "Copy" });
  button.dataset.copy = "";
  return button;
}

function fillMenu(menu) {
  if (menu.dataset.filled) return; // an item that moves loses the focus
  menu.dataset.filled = "yes";
  const items = menu.querySelector(".items"), row = menu.closest("tr"), page = row.querySelector(".wide a").pathname;
  const [domain, hash] = page.split("/").slice(-2), has = new Map([...items.children].map((item) => [item.textContent.trim(), item]));
  const more = { Open: row.querySelector("[data-copy][value]").value, Report: page, Share: `/dashboard/shares/new?hash=${hash}&domain_id=${domain}`,
    Rename: `${page}/edit#alias`, Duplicate: `/dashboard/links/new?from=${domain}.${hash}` };
  for (const [label, icon] of Object.entries(rowMenu)) {
    const item = has.get(label) ?? (label === "Copy" ? copyButton() : more[label] && Object.assign(document.createElement("a"), { href: more[label], textContent: label }));
    if (!item) continue;
    if (label === "Share") item.dataset.dialog = "modal";
    if (!item.querySelector(".icon")) item.prepend(iconOf(icon));
    items.append(item);
  }
  showCopies(items);
  const open = items.firstElementChild;
  open.target = "_blank";
  open.rel = "noopener noreferrer";
}
document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.matches(".row-actions > details")) fillMenu(event.target);
}, true);

// A title or URL that is cut says all of it in a tooltip.
document.addEventListener("pointerover", (event) => {
  const cut = event.target.closest?.(".cut, .badge");
  if (cut && !cut.title && cut.scrollWidth > cut.clientWidth) cut.title = cut.textContent.trim();
});

// On narrow screens the navigation scrolls: to where the reader is.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// say lets screen readers say something.
function say(text) {
  document.getElementById("said").textContent = text;
}

// Copy: <button type="button" data-copy="ID of an element or input" hidden> copies its text; without an ID, the button's value is copied, or
// its row's.
function showCopies(within) {
  for (const button of within.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    button.hidden = false;
    if (button.value && label === "Copy") button.ariaLabel = `Copy ${button.value.replace(/^https?:\/\//, "")}`;
    button.addEventListener("click", async () => {
      const source = button.dataset.copy ? document.getElementById(button.dataset.copy) : button.value ? button : button.closest("td").querySelector("[value]");
      button.textContent = await copy((source.value ?? source.textContent).trim(), button) ? "Copied" : "Press Ctrl+C";
      say(button.textContent);
      setTimeout(() => { button.textContent = label; say(""); }, 2000);
    });
  }
}
showCopies(document);

// copy puts a text on the clipboard. Pages of plain http have no navigator.clipboard: there a field with the text is selected and
// copied. If the browser refuses that, too, the field stays until it loses the focus, so that the reader can copy it.
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* missing, or not allowed */ }
  const field = document.createElement("textarea");
  field.className = "to-copy";
  field.name = "copied"; // browsers complain about fields without a name
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
function showShows(within) {
  for (const button of within.querySelectorAll("button[data-show]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const show = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", show);
      for (const id of button.dataset.show.split(" ")) document.getElementById(id).type = show ? "text" : "password";
    });
  }
}
showShows(document);

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
  if (menu.matches(".row-actions > *")) fillMenu(menu);
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

// Tabs: a card of several lists shows one of them, which its tabs choose. Without the script, the lists stand one below the other. What is
// chosen stays chosen for the session, when numbers change and in other reports.
const chosenTabs = (() => {
  try {
    return JSON.parse(sessionStorage.getItem("tabs")) ?? {};
  } catch { /* none allowed */
    return {};
  }
})();

let totals = [...document.querySelectorAll("#totals [data-key]")], askedTotals = false;

// loadTotals loads the lists that are counted when somebody asks for them, once: their link leads to them, too.
async function loadTotals(link) {
  if (askedTotals) return;
  askedTotals = true;
  try {
    const answer = await fetch(`${link.href}&part=totals`, { redirect: "error" });
    if (!answer.ok) return;
    totals = [...new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll("[data-key]")];
  } catch {
    return;
  }
  const card = document.querySelector("[data-tabs=links]"), list = card?.querySelector("[role=tablist]");
  const focused = list?.contains(document.activeElement) && document.activeElement.id;
  list?.remove();
  card?.classList.remove("tabbed");
  readTabs();
  if (focused) document.getElementById(focused)?.focus();
}

function readTabs() {
  const links = document.querySelector("[data-tabs=links]:not(.tabbed)"), order = ["top", "tag", "domain_id"];
  if (links && totals.length > 0) {
    for (const link of links.querySelectorAll("[data-later]")) link.closest("[data-key]").remove();
    links.append(...totals);
    document.getElementById("totals")?.remove();
  }
  const place = (panel) => order.indexOf(panel.dataset.key) >>> 0; // the others are last
  for (const card of document.querySelectorAll("[data-tabs]:not(.tabbed)")) {
    const panels = [...card.querySelectorAll("[data-key]")].sort((a, b) => place(a) - place(b)), heading = card.querySelector("h2");
    if (panels.length < 2) continue;
    const list = document.createElement("div");
    const choose = (chosen) => panels.forEach((panel, at) => {
      const tab = list.children[at], is = panel === chosen;
      panel.hidden = !is;
      tab.setAttribute("aria-selected", is);
      tab.tabIndex = is ? 0 : -1;
      const later = is && panel.querySelector("[data-later]");
      if (later) loadTotals(later);
    });
    const pick = (at) => {
      choose(panels[at]);
      list.children[at].focus();
      chosenTabs[card.dataset.tabs] = panels[at].dataset.key;
      try {
        sessionStorage.setItem("tabs", JSON.stringify(chosenTabs));
      } catch { /* none allowed */ }
    };
    panels.forEach((panel, at) => {
      const tab = document.createElement("button"), key = panel.dataset.key;
      panel.id = `panel-${key}`;
      for (const [name, text] of [["type", "button"], ["role", "tab"], ["id", `tab-${key}`], ["value", key], ["aria-controls", panel.id]])
        tab.setAttribute(name, text);
      tab.textContent = panel.dataset.tab ?? panel.querySelector("h2, h3").textContent;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      tab.addEventListener("click", () => pick(at));
      list.append(tab);
    });
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -panels.length, End: panels.length };
    list.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      const at = [...list.children].indexOf(event.target), to = at + moves[event.key], last = panels.length - 1;
      pick(Math.abs(moves[event.key]) > 1 ? Math.max(0, Math.min(last, to)) : (to + panels.length) % panels.length);
    });
    list.className = "tabs";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", heading.textContent);
    heading.after(list);
    card.classList.add("tabbed");
    choose(panels.find((panel) => panel.dataset.key === chosenTabs[card.dataset.tabs]) ?? panels[0]);
  }
}
readTabs();

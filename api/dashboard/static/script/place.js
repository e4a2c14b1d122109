// A page that answers a form: reloading it gets the page instead of sending the form again.
const instead = document.querySelector("[data-reload]");
if (instead) history.replaceState(null, "", instead.dataset.reload);

// The first field with a problem is where the reader goes on, or the button that copies what has just been made.
(document.querySelector("[aria-invalid=true]") ?? document.querySelector("#made [data-copy]"))?.focus();

// An action on a row of a list leads back to the list: the row stays where it was on the screen, and has the focus. Where it is gone,
// the next row has it. A link that leads to the same report, of another period or of fewer clicks, keeps the place on the page.
const rows = () => [...document.querySelectorAll(".links tbody tr")];
for (const row of rows()) row.tabIndex = -1;

function keepPlace(control) {
  const row = control?.closest(".links tbody tr"), within = control?.closest("[data-stay]"), section = within && control.closest(".card");
  const heading = section?.querySelector("h2")?.textContent, from = row ?? (heading ? section : within);
  if (!from) return;
  const place = { page: location.pathname, row: rows().indexOf(row), top: from.getBoundingClientRect().top, stay: within?.dataset.stay, list: heading };
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
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-stay] form") || event.submitter.hasAttribute("formaction")) return; // which is a file
  keepPlace(event.submitter);
  event.target.action = location.pathname;
});

function findPlace() {
  const named = rows().find((row) => "#" + row.id === location.hash);
  let place = {};
  try {
    place = JSON.parse(sessionStorage.getItem("place")) ?? {};
    sessionStorage.removeItem("place");
  } catch { /* none allowed */ }
  if (place.stay && place.page === location.pathname) {
    const within = document.querySelector(`[data-stay="${place.stay}"]`) ?? document.querySelector("[data-stay=report]");
    const headings = [...document.querySelectorAll("[data-stay] section h2")];
    const to = headings.find((heading) => heading.textContent === place.list)?.closest("section") ?? within;
    if (to) scrollBy(0, to.getBoundingClientRect().top - place.top);
    within?.focus({ preventScroll: true });
    return;
  }
  const row = named ?? (place.page === location.pathname ? rows()[Math.min(place.row, rows().length - 1)] : null);
  if (row && place.page === location.pathname) scrollBy(0, row.getBoundingClientRect().top - place.top);
  row?.focus({ preventScroll: place.page === location.pathname });
}
findPlace();

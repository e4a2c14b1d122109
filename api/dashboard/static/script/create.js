// New links: the form for a new link has a page of its own, which other pages show in a dialog, by the button of the bar and by the key C.

// newLinkSent shows the dialog for a form that is not in it, as the one of the overview.
function newLinkSent(form) {
  paneLink = document.activeElement;
  panePath = document.getElementById("create").pathname;
  pane.className = "pane modal";
  sendPane(form);
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

// previewLink shows beside a form what the link will be, while somebody types.
let drawing;

function previewLink(form) {
  const place = form?.querySelector(".will-be"), field = (name) => form.elements[name]?.value.trim() ?? "";
  if (!place) return;
  const part = (name) => place.querySelector(`.will-be-${name}`), code = place.querySelector("img");
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
  place.hidden = false;
  clearTimeout(drawing);
  drawing = setTimeout(() => {
    const path = `/dashboard/preview.svg?${new URLSearchParams({ custom_alias: small, domain_id: field("domain_id") })}`;
    if (!small) code.hidden = true;
    else if (code.getAttribute("src") !== path) code.src = path;
    else code.hidden = false;
  }, 250);
}
for (const kind of ["input", "change"]) document.addEventListener(kind, (event) => previewLink(event.target.closest("[data-shorten]")));
for (const kind of ["load", "error"]) document.addEventListener(kind, (event) => {
  if (event.target.matches?.(".will-be img")) event.target.hidden = kind === "error";
}, true); // these events do not bubble
previewLink(document.querySelector("form[data-shorten]"));

document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || !event.target.matches(".quick")) return;
  event.preventDefault();
  newLinkSent(event.target);
});
if (document.getElementById("made-url")) copySoon(Promise.resolve(document.getElementById("made-url").href)).then((done) => done && showCopied(true));

// A step of a new account is done as soon as its link is opened; the service says so when the click is counted.
document.addEventListener("click", (event) => event.target.closest(".step [data-opened]")?.closest(".step").classList.add("done"));

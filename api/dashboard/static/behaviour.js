// The behaviour of a link: its buttons change rows without another page, and shares and card follow what is typed.
"use strict";

if (document.getElementById("long_url")) { // otherwise its dialog has been closed
  const longURL = document.getElementById("long_url"), form = longURL.form;

  // change asks the service for the form with other rows. If that fails, the browser sends the form.
  async function change(button) {
    try {
      const answer = await fetch(form.getAttribute("action"), { method: "POST", redirect: "error", body: new URLSearchParams(new FormData(form, button)) });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html"), fields = document.getElementById("behaviour-fields");
      fields.replaceWith(page.getElementById("behaviour-fields"));
      (form.querySelector("#behaviour-fields [autofocus]") ?? form.querySelector("#targeting summary")).focus();
    } catch {
      form.requestSubmit(button);
    }
  }

  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[name=row]");
    if (!button) return;
    event.preventDefault();
    change(button);
  });

  form.addEventListener("input", () => {
    let x = 0;
    const bars = form.querySelectorAll("#shares rect"), weights = [];
    for (const [i, field] of form.querySelectorAll("input[name$='.weight']").entries()) {
      const weight = Math.min(Math.max(parseInt(field.value, 10) || 0, 0), 100);
      bars[i]?.setAttribute("x", `${x}%`);
      bars[i]?.setAttribute("width", `${weight}%`);
      weights.push(weight);
      x += weight;
    }
    if (weights.length) form.querySelector("#sum").textContent = `${weights.join(" + ")} = ${x} %`;
    for (const shown of form.querySelectorAll("[data-of]")) {
      const text = document.getElementById(shown.dataset.of).value.trim();
      shown.textContent = shown.dataset.of === "card.image" ? (text ? `Image: ${text}` : "No image")
        : text || (shown.dataset.of === "card.title" ? "Title" : "");
    }
  });

  // A field that takes several names, separated by commas, offers those that begin with the typed word.
  for (const kind of ["focusin", "input"]) form.addEventListener(kind, ({ target: field }) => {
    if (!field.matches("[data-several]")) return;
    field.dataset.several ||= field.getAttribute("list");
    const [, before, word] = field.value.match(/^(.*,)?\s*([^,]*)$/), start = before ? `${before} ` : "";
    const names = [...document.getElementById(field.dataset.several).options].map((option) => option.value);
    let list = form.querySelector("#offered");
    if (!list) {
      list = document.createElement("datalist");
      list.id = "offered";
      form.append(list);
    }
    list.replaceChildren(...names.filter((name) => name.toLowerCase().includes(word.trim().toLowerCase())).map((name) => new Option("", start + name)));
    field.setAttribute("list", list.id);
  });

  // Parameters of the long URL that web analytics read stand in fields, too. A field that the reader has changed counts, and the URL that
  // the link leads to is shown.
  const campaign = [...form.querySelectorAll("[name^=utm_]")];
  const read = new Map(campaign.map((field) => [field, field.value]));

  function parse() {
    const text = longURL.value.trim();
    try {
      return new URL(/^[a-z][a-z0-9+.-]*:/i.test(text) ? text : `https://${text}`);
    } catch {
      return null;
    }
  }

  longURL.addEventListener("input", () => {
    const url = parse();
    for (const field of url ? campaign : []) {
      if (field.value === read.get(field)) field.value = url.searchParams.get(field.name) ?? "";
      read.set(field, url.searchParams.get(field.name) ?? "");
    }
  });
  form.addEventListener("input", () => {
    const url = parse(), changed = campaign.filter((field) => field.value !== read.get(field));
    for (const field of url ? changed : []) {
      if (field.value) url.searchParams.set(field.name, field.value);
      else url.searchParams.delete(field.name);
    }
    document.getElementById("campaign-preview").textContent = url && changed.length ? `Leads to ${url.href}` : "";
  });

  // Usual times of expiry, from now on, in the time zone of the page.
  const expiry = document.getElementById("expires_at");
  for (const [label, days] of [["1 day", 1], ["1 week", 7], ["30 days", 30], ["1 year", 365]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button quiet small";
    button.textContent = label;
    button.addEventListener("click", () => {
      const at = new Date(Date.now() + days * 86400e3);
      expiry.value = at.toLocaleString("sv-SE", { timeZone: document.documentElement.dataset.zone }).slice(0, 16).replace(" ", "T");
      expiry.focus();
    });
    document.getElementById("expiry-presets").append(button);
  }
}

// The behaviour of a link: its buttons change rows without another page, and shares and card follow what is typed.
"use strict";

{
  const section = document.getElementById("behaviour");

  // change asks the service for the form with other rows. If that fails, the browser sends the form.
  async function change(button) {
    try {
      const form = button.form;
      const answer = await fetch(form.action, { method: "POST", redirect: "error", body: new URLSearchParams(new FormData(form, button)) });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById("behaviour-fields").replaceWith(page.getElementById("behaviour-fields"));
      (section.querySelector("[autofocus]") ?? section.querySelector("summary")).focus();
    } catch {
      button.form.requestSubmit(button);
    }
  }

  section?.addEventListener("click", (event) => {
    const button = event.target.closest("button[name=row]");
    if (!button) return;
    event.preventDefault();
    change(button);
  });

  section?.addEventListener("input", () => {
    let x = 0;
    const bars = document.querySelectorAll("#shares rect");
    for (const [i, field] of section.querySelectorAll("input[name$='.weight']").entries()) {
      const weight = Math.min(Math.max(parseInt(field.value, 10) || 0, 0), 100);
      bars[i]?.setAttribute("x", `${x}%`);
      bars[i]?.setAttribute("width", `${weight}%`);
      x += weight;
    }
    for (const shown of section.querySelectorAll("[data-of]")) {
      const text = document.getElementById(shown.dataset.of).value.trim();
      shown.textContent = shown.dataset.of === "card.image" ? (text ? `Image: ${text}` : "No image")
        : text || (shown.dataset.of === "card.title" ? "Title" : "");
    }
  });
}

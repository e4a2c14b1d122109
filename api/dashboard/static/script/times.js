// What makes the pages nicer. All of them work without it.
"use strict";

// Times: in one form, as the English that the reader prefers writes dates, with the exact moment on hover, in the time zone of the page.
const english = navigator.languages.find((language) => /^en\b/.test(language)) ?? "en";
const monthForm = { month: "short", year: "numeric" }, dayForm = { day: "numeric", ...monthForm };
const exact = dates({ dateStyle: "full", timeStyle: "long" }), day = dates(dayForm);

function dates(style, timeZone = document.documentElement.dataset.zone) {
  try {
    return new Intl.DateTimeFormat(english, { ...style, timeZone });
  } catch { // a zone that the browser does not know
    return new Intl.DateTimeFormat(english, style);
  }
}

// Days, and hours of days, which are in the page's zone already.
const civil = dates(dayForm, "UTC"), civilHour = dates({ ...dayForm, hour: "2-digit", minute: "2-digit" }, "UTC");
const civilShort = dates({ day: "numeric", month: "short" }, "UTC"), civilMonth = dates(monthForm, "UTC");

function showDates() {
  const show = (name, form = name.includes(":") ? civilHour : civil) => form.format(new Date(name));
  for (const date of document.querySelectorAll("time[data-civil]")) date.textContent = show(date.dateTime.replace(/ (.*)/, "T$1Z"));
  for (const rows of document.querySelectorAll("tbody[data-civil]")) { // as the service writes dates, which is the form of RFC 5322
    for (const date of rows.querySelectorAll("th")) date.textContent = show(`${date.textContent.replace(",", "")} GMT`);
    delete rows.dataset.civil;
  }
  for (const label of document.querySelectorAll("text[data-day]")) label.textContent = show(label.dataset.day, civilShort);
  for (const label of document.querySelectorAll("text[data-month]")) label.textContent = show(label.dataset.month, civilMonth);
}
showDates();
const relative = new Intl.RelativeTimeFormat(english, { numeric: "auto" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

function showTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-civil], [data-clock])")) {
    const at = new Date(element.dateTime);
    if (isNaN(at)) continue;
    const seconds = (at - Date.now()) / 1000;
    element.title = exact.format(at);
    if (Math.abs(seconds) >= 30 * 86400) {
      element.textContent = day.format(at);
      continue;
    }
    const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) || ["second", 0];
    element.textContent = length ? relative.format(Math.trunc(seconds / length), unit) : "just now";
  }
}
showTimes();
setInterval(showTimes, 30000);

// The browser's time zone, which counts unless the account names another one.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `linkstream-zone=${zone}; path=/dashboard; max-age=31536000; samesite=lax`;
for (const list of document.querySelectorAll("#zones")) list.append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name)));

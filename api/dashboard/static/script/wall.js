// Wall: a shared report on a screen that nobody touches fetches itself again, for days, whatever the service answers meanwhile. It has the
// styles of the service's last version, and says what takes its place when it is not shared any more.
const wall = document.querySelector("main.wall"), wallEvery = 5000;
let missed = 0;

async function renewWall() {
  try {
    const answer = await fetch(location.href, { signal: AbortSignal.timeout(4 * wallEvery) });
    if (!answer.ok && answer.status !== 404) throw new Error(answer.statusText);
    const page = await pageOf(answer), fresh = page.getElementById("main"), chart = fresh.querySelector(".chart");
    const sheets = [...document.querySelectorAll("link[rel=stylesheet]")];
    page.querySelectorAll("link[rel=stylesheet]").forEach((sheet, at) => {
      if (sheets[at] && sheets[at].href !== sheet.href) sheets[at].href = sheet.href;
    });
    if (chart) wall.querySelector(".chart")?.replaceWith(chart.cloneNode(true)); // morph keeps what it says to screen readers
    morph(wall, fresh);
    showTimes();
    showDates();
    missed = 0;
  } catch {
    missed++;
  } finally {
    const late = document.getElementById("wall-late");
    if (late) late.hidden = missed < 3;
    setTimeout(renewWall, wallEvery);
  }
}

// keepLit keeps the screen on, where the browser allows that.
const keepLit = () => document.hidden || navigator.wakeLock?.request("screen").catch(() => {});

if (wall) {
  setTimeout(renewWall, wallEvery);
  document.addEventListener("visibilitychange", keepLit);
  keepLit();
}

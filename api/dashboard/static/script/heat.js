// Heat maps: the people of an hour are shown when its cell is tapped or pointed at, or chosen by the arrow keys as on a slider.
function readHeat(chosen) {
  const days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
  for (const plot of document.querySelectorAll(".heat-cells:not([tabindex])")) {
    const heat = plot.closest(".heat"), value = heat.querySelector(".heat-value"), people = heat.dataset.heat.split(",").map(Number);
    const mark = document.createElementNS(plot.namespaceURI, "rect");
    const busiest = people.indexOf(Math.max(...people)), hour = (n) => `${String(n).padStart(2, "0")}:00`;
    const says = (at) => `${days[Math.floor(at / 24)]}, ${hour(at % 24)} to ${hour(at % 24 + 1)}: ${people[at].toLocaleString("en")} people`;
    const choose = (at) => {
      for (const [name, of] of [["x", 10 * (at % 24)], ["y", 10 * Math.floor(at / 24)], ["width", 9], ["height", 9]]) mark.setAttribute(name, of);
      plot.append(mark);
      value.textContent = says(at);
      plot.setAttribute("aria-valuenow", at);
      plot.setAttribute("aria-valuetext", value.textContent);
    };
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -24, ArrowDown: 24, Home: -people.length, End: people.length };
    for (const [name, text] of [["role", "slider"], ["tabindex", "0"], ["aria-valuemin", "0"], ["aria-valuemax", people.length - 1],
      ["aria-valuenow", busiest], ["aria-valuetext", says(busiest)]]) plot.setAttribute(name, text);
    if (chosen) choose(Number(chosen));
    plot.addEventListener("focus", () => choose(Number(plot.getAttribute("aria-valuenow"))));
    plot.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      const at = Number(plot.getAttribute("aria-valuenow")) + moves[event.key];
      if (Math.abs(moves[event.key]) === people.length || at >= 0 && at < people.length) choose(Math.max(0, Math.min(people.length - 1, at)));
    });
    for (const kind of ["pointermove", "pointerdown"]) plot.addEventListener(kind, (event) => {
      const { left, top, width, height } = plot.getBoundingClientRect(), within = (n, size, cells) => Math.max(0, Math.min(cells - 1, Math.floor(n / size * cells)));
      choose(24 * within(event.clientY - top, height, 7) + within(event.clientX - left, width, 24));
    });
  }
}
readHeat();

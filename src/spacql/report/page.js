"use strict";
// All text that comes from files is set with textContent or drawn on the canvas, never as HTML.

const tip = document.getElementById("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (y - box.height - 12 > 8 ? y - box.height - 12 : y + 18) + "px";
}
const hideTip = () => { tip.hidden = true; };
document.addEventListener("pointerover", event => {
  const mark = event.target.closest("[data-tip]");
  if (mark) showTip(mark.dataset.tip, event.clientX, event.clientY);
});
document.addEventListener("pointerout", event => {
  if (event.target.closest("[data-tip]")) hideTip();
});
// Values that the keyboard asked for stay while the page moves to them.
addEventListener("scroll", () => document.activeElement.matches(".frame") || hideTip(),
  { passive: true });

// Tables: a click on a column's name sorts by it, a second one the other way round.
for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = row => {
      const cell = row.cells[head.cellIndex];
      return cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key);
    };
    const order = (a, b) => typeof a === "number" && typeof b === "number"
      ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
    const rows = [...body.rows].sort((a, b) => order(value(a), value(b)) * (descending ? -1 : 1));
    body.append(...rows);
  });
}

// Charts: the values of the nearest round, by pointer and by arrow keys.
const short = value => Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en")
  : String(Number(value.toPrecision(3)));
for (const frame of document.querySelectorAll(".frame")) {
  const chart = JSON.parse(frame.dataset.chart), plot = frame.querySelector(".plot");
  const line = document.createElement("div");
  line.className = "at";
  let place = -1;
  function show(k) {
    place = Math.max(0, Math.min(chart.x.length - 1, k));
    const x = chart.x[place], box = plot.getBoundingClientRect();
    const share = (x - chart.low) / (chart.high - chart.low);
    line.style.left = 100 * share + "%";
    plot.append(line);
    const texts = [chart.x_name + " " + short(x)];
    for (const series of chart.series) {
      const at = series.x.indexOf(x);
      if (at < 0) continue;
      const values = series.y.map(row => row[at]).filter(value => value !== null);
      const mean = values.reduce((a, b) => a + b, 0) / values.length;
      const seeds = values.length > 1 ? "  (" + values.map(short).join(", ") + ")" : "";
      texts.push(series.name + ": " + short(mean) + seeds);
    }
    showTip(texts.join("\n"), box.left + share * box.width, box.top + 40);
  }
  function leave() { line.remove(); hideTip(); }
  plot.addEventListener("pointermove", event => {
    const box = plot.getBoundingClientRect();
    const x = chart.low + (event.clientX - box.left) / box.width * (chart.high - chart.low);
    let best = 0;
    chart.x.forEach((v, k) => { if (Math.abs(v - x) < Math.abs(chart.x[best] - x)) best = k; });
    show(best);
  });
  plot.addEventListener("pointerleave", leave);
  frame.addEventListener("blur", leave);
  frame.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) { show(place + step); event.preventDefault(); }
    if (event.key === "Escape") leave();
  });
}

// A pressed name leaves its line alone, with its seeds.
for (const button of document.querySelectorAll(".series-legend button")) {
  button.addEventListener("click", () => {
    const section = button.closest("main > section");
    const on = button.getAttribute("aria-pressed") !== "true";
    for (const other of button.parentNode.children) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(on));
    section.classList.toggle("solo", on);
    for (const series of section.querySelectorAll(".series"))
      series.classList.toggle("alone", on && series.dataset.name === button.dataset.name);
  });
}

// The episode.
for (const player of document.querySelectorAll(".player")) {
  const films = JSON.parse(player.querySelector("script").textContent);
  const canvas = player.querySelector("canvas"), pen = canvas.getContext("2d");
  const slider = player.querySelector("input"), said = player.querySelector(".said");
  const play = player.querySelector("[data-do=play]");
  const pick = name => Number(player.querySelector(`[data-pick=${name}]`)?.value ?? 0);
  let step = 0, timer = null;
  const film = () => films[pick("team")];
  const episode = () => film().episodes[pick("episode")];
  const last = () => episode().position.length - 1;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw() {
    const { extent, start, agents, landmarks } = film(), now = episode();
    const ratio = Math.min(devicePixelRatio || 1, 3), size = 560;
    if (canvas.width !== size * ratio) canvas.width = canvas.height = size * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size, size);
    const unit = size / (2 * extent), X = x => (x + extent) * unit, Y = y => (extent - y) * unit;
    const disc = (x, y, r) => { pen.beginPath(); pen.arc(X(x), Y(y), r, 0, 7); };
    const text = colour("--text"), soft = colour("--soft");
    pen.lineCap = "butt";
    pen.lineWidth = 1; pen.strokeStyle = soft; pen.setLineDash([4, 5]);
    pen.strokeRect(X(-start), Y(start), 2 * start * unit, 2 * start * unit);
    pen.setLineDash([]);
    landmarks.forEach((mark, k) => {
      const [x, y] = now.landmarks[k];
      if (mark.look === "obstacle" || mark.look === "forest") {
        disc(x, y, mark.size * unit);
        pen.fillStyle = colour("--" + mark.look); pen.fill();
        pen.strokeStyle = soft; pen.stroke();
      }
    });
    agents.forEach((agent, k) => {
      const ink = colour(agent.prey ? "--prey" : "--c" + [0, 1, 3, 4, 8, 5, 9][k % 7]);
      pen.strokeStyle = ink; pen.lineWidth = 2.5;
      for (let t = 1; t <= step; t++) {
        pen.globalAlpha = 0.2 + 0.6 * t / step;
        pen.beginPath();
        pen.moveTo(X(now.position[t - 1][k][0]), Y(now.position[t - 1][k][1]));
        pen.lineTo(X(now.position[t][k][0]), Y(now.position[t][k][1]));
        pen.stroke();
      }
      pen.globalAlpha = 0.88;
      const [x, y] = now.position[step][k], r = Math.max(agent.size * unit, 7);
      disc(x, y, r); pen.fillStyle = ink; pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 1.5; pen.strokeStyle = colour("--ground"); pen.stroke();
      pen.fillStyle = colour("--ground"); pen.textAlign = "center"; pen.textBaseline = "middle";
      pen.font = "600 13px system-ui";
      pen.fillText(agent.prey ? "★" : String(k + 1), X(x), Y(y) + (r > 26 ? -r / 2 : 0.5));
    });
    landmarks.forEach((mark, k) => {
      const [x, y] = now.landmarks[k];
      pen.lineWidth = 3;
      if (mark.look === "landmark") {
        for (const [ink, width] of [[colour("--ground"), 7], [text, 3.5]]) {
          pen.strokeStyle = ink; pen.lineWidth = width; pen.lineCap = "round";
          pen.beginPath();
          for (const s of [1, -1]) {
            pen.moveTo(X(x) - 6, Y(y) - 6 * s); pen.lineTo(X(x) + 6, Y(y) + 6 * s);
          }
          pen.stroke();
        }
      } else if (mark.look === "food") {
        pen.beginPath(); pen.moveTo(X(x), Y(y) - 8); pen.lineTo(X(x) + 8, Y(y));
        pen.lineTo(X(x), Y(y) + 8); pen.lineTo(X(x) - 8, Y(y)); pen.closePath();
        pen.fillStyle = colour("--food"); pen.fill();
        pen.lineWidth = 1.5; pen.strokeStyle = text; pen.stroke();
      }
    });
    slider.max = last(); slider.value = step;
    said.textContent = `Step ${step} of ${last()}, team reward so far ${now.reward[step].toFixed(1)}`;
  }
  function key() {
    const looks = { landmark: "✕ landmark", obstacle: "grey disc: obstacle",
      forest: "green disc: forest", food: "yellow diamond: food" };
    const seen = [...new Set(film().landmarks.map(mark => mark.look))].map(look => looks[look]);
    const who = film().agents.some(agent => agent.prey)
      ? ["numbered: predators", "★ prey"] : ["numbered: agents"];
    player.querySelector(".key").textContent =
      [...who, ...seen, "dashed: where episodes start"].join(" · ");
  }
  function stop() {
    clearInterval(timer); timer = null;
    play.setAttribute("aria-label", "Play"); play.title = "Play";
    play.firstChild.textContent = "▶"; said.setAttribute("aria-live", "polite");
  }
  function start() {
    if (step >= last()) step = 0;
    said.setAttribute("aria-live", "off");
    play.setAttribute("aria-label", "Pause"); play.title = "Pause"; play.firstChild.textContent = "❚❚";
    timer = setInterval(() => { if (step >= last()) stop(); else { step += 1; draw(); } }, 120);
    draw();
  }
  const go = to => { stop(); step = Math.max(0, Math.min(last(), to)); draw(); };
  play.addEventListener("click", () => timer ? stop() : start());
  player.querySelector("[data-do=back]").addEventListener("click", () => go(step - 1));
  player.querySelector("[data-do=next]").addEventListener("click", () => go(step + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  for (const select of player.querySelectorAll("select"))
    select.addEventListener("change", () => { key(); go(last()); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  step = last(); key(); draw();
}

"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const matrices = Object.keys(content.matrices);
  const hidden = new Set();
  const figures = [];
  const status = document.getElementById("status");
  const margin = { left: 52, right: 10, top: 8, bottom: 34 };
  const quantity = { best: "objective value − best", best_zero_n: "objective value − best", optimum: "objective value − optimum", test_loss: "testing loss" };
  const across = { passes: "number of effective passes", seconds: "processor seconds" };
  const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const short = (v) => {
    if (v === null || v === undefined) return "–";
    const a = Math.abs(v);
    return a !== 0 && (a < 1e-3 || a >= 1e5) ? v.toExponential(2).replace("e+", "e") : String(Number(v.toPrecision(4)));
  };

  const colours = [...new Set(content.lines.map((line) => `${line.color} ${line.dark}`))];
  const rules = (k) => colours.map((pair, i) => `--line-${i}:${pair.split(" ")[k]}`).join(";");
  const sheet = document.createElement("style");
  sheet.textContent = `:root{${rules(0)}} @media (prefers-color-scheme: dark){:root{${rules(1)}}}`;
  document.head.append(sheet);
  const colour = (line) => `var(--line-${colours.indexOf(`${line.color} ${line.dark}`)})`;

  function make(tag, attributes = {}, parent = null) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") element.textContent = value;
      else element.setAttribute(name, value);
    }
    if (parent) parent.append(element);
    return element;
  }

  function scale(low, high, from, to, log) {
    const f = log ? Math.log10 : (v) => v;
    const a = f(low), b = f(high);
    return (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from);
  }

  function ticks(low, high, log, most) {
    if (log) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const every = Math.max(1, Math.ceil((last - first + 1) / most));
      const found = [];
      for (let e = last; e >= first; e -= every) found.push(10 ** e);
      if (found.length > 1) return found;
      const finer = [];
      for (let e = first - 1; e <= last + 1; e++) for (const m of [1, 2, 5]) {
        const v = m * 10 ** e;
        if (v >= low && v <= high) finer.push(v);
      }
      return finer;
    }
    const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const found = [];
    for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) found.push(Number(v.toPrecision(10)));
    return found;
  }

  function tickText(v, log) {
    const e = Math.log10(v);
    if (log && (v < 1e-2 || v >= 1e4)) {
      const power = Math.floor(e + 1e-9), m = Math.round(v / 10 ** power);
      return `${m === 1 ? "" : m + "·"}10<tspan dy="-4" font-size="8">${power}</tspan>`;
    }
    return String(v);
  }

  function linesOf(figure, state) {
    return content.lines.filter((line) => line.problem === figure.problem && line.matrix === state.matrix && figure.kinds.includes(line.kind));
  }

  function drawPanel(panel, figure, state, lines) {
    const shown = lines.filter((line) => !hidden.has(line.label));
    const box = panel.plot.getBoundingClientRect();
    const width = Math.max(260, box.width), height = box.height || 260;
    const logX = state.x === "seconds", logY = figure.y !== "test_loss";
    const points = [];
    let lowX = Infinity, highX = -Infinity, lowY = Infinity, highY = -Infinity, start = 0;
    for (const line of shown) {
      const [mean, lows, highs] = line[figure.y];
      start = Math.max(start, mean[0] ?? 0);
      const kept = [];
      line[state.x].forEach((x, k) => {
        const y = mean[k];
        if (x === null || y === null || (logX && x <= 0) || (logY && y <= 0)) return;
        kept.push({ x, y, low: lows[k], high: highs[k], k, line });
        lowX = Math.min(lowX, x); highX = Math.max(highX, x);
        lowY = Math.min(lowY, y); highY = Math.max(highY, y);
      });
      points.push(kept);
    }
    if (!(highX > lowX)) {
      const why = lines.length ? "All lines of this panel are hidden." : "No run of these methods took this data set.";
      panel.plot.innerHTML = `<p class="empty">${why}</p>`;
      panel.points = [];
      return;
    }
    if (!logX) lowX = 0;
    if (logY) { lowY = Math.max(lowY, highY * 1e-9) / 1.3; highY *= 1.3; }
    else { highY = Math.min(highY, start); const span = highY - lowY || 1; lowY -= 0.03 * span; highY += 0.05 * span; }
    const X = scale(lowX, highX, margin.left, width - margin.right, logX);
    const Y = scale(lowY, highY, height - margin.bottom, margin.top, logY);
    const clampY = (v) => Math.max(margin.top - 40, Math.min(height - margin.bottom, Y(Math.max(v, logY ? lowY : v))));
    const out = [];
    const clip = `clip-${panel.id}`;
    out.push(`<clipPath id="${clip}"><rect x="${margin.left}" y="${margin.top}" width="${width - margin.left - margin.right}" height="${height - margin.top - margin.bottom}"/></clipPath>`);
    for (const v of ticks(lowY, highY, logY, 6)) {
      const y = Y(v).toFixed(1);
      out.push(`<line x1="${margin.left}" x2="${width - margin.right}" y1="${y}" y2="${y}" style="stroke:var(--grid)"/><text x="${margin.left - 6}" y="${Number(y) + 4}" text-anchor="end">${tickText(v, logY)}</text>`);
    }
    for (const v of ticks(lowX, highX, logX, 7)) {
      const x = X(v).toFixed(1);
      out.push(`<line x1="${x}" x2="${x}" y1="${margin.top}" y2="${height - margin.bottom}" style="stroke:var(--grid)"/><text x="${x}" y="${height - margin.bottom + 15}" text-anchor="middle">${tickText(v, logX)}</text>`);
    }
    out.push(`<text x="${(width + margin.left) / 2}" y="${height - 4}" text-anchor="middle">${across[state.x]}</text>`);
    out.push(`<text transform="translate(11 ${(height - margin.bottom) / 2}) rotate(-90)" text-anchor="middle">${quantity[figure.y]}</text>`);
    out.push(`<g clip-path="url(#${clip})">`);
    for (const kept of points) {
      if (!kept.length) continue;
      const line = kept[0].line;
      if (line.repeats > 1) {
        const up = kept.map((p) => `${X(p.x).toFixed(1)},${clampY(p.high).toFixed(1)}`);
        const down = kept.map((p) => `${X(p.x).toFixed(1)},${clampY(logY && p.low <= 0 ? p.y / 10 : p.low).toFixed(1)}`).reverse();
        out.push(`<polygon points="${up.concat(down).join(" ")}" style="fill:${colour(line)}" opacity=".15"/>`);
      }
    }
    const drawn = points.filter((kept) => kept.length).sort((a, b) => b[0].line.wide - a[0].line.wide);
    for (const kept of drawn) {
      const line = kept[0].line;
      const path = kept.map((p) => `${X(p.x).toFixed(1)},${clampY(p.y).toFixed(1)}`).join(" ");
      out.push(`<polyline points="${path}" fill="none" style="stroke:${colour(line)}" stroke-width="${line.wide ? 3.6 : 1.7}" stroke-dasharray="${line.dash}" stroke-linejoin="round"/>`);
    }
    out.push(`</g><circle class="dot" r="4" fill="none" style="stroke:var(--mark)" stroke-width="1.5" visibility="hidden"/>`);
    panel.plot.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(`${quantity[figure.y]} against ${across[state.x]} on ${content.data[panel.data]}`)}">${out.join("")}</svg>`;
    panel.points = points.flat().map((p) => ({ ...p, px: X(p.x), py: clampY(p.y) }));
    panel.width = width;
  }

  function nearest(panel, event, figure) {
    const svg = panel.plot.querySelector("svg");
    if (!svg || !panel.points.length) return;
    const box = svg.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 60 ** 2;
    panel.points.forEach((p) => {
      const distance = (p.px - x) ** 2 + (p.py - y) ** 2;
      if (distance < least) { least = distance; best = p; }
    });
    if (best) show(panel, best, figure);
    else leave(panel);
  }

  // Left and right follow a line; up and down change to another line.
  function step(panel, event, figure) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") leave(panel);
    if (!move || !panel.points.length) return;
    event.preventDefault();
    const labels = [...new Set(panel.points.map((p) => p.line.label))];
    const at = panel.at && labels.includes(panel.at.line.label) ? panel.at : null;
    const name = at ? labels[(labels.indexOf(at.line.label) + move[1] + labels.length) % labels.length] : labels[0];
    const line = panel.points.filter((p) => p.line.label === name);
    const k = at ? line.findIndex((p) => p.k >= at.k) : 0;
    const best = line[Math.max(0, Math.min(line.length - 1, (k < 0 ? line.length - 1 : k) + (at ? move[0] : 0)))];
    show(panel, best, figure);
    say(panel.tip.innerText.replace(/\n+/g, "; "));
  }

  function show(panel, best, figure) {
    const dot = panel.plot.querySelector(".dot");
    panel.at = best;
    dot.setAttribute("cx", best.px); dot.setAttribute("cy", best.py); dot.setAttribute("visibility", "visible");
    const l = best.line;
    const spread = l.repeats > 1 ? `<br>${short(best.low)} … ${short(best.high)} over ${l.repeats} repeats` : "";
    const failed = l.diverged ? `<br>${l.diverged} diverged` : "";
    panel.tip.innerHTML = `<b style="color:${colour(l)}">${escape(l.label)}</b><br>${short(l.passes[best.k])} passes, ${short(l.seconds[best.k])} s<br>${quantity[figure.y]}: <b>${short(best.y)}</b>${spread}${failed}`;
    panel.tip.hidden = false;
    const limit = panel.element.clientWidth - panel.tip.offsetWidth - 4;
    panel.tip.style.left = `${Math.max(2, Math.min(limit, best.px + 12))}px`;
    panel.tip.style.top = `${panel.plot.offsetTop + Math.max(0, best.py - panel.tip.offsetHeight - 10)}px`;
  }

  function leave(panel) {
    panel.tip.hidden = true;
    panel.at = null;
    const dot = panel.plot.querySelector(".dot");
    if (dot) dot.setAttribute("visibility", "hidden");
  }

  function say(text) {
    status.textContent = text;
  }

  // A line is hidden in every figure at once; the buttons stay where they are, so the focus does too.
  function toggle(labels, hide) {
    labels.forEach((label) => (hide ? hidden.add(label) : hidden.delete(label)));
    figures.forEach((figure) => figure.update());
    const names = [...hidden].join(", ");
    say(hidden.size ? `Hidden in all figures: ${names}.` : "All lines are shown.");
  }

  function csv(figure, state) {
    const rows = [["data", "A", "problem", "method", "passes", "seconds", "mean", "minimum", "maximum", "repeats"]];
    for (const line of linesOf(figure, state)) {
      line.passes.forEach((passes, k) => {
        const values = line[figure.y].map((column) => column[k]);
        rows.push([line.data, content.matrices[line.matrix], line.problem, line.label, passes, line.seconds[k], ...values, line.repeats]);
      });
    }
    const quote = (v) => (v === null ? "" : /[",]/.test(String(v)) ? `"${v}"` : String(v));
    return rows.map((row) => row.map(quote).join(",")).join("\n");
  }

  function switcher(parent, options, chosen, label, choose) {
    const group = make("span", { class: "switch", role: "group", "aria-label": label }, parent);
    const buttons = Object.entries(options).map(([value, text]) => {
      const button = make("button", { type: "button", text, "aria-pressed": String(value === chosen) }, group);
      button.addEventListener("click", () => {
        buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
        choose(value);
      });
      return button;
    });
  }

  function build(figure, number) {
    const state = { x: "passes", matrix: matrices[0] };
    const element = make("figure", { id: figure.id }, document.getElementById("plots"));
    const caption = make("figcaption", {}, element);
    make("h3", { text: figure.title }, caption);
    const tools = make("div", { class: "tools" }, caption);
    make("p", { class: "note", text: figure.note }, element);
    const legend = make("div", { class: "legend" }, element);
    const panels = make("div", { class: "panels" }, element);
    const list = Object.keys(content.data).map((data, k) => {
      const box = make("div", { class: "panel", tabindex: "0", role: "group", "aria-label": `${figure.title}: ${content.data[data]}. The arrow keys read the lines.` }, panels);
      make("h4", { text: `(${String.fromCharCode(97 + k)}) ${content.data[data]}` }, box);
      const plot = make("div", {}, box);
      const tip = make("div", { class: "tip" }, box);
      tip.hidden = true;
      plot.style.minHeight = "240px";
      const panel = { data, element: box, plot, tip, id: `${number}-${k}`, points: [], at: null };
      box.addEventListener("pointermove", (event) => nearest(panel, event, figure));
      box.addEventListener("pointerdown", (event) => nearest(panel, event, figure));
      box.addEventListener("pointerleave", () => leave(panel));
      box.addEventListener("keydown", (event) => step(panel, event, figure));
      box.addEventListener("blur", () => leave(panel));
      return panel;
    });
    const all = matrices.flatMap((matrix) => linesOf(figure, { matrix }));
    const buttons = new Map();
    for (const [label, line] of new Map(all.map((one) => [one.label, one]))) {
      const button = make("button", { type: "button" }, legend);
      button.innerHTML = `<svg viewBox="0 0 28 10" aria-hidden="true"><line x1="0" x2="28" y1="5" y2="5" style="stroke:${colour(line)}" stroke-width="${line.wide ? 4 : 2}" stroke-dasharray="${line.dash}"/></svg>${escape(label)}`;
      button.addEventListener("click", () => toggle([label], !hidden.has(label)));
      buttons.set(label, button);
    }
    const restore = make("button", { type: "button", class: "all", text: "show all" }, legend);
    restore.addEventListener("click", () => {
      legend.querySelector("button").focus();
      toggle([...hidden], false);
    });
    const update = () => {
      const lines = linesOf(figure, state);
      buttons.forEach((button, label) => button.setAttribute("aria-pressed", String(!hidden.has(label))));
      restore.disabled = ![...buttons.keys()].some((label) => hidden.has(label));
      for (const panel of list) {
        drawPanel(panel, figure, state, lines.filter((line) => line.data === panel.data));
        leave(panel);
      }
    };
    switcher(tools, { passes: "passes", seconds: "seconds" }, state.x, `${figure.title}: horizontal axis`, (x) => { state.x = x; update(); });
    if (matrices.length > 1) switcher(tools, content.matrices, state.matrix, `${figure.title}: penalty matrix`, (m) => { state.matrix = m; update(); });
    const link = make("a", { class: "download", text: "numbers (CSV)", "aria-label": `${figure.title}: numbers (CSV)`, download: `${figure.id}.csv`, href: "data:text/csv," }, tools);
    const fill = () => { link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(csv(figure, state))}`; };
    ["pointerdown", "focus", "click"].forEach((type) => link.addEventListener(type, fill));
    figures.push({ update });
    update();
  }

  content.figures.forEach(build);
  let waiting = 0, width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => figures.forEach((figure) => figure.update()), 120);
  });
})();

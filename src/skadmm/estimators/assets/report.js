// The coefficients of one class or output, at the strength that the slider chooses.
"use strict";
(() => {
  const holder = document.getElementById("path");
  if (!holder) return;
  const { alphas, coefs, features, chosen, signal, pieces, relaxed } = JSON.parse(holder.textContent);
  const slider = document.getElementById("strength");
  const output = document.getElementById("strength-text");
  const part = document.getElementById("part");
  const svg = document.getElementById("coefficients");
  const [W, H, L, R, T, B] = [760, 280, 56, 12, 12, 34];
  const every = coefs.flat(2).concat((relaxed || []).flat());
  const limit = every.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  // A signal is drawn over its own range; coefficients around zero.
  const [low, high] = signal
    ? [every.reduce((a, b) => Math.min(a, b)), every.reduce((a, b) => Math.max(a, b))]
    : [-limit, limit];
  const range = high - low || 1;
  const x = (k) => L + (features.length === 1 ? 0.5 : k / (features.length - 1)) * (W - L - R);
  const y = (value) => T + (1 - (value - low) / range) * (H - T - B);
  const NS = "http://www.w3.org/2000/svg";
  const add = (name, attributes, text) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  const digits = Math.min(15, Math.max(2, 2 + Math.ceil(Math.log10(limit / range))));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const value = low + share * range;
    const at = y(value);
    add("line", { x1: L, x2: W - R, y1: at, y2: at, stroke: "var(--rule)" });
    add("text", { x: L - 6, y: at + 4, "text-anchor": "end", "font-size": 11, fill: "var(--soft)" },
        signal || value !== 0 ? Number(value.toPrecision(digits)).toString() : "0");
  }
  const axis = { y: H - 8, "font-size": 12, fill: "var(--soft)" };
  add("text", { ...axis, x: (L + W - R) / 2, "text-anchor": "middle" }, signal ? "position" : "feature");
  add("text", { ...axis, x: L, "text-anchor": "start" }, features[0]);
  if (features.length > 1) add("text", { ...axis, x: W - R, "text-anchor": "end" }, features[features.length - 1]);
  const dots = features.map((name, k) => {
    const dot = add("circle", { cx: x(k), r: 3 });
    const title = document.createElementNS(NS, "title");
    dot.append(title);
    return [dot, title];
  });
  const rings = relaxed
    ? features.map((name, k) => add("circle", { cx: x(k), r: 5, fill: "none", stroke: "var(--ink)" }))
    : [];
  const draw = () => {
    const row = Number(slider.value);
    const values = coefs[part ? Number(part.value) : 0][row];
    dots.forEach(([dot, title], k) => {
      const value = values[k];
      dot.setAttribute("cy", y(value));
      dot.setAttribute("fill", value > 0 ? "var(--positive)" : value < 0 ? "var(--negative)" : "var(--soft)");
      title.textContent = `${features[k]}: ${value}`;
    });
    rings.forEach((ring, k) => {
      ring.setAttribute("cy", y(relaxed[part ? Number(part.value) : 0][k]));
      ring.setAttribute("visibility", row === chosen ? "visible" : "hidden");
    });
    const used = values.filter((value) => value !== 0).length;
    const mark = row === chosen ? (relaxed ? " (chosen; rings: relaxed values)" : " (chosen)") : "";
    const count = pieces && pieces[row];
    const found = !signal ? `: ${used} not zero` : count ? `: ${count} ${count === 1 ? "piece" : "pieces"}` : "";
    output.textContent = `alpha = ${alphas[row].toPrecision(3)}${mark}${found}`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", draw);
  if (part) part.addEventListener("change", draw);
  draw();
})();

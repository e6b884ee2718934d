// The coefficients of one class or output, at the strength that the slider chooses.
"use strict";
(() => {
  const holder = document.getElementById("path");
  if (!holder) return;
  const { alphas, coefs, features, chosen } = JSON.parse(holder.textContent);
  const slider = document.getElementById("strength");
  const output = document.getElementById("strength-text");
  const part = document.getElementById("part");
  const svg = document.getElementById("coefficients");
  const [W, H, L, R, T, B] = [760, 280, 56, 12, 12, 34];
  const limit = coefs.flat(2).reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const x = (k) => L + (features.length === 1 ? 0.5 : k / (features.length - 1)) * (W - L - R);
  const y = (value) => T + (1 - (value / limit + 1) / 2) * (H - T - B);
  const NS = "http://www.w3.org/2000/svg";
  const add = (name, attributes, text) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  for (const share of [-1, -0.5, 0, 0.5, 1]) {
    const at = y(share * limit);
    add("line", { x1: L, x2: W - R, y1: at, y2: at, stroke: "var(--rule)" });
    add("text", { x: L - 6, y: at + 4, "text-anchor": "end", "font-size": 11, fill: "var(--soft)" },
        (share * limit).toPrecision(2));
  }
  add("text", { x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle", "font-size": 12, fill: "var(--soft)" }, "feature");
  const dots = features.map((name, k) => {
    const dot = add("circle", { cx: x(k), r: 3 });
    const title = document.createElementNS(NS, "title");
    dot.append(title);
    return [dot, title];
  });
  const draw = () => {
    const row = Number(slider.value);
    const values = coefs[part ? Number(part.value) : 0][row];
    dots.forEach(([dot, title], k) => {
      const value = values[k];
      dot.setAttribute("cy", y(value));
      dot.setAttribute("fill", value > 0 ? "var(--positive)" : value < 0 ? "var(--negative)" : "var(--soft)");
      title.textContent = `${features[k]}: ${value}`;
    });
    const used = values.filter((value) => value !== 0).length;
    const mark = row === chosen ? " (chosen)" : "";
    output.textContent = `alpha = ${alphas[row].toPrecision(3)}${mark}: ${used} not zero`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", draw);
  if (part) part.addEventListener("change", draw);
  draw();
})();

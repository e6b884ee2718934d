// The coefficients or the signal of one class or output, at the strength that the slider chooses.
"use strict";
(() => {
  const holder = document.getElementById("path");
  if (!holder) return;
  const content = JSON.parse(holder.textContent);
  const { alphas, coefs, counts, features, chosen, at, label, line, pieces, relaxed, signal, horizontal, vertical } = content;
  const slider = document.getElementById("strength");
  const output = document.getElementById("strength-text");
  const part = document.getElementById("part");
  const svg = document.getElementById("coefficients");
  const longest = Math.max(0, ...vertical.ticks.map(([, text]) => text.length));
  const [W, H, L, R, T, B] = [760, 300, Math.max(56, 18 + 7 * longest), 16, 16, 52];
  // The ranges end six units inside the frame, so that no dot is cut off.
  const scale = ([low, high], from, to) => (value) =>
    low === high ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from);
  const x = scale(horizontal.range, L + 6, W - R - 6);
  const y = scale(vertical.range, H - B - 6, T + 6);
  const NS = "http://www.w3.org/2000/svg";
  const add = (name, attributes, text) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  const titled = (node, text) => {
    const title = document.createElementNS(NS, "title");
    title.textContent = text;
    node.append(title);
    return title;
  };
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  for (const [value, text] of vertical.ticks) {
    add("line", { x1: L, x2: W - R, y1: y(value), y2: y(value), stroke: "var(--rule)" });
    add("text", { x: L - 6, y: y(value) + 4, "text-anchor": "end", "font-size": 11, fill: "var(--soft)" }, text);
  }
  for (const [value, text, full] of horizontal.ticks) {
    const half = 3.5 * text.length;
    const middle = Math.min(Math.max(x(value), L + half), W - R - half);
    add("line", { x1: x(value), x2: x(value), y1: H - B, y2: H - B + 5, stroke: "var(--soft)" });
    const node = add("text", { x: middle, y: H - B + 18, "text-anchor": "middle", "font-size": 11, fill: "var(--soft)" }, text);
    if (full && full !== text) titled(node, full);
  }
  add("text", { x: (L + W - R) / 2, y: H - 10, "text-anchor": "middle", "font-size": 12, fill: "var(--soft)" }, label);
  const curve = line && add("path", { fill: "none", stroke: "var(--link)", "stroke-width": 2, "stroke-linejoin": "round" });
  const small = line ? 2 : 3;
  const dots = features.map((name, k) => {
    const dot = add("circle", { cx: x(at[k]), r: small });
    return [dot, titled(dot, name)];
  });
  const rings = relaxed
    ? features.map((name, k) => add("circle", { cx: x(at[k]), r: 5, fill: "none", stroke: "var(--ink)" }))
    : [];
  const through = (values) =>
    values
      .map((value, k) => {
        const [across, height] = [x(at[k]).toFixed(2), y(value).toFixed(2)];
        if (k === 0) return `M${across} ${height}`;
        return line === "steps" ? `H${across}V${height}` : `L${across} ${height}`;
      })
      .join("");
  const draw = () => {
    const row = Number(slider.value);
    const which = part ? Number(part.value) : 0;
    const values = coefs[which][row];
    if (curve) curve.setAttribute("d", through(values));
    dots.forEach(([dot, title], k) => {
      const value = values[k];
      const sign = value > 0 ? "var(--positive)" : value < 0 ? "var(--negative)" : "var(--soft)";
      dot.setAttribute("cy", y(value));
      dot.setAttribute("fill", line ? "var(--link)" : sign);
      title.textContent = `${features[k]}: ${value}`;
    });
    rings.forEach((ring, k) => {
      ring.setAttribute("cy", y(relaxed[which][k]));
      ring.setAttribute("visibility", row === chosen ? "visible" : "hidden");
    });
    const mark = row === chosen ? (relaxed ? " (chosen; rings: relaxed values)" : " (chosen)") : "";
    const count = pieces && pieces[row];
    const found = signal
      ? count ? `: ${count} ${count === 1 ? "piece" : "pieces"}` : ""
      : `: ${counts[which][row]} not zero`;
    output.textContent = `alpha = ${alphas[row].toPrecision(3)}${mark}${found}`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", draw);
  if (part) part.addEventListener("change", draw);
  draw();
})();

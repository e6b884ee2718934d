// Check pages in a browser: nothing scrolls sideways at 390 px, and axe-core finds no accessibility fault.
//
//   npm install --prefix /tmp/check axe-core playwright-core
//   NODE_PATH=/tmp/check/node_modules node docs/check_site.mjs FOLDER page.html [page.html ...]
//
// Where a page has buttons that hide lines, Space must keep the focus and announce what is hidden.
//
// FOLDER receives a screenshot of every page at 1280 and 390 px, light and dark. CHROMIUM names the browser.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.NODE_PATH ? resolve(process.env.NODE_PATH, "x") : import.meta.url);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [folder, ...pages] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--allow-file-access-from-files"],
});
let faults = 0;
for (const page of pages) {
  for (const width of [1280, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
      const tab = await context.newPage();
      await tab.goto(pathToFileURL(resolve(page)).href);
      const name = `${basename(resolve(page, "..")).slice(0, 12)}-${basename(page, ".html")}-${width}-${colorScheme}`;
      await tab.screenshot({ path: `${folder}/${name}.png`, fullPage: process.env.FULL === "1" });
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) { faults++; console.log(`${name}: ${wide} px too wide`); }
      await tab.evaluate(axe);
      const found = await tab.evaluate(() => window.axe.run());
      for (const fault of found.violations) {
        faults++;
        console.log(`${name}: ${fault.id} (${fault.impact}), ${fault.nodes.length} time(s): ${fault.help}`);
        console.log(`    ${fault.nodes.slice(0, 3).map((node) => node.html.slice(0, 110)).join("\n    ")}`);
      }
      const button = tab.locator(".legend button").first();
      if (await button.count()) {
        await button.focus();
        await tab.keyboard.press("Space");
        const state = await tab.evaluate(() => [
          document.activeElement.matches('.legend button[aria-pressed="false"]'), document.querySelector("[aria-live]")?.textContent,
        ]);
        if (!state[0]) { faults++; console.log(`${name}: Space on a legend loses the focus or hides nothing`); }
        if (!state[1]) { faults++; console.log(`${name}: a hidden line is not announced`); }
      }
      await context.close();
    }
  }
}
await browser.close();
console.log(faults ? `${faults} faults` : `${pages.length} pages are right`);
process.exit(faults ? 1 : 0);

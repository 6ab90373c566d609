// Shows a hundred rows of the index at a time; each row is fetched when it comes into view.

const form = document.getElementById("filters");
const feed = document.getElementById("feed");
const search = document.getElementById("search");
const bar = document.querySelector("nav");
const names = ["kind", "family", "category", "check", "reason"];
const facets = JSON.parse(document.getElementById("facets").textContent);
const total = Object.values(facets.kind).reduce((sum, n) => sum + n, 0);
let page = { number: 0, n_pages: 1, entries: [] };
let current = -1;
let selectedAt = 0; // when; what comes into view above it moves it
let asked = 0; // the latest request for a page; earlier ones are dropped

for (const name of names) {
  const select = document.getElementById(name);
  const values = Object.entries(facets[name] || {});
  select.append(new Option("all", ""), ...values.map(([value, n]) => new Option(`${value} (${n})`, value)));
  select.disabled = values.length === 0;
}

function chosen() {
  const fields = Object.fromEntries(names.map((name) => [name, document.getElementById(name).value]));
  return Object.entries({ ...fields, search: search.value }).filter(([, value]) => value);
}

async function fetched(path, fields) {
  const response = await fetch(`${path}?${new URLSearchParams(fields)}`);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}

/* ---- one page ---- */

const inView = new IntersectionObserver((changes) => {
  for (const change of changes) if (change.isIntersecting) complete(change.target);
}, { rootMargin: "800px" });

function outline(entry) {
  const tags = [entry.family, entry.category, entry.reason].filter(Boolean).map((text) => make("span", "tag", text));
  const node = make("article", "", make("header", "", make("h2", "", entry.question || "(no question)"), ...tags),
    make("div", "label", "loading …"));
  node.ariaBusy = "true";
  node.dataset.n = entry.n;
  return node;
}

async function complete(node) {
  inView.unobserve(node);
  try {
    const row = await fetched("/row", { n: node.dataset.n });
    for (const entry of row.entries) Object.assign(images, entry.files);
    const [own, other] = row.entries.map((entry) => {
      const template = document.createElement("template");
      template.innerHTML = entry.html;
      return drawn(template);
    });
    node.replaceChildren(...own.childNodes);
    if (other) node.append(make("section", "beside", make("div", "label", "The other run"), other));
    if (performance.now() - selectedAt < 2000) feed.querySelectorAll(":scope > article")[current]?.scrollIntoView({ block: "start" });
  } catch (error) {
    node.lastChild.replaceWith(make("div", "reject", `This row cannot be shown: ${error.message}`));
  }
  node.ariaBusy = null;
}

async function show(number, row = "", place = -1) {
  const own = ++asked;
  const latest = await fetched("/rows", [...chosen(), ["page", number], ["row", row]]);
  if (own !== asked) return;
  page = latest;
  current = -1;
  inView.disconnect();
  feed.replaceChildren(...page.entries.map(outline));
  if (!page.entries.length) feed.append(make("p", "nothing", "Nothing here matches."));
  for (const node of feed.querySelectorAll(":scope > article")) inView.observe(node);
  document.getElementById("count").textContent = `${page.n_entries.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  document.getElementById("place").textContent = `page ${page.number + 1} of ${page.n_pages.toLocaleString("en")}`;
  document.getElementById("previous").disabled = page.number === 0;
  document.getElementById("next").disabled = page.number + 1 >= page.n_pages;
  window.scrollTo(0, 0);
  const at = row ? page.entries.findIndex((entry) => entry.link === row) : place;
  if (at >= 0 && page.entries.length) select(Math.min(at, page.entries.length - 1));
}

/* ---- moving ---- */

function select(place) {
  const nodes = feed.querySelectorAll(":scope > article");
  if (nodes[current]) nodes[current].classList.remove("current");
  current = place;
  nodes[current].classList.add("current");
  nodes[current].scrollIntoView({ block: "start" });
  selectedAt = performance.now();
  remember();
}

function step(by) {
  const nodes = [...feed.querySelectorAll(":scope > article")];
  const top = bar.getBoundingClientRect().bottom;
  const box = nodes[current] && nodes[current].getBoundingClientRect();
  const isHere = box && box.bottom > top && box.top < window.innerHeight;
  const first = nodes.findIndex((node) => node.getBoundingClientRect().bottom > top + 1);
  const next = isHere ? current + by : first + (current < 0 || by < 0 ? Math.min(by, 0) : 0);
  if (next >= 0 && next < nodes.length) select(next);
  else if (next < 0 && page.number > 0) show(page.number - 1, "", page.entries.length - 1);
  else if (next >= nodes.length && page.number + 1 < page.n_pages) show(page.number + 1, "", 0);
}

function turn(by) {
  const number = page.number + by;
  if (number >= 0 && number < page.n_pages) show(number).then(remember);
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") document.activeElement.blur();
  if (["INPUT", "SELECT"].includes(document.activeElement.tagName)) return;
  if (["j", "ArrowRight"].includes(event.key)) step(1);
  else if (["k", "ArrowLeft"].includes(event.key)) step(-1);
  else if (event.key === "n") turn(1);
  else if (event.key === "p") turn(-1);
  else if (event.key === "/") search.focus();
  else return;
  event.preventDefault();
}

/* ---- the address keeps what is filtered, the page, and which row is looked at ---- */

function remember() {
  const kept = new URLSearchParams(chosen());
  if (page.number) kept.set("page", page.number + 1);
  if (current >= 0) kept.set("row", page.entries[current].link);
  history.replaceState(null, "", `#${kept}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  search.value = kept.get("search") || "";
  for (const name of names) document.getElementById(name).value = kept.get(name) || "";
  show(Number(kept.get("page") || 1) - 1, kept.get("row") || "");
}

let waiting;
new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);
form.addEventListener("input", () => {
  clearTimeout(waiting); // a search looks at every text: not at each key
  waiting = setTimeout(() => show(0).then(remember), 250);
});
form.addEventListener("reset", () => setTimeout(() => show(0).then(remember)));
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("previous").addEventListener("click", () => turn(-1));
document.getElementById("next").addEventListener("click", () => turn(1));
document.addEventListener("keydown", onKey);
document.addEventListener("wheel", () => { selectedAt = 0; }, { passive: true });
window.addEventListener("hashchange", recall);
recall();

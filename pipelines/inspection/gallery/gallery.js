// Shows the page's entries, a few at a time as they are scrolled to.

const AT_ONCE = 8;
const entries = [...document.querySelectorAll("template.entry")].map((template) => (
  { template, link: template.dataset.link, filters: JSON.parse(template.dataset.filters) }));
Object.assign(images, JSON.parse(document.getElementById("images").textContent));
const feed = document.getElementById("feed");
const form = document.getElementById("filters");
const search = document.getElementById("search");
const bar = document.querySelector("nav");
let shown = entries; // what the filters leave
let articles = []; // of `shown`, as far as it is drawn
let current = -1;

function drawMore() {
  const next = shown.slice(articles.length, articles.length + AT_ONCE).map((entry) => drawn(entry.template));
  articles.push(...next);
  feed.append(...next);
}

/* ---- filters ---- */

// every text of an entry but the labels, in lower case; made when something is searched
const haystacks = new Map();
function texts(entry) {
  if (!haystacks.has(entry)) {
    const nodes = entry.template.content.querySelectorAll("h2, .tag, .reject, .choices, .text, pre, .answer, .checks, dd");
    haystacks.set(entry, [...nodes].map((node) => node.textContent).join("\n").toLowerCase());
  }
  return haystacks.get(entry);
}

const names = [...form.querySelectorAll("select")].map((select) => select.id);

function fill(name) {
  const counts = new Map();
  for (const entry of entries) for (const value of entry.filters[name]) counts.set(value, (counts.get(value) || 0) + 1);
  const select = document.getElementById(name);
  select.append(new Option("all", ""));
  for (const value of [...counts.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) select.append(new Option(`${value} (${counts.get(value)})`, value));
  select.disabled = counts.size === 0;
}

function wanted(entry) {
  const words = search.value.trim().toLowerCase();
  return (!words || texts(entry).includes(words))
    && names.every((name) => {
      const value = document.getElementById(name).value;
      return !value || entry.filters[name].includes(value);
    });
}

function apply() {
  shown = entries.filter(wanted);
  articles = [];
  current = -1;
  feed.replaceChildren();
  if (shown.length) drawMore();
  else feed.append(make("p", "nothing", "Nothing here matches."));
  document.getElementById("count").textContent = `${shown.length.toLocaleString("en")} of ${entries.length.toLocaleString("en")}`;
  window.scrollTo(0, 0);
}

/* ---- moving ---- */

function select(place) {
  if (!shown.length) return;
  const target = Math.min(Math.max(place, 0), shown.length - 1);
  while (articles.length <= target) drawMore();
  if (articles[current]) articles[current].classList.remove("current");
  current = target;
  articles[current].classList.add("current");
  articles[current].scrollIntoView({ block: "start" });
  remember();
}

function inView() {
  // who scrolled by hand goes on from where they are
  const top = bar.getBoundingClientRect().bottom;
  const box = articles[current] && articles[current].getBoundingClientRect();
  if (box && box.bottom > top && box.top < window.innerHeight) return current;
  return articles.findIndex((node) => node.getBoundingClientRect().bottom > top + 1) - (current < 0 ? 1 : 0);
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") document.activeElement.blur();
  if (["INPUT", "SELECT"].includes(document.activeElement.tagName)) return;
  if (["j", "ArrowRight"].includes(event.key)) select(inView() + 1);
  else if (["k", "ArrowLeft"].includes(event.key)) select(inView() - 1);
  else if (event.key === "/") search.focus();
  else return;
  event.preventDefault();
}

/* ---- the address keeps what is filtered and which entry is looked at ---- */

function remember() {
  const kept = new URLSearchParams();
  if (search.value) kept.set("search", search.value);
  for (const name of names) if (document.getElementById(name).value) kept.set(name, document.getElementById(name).value);
  if (current >= 0) kept.set("row", shown[current].link);
  history.replaceState(null, "", `#${kept}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  search.value = kept.get("search") || "";
  for (const name of names) document.getElementById(name).value = kept.get(name) || "";
  apply();
  const place = kept.get("row") ? shown.findIndex((entry) => [entry.link, entry.template.content.firstElementChild.dataset.id].includes(kept.get("row"))) : -1;
  if (place >= 0) select(place);
}

new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);
names.forEach(fill);
form.addEventListener("input", () => { apply(); remember(); });
form.addEventListener("reset", () => setTimeout(() => { apply(); remember(); }));
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", recall);
new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) drawMore(); }, { rootMargin: "1500px" })
  .observe(document.getElementById("end"));
recall();

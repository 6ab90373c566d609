"use strict";
// Draws one entry of a gallery. Texts become text nodes, never markup.

const images = {}; // addresses by name

function make(tag, className, ...inside) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...inside.filter((part) => part !== null && part !== ""));
  return node;
}

function image(name, alt) {
  const node = make("img");
  node.loading = "lazy";
  node.alt = alt;
  node.src = images[name];
  return node;
}

function block(label, ...nodes) {
  return [make("div", "label", label), ...nodes];
}

function code(pieces) {
  return make("pre", "code", ...pieces.map(([kind, text]) => (kind ? make("span", kind, text) : text)));
}

function list(facts) {
  return make("dl", "", ...Object.entries(facts).filter(([, value]) => value !== "").flatMap(([name, value]) => [make("dt", "", name), make("dd", "", String(value))]));
}

function folded(title, ...nodes) {
  return make("details", "", make("summary", "", title), ...nodes);
}

function edits(made) {
  if (!made.length) return [];
  const lines = made.map((edit) => `${edit.kind}\n- ${edit.before}\n+ ${edit.after}`).join("\n");
  return [folded(`${made.length} ${made.length === 1 ? "edit" : "edits"} by the sandbox`, make("pre", "", lines))];
}

function round(turn, number, of) {
  const which = of > 1 ? ` ${number}` : "";
  const observed = make("div", "observation", ...turn.images.map((name) => image(name, `what round ${number} showed`)));
  if (turn.text.trim()) observed.append(make("pre", "", turn.text.trim()));
  if (turn.error) observed.append(make("pre", "failed", turn.error));
  return [
    ...(turn.thought ? block(`Thought${which}`, make("p", "text", turn.thought)) : []),
    ...block(`Code${which}`, code(turn.code), ...edits(turn.edits)),
    ...block(`Observation${which}: ${turn.status}`, observed),
  ];
}

function verdict(check) {
  const score = check.score === null || check.score === undefined ? "" : Number(check.score).toFixed(2);
  const said = [check.reason, check.detail].filter(Boolean).join(": ");
  const name = make("span", check.passed ? "passed" : "failed", `${check.passed ? "✓" : "✗"} ${check.name}`);
  return make("li", "", name, make("span", "score", score), make("span", "detail", said));
}

function whyRejected(why) {
  const missing = why.missing ? ` (${why.missing} of its images are not in the store)` : "";
  return make("div", "reject", make("b", "", why.reason), ` · ${why.disposition} at ${why.stage}${missing}`, make("p", "text", why.evidence));
}

function question(entry) {
  const size = entry.sizes.length ? `${entry.sizes.join(", ")} px${entry.n_outlined ? "; crops are outlined" : ""}` : "";
  const choices = entry.choices.map((choice) => make("li", "", choice));
  return make("section", "",
    choices.length ? make("ul", "choices", ...choices) : "",
    ...entry.images.map((name, n) => image(name, `image ${n + 1} of the question`)),
    size ? make("div", "label", size) : "",
    entry.n_videos ? make("div", "label", `${entry.n_videos} video${entry.n_videos > 1 ? "s" : ""}, not shown here`) : "");
}

function answer(entry) {
  return [
    ...(entry.answer ? block("Answer", make("div", "answer", entry.answer)) : []),
    ...(entry.problem ? block("Problem", make("p", "text failed", entry.problem)) : []),
    ...(entry.expected ? block("Expected answer", make("div", "answer", entry.expected)) : []),
    ...(entry.written ? [folded("Everything it wrote", make("p", "text", entry.written))] : []),
  ];
}

const number = (value) => (value === null ? "none" : String(Number(value.toPrecision(3))));

// what a training made of a rollout: its reward with the parts, and its advantage over the others of its question
function rewards(entry) {
  if (!entry.reward) return [];
  const { total, advantage, parts } = entry.reward;
  const tone = advantage > 0 ? " passed" : advantage < 0 ? " failed" : "";
  return [
    make("span", "tag", `reward ${number(total)}`),
    make("span", `tag${tone}`, `advantage ${advantage > 0 ? "+" : ""}${number(advantage)}`),
    ...Object.entries(parts).map(([name, value]) => make("span", "tag", `${name} ${number(value)}`)),
  ];
}

// a name that is a digest is shortened; it stands whole in its title, and among the facts
function tag(text) {
  const isDigest = /^[0-9a-f]{32,}$/.test(text);
  const made = make("span", "tag", isDigest ? `${text.slice(0, 12)}…` : text);
  if (isDigest) made.title = text;
  return made;
}

function link(entry) {
  const anchor = make("a", "tag", "link");
  anchor.ariaLabel = `link to row ${entry.link}`;
  anchor.href = `#row=${encodeURIComponent(entry.link)}`;
  anchor.title = "the address of this row";
  return anchor;
}

function article(entry) {
  const tags = [entry.step, entry.family, entry.category, entry.source_row, entry.policy && `written by ${entry.policy}`].filter(Boolean);
  const made = make("article", "",
    make("header", "", make("h2", "", entry.question || "(no question)"), ...rewards(entry), ...tags.map(tag), link(entry)),
    entry.reject ? whyRejected(entry.reject) : "",
    question(entry),
    make("section", "",
      ...(entry.draft ? block("Draft", make("pre", "code", entry.draft)) : []),
      ...entry.rounds.flatMap((turn, n) => round(turn, n + 1, entry.rounds.length)),
      ...(entry.thought ? block("Thought", make("p", "text", entry.thought)) : []),
      ...answer(entry)),
    entry.checks.length ? make("ul", "checks", ...entry.checks.map(verdict)) : "",
    folded("Facts", list({ id: entry.id, source: entry.source, row: entry.source_row, license: entry.license, ...entry.facts, ...entry.usage })),
    entry.reject && entry.reject.raw ? folded("The row", make("pre", "", entry.reject.raw)) : "");
  made.dataset.id = entry.id;
  return made;
}


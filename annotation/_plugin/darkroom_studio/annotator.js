// Above a task: what was done today. Below it: the keys. Leads back to the start page, which Label Studio does not know.
(function () {
  var START = "/projects/";
  function isList(path) { return path === "/" || path === "/projects" || path === START; }
  // Label Studio changes pages without loading them: its list of projects would show instead of the start page
  ["pushState", "replaceState"].forEach(function (name) {
    var original = history[name];
    history[name] = function (state, title, url) {
      if (url && isList(new URL(url, location.href).pathname)) return location.assign(START);
      return original.apply(history, arguments);
    };
  });
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[href]");
    if (!link || !isList(link.pathname) || link.origin !== location.origin) return;
    event.preventDefault();
    event.stopPropagation();
    location.assign(START);
  }, true);

  function element(tag, id) {
    var made = document.createElement(tag);
    made.id = id;
    made.style.display = "none";
    document.body.appendChild(made);
    return made;
  }
  var line = element("div", "darkroom-progress"), keys = element("div", "darkroom-keys"), done = element("a", "darkroom-done");
  line.setAttribute("role", "status");
  done.href = START;
  done.textContent = "⟦Back to your tasks⟧";

  // each with what a form must hold for it
  var KEYS = [
    ["T", "⟦draw a box⟧", "<RectangleLabels"], ["1\u20139", "⟦choose⟧", "<Choice "], ["Ctrl + Enter", "⟦submit⟧", "<View"],
    ["Ctrl + wheel", "⟦zoom⟧", "<Image"], ["H", "⟦move the image⟧", "<Image"], ["V", "⟦select⟧", "<RectangleLabels"],
    ["\u2039", "⟦correct what you submitted⟧", "<View", function () { return window.Htx.canGoPrevTask; }]
  ];
  function showKeys(form) {
    keys.textContent = "";
    KEYS.forEach(function (key) {
      if (!form.includes(key[2]) || key[3] && !key[3]()) return;
      var name = document.createElement("kbd");
      name.textContent = key[0];
      keys.append(name, " " + key[1]);
    });
  }
  var shown = null, corrected = location.hash.match(/^#correct=(\d+),(\d+)$/);
  setInterval(function () {
    var selected = window.Htx && window.Htx.annotationStore && window.Htx.annotationStore.selected;
    var match = location.pathname.match(/^\/projects\/(\d+)\//), side = document.querySelector(".dr-side");
    var task = selected && side && match ? window.Htx.task && window.Htx.task.id : null;
    line.style.display = keys.style.display = task ? "block" : "none";
    done.style.display = !task && /No More Tasks/i.test(document.body.innerText) ? "block" : "none";
    if (corrected && (task || window.Htx && window.Htx.noTask)) {  // once the stream has a task or none
      window.dataManager.lsf.loadTask(Number(corrected[1]), Number(corrected[2]), true);
      corrected = null;
    }
    if (!task) { shown = null; return; }
    if (task === shown) return;
    shown = task;
    showKeys(window.Htx.config || "");
    fetch("/darkroom/progress?project=" + match[1], {headers: {Accept: "application/json"}})
      .then(function (answer) { return answer.ok ? answer.json() : {text: ""}; })
      .then(function (progress) { line.textContent = progress.text; });
  }, 500);
})();

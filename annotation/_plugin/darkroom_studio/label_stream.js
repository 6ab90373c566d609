// Leads from a project's list of tasks, which is empty for annotators, to its label stream; also without a page load.
(function () {
  function lead() {
    var project = location.pathname.match(/^\/projects\/(\d+)(\/data)?\/?$/);
    if (project && new URLSearchParams(location.search).get("labeling") !== "1") {
      location.replace("/projects/" + project[1] + "/data?labeling=1");
    }
  }
  ["pushState", "replaceState"].forEach(function (name) {
    var original = history[name];
    history[name] = function () {
      original.apply(history, arguments);
      lead();
    };
  });
  window.addEventListener("popstate", lead);
})();

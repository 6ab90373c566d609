// A line beside the buttons: how large the largest box is, while it is being drawn. Drafts go on after a refusal.
(function () {
  var line = document.createElement("div");
  line.id = "darkroom-share";
  line.setAttribute("role", "status");
  line.style.cssText = "position:fixed;left:330px;bottom:10px;z-index:999;padding:6px 12px;border-radius:6px;" +
    "font:600 13px sans-serif;color:#fff;display:none;pointer-events:none";
  document.body.appendChild(line);
  // Label Studio takes a refused submission for one under way, and would save no draft any more. Only its own actions may
  // write into its state; the one that there is writes the time.
  function forget(annotation) {
    var now = Date.now;
    Date.now = function () { return 0; };
    try { annotation.submissionInProgress(); } finally { Date.now = now; }
  }
  setInterval(function () {
    var selected = window.Htx && window.Htx.annotationStore && window.Htx.annotationStore.selected;
    if (selected && selected.submissionStarted && document.querySelector('[class*="error-message__detail"]')) forget(selected);
    var store = selected && window.Htx.task && window.Htx.task.dataObj;
    var gate = store && store.gate;
    if (!gate || !gate.max_share) { line.style.display = "none"; return; }
    var shares = selected.regionStore.regions
      .filter(function (region) { return region.type === "rectangleregion"; })
      .map(function (region) { return region.width * region.height / 1e4; });
    var largest = Math.max.apply(null, shares.concat(0));
    var rotated = selected.regionStore.regions.some(function (region) { return region.rotation; });
    var bad = !shares.length || largest > gate.max_share || rotated;
    line.textContent = !shares.length ? "no box yet"
      : rotated ? "a box is rotated: boxes must be upright"
      : "largest box " + (100 * largest).toFixed(2) + "% of the image, limit " + +(100 * gate.max_share).toFixed(2) + "%";
    line.style.background = bad ? "#b71c1c" : "#1b5e20";
    line.style.display = "block";
  }, 400);
})();

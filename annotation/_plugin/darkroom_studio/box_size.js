// A line beside the buttons with the size of the largest box while it is drawn.
(function () {
  var line = document.createElement("div");
  line.id = "darkroom-share";
  line.setAttribute("role", "status");
  line.style.cssText = "position:fixed;left:330px;bottom:10px;z-index:999;padding:6px 12px;border-radius:6px;" +
    "font:600 13px sans-serif;color:#fff;display:none;pointer-events:none";
  document.body.appendChild(line);
  setInterval(function () {
    var selected = window.Htx && window.Htx.annotationStore && window.Htx.annotationStore.selected;
    var store = selected && window.Htx.task && window.Htx.task.dataObj;
    var rules = store && store.gate;
    if (!rules || !rules.max_share) { line.style.display = "none"; return; }
    var shares = selected.regionStore.regions
      .filter(function (region) { return region.type === "rectangleregion"; })
      .map(function (region) { return region.width * region.height / 1e4; });
    var largest = Math.max.apply(null, shares.concat(0));
    var rotated = selected.regionStore.regions.some(function (region) { return region.rotation; });
    var bad = !shares.length || largest > rules.max_share || rotated;
    line.textContent = !shares.length ? "⟦no box yet⟧"
      : rotated ? "⟦a box is rotated: boxes must be upright⟧"
      : "⟦largest box {} % of the image, limit {} %⟧".replace("{}", (100 * largest).toFixed(2)).replace("{}", +(100 * rules.max_share).toFixed(2));
    line.style.background = bad ? "#b71c1c" : "#1b5e20";
    line.style.display = "block";
  }, 400);
})();

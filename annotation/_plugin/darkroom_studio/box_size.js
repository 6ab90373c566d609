// A line beside the buttons: the size of the largest box while it is drawn, and a button that deletes the selected one.
(function () {
  var line = document.createElement("div"), text = document.createElement("span"), key = document.createElement("button");
  line.id = "darkroom-share";
  text.setAttribute("role", "status");
  key.textContent = "⟦delete the box⟧";
  key.addEventListener("click", function () {
    window.Htx.annotationStore.selected.selectedRegions.slice().forEach(function (region) { region.deleteRegion(); });
  });
  line.append(text, key);
  document.body.appendChild(line);
  setInterval(function () {
    var selected = window.Htx?.annotationStore?.selected, rules = selected && window.Htx.task?.dataObj?.gate;
    line.style.display = rules?.max_share ? "block" : "none";
    if (!rules?.max_share) return;
    var boxes = selected.regionStore.regions.filter(function (region) { return region.type === "rectangleregion"; });
    var largest = Math.max(0, ...boxes.map(function (region) { return region.width * region.height / 1e4; }));
    var rotated = boxes.some(function (region) { return region.rotation; });
    text.textContent = !boxes.length ? "⟦no box yet⟧"
      : rotated ? "⟦a box is rotated: boxes must be upright⟧"
      : "⟦largest box {} % of the image, limit {} %⟧".replace("{}", (100 * largest).toFixed(2)).replace("{}", +(100 * rules.max_share).toFixed(2));
    line.classList.toggle("dr-bad", !boxes.length || largest > rules.max_share || rotated);
    key.hidden = selected.readonly || !selected.selectedRegions.length;
  }, 400);
})();

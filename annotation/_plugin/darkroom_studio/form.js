// The form's fields are named by their headings, for who hears the page; T draws a box, also where it would end drawing.
(function () {
  var TEXT = "textarea, input:not([type=radio]):not([type=checkbox])";
  // Label Studio switches the label by its key, and puts it in hand when a task is opened: T, first of all, put it down
  window.addEventListener("keydown", function (event) {
    var selected = window.Htx && window.Htx.annotationStore && window.Htx.annotationStore.selected;
    var control = selected && selected.names && selected.names.get("box"), target = event.target;
    var isText = target.matches && target.matches(TEXT);
    var isT = (event.key || "").toLowerCase() === "t" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isT && !isText && control && control.selectedLabels) control.selectedLabels.forEach(function (label) { label.toggleSelected(); });
  }, true);
  // Label Studio puts the cursor into a field that holds a text when it draws it, where the keys of the form would be text:
  // only in the field that was worked on last, and in the same annotation, is that wanted
  var worked = null, focus = HTMLElement.prototype.focus;
  function fieldAt(node) {
    var selected = window.Htx && window.Htx.annotationStore && window.Htx.annotationStore.selected;
    var control = node.closest && node.closest("[data-testid=textarea-control]");
    return control ? {control: control, annotation: selected && selected.id} : null;
  }
  ["keydown", "pointerdown", "pointerup"].forEach(function (kind) {
    window.addEventListener(kind, function (event) { worked = fieldAt(event.target); }, true);
  });
  HTMLElement.prototype.focus = function () {
    var drawn = this.matches(TEXT) && this.closest(".dr-side") && !this.closest(".dr-first") ? fieldAt(this) : null;
    var isWanted = !drawn || worked && worked.control === drawn.control && worked.annotation === drawn.annotation;
    if (isWanted) focus.apply(this, arguments);
  };
  setInterval(function () {
    var side = document.querySelector(".dr-side");
    if (!side) return;
    side.querySelectorAll(TEXT).forEach(function (field) {
      if (!field.placeholder || field.closest(".dr-first")) return;
      field.setAttribute("aria-label", field.placeholder);
    });
    side.querySelectorAll("h4").forEach(function (heading) {
      var below = heading.nextElementSibling, field = below && below.querySelector(TEXT);
      if (field) field.setAttribute("aria-label", heading.textContent);
    });
  }, 500);
})();

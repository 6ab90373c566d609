// The form's fields are named by their headings, for who hears the page; T draws a box, also where it would end drawing.
(function () {
  // Label Studio switches the label by its key, and puts it in hand when a task is opened: T, first of all, put it down
  window.addEventListener("keydown", function (event) {
    var selected = window.Htx && window.Htx.annotationStore && window.Htx.annotationStore.selected;
    var control = selected && selected.names && selected.names.get("box"), target = event.target;
    var isText = target.matches && target.matches("textarea, input:not([type=radio]):not([type=checkbox])");
    var isT = (event.key || "").toLowerCase() === "t" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isT && !isText && control && control.selectedLabels) control.selectedLabels.forEach(function (label) { label.toggleSelected(); });
  }, true);
  setInterval(function () {
    document.querySelectorAll(".dr-side h4").forEach(function (heading) {
      var below = heading.nextElementSibling, field = below && below.querySelector("textarea, input[type=text], input[type=number]");
      if (field && field.getAttribute("aria-label") !== heading.textContent) field.setAttribute("aria-label", heading.textContent);
    });
  }, 500);
})();

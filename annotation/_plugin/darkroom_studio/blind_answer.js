// A cross-check in two steps: the checker's own answer, then the record, which the server sends only afterwards.
(function () {
  function element(tag, className, text) {
    var made = document.createElement(tag);
    made.className = className;
    made.textContent = text || "";
    return made;
  }
  function note(title, button, act) {
    var box = element("form", "dr-first"), key = element("button", "", button);
    box.append(element("b", "", title), key);
    box.addEventListener("submit", function (event) { event.preventDefault(); act(); });
    return box;
  }
  function ask(task) {
    var box = note("⟦Answer the question yourself⟧", "⟦Keep my answer and show the record⟧", send);
    var field = element("input"), problem = element("p", "dr-problem");
    field.name = "own_answer";
    field.maxLength = 1000;
    field.autocomplete = "off";
    field.placeholder = "⟦Your answer⟧";
    field.setAttribute("aria-label", "⟦Your answer⟧");
    var place = "darkroom:answer:" + window.APP_SETTINGS.user.id + ":" + task.id;
    field.value = sessionStorage.getItem(place) || "";
    field.addEventListener("input", function () { sessionStorage.setItem(place, field.value); });
    problem.setAttribute("role", "alert");
    box.lastChild.before(field, element("p", "", "⟦It stays as you give it. The record's answer and boxes are shown next.⟧"));
    box.append(problem);
    function send() {
      box.lastChild.previousSibling.disabled = true;
      fetch("/darkroom/tasks/" + task.id + "/answer", {
        method: "POST", headers: {"Content-Type": "application/json", Accept: "application/json"},
        body: JSON.stringify({answer: field.value})
      }).then(function (answer) {
        return answer.json().then(function (said) {
          if (!answer.ok) throw new Error(said.detail);
          sessionStorage.removeItem(place);
          return window.dataManager.lsf.loadTask(task.id);
        });
      }).catch(function (error) {
        problem.textContent = error.message;
        box.lastChild.previousSibling.disabled = false;
      });
    }
    return box;
  }
  // a task of an earlier version: the page has the record, and shows it on demand
  function offer() {
    return note("⟦Answer below before you look⟧", "⟦Show the record's answer⟧", function () {
      document.body.classList.remove("dr-closed");
      document.querySelector(".dr-first").remove();
    });
  }
  var shown = "";
  setInterval(function () {
    var store = window.Htx && window.Htx.annotationStore, selected = store && store.selected;
    var slot = document.querySelector(".dr-own-answer"), task = slot && selected && window.Htx.task;
    var data = task && task.dataObj, gate = (data && data.gate) || {};
    var asks = !!data && data.own_answer === "", isOld = gate.kind === "cross_check" && !gate.blind_first;
    document.body.classList.toggle("dr-blind", asks);
    if (!data) { shown = ""; return; }
    if (asks && !selected.readonly) selected.setReadonly(true);
    var field = data.own_answer && document.querySelector(".dr-settled textarea, .dr-settled input");
    if (field && !field.readOnly) {
      field.readOnly = true;
      field.blur();  // the page puts the cursor there, where the keys of the verdicts would be text
    }
    var now = task.id + " " + data.own_answer;
    if (now === shown && (slot.firstChild || !(asks || isOld))) return;
    document.body.classList.toggle("dr-closed", isOld && now !== shown);
    slot.textContent = "";
    if (asks) slot.append(ask(task));
    else if (isOld && now !== shown) slot.append(offer());
    shown = now;
  }, 200);
})();

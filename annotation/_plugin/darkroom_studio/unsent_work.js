// Work on a task is in the browser's storage within a second and in a draft on the server within five, typed text too,
// which Label Studio has in a draft only once a field is left. A copy is of one person, task, annotation and version of
// the task and its form. Two tabs with one task: only one may change it.
(function () {
  var darkroom = window.darkroom, PREFIX = "darkroom:work:", MOST = 20, LONGEST = 200000, OLDEST_MS = 30 * 86400e3;
  var TICK_MS = 500, DRAFT_MS = 4000, SENDING_MS = 2000;
  var tab = Math.random(), channel = new BroadcastChannel("darkroom");
  // what the page shows, and since when; what it last held, and what of that the server has; what was sent to it, arrived
  // or not; whether it may not be changed, since another tab has it or the person must choose; whether it is being submitted
  var shown = null, seen = "", last = "", held = null, drafted = "", draftTime = "", sent = [], asked = 0;
  var isGuest = false, isHeld = false;

  // The form as it is, to be read and not to be changed or submitted.
  function close(selected) {
    window.Htx.setFlags({isLoading: false, isSubmitting: true});
    if (!selected.readonly) selected.setReadonly(true);
  }
  function selectedOf() {
    var htx = window.Htx, selected = htx && htx.annotationStore && htx.annotationStore.selected;
    return selected && htx.task && !htx.isLoading && selected.names ? selected : null;
  }
  function digest(text) {
    var sum = 5381;
    for (var place = 0; place < text.length; place++) sum = (sum * 33 ^ text.charCodeAt(place)) >>> 0;
    return text.length + "-" + sum;
  }
  function workOn(selected) {
    var htx = window.Htx, annotation = selected.exists ? selected.pk : "new";
    var task = PREFIX + window.APP_SETTINGS.user.id + ":" + htx.task.id + ":";
    var data = {...htx.task.dataObj, source: ""};  // Label Studio's own key: the task as served, with its drafts
    return {key: task + annotation, id: selected.id, version: digest(JSON.stringify(data) + htx.config), since: Date.now()};
  }

  // Results with what was typed into fields that have not been left: in the field, or in its control while it is hidden.
  darkroom.withTyped = function (results) {
    var selected = window.Htx.annotationStore.selected, together = results.map(function (one) { return {...one}; });
    selected.names.forEach(function (control, name) {
      if (control.type !== "textarea" || control.perregion || control.maxsubmissions !== "1") return;
      var field = [...document.querySelectorAll("[data-testid=textarea-input], [data-testid=htx-textbox-input]")]
        .find(function (node) { return node.name.split(":")[0] === name; });
      var typed = field ? field.value : control._value, held = together.find(function (one) { return one.from_name === name; });
      if (held && field) held.value = {...held.value, text: [typed]};
      else if (!held && typed) together.push({
        id: "typed_" + name, from_name: name, to_name: control.toname, type: "textarea", origin: "manual", value: {text: [typed]}
      });
    });
    return together;
  };
  function essence(results) {
    return JSON.stringify(results.map(function (one) { return JSON.stringify([one.from_name, one.value]); }).sort());
  }

  function copies() {
    return Object.keys(localStorage).filter(function (key) { return key.startsWith(PREFIX); }).map(function (key) {
      try { return {...JSON.parse(localStorage.getItem(key)), key: key}; } catch (error) { return {key: key, at: 0}; }
    }).sort(function (a, b) { return b.at - a.at; });
  }
  function write(work, results, isDrafted) {
    var copy = {version: work.version, at: Date.now(), draft: draftTime, sent: sent, drafted: isDrafted, results: results};
    try {
      var text = JSON.stringify(copy);
      if (text.length > LONGEST) return localStorage.removeItem(work.key);
      localStorage.setItem(work.key, text);
    } catch (error) { /* no storage, or it is full: the server's draft remains */ }
  }
  function removeOldest() {
    copies().forEach(function (copy, place) {
      if (place >= MOST || Date.now() - copy.at > OLDEST_MS) localStorage.removeItem(copy.key);
    });
  }
  function put(selected, results) {
    selected.history.freeze();
    selected.deleteAllRegions({deleteReadOnly: true});
    selected.deserializeResults(results);
    selected.updateObjects();
    selected.history.safeUnfreeze();
    selected.history.reinit();
  }

  function begin(selected, isLeaving) {
    var work = workOn(selected), copy = null;
    shown = work;
    isGuest = isHeld = false;
    held = null;
    sent = [];
    last = drafted = essence(selected.serializeAnnotation({fast: true}));  // what was typed meanwhile is new
    draftTime = (darkroom.served[window.Htx.task.id] || {}).draft || "";
    darkroom.say("work");
    removeOldest();
    channel.postMessage({says: "opened", key: work.key, since: work.since, tab: tab});
    try { copy = JSON.parse(localStorage.getItem(work.key)); } catch (error) { /* as if there were none */ }
    if (isLeaving || !copy || copy.version !== work.version || copy.drafted || essence(copy.results) === last) return;
    function restore() {
      put(selected, copy.results);
      drafted = "";  // of the server: to be saved
    }
    if (copy.draft === draftTime || (copy.sent || []).includes(digest(last))) return restore();
    function open() {
      isGuest = false;
      darkroom.say("work");
      window.Htx.setFlags({isSubmitting: false});
      selected.setReadonly(false);
    }
    isGuest = true;
    darkroom.say("work", "older", {
      restore: function () { open(); restore(); },
      discard: function () { open(); localStorage.removeItem(work.key); }
    });
  }
  function keep() {
    var selected = selectedOf();
    if (!selected || !shown || shown.id !== selected.id || isGuest || isHeld || selected.isReadOnly()) return;
    var results = darkroom.withTyped(selected.serializeAnnotation({fast: true})), now = essence(results);
    if (now !== last) {
      last = now;
      held = results;
      write(shown, held, false);
    }
    return selected;
  }
  function draft(selected) {
    if (!selected || last === drafted || selected.isDraftSaving || !selected.autosave) return;
    asked = Date.now();
    selected.autosave.cancel();
    selected.saveDraft();
  }
  darkroom.sending = function (results) {
    sent = [digest(essence(results)), ...sent].slice(0, MOST);
    if (held) write(shown, held, false);
  };
  darkroom.drafted = function (results, time) {
    if (!shown) return;
    drafted = essence(results);
    draftTime = time || draftTime;
    if (drafted === last) write(shown, results, true);
  };

  // Label Studio treats a rejected submission as still in progress and stops saving drafts. Only its own actions may change
  // its state; the one available writes the current time.
  function resetSubmission(annotation) {
    var now = Date.now;
    Date.now = function () { return 0; };
    try { annotation.submissionInProgress(); } finally { Date.now = now; }
  }
  // While a submission is under way. If it must wait, the form stays on the page as it was sent; if it failed, it is open again.
  darkroom.hold = function () {
    var selected = window.Htx.annotationStore.selected, timer = null;
    isHeld = true;
    return {
      wait: function () {
        timer = timer || setInterval(close, 300, selected);
        close(selected);
      },
      end: function (isDone, draftId) {
        clearInterval(timer);
        if (timer) window.Htx.setFlags({isSubmitting: false});
        if (isDone) return;
        isHeld = false;
        if (timer) selected.setReadonly(false);
        resetSubmission(selected);
        setTimeout(function () { if (draftId && !selected.draftId) selected.setDraftId(draftId); }, 500);  // Label Studio forgets it
      }
    };
  };
  darkroom.submitted = function (task) {
    var start = PREFIX + window.APP_SETTINGS.user.id + ":" + task + ":";
    copies().forEach(function (copy) { if (copy.key.startsWith(start)) localStorage.removeItem(copy.key); });
    if (shown) channel.postMessage({says: "submitted", key: shown.key, tab: tab});
  };

  function take() {
    channel.postMessage({says: "taken", key: shown.key, tab: tab});
    setTimeout(function () { location.reload(); }, 500);  // the other tab writes its copy first
  }
  function yieldTo(name, buttons) {
    keep();
    isGuest = true;
    darkroom.say("work", name, buttons);
  }
  channel.addEventListener("message", function (event) {
    var said = event.data;
    if (!shown || said.key !== shown.key || said.to && said.to !== tab) return;
    if (said.says === "opened" && !isGuest && shown.since <= said.since) channel.postMessage({says: "mine", key: said.key, to: said.tab});
    if (said.says === "mine") yieldTo("elsewhere", {here: take});
    if (said.says === "taken") yieldTo("moved", {here: take});
    if (said.says === "submitted") yieldTo("submitted", {next: function () { location.reload(); }});
  });

  setInterval(function () {
    var selected = selectedOf();
    if (!window.Htx || !window.Htx.task) shown = null;
    if (!selected) return;
    if (isGuest) close(selected);
    if (!isHeld && selected.submissionStarted && Date.now() - selected.submissionStarted > SENDING_MS) resetSubmission(selected);
    if (!shown || shown.id !== selected.id) {
      // Label Studio selects an annotation and then another while it opens a task
      if (seen === selected.id) begin(selected);
      seen = selected.id;
      return;
    }
    if (Date.now() - asked > DRAFT_MS) draft(keep()); else keep();
  }, TICK_MS);
  function leave() {
    var selected = selectedOf();
    if (selected && (!shown || shown.id !== selected.id)) begin(selected, true);
    draft(keep());
  }
  window.addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", function () { if (document.visibilityState === "hidden") leave(); });
  document.addEventListener("click", keep, true);  // before what is clicked opens another task
  // the back button may bring a page as it was left, and what was done since is newer
  window.addEventListener("pageshow", function (event) { if (event.persisted && shown) location.reload(); });
})();

// The sentences of connection.js and unsent_work.js, and the bar at the top that shows them.
window.darkroom = (function () {
  var SENTENCES = {
    offline: "⟦The server does not answer. Your work is kept in this browser; what you submitted is sent as soon as the line is back.⟧",
    session: "⟦Your session has ended. Log in in another tab: your work is kept here, and what you submitted is sent afterwards.⟧",
    person: "⟦Somebody else has logged in in this browser. Log in as yourself in another tab: your work is kept here until then.⟧",
    elsewhere: "⟦You have this task open in another tab. Only one of them can change it.⟧",
    moved: "⟦You work on this task in another tab now. This one shows what was there before.⟧",
    submitted: "⟦This task was submitted before, from another tab or browser. That submission counts; what is here was not sent.⟧",
    older: "⟦This browser holds other work of yours on this task than the server. Which do you want?⟧",
    again: "⟦Try again⟧", login: "⟦Log in⟧", here: "⟦Work here⟧", next: "⟦Next task⟧", restore: "⟦Use this browser's⟧", discard: "⟦Use the server's⟧"
  };
  var bar = null, rows = {};
  // Says one sentence on a subject, with buttons {name: act, or the address of a new tab}; without a sentence takes it away.
  function say(subject, name, buttons) {
    if (!bar) {
      bar = document.createElement("div");
      bar.id = "darkroom-bar";
      document.body.append(bar);
    }
    var row = rows[subject] = rows[subject] || document.createElement("p");
    if ((row.dataset.said || "") === (name || "")) return;
    row.dataset.said = name || "";
    row.setAttribute("role", "alert");
    row.textContent = SENTENCES[name] || "";
    Object.entries(buttons || {}).forEach(function (entry) {
      var act = entry[1], made = document.createElement(typeof act === "string" ? "a" : "button");
      made.textContent = SENTENCES[entry[0]];
      if (typeof act === "string") Object.assign(made, {href: act, target: "_blank"});
      else made.addEventListener("click", act);
      row.append(" ", made);
    });
    bar.append(row);
  }
  return {say: say};
})();

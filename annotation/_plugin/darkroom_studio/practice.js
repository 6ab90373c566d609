// The practice page: boxes are drawn with mouse, pen or one finger, and what was typed stays until the server has it.
(function () {
  var body = document.body, step = body.dataset.step, size = body.dataset.size.split(" ").map(Number);
  var frame = document.getElementById("frame"), picture = document.getElementById("picture");
  var place = "darkroom:practice:" + body.dataset.person + ":" + step, boxes = [], zoom = 1;
  function put(box, at) {
    Object.assign(box.style, {left: at.x + "%", top: at.y + "%", width: at.width + "%", height: at.height + "%"});
  }
  picture.querySelectorAll(".box").forEach(function (box) {
    var corners = box.dataset.box.split(" ").map(function (pixel, n) { return 100 * pixel / size[n % 2]; });
    put(box, {x: corners[0], y: corners[1], width: corners[2] - corners[0], height: corners[3] - corners[1]});
  });
  function enlarge(factor) {
    var before = zoom, middle = [frame.scrollLeft + frame.clientWidth / 2, frame.scrollTop + frame.clientHeight / 2];
    zoom = Math.min(12, Math.max(1, zoom * factor));
    picture.style.width = 100 * zoom + "%";
    frame.scrollTo(middle[0] * zoom / before - frame.clientWidth / 2, middle[1] * zoom / before - frame.clientHeight / 2);
  }
  document.getElementById("larger").addEventListener("click", function () { enlarge(1.5); });
  document.getElementById("smaller").addEventListener("click", function () { enlarge(1 / 1.5); });
  frame.addEventListener("wheel", function (event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    enlarge(event.deltaY < 0 ? 1.25 : 0.8);
  }, {passive: false});

  function send(form, content) {
    var problem = form.querySelector("[role=alert]"), keys = form.querySelectorAll("button");
    keys.forEach(function (key) { key.disabled = true; });
    fetch("/darkroom/practice", {
      method: "POST", headers: {"Content-Type": "application/json", Accept: "application/json"},
      body: JSON.stringify({step: step, ...content})
    }).then(function (answer) {
      if (answer.redirected || answer.status === 401) throw new Error("⟦Your session has ended. Log in in another tab, then try again: what you typed is still here.⟧");
      return answer.json().then(function (said) {
        if (!answer.ok) throw new Error(said.detail);
        sessionStorage.removeItem(place);
        location.assign("/darkroom/practice");
      });
    }).catch(function (error) {
      problem.textContent = error instanceof TypeError ? "⟦The server does not answer. Try again: what you typed is still here.⟧" : error.message;
      keys.forEach(function (key) { key.disabled = false; });
    });
  }
  var verdict = document.getElementById("verdict");
  if (verdict) {
    verdict.addEventListener("submit", function (event) {
      event.preventDefault();
      send(verdict, {verdict: event.submitter.value});
    });
  }
  var form = document.getElementById("own"), drawn = null, start = null;
  if (!form) return;
  function keep() { sessionStorage.setItem(place, JSON.stringify({answer: form.answer.value, boxes: boxes})); }
  function add(at) {
    var box = document.createElement("div");
    box.className = "box";
    put(box, at);
    picture.append(box);
    return box;
  }
  var kept = JSON.parse(sessionStorage.getItem(place) || "{}");
  form.answer.value = kept.answer || "";
  boxes = kept.boxes || [];
  boxes.forEach(add);
  form.answer.addEventListener("input", keep);
  function at(event) {
    var whole = picture.getBoundingClientRect(), clip = function (share) { return 100 * Math.min(1, Math.max(0, share)); };
    return {x: clip((event.clientX - whole.left) / whole.width), y: clip((event.clientY - whole.top) / whole.height)};
  }
  function between(a, b) {
    return {x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y)};
  }
  picture.addEventListener("pointerdown", function (event) {
    if (!event.isPrimary || event.button) return;
    event.preventDefault();
    picture.setPointerCapture(event.pointerId);
    start = at(event);
    drawn = add(between(start, start));
  });
  picture.addEventListener("pointermove", function (event) {
    if (drawn && event.isPrimary) put(drawn, between(start, at(event)));
  });
  function end(event) {
    if (!drawn || !event.isPrimary) return;
    var box = between(start, at(event));
    if (event.type === "pointerup" && drawn.offsetWidth > 6 && drawn.offsetHeight > 6) boxes.push(box);
    else drawn.remove();
    drawn = null;
    keep();
  }
  ["pointerup", "pointercancel"].forEach(function (kind) { picture.addEventListener(kind, end); });
  document.getElementById("clear").addEventListener("click", function () {
    picture.querySelectorAll(".box").forEach(function (box) { box.remove(); });
    boxes = [];
    keep();
  });
  form.addEventListener("submit", function (event) {
    event.preventDefault();
    send(form, {answer: form.answer.value, boxes: boxes});
  });
})();

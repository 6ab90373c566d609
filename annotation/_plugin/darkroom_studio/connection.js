// Requests of a page with a form wait while the line, the server or the session is gone, and are then sent again: Label
// Studio drops the form when a request fails, and leaves the page at a 401. A submission is stored once, however often it
// is sent: each has a number (Label Studio's unique_id, that of the task's lock), and the server refuses the second (409).
(function () {
  var darkroom = window.darkroom, original = window.fetch, CHECK_MS = 10000, KEEPALIVE_CHARACTERS = 60000;
  var SUBMISSION = /^\/api\/(tasks\/\d+\/annotations|annotations\/\d+)\/?$/, DRAFT = /\/drafts(\/\d+)?\/?$/;
  var served = darkroom.served = {};  // of each task that the server gave: its lock's number, the time of its newest draft
  var waiting = null, check = null;

  function troubleOf(answer) {
    var isLogin = answer.redirected && new URL(answer.url).pathname.startsWith("/user/login");
    return answer.status === 401 || isLogin ? "session" : [502, 503, 504].includes(answer.status) ? "offline" : "";
  }
  // What is wrong now, found by asking who is logged in: the next who does must not submit another person's work.
  async function look() {
    try {
      var answer = await original.call(window, "/api/current-user/whoami", {cache: "no-store"}), trouble = troubleOf(answer);
      if (trouble || !answer.ok) return trouble || "offline";
      return (await answer.json()).id === window.APP_SETTINGS.user.id ? "" : "person";
    } catch (error) {
      return "offline";
    }
  }
  function tell(trouble) {
    var login = {session: "/user/login/?next=/projects/", person: "/logout/"}[trouble];
    darkroom.say("line", trouble, {...(login ? {login: login} : {}), ...(trouble ? {again: function () { check(); }} : {})});
  }
  // Until the line and the session are back; looks at once when the browser or the person has a reason to.
  function untilBack(trouble) {
    waiting = waiting || new Promise(function (resolve) {
      var reasons = ["online", "focus"], isBack = false, timer = setInterval(function () { check(); }, CHECK_MS);
      check = async function () {
        var found = await look();
        if (isBack) return;
        tell(found);
        if (found) return;
        isBack = true;
        clearInterval(timer);
        reasons.forEach(function (name) { window.removeEventListener(name, check); });
        waiting = null;
        resolve();
      };
      reasons.forEach(function (name) { window.addEventListener(name, check); });
    });
    tell(trouble);
    return waiting;
  }
  // whoever comes back to the tab may have logged in elsewhere, as somebody else
  window.addEventListener("focus", async function () {
    var trouble = window.Htx && window.Htx.task && !waiting ? await look() : "";
    if (trouble) untilBack(trouble);
  });
  // One attempt: the answer, or what was wrong.
  async function attempt(resource, options) {
    try {
      var answer = await original.call(window, resource, options), trouble = troubleOf(answer);
      if (answer.status === 403) trouble = await look();
      return trouble ? {trouble: trouble} : {answer: answer};
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return {trouble: "offline"};
    }
  }
  function made(content, status) {
    return new Response(JSON.stringify(content), {status: status, headers: {"Content-Type": "application/json"}});
  }

  async function sendDraft(resource, options) {
    if (waiting) return made({}, 200);  // it is in the browser's storage, and is sent later
    var body = JSON.parse(options.body || "{}");
    if (body.result) darkroom.sending(body.result = darkroom.withTyped(body.result));
    var text = JSON.stringify(body);
    var done = await attempt(resource, {...options, body: text, keepalive: text.length < KEEPALIVE_CHARACTERS});
    if (done.trouble) {
      untilBack(done.trouble);
      return made({}, 200);
    }
    if (done.answer.ok && body.result) darkroom.drafted(body.result, (await done.answer.clone().json()).updated_at);
    return done.answer;
  }
  function number() {
    var digits = Array.from(crypto.getRandomValues(new Uint8Array(16)), function (byte) { return byte.toString(16).padStart(2, "0"); });
    return digits.join("").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }
  async function submit(resource, options) {
    var task = window.Htx.task.id, body = JSON.parse(options.body), isNew = options.method === "POST", isSent = false;
    if (isNew) body.unique_id = body.unique_id || (served[task] || {}).lock || number();
    var sent = {...options, body: JSON.stringify(body)}, release = darkroom.hold();
    for (;;) {
      var trouble = await look(), done = trouble ? {trouble: trouble} : await attempt(resource, sent);
      if (done.answer) break;
      isSent = isSent || !trouble;
      release.wait();
      await untilBack(done.trouble);
    }
    if (isNew && done.answer.status === 409) {
      darkroom.submitted(task);
      if (isSent) release.end(true);
      if (isSent) return made({}, 201);  // it had arrived, and the answer was lost
      release.wait();
      darkroom.say("work", "submitted", {next: function () { location.reload(); }});
      return new Promise(function () {});
    }
    release.end(done.answer.ok, body.draft_id);
    if (done.answer.ok) darkroom.submitted(task);
    return done.answer;
  }
  // A task with the newest of its drafts only: a draft sent while the page was left may be there beside an older one.
  async function read(answer) {
    var task = await answer.clone().json();
    if (!task || !task.drafts) return answer;
    var drafts = [...task.drafts].sort(function (a, b) { return a.updated_at < b.updated_at ? 1 : -1; });
    served[task.id] = {lock: task.unique_lock_id || (served[task.id] || {}).lock, draft: drafts.length ? drafts[0].updated_at : ""};
    var seen = drafts.map(function (draft) { return draft.annotation; });
    task.drafts = drafts.filter(function (draft, place) { return seen.indexOf(draft.annotation) === place; });
    return made(task, answer.status);
  }

  window.fetch = async function (resource, options) {
    var url = new URL(resource.url || resource, location.href), path = url.pathname, method = (options || {}).method || "GET";
    var isOurs = url.origin === location.origin && /^\/(api|darkroom)\//.test(path) && /^\/projects\/\d+\/data/.test(location.pathname);
    if (!isOurs) return original.apply(window, arguments);
    if (DRAFT.test(path)) return sendDraft(resource, options);
    if (method !== "GET" && SUBMISSION.test(path)) return submit(resource, options);
    for (;;) {
      var done = await attempt(resource, options);
      if (done.answer) break;
      await untilBack(done.trouble);
    }
    var isTask = url.searchParams.get("id") === "next_task" || /^\/api\/tasks\/\d+\/?$/.test(path);
    return isTask && done.answer.ok ? read(done.answer) : done.answer;
  };
})();

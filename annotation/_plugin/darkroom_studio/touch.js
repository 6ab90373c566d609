// On the image, one finger is the mouse, which is all that Label Studio knows; two fingers zoom and move.
(function () {
  var first = null, isDown = false, pinch = null, TAP_PIXELS = 6;
  function send(kind, at, target) {
    var about = {bubbles: true, cancelable: true, view: window, button: 0, clientX: at.clientX, clientY: at.clientY};
    target.dispatchEvent(new MouseEvent(kind, {...about, buttons: kind === "mouseup" ? 0 : 1}));
  }
  function between(touches) {
    var a = touches[0], b = touches[1];
    return {
      apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY),
      clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2
    };
  }
  function wheel(target, at, change) {
    target.dispatchEvent(new WheelEvent("wheel", {bubbles: true, cancelable: true, clientX: at.clientX, clientY: at.clientY, ...change}));
  }
  function onTouch(event) {
    var target = event.target, touches = event.targetTouches, touch = touches[0] || event.changedTouches[0];
    if (!target.closest || !target.closest(".konvajs-content")) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type === "touchstart") {
      if (touches.length === 1) first = touch;
      else if (touches.length === 2 && !isDown) {
        first = null;
        pinch = between(touches);
      }
    } else if (event.type === "touchmove" && pinch && touches.length === 2) {
      var now = between(touches), ratio = now.apart / pinch.apart;
      if (Math.abs(ratio - 1) > 0.1) wheel(target, now, {deltaY: ratio > 1 ? -100 : 100, ctrlKey: true});
      else wheel(target, now, {deltaX: pinch.clientX - now.clientX, deltaY: pinch.clientY - now.clientY});
      pinch = Math.abs(ratio - 1) > 0.1 ? now : {...now, apart: pinch.apart};
    } else if (event.type === "touchmove" && first) {
      if (!isDown && Math.hypot(touch.clientX - first.clientX, touch.clientY - first.clientY) < TAP_PIXELS) return;
      if (!isDown) send("mousedown", first, target);
      isDown = true;
      send("mousemove", touch, target);
    } else if (event.type !== "touchmove" && !touches.length) {
      if (first && !isDown) send("mousedown", first, target);
      if (first) send("mouseup", touch, target);
      first = pinch = null;
      isDown = false;
    }
  }
  ["touchstart", "touchmove", "touchend", "touchcancel"].forEach(function (kind) {
    window.addEventListener(kind, onTouch, {capture: true, passive: false});
  });
})();

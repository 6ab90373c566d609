// Starts with Label Studio's side panels collapsed at the right edge, unless the user has arranged them.
(function () {
  if (window.localStorage.getItem("panelState")) return;
  function panel(order, views) {
    return {
      order: order, top: 0, left: 0, relativeLeft: 0, relativeTop: 0, zIndex: 10, width: 320, height: 400, maxHeight: 500,
      visible: true, detached: false, alignment: "right",
      panelViews: views.map(function (name, place) {
        return {name: name, title: name[0].toUpperCase() + name.slice(1), active: !place};
      })
    };
  }
  window.localStorage.setItem("panelState", JSON.stringify({
    panelData: {
      "regions-relations": panel(1, ["regions", "relations"]),
      "info-history": panel(2, ["info", "history"])
    },
    collapsedSide: {left: false, right: true}
  }));
})();

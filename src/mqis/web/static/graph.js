// The map: clicks switch links off and on, results replace part of the page, and a button replaces
// the picture by a graph to drag. Without this file everything works through the form.
"use strict";

(function () {
  const form = document.querySelector("[data-map-form]");
  if (!form) return;
  let graph = null;
  let wanted = false;

  function result() {
    return document.querySelector("[data-map-result]");
  }

  async function ask() {
    const address = form.action.split("?")[0] + "?" + new URLSearchParams(
      [...new FormData(form)].filter(([, value]) => value !== ""));
    let text;
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      text = await answer.text();
    } catch {
      window.location.assign(address);
      return;
    }
    const page = new DOMParser().parseFromString(text, "text/html");
    const fresh = page.querySelector("[data-map-result]");
    if (!fresh) {
      window.location.assign(address);
      return;
    }
    const said = fresh.querySelector("[data-map-said]").textContent;
    const links = page.querySelector("[data-map-links]");
    const place = result().querySelector("[data-map-said]");
    const frozen = place.cloneNode(false);
    result().replaceWith(fresh);
    if (links) exchangeSwitches(links);
    // Screen readers speak a status that changes, not one that is new in the page.
    fresh.querySelector("[data-map-said]").replaceWith(frozen);
    window.setTimeout(() => { frozen.textContent = said; }, 50);
    window.history.replaceState(null, "", address);
    graph = null;
    prepare();
  }

  function exchangeSwitches(fresh) {
    const focused = document.activeElement && document.activeElement.value;
    const old = form.querySelector("[data-map-links]");
    const within = old.contains(document.activeElement);
    old.replaceWith(fresh);
    if (within) {
      const again = [...fresh.querySelectorAll("input")].find((box) => box.value === focused);
      if (again) again.focus();
    }
  }

  function toggle(link) {
    const box = [...form.elements.namedItem("off") instanceof RadioNodeList
      ? form.elements.namedItem("off") : [form.elements.namedItem("off")]]
      .find((each) => each && each.value === link);
    if (!box) return;
    box.checked = !box.checked;
    ask();
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function style() {
    const text = colour("--text");
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: "data(width)", height: "data(height)",
        "background-color": colour("--site"), "border-width": 1.2,
        "border-color": colour("--site-line"), label: "data(label)", "text-wrap": "wrap",
        "text-valign": "center", "text-halign": "center", "font-size": 12, color: text,
        "font-family": "system-ui, sans-serif", "line-height": 1.35 } },
      { selector: "node.on", style: {
        "background-color": colour("--route-soft"), "border-color": colour("--route"),
        "border-width": 2 } },
      { selector: "node.shut", style: { "border-style": "dashed" } },
      { selector: "edge", style: {
        width: 2, "line-color": colour("--edge"), "curve-style": "bezier", label: "data(label)",
        "font-size": 12, color: text, "text-background-color": colour("--card"),
        "text-background-opacity": 1, "text-background-padding": 3 } },
      { selector: "edge.on", style: {
        width: 4, "line-color": colour("--route"), "target-arrow-color": colour("--route"),
        "target-arrow-shape": "triangle" } },
      { selector: "edge.off", style: { "line-style": "dashed", "line-dash-pattern": [3, 6] } },
    ];
  }

  function build(container) {
    const data = JSON.parse(result().querySelector("[data-graph-data]").textContent);
    const elements = [
      ...data.sites.map((site) => ({
        data: { id: site.id, label: site.label, width: site.width, height: site.height },
        position: { x: site.x, y: site.y }, classes: site.kind })),
      ...data.links.map((link) => ({
        data: { id: link.id, source: link.source, target: link.target, label: link.label },
        classes: link.kind })),
    ];
    const made = window.cytoscape({
      container, elements, style: style(), layout: { name: "preset" },
      minZoom: 0.1, maxZoom: 4,
    });
    made.fit(undefined, 24);
    made.on("tap", "edge", (event) => toggle(event.target.id()));
    return made;
  }

  function show() {
    const picture = result().querySelector("[data-picture]");
    const container = result().querySelector("[data-graph]");
    const button = result().querySelector("[data-graph-switch]");
    picture.hidden = wanted;
    container.hidden = !wanted;
    button.setAttribute("aria-pressed", String(wanted));
    if (wanted && !graph) {
      graph = build(container);
      container.dataset.ready = String(graph.edges().length);
    }
  }

  function prepare() {
    const button = result().querySelector("[data-graph-switch]");
    if (button && window.cytoscape) {
      button.hidden = false;
      button.addEventListener("click", () => { wanted = !wanted; show(); });
      if (wanted) show();
    }
    for (const path of result().querySelectorAll("[data-link]")) {
      path.addEventListener("click", () => toggle(path.dataset.link));
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  form.addEventListener("change", (event) => {
    if (event.target.name === "off") ask();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (graph) graph.style(style());
  });
  prepare();
})();

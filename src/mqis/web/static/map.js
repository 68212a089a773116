// The map on one canvas: fits, zooms and pans, shows regions when it is small and sites when it is
// large. Clicks switch links off and on. Without this file the page has the picture as an image,
// and the form and the tables do the rest.
"use strict";

(function () {
  const form = document.querySelector("[data-map-form]");
  const canvas = document.querySelector("[data-map-canvas]");
  if (!form || !canvas) return;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const info = document.querySelector("[data-map-info]");
  let cy = null;
  let map = null;
  let state = readState(document);
  // The zoom that sizes belong to: a power of the square root of two.
  let step = 1;
  // Everything on the map with its extent, and the detail that its element has now.
  let parts = [];
  let worst = new Map();
  let resting = 0;
  // The time from which on the image of a moving map may be drawn anew.
  let renewable = 0;
  let moved = false;
  let asked = 0;

  function result() {
    return document.querySelector("[data-map-result]");
  }

  function readState(page) {
    return JSON.parse(page.querySelector("[data-map-state]").textContent);
  }

  // --- the form and its result -------------------------------------------------------------------

  function address(off) {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (name !== "off" && value !== "") query.append(name, value);
    }
    for (const link of off) query.append("off", link);
    return form.action.split("?")[0] + "?" + query;
  }

  async function ask(target) {
    const number = ++asked;
    canvas.setAttribute("aria-busy", "true");
    let text;
    try {
      const answer = await fetch(target, { credentials: "same-origin" });
      text = await answer.text();
    } catch {
      window.location.assign(target);
      return;
    }
    if (number !== asked) return; // a later click has asked for something else
    canvas.removeAttribute("aria-busy");
    const page = new DOMParser().parseFromString(text, "text/html");
    const fresh = page.querySelector("[data-map-result]");
    if (!fresh) {
      window.location.assign(target);
      return;
    }
    replace(page, fresh);
    window.history.replaceState(null, "", target);
    show();
  }

  function replace(page, fresh) {
    state = readState(page);
    const said = fresh.querySelector("[data-map-said]").textContent;
    const status = result().querySelector("[data-map-said]").cloneNode(false);
    const focused = result().contains(document.activeElement) ? document.activeElement : null;
    result().replaceWith(fresh);
    for (const name of ["[data-map-title]", "[data-map-svg]"]) {
      document.querySelector(name).replaceWith(page.querySelector(name));
    }
    if (focused) refocus(focused, fresh);
    // Screen readers speak a status that changes, not one that is new in the page.
    fresh.querySelector("[data-map-said]").replaceWith(status);
    window.setTimeout(() => { status.textContent = said; }, 50);
  }

  function refocus(old, fresh) {
    const again = [...fresh.querySelectorAll("input")].find((box) => box.value === old.value);
    if (again) again.focus();
  }

  function toggle(link) {
    const off = new Set(state.off);
    if (!off.delete(link)) off.add(link);
    ask(address(off));
  }

  // --- the look ----------------------------------------------------------------------------------

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // A length on the screen, whatever the zoom.
  function pixels(number) {
    return (each) => number / each.data("step");
  }

  function diameter(node) {
    const [radius, at] = [node.data("radius"), node.data("step")];
    const least = node.hasClass("late") || node.hasClass("bad") ? 6 : 3.5;
    return 2 * Math.min(Math.max(radius * at, least), radius) / at;
  }

  // Sizes come from the elements, so the style stays the same at every zoom.
  function style() {
    const [text, quiet, card, line] = ["--text", "--quiet", "--card", "--line"].map(colour);
    const [site, siteLine, edge, route] = ["--site", "--site-line", "--edge", "--route"].map(colour);
    const font = { "font-family": "system-ui, sans-serif", color: text, "text-wrap": "wrap",
      "text-max-width": "10000px", "font-size": pixels(12), "min-zoomed-font-size": 5,
      "text-outline-color": card, "text-outline-width": pixels(2.5), "text-outline-opacity": 1 };
    return [
      { selector: "core", style: { "outside-texture-bg-opacity": 0 } },
      { selector: "node", style: { ...font, "z-index-compare": "manual", "overlay-opacity": 0 } },
      { selector: "edge", style: { ...font, "z-index-compare": "manual", "z-index": 1,
        "curve-style": "straight", "line-color": edge, "overlay-opacity": 0,
        width: (each) => each.data("width") / each.data("step") } },
      { selector: "node.site", style: { "z-index": 3, width: diameter, height: diameter,
        "background-color": site, "border-width": pixels(1.6), "border-color": siteLine,
        label: "data(label)", "text-valign": "bottom", "text-margin-y": pixels(3),
        "line-height": 1.25 } },
      // Colour and shape both tell the state of a site's servers.
      { selector: "node.good", style: { "background-color": colour("--good-soft"),
        "border-color": colour("--good") } },
      { selector: "node.late", style: { shape: "triangle", "background-color": colour("--late-soft"),
        "border-color": colour("--late"), "border-width": pixels(2.2) } },
      { selector: "node.bad", style: { shape: "rectangle", "background-color": colour("--bad-soft"),
        "border-color": colour("--bad"), "border-width": pixels(2.6) } },
      { selector: "node.shut", style: { "border-style": "dashed", "background-color": card } },
      { selector: "node.region", style: { "z-index": 0, width: (each) => 2 * each.data("radius"),
        height: (each) => 2 * each.data("radius"), "background-color": colour("--soft"),
        "background-opacity": .55, events: "no", "border-width": pixels(1), "border-color": line } },
      { selector: "node.region.whole", style: { "z-index": 2, events: "yes", label: "data(label)",
        "background-color": site, "background-opacity": 1, "border-color": siteLine,
        "border-width": pixels(1.6), "text-valign": "center", "text-halign": "center",
        "text-outline-color": site } },
      ...["late", "bad"].map((name) => ({ selector: `node.region.${name}-inside`, style: {
        "background-color": colour(`--${name}-soft`), "border-color": colour("--" + name),
        "border-width": pixels(3), "text-outline-color": colour(`--${name}-soft`) } })),
      { selector: "edge.bent", style: { "curve-style": "unbundled-bezier",
        "control-point-distances": (each) => -each.data("bend"), "control-point-weights": .5 } },
      { selector: "edge.dim", style: { opacity: .45 } },
      { selector: "edge.link", style: { label: "data(label)", color: quiet, "font-size": pixels(11),
        "text-margin-x": (each) => each.data("shift").x, "text-margin-y": (each) => each.data("shift").y } },
      { selector: "edge.off", style: { opacity: 1, "line-style": "dashed", "line-dash-pattern": [3, 6],
        "line-color": colour("--bad") } },
      { selector: "edge.on", style: { opacity: 1, "z-index": 2, "line-color": route, color: text,
        width: (each) => (each.data("width") + 2.4) / each.data("step"), "arrow-scale": 1.1,
        "target-arrow-color": route, "source-arrow-color": route } },
      { selector: "edge.forward", style: { "target-arrow-shape": "triangle" } },
      { selector: "edge.back", style: { "source-arrow-shape": "triangle" } },
      { selector: "node.on", style: { "z-index": 4, "background-color": colour("--route-soft"),
        "border-color": route, "border-width": pixels(3) } },
      { selector: "node.found", style: { "z-index": 4, "border-color": colour("--accent"),
        "border-width": pixels(4) } },
      { selector: ".hidden", style: { display: "none" } },
    ];
  }

  // --- levels of detail --------------------------------------------------------------------------

  function stepOf(zoom) {
    return 2 ** (Math.floor(2 * Math.log2(zoom) + .01) / 2);
  }

  function labelOf(node, whole) {
    const site = node.data("site");
    if (step >= site.lines_from && !whole) return [site.caption, ...site.lines].join("\n");
    const wanted = ["on", "found", "bad", "late"].some((name) => node.hasClass(name));
    // On a small map the room in view decides.
    return step >= site.name_from || wanted || !map.regions.length ? site.caption : "";
  }

  function regionLabel(region) {
    const mark = { bad: "■ ", late: "▲ " }[worst.get(region.id)] || "";
    if (step < region.name_from) return mark + region.sites;
    return mark + region.caption + (step < region.lines_from ? "" : "\n" + region.sites + " sites");
  }

  // The gravest state of the sites of each region.
  function worstStates() {
    const found = new Map();
    for (const { region, state: told } of map.sites) {
      if (told === "bad" || (told === "late" && found.get(region) !== "bad")) found.set(region, told);
    }
    return found;
  }

  // Gives the elements in view and around it the details of this zoom. Others get them when they
  // come into view, or the map would stop for a moment at each step of the zoom.
  function detail() {
    const whole = step < map.sites_from && map.regions.length > 0;
    const marked = new Set(cy.nodes(".site.on, .site.found").map((node) => node.data("site").region));
    const level = whole ? "regions" : "sites";
    canvas.dataset.level = level;
    cy.batch(() => {
      for (const part of inView()) {
        const hidden = part.isHidden(part.element, whole);
        const wanted = hidden ? "hidden" : step + level;
        if (part.detail === wanted) continue;
        part.detail = wanted;
        part.element.toggleClass("hidden", hidden);
        if (!hidden) part.give(part.element, whole, marked);
      }
    });
    makeRoom();
  }

  // --- captions never collide ----------------------------------------------------------------------

  const pen = document.createElement("canvas").getContext("2d");

  // The line of a link as drawn: its ends, and the point that bends it. One that was never drawn has
  // none: then it is straight, from middle to middle.
  function lineOf(edge) {
    const drawn = [edge.sourceEndpoint(), edge.targetEndpoint()];
    if (drawn.some((end) => !end || !Number.isFinite(end.x))) {
      return { from: edge.source().position(), to: edge.target().position() };
    }
    return { from: drawn[0], to: drawn[1], bend: (edge.controlPoints() || [])[0] };
  }

  function pointOn({ from, to, bend }, part) {
    const [a, c] = [(1 - part) ** 2, part ** 2];
    const over = bend || { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
    return { x: a * from.x + 2 * (1 - part) * part * over.x + c * to.x,
      y: a * from.y + 2 * (1 - part) * part * over.y + c * to.y };
  }

  // The line as straight pieces.
  function piecesOf(line) {
    const ends = (line.bend ? [0, .125, .25, .375, .5, .625, .75, .875, 1] : [0, 1])
      .map((part) => pointOn(line, part));
    return ends.slice(1).map((end, number) => [ends[number], end]);
  }

  // True if a straight piece runs through a box.
  function crosses([from, to], box) {
    let [enter, leave] = [0, 1];
    for (const [axis, low, high] of [["x", box.x1, box.x2], ["y", box.y1, box.y2]]) {
      const way = to[axis] - from[axis];
      if (way === 0) {
        if (from[axis] < low || from[axis] > high) return false;
        continue;
      }
      const sides = [(low - from[axis]) / way, (high - from[axis]) / way];
      enter = Math.max(enter, Math.min(...sides));
      leave = Math.min(leave, Math.max(...sides));
    }
    return enter < leave;
  }

  // The places of a cost along its link, the best first.
  const ALONG = [.5, .42, .58, .34, .66, .26, .74];

  // Browsers measure texts inexactly: Cytoscape adds two units of the map on each side, as here.
  const SPARE = 4;

  // The extent of a caption on the map, with the room that its outline takes. That of a link is in
  // the middle of it.
  function captionBox(element, text) {
    const size = element.isEdge() ? 11 : 12;
    pen.font = size + "px system-ui, sans-serif";
    const lines = text.split("\n");
    // Five pixels are the outline's, and one is for what browsers round.
    const width = (Math.max(...lines.map((line) => pen.measureText(line).width)) * 1.01 + 6) / step + SPARE;
    const height = ((1 + 1.25 * (lines.length - 1)) * size + 6) / step + SPARE;
    let [x, y] = [0, 0];
    if (element.isEdge()) {
      ({ x, y } = pointOn(lineOf(element), .5));
      y -= height / 2;
    } else {
      ({ x, y } = element.position());
      y = element.hasClass("region") ? y - height / 2
        : y + element.height() / 2 - SPARE / 2;
    }
    return { x1: x - width / 2, y1: y, x2: x + width / 2, y2: y + height };
  }

  function importance(element) {
    if (element.hasClass("on") || element.hasClass("found")) return element.isEdge() ? 1 : 0;
    if (element.isEdge()) return 9;
    if (element.hasClass("bad-inside") || element.hasClass("late-inside")) return 1;
    if (element.hasClass("region")) return 2;
    return element.hasClass("bad") || element.hasClass("late") ? 3 : 4;
  }

  // Leaves out the captions for which there is no room, the less important ones.
  function makeRoom() {
    const taken = [];
    const rank = ({ element }) => importance(element) +
      (element.hasClass("site") ? element.data("site").name_from / 100 : 0);
    const captioned = inView().filter(({ element }) => element.data("label") && !element.hasClass("hidden"));
    captioned.sort((one, other) => rank(one) - rank(other));
    const view = cy.extent();
    const isCut = (box) => [view.x1, view.x2].some((edge) => box.x1 < edge && edge < box.x2);
    const isFree = (box, owner) => !isCut(box) && !taken.some((other) => other.owner !== owner &&
      box.x1 < other.x2 && other.x1 < box.x2 && box.y1 < other.y2 && other.y1 < box.y2);
    const given = new Map();
    const [lines, dots] = obstacles();
    const isOnDot = (box, owner) => dots.some((dot) => dot.part !== owner &&
      box.x1 < dot.x2 && dot.x1 < box.x2 && box.y1 < dot.y2 && dot.y1 < box.y2);
    // Takes a place for a link's cost beside captions, marks and other lines.
    const takeAlong = (part) => {
      const text = part.element.data("label");
      const [line, middle] = [lineOf(part.element), captionBox(part.element, text)];
      const start = pointOn(line, .5);
      const inset = 2 / step + SPARE / 2; // the text itself
      const places = ALONG.map((along) => {
        const { x, y } = pointOn(line, along);
        const shift = { x: x - start.x, y: y - start.y };
        return { shift, x1: middle.x1 + shift.x, x2: middle.x2 + shift.x,
          y1: middle.y1 + shift.y, y2: middle.y2 + shift.y };
      }).filter((box) => isFree(box, part));
      const isClear = (box) => {
        const [x1, x2, y1, y2] = [box.x1 + inset, box.x2 - inset, box.y1 + inset, box.y2 - inset];
        return !isOnDot({ x1, x2, y1, y2 }, part) &&
          !lines.some((other) => other.part !== part && crosses(other.piece, { x1, x2, y1, y2 }));
      };
      // The costs of a route stand on other lines rather than nowhere.
      const place = places.find(isClear) || (part.element.hasClass("on") && places[0]);
      if (!place) return;
      taken.push({ ...place, owner: part });
      given.set(part, text);
      part.element.data({ shift: place.shift });
    };
    const take = (part, text) => {
      const box = captionBox(part.element, text);
      if (!isFree(box, part) || (text.includes("\n") && isOnDot(box, part))) return;
      taken.push({ ...box, owner: part });
      given.set(part, text);
    };
    // Every name comes before the lines below any name; costs come last, but for those of a route.
    const [sites, links] = [true, false].map((node) =>
      captioned.filter(({ element }) => element.isNode() === node));
    for (const part of captioned) {
      if (part.element.isNode()) take(part, part.element.data("label").split("\n")[0]);
      else if (part.element.hasClass("on")) takeAlong(part);
    }
    // A region that has no room for its name keeps the mark of its state.
    for (const part of sites) {
      const mark = /^[■▲]/.exec(part.element.data("label"));
      if (mark && !given.has(part)) take(part, mark[0]);
    }
    for (const part of sites) if (given.has(part)) take(part, part.element.data("label"));
    for (const part of links) if (!given.has(part)) takeAlong(part);
    cy.batch(() => {
      for (const part of captioned) {
        const label = given.get(part) || "";
        if (label === part.element.data("label")) continue;
        part.element.data({ label });
        part.detail = ""; // there may be room after the next movement
      }
    });
  }

  // The lines and the marks that a link's cost may not stand on.
  function obstacles() {
    const lines = [], dots = [];
    for (const part of inView()) {
      const { element } = part;
      if (element.hasClass("hidden")) continue;
      if (element.isEdge()) {
        for (const piece of piecesOf(lineOf(element))) lines.push({ piece, part });
      } else if (element.hasClass("site")) {
        const [{ x, y }, half] = [element.position(), element.outerHeight() / 2];
        dots.push({ part, x1: x - half, x2: x + half, y1: y - half, y2: y + half });
      }
    }
    return [lines, dots];
  }

  function inView() {
    const { x1, y1, x2, y2, w, h } = cy.extent();
    return parts.filter(({ box }) => box.x1 < x2 + w / 2 && box.x2 > x1 - w / 2 &&
      box.y1 < y2 + h / 2 && box.y2 > y1 - h / 2);
  }

  // Sites and links of a route, and those that were found or are off, show between regions too.
  function isMarked(element) {
    return ["on", "off", "found"].some((name) => element.hasClass(name));
  }

  function giveSite(node, whole) {
    node.data({ step, label: labelOf(node, whole) });
  }

  function giveLink(edge, whole) {
    const shown = edge.hasClass("on") || !whole;
    edge.data({ step, label: shown ? String(edge.data("cost")) : "" });
  }

  function giveRegion(node, whole, marked) {
    const region = node.data("region");
    node.toggleClass("whole", whole);
    for (const name of ["bad", "late"]) {
      node.toggleClass(name + "-inside", whole && worst.get(region.id) === name);
    }
    node.data({ step, label: marked.has(region.id) ? "" : regionLabel(region) });
  }

  function giveBetween(edge) {
    edge.data({ step });
  }

  // The map rests, or stops for an instant in a long movement.
  function settle() {
    window.clearTimeout(resting);
    step = stepOf(cy.zoom());
    detail();
  }

  function settleAnew() {
    for (const part of parts) part.detail = "";
    settle();
  }

  // While it moves, a large map is an image of what was in view, which the browser moves and
  // scales. It is drawn anew if much of the canvas is outside of it, or if it is too coarse.
  function moving() {
    window.clearTimeout(resting);
    resting = window.setTimeout(settle, 100);
    const image = cy.renderer().textureCache;
    if (image && performance.now() >= renewable && isOld(image.viewport)) renew();
  }

  // Draws the image anew. A slow browser does so less often: it may take a quarter of the time.
  function renew() {
    const began = performance.now();
    renewable = Infinity;
    settle();
    cy.renderer().textureCache = null;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const now = performance.now();
      renewable = now + 3 * (now - began);
    }));
  }

  function isOld(image) {
    const [zoom, pan] = [cy.zoom(), cy.pan()];
    const [left, top] = [zoom * image.mpan.x + pan.x, zoom * image.mpan.y + pan.y];
    const grown = zoom / image.zoom;
    const [width, height] = [cy.width(), cy.height()];
    return grown > 2 || left > width / 4 || top > height / 4 ||
      left + width * grown < .75 * width || top + height * grown < .75 * height;
  }

  // --- drawing -----------------------------------------------------------------------------------

  function elements() {
    return [
      ...map.regions.map((region) => ({ classes: "region", grabbable: false,
        data: { id: region.id, radius: region.radius, label: "", step, region },
        position: { x: region.x, y: region.y } })),
      ...map.sites.map((site) => ({ classes: "site " + site.state + (site.has_gate ? "" : " shut"),
        data: { id: site.id, radius: site.radius, label: "", step, site }, grabbable: false,
        position: { x: site.x, y: site.y } })),
      ...map.region_links.map((link) => ({ classes: "between hidden",
        data: { id: link.id, source: link.source, target: link.target, width: link.width, step,
          link } })),
      ...map.links.map((link) => ({ classes: link.bend ? "link bent" : "link",
        data: { id: link.id, source: link.source, target: link.target, width: link.width,
          bend: link.bend, cost: link.cost, label: "", shift: { x: 0, y: 0 }, step, link } })),
    ];
  }

  function partsOf() {
    const places = new Map([...map.sites, ...map.regions].map((each) => [each.id, each]));
    const disc = ({ x, y, radius }) => ({ x1: x - radius, y1: y - radius, x2: x + radius,
      y2: y + radius });
    const line = ({ source, target, bend = 0 }) => {
      const [one, other] = [places.get(source), places.get(target)];
      const aside = Math.abs(bend);
      return { x1: Math.min(one.x, other.x) - aside, y1: Math.min(one.y, other.y) - aside,
        x2: Math.max(one.x, other.x) + aside, y2: Math.max(one.y, other.y) + aside };
    };
    const part = (box, give, isHidden) => (each) => ({ box: box(each), give, isHidden, detail: "",
      element: cy.getElementById(each.id) });
    const single = (element, whole) => whole && !isMarked(element);
    return [...map.regions.map(part(disc, giveRegion, () => false)),
      ...map.sites.map(part(disc, giveSite, single)),
      ...map.region_links.map(part(line, giveBetween, (_, whole) => !whole)),
      ...map.links.map(part(line, giveLink, single))];
  }

  // More than a browser draws anew for each frame.
  function isLarge() {
    return map.sites.length > 300;
  }

  function build() {
    canvas.hidden = false;
    cy = window.cytoscape({ container: canvas, elements: elements(), style: style(),
      layout: { name: "preset" }, minZoom: .02, maxZoom: 4, autounselectify: true,
      boxSelectionEnabled: false,
      // Many sites move as one image, and are drawn anew when the movement ends.
      textureOnViewport: isLarge() });
    parts = partsOf();
    worst = worstStates();
    cy.on("viewport", moving);
    cy.on("tap", "edge.link", (event) => toggle(event.target.id()));
    cy.on("tap", "edge.between", (event) => tellBetween(event.target.data("link")));
    cy.on("tap", "node.site", (event) => tellSite(event.target));
    cy.on("tap", "node.region", (event) => enter(event.target.id()));
    cy.on("mouseover", "edge.link, edge.between, node.site", (event) => hover(event.target));
    cy.on("mouseout", () => canvas.classList.remove("over"));
    cy.on("dragpan pinchzoom scrollzoom", () => { moved = true; });
    new ResizeObserver(() => {
      cy.resize();
      if (!moved) view();
    }).observe(canvas);
  }

  function enter(region) {
    moved = true;
    look(map.sites.filter((site) => site.region === region));
  }

  // Shows the state: the route, links that are off, sites that were found.
  function show() {
    if (!cy) return;
    const title = document.querySelector("[data-map-title]").textContent;
    cy.batch(() => {
      cy.elements(".on, .off, .found").removeClass("on off found forward back");
      cy.edges().toggleClass("dim", state.route.length > 0);
      for (const link of state.off) cy.getElementById(link).addClass("off");
      for (const [link, way] of state.route) cy.getElementById(link).addClass("on " + way);
      for (const site of state.sites) cy.getElementById(site).addClass("on");
      for (const site of state.found) cy.getElementById(site).addClass("found");
    });
    document.querySelector('[data-map-do="route"]').hidden = !state.sites.length;
    const shown = state.route.length || state.found.length ? title + state.found : "";
    if (shown && shown !== show.last) {
      moved = false;
      view();
      canvas.scrollIntoView({ block: "nearest", behavior: calm.matches ? "auto" : "smooth" });
    }
    settleAnew();
    show.last = shown;
    canvas.dataset.ready = String(map.links.length);
  }

  function view() {
    const sites = state.found.length ? state.found : state.sites;
    if (sites.length) look(map.sites.filter((site) => sites.includes(site.id)), true);
    else all();
  }

  function all() {
    cy.viewport(viewport([{ x: 0, y: 0 }, { x: map.width, y: map.height }], 24));
  }

  // The zoom and pan that show these places. The graph's own fit leaves out hidden elements.
  function viewport(places, padding) {
    const [xs, ys] = [places.map((place) => place.x), places.map((place) => place.y)];
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    const zoom = Math.max(cy.minZoom(), Math.min(map.regions.length ? 1.4 : 2.4,
      (cy.width() - 2 * padding) / Math.max(right - left, 1),
      (cy.height() - 2 * padding) / Math.max(bottom - top, 1)));
    return { zoom, pan: { x: cy.width() / 2 - zoom * (left + right) / 2,
      y: cy.height() / 2 - zoom * (top + bottom) / 2 } };
  }

  // Goes to some sites: at once, or as a movement that can be followed.
  function look(sites, atOnce) {
    if (!sites.length) return;
    const found = viewport(sites, 60);
    cy.stop();
    if (atOnce || calm.matches || isLarge()) {
      cy.viewport(found);
      settle();
    } else {
      cy.animate({ ...found, duration: 350, easing: "ease-in-out-cubic" });
    }
  }

  // --- texts below the canvas; names are only ever text --------------------------------------------

  function tell(name, text, ...buttons) {
    const strong = document.createElement("b");
    strong.textContent = name;
    const rest = document.createElement("span");
    rest.textContent = text;
    info.replaceChildren(strong, rest, ...buttons);
    info.hidden = false;
  }

  function counted(number, noun) {
    return number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");
  }

  function hover(element) {
    canvas.classList.add("over");
    if (element.hasClass("link")) tellLink(element.data("link"));
  }

  function tellLink(link) {
    const load = link.load === null ? "" : ", " + counted(Math.round(link.load), "message");
    tell(link.name, "cost " + link.cost.toLocaleString("en") + load +
      (state.off.includes(link.id) ? "; click to switch it on" : "; click to switch it off"));
  }

  function tellBetween(link) {
    const [first, second] = [link.source, link.target].map((each) =>
      cy.getElementById(each).data("region").caption);
    const load = link.load === null ? "" : ", " + counted(Math.round(link.load), "message");
    tell(first + " - " + second, counted(link.links, "link") +
      " between these regions" + load + "; zoom in to switch one off");
  }

  function tellSite(node) {
    const site = node.data("site");
    const states = { good: "servers in order", late: "servers need a look", bad: "servers need help" };
    const text = [...site.lines, ...(site.state ? [states[site.state]] : []), counted(site.links, "link")].join(", ");
    tell(site.name, text, end("Route from here", "from", site), end("Route to here", "to", site));
  }

  function end(text, field, site) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = text;
    button.addEventListener("click", () => {
      form.elements.namedItem(field).value = site.name || site.id;
      const [from, to] = ["from", "to"].map((name) => form.elements.namedItem(name));
      if (from.value && to.value) ask(address(state.off));
      else (from.value ? to : from).focus();
    });
    return button;
  }

  // --- what visitors do ----------------------------------------------------------------------------

  const actions = {
    in: () => cy.zoom({ level: cy.zoom() * 1.5, renderedPosition: middle() }),
    out: () => cy.zoom({ level: cy.zoom() / 1.5, renderedPosition: middle() }),
    fit: all,
    route: () => look(map.sites.filter((site) => state.sites.includes(site.id))),
  };
  const keys = { "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.fit,
    ArrowLeft: () => cy.panBy({ x: 60, y: 0 }), ArrowRight: () => cy.panBy({ x: -60, y: 0 }),
    ArrowUp: () => cy.panBy({ x: 0, y: 60 }), ArrowDown: () => cy.panBy({ x: 0, y: -60 }) };

  function act(action) {
    moved = true;
    cy.stop(); // a movement that has not ended
    action();
    settle();
  }

  function middle() {
    return { x: cy.width() / 2, y: cy.height() / 2 };
  }

  function mark(text) {
    const wanted = text.trim().toLowerCase();
    const found = !wanted ? [] : map.sites.filter((site) =>
      [site.name, ...site.lines].some((each) => each.toLowerCase().includes(wanted)));
    state.found = found.slice(0, 100).map((site) => site.id);
    cy.batch(() => {
      cy.nodes(".found").removeClass("found");
      for (const site of state.found) cy.getElementById(site).addClass("found");
    });
    if (found.length) view();
    settleAnew();
    if (wanted) tell(counted(found.length, "site"),
      "found; Enter lists them with their links below");
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.elements.namedItem("server") && form.elements.namedItem("server").value !== server) {
      window.location.assign(address([]));
    } else {
      ask(address(state.off));
    }
  });
  const server = (form.elements.namedItem("server") || {}).value;
  document.addEventListener("change", (event) => {
    if (event.target.name === "off") toggle(event.target.value);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-map-go]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    ask(link.href);
  });
  let typing = 0;
  form.elements.namedItem("find").addEventListener("input", (event) => {
    window.clearTimeout(typing);
    typing = window.setTimeout(() => { if (cy) mark(event.target.value); }, 150);
  });

  function ready() {
    document.querySelector("[data-map-buttons]").hidden = false;
    document.querySelector("[data-map-help]").hidden = false;
    document.querySelector("[data-map-buttons]").addEventListener("click", (event) => {
      const action = actions[event.target.dataset.mapDo];
      if (action) act(action);
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      act(keys[event.key]);
    });
    dark.addEventListener("change", () => cy.style(style()));
  }

  async function start() {
    try {
      const answer = await fetch(canvas.dataset.source, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      map = await answer.json();
    } catch {
      picture();
      return;
    }
    if (!map.drawn || !map.sites.length) return;
    build();
    ready();
    all();
    show();
  }

  // The picture, if the canvas cannot be had.
  function picture() {
    const image = document.createElement("img");
    image.src = document.querySelector("[data-map-svg]").href;
    image.alt = "Picture of the map; the tables below have the same as text";
    const place = document.createElement("p");
    place.className = "picture";
    place.append(image);
    canvas.replaceWith(place);
  }

  if (window.cytoscape) start();
  else picture();
})();

// Live updates. Without this file pages show the state of when they were loaded.
"use strict";
document.documentElement.classList.add("js");

(function () {
  const parts = document.querySelectorAll("[data-live]");
  if (!parts.length || !window.EventSource) return;
  const state = document.querySelector("[data-live-state]");

  function say(text, on) {
    if (!state) return;
    state.hidden = false;
    state.querySelector(".live-dot").classList.toggle("on", on);
    state.lastElementChild.textContent = text;
  }

  // The text of a cell without the time that passes: a clock that goes is no news.
  function still(cell) {
    return cell.textContent.replace(/ for \d[\d ]*(s|min|h|d)\b/g, "");
  }

  function look(cell) {
    return [...cell.classList].filter((name) => name !== "changed").join(" ");
  }

  // Replaces only cells whose text changed, so that selection and focus stay.
  function renew(part, html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const before = part.querySelectorAll("th, td");
    const after = fresh.content.querySelectorAll("th, td");
    const same = before.length === after.length &&
      part.querySelectorAll("tr").length === fresh.content.querySelectorAll("tr").length;
    if (!same) {
      part.replaceChildren(fresh.content);
      return;
    }
    after.forEach((cell, index) => {
      const old = before[index];
      const news = still(old) !== still(cell) || look(old) !== look(cell);
      if (old.innerHTML === cell.innerHTML && !news) return;
      old.innerHTML = cell.innerHTML;
      old.className = cell.className;
      if (!news) return;
      void old.offsetWidth;
      old.classList.add("changed");
    });
  }

  // Charts have no cells: they are replaced as a whole, and a table that is open stays open.
  function redraw(part, html) {
    const held = part.contains(document.activeElement) ? document.activeElement.tagName : "";
    if (held && held !== "SUMMARY") return; // somebody reads the table
    const open = Array.from(part.querySelectorAll("details[open]"), (each) => each.id);
    part.innerHTML = html;
    for (const each of part.querySelectorAll("details")) each.open = open.includes(each.id);
    if (held) part.querySelector("summary").focus({ preventScroll: true });
  }

  function renewSentence(part, data) {
    const news = JSON.parse(data);
    for (const tone of ["good", "late", "bad"]) part.classList.toggle(tone, news.tone === tone);
    if (part.textContent !== news.text) part.textContent = news.text; // spoken, so only changes
  }

  const events = new EventSource("/live");
  events.addEventListener("open", () => say("live", true));
  events.addEventListener("error", () => say("the console does not answer; retrying", false));
  for (const part of parts) {
    const name = part.dataset.live;
    const show = { sentence: renewSentence, charts: redraw }[name] || renew;
    events.addEventListener(name, (event) => show(part, event.data));
  }
  window.addEventListener("pagehide", () => events.close());
})();

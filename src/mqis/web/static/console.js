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
      if (old.innerHTML === cell.innerHTML && old.className === cell.className) return;
      old.innerHTML = cell.innerHTML;
      old.className = cell.className;
      void old.offsetWidth;
      old.classList.add("changed");
    });
  }

  function renewSentence(part, data) {
    const news = JSON.parse(data);
    if (part.textContent === news.text) return; // screen readers speak it, so only changes
    part.textContent = news.text;
    part.classList.toggle("good", news.good);
    part.classList.toggle("late", !news.good && news.grade !== "red");
    part.classList.toggle("bad", news.grade === "red");
  }

  const events = new EventSource("/live");
  events.addEventListener("open", () => say("live", true));
  events.addEventListener("error", () => say("the console does not answer; retrying", false));
  for (const part of parts) {
    const name = part.dataset.live;
    events.addEventListener(name, (event) =>
      name === "sentence" ? renewSentence(part, event.data) : renew(part, event.data));
  }
  window.addEventListener("pagehide", () => events.close());
})();

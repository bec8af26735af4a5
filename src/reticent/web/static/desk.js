"use strict";
// The desk works without this file. With it, the preview follows every change, the slider moves its number, and the
// progress shows itself. What comes from the desk was escaped there; nothing is put together from names here.

const form = document.getElementById("plan");
document.documentElement.classList.add("scripted");

async function page(url, options) {
  const answer = await fetch(url, { ...options, credentials: "same-origin", redirect: "follow" });
  if (answer.status === 401) location.reload(); // the session has ended: the page says so, and what to do
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function swap(found, id) {
  const old = document.getElementById(id);
  const fresh = found.getElementById(id);
  if (old && fresh) old.replaceWith(document.adoptNode(fresh));
  return Boolean(old && fresh);
}

// One look at a time. An answer that came too late for what was changed meanwhile is not shown, and the next look follows.
// A field beside the text is sent where it was changed since the text has it: of all others the text says more.
const FIELD = /^(cap$|(amount|expected)-)/;
const touched = new Set();
let typed = false; // in the text, since the fields were drawn
let stale = false;
let again = false;
let looking = false;
let waiting = null;
let spent = 250; // milliseconds of the last look; at least as long nothing may change before the next

async function look() {
  clearTimeout(waiting);
  again = looking;
  if (looking) return;
  looking = true;
  do {
    again = stale = false;
    const began = Date.now();
    const slow = setTimeout(() => saved("The preview of this plan takes a while."), 1000);
    const sent = new Set(touched);
    const fields = new URLSearchParams(new FormData(form));
    for (const name of [...fields.keys()]) if (FIELD.test(name) && !sent.has(name)) fields.delete(name);
    try {
      const found = await page(form.dataset.look, { method: "POST", body: fields });
      if (!stale && found.getElementById("summary")) show(found, sent);
    } catch {
      told("The desk does not answer. If it was stopped, start it again; copy what is not saved.");
    }
    clearTimeout(slow);
    if (form.dataset.dirty) saved("Not saved yet.");
    spent = Math.min(Date.now() - began, 10000);
  } while (again);
  looking = false;
}

function show(found, sent) {
  swap(found, "summary");
  const text = found.getElementById("text");
  if (text.dataset.taken) {
    if (form.elements.text.value !== text.value) form.elements.text.value = text.value;
    for (const name of sent) touched.delete(name);
  }
  if (typed) {
    const held = document.activeElement;
    swap(found, "sections");
    form.elements.cap.value = found.getElementById("limit").textContent;
    shrink();
    typed = false;
    touched.clear();
    refocus(held.name, held.dataset.sets);
  } else {
    for (const old of document.querySelectorAll("#sections .ahead, #sections .lines")) swap(found, old.id);
  }
  told(found.getElementById("told").textContent);
}

function refocus(name, sets) {
  if (document.activeElement !== document.body) return;
  const same = [...document.querySelectorAll("#sections input")].find((each) => (name ? each.name === name : sets && each.dataset.sets === sets));
  if (same) same.focus();
}

function told(text) {
  document.getElementById("told").textContent = text;
}

function saved(text) {
  document.getElementById("saved").textContent = text;
}

function changed() {
  stale = true;
  saved("Not saved yet.");
  form.dataset.dirty = "1";
  clearTimeout(waiting);
  waiting = setTimeout(look, Math.max(250, spent));
}

function shrink() {
  for (const field of document.querySelectorAll("[data-sets]")) {
    const number = form.elements[field.dataset.sets];
    if (number) field.setAttribute("aria-valuetext", number.value);
  }
}

if (form) {
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (field.form !== form) return;
    if (field.dataset.sets) {
      const value = 10 ** (Number(field.value) / 100 + Number(field.dataset.lowest));
      form.elements[field.dataset.sets].value = String(Number(value.toPrecision(2)));
      field.setAttribute("aria-valuetext", form.elements[field.dataset.sets].value);
      touched.add(field.dataset.sets);
      changed();
    } else if (field.dataset.live) {
      const slider = document.querySelector(`[data-sets="${CSS.escape(field.name)}"]`);
      const power = Math.log10(Number(field.value.replace(",", ".")));
      if (slider && Number.isFinite(power)) slider.value = String(Math.round(100 * (power - Number(slider.dataset.lowest))));
      if (field.name === "text") typed = true;
      else touched.add(field.name);
      changed();
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.value === "target" && event.target.form === form) {
      event.preventDefault();
      form.elements.wants.value = "1";
      look();
    }
  });
  document.addEventListener("submit", () => delete form.dataset.dirty);
  window.addEventListener("beforeunload", (event) => {
    if (form.dataset.dirty) event.preventDefault();
  });
  for (const other of document.querySelectorAll("form.add")) {
    other.addEventListener("formdata", (event) => {
      for (const [name, value] of new FormData(form)) {
        if (["text", "cv", "wants"].includes(name) || FIELD.test(name)) event.formData.set(name, value);
      }
    });
    const by = [...other.querySelectorAll(`[name="${other.dataset.by}"]`)];
    if (by.length) {
      const fit = () => {
        const chosen = by.map((each) => each.value);
        for (const part of other.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(chosen[0]);
        for (const part of other.querySelectorAll("[data-is]")) part.hidden = !chosen.includes(part.dataset.is);
      };
      for (const each of by) each.addEventListener("change", fit);
      fit();
    }
    for (const column of other.querySelectorAll("select[name$='-column']")) {
      const value = other.elements[column.name.replace("-column", "-value")];
      const fit = () => value.setAttribute("list", column.selectedOptions[0].dataset.list || "none"); // the levels of this column
      column.addEventListener("change", fit);
      fit();
    }
  }
}

for (const once of document.querySelectorAll("form[data-once]")) {
  once.addEventListener("submit", () => {
    setTimeout(() => once.querySelector("button").setAttribute("disabled", ""), 0);
  });
}
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("form[data-once] button")) button.removeAttribute("disabled");
});

async function poll() {
  const place = document.getElementById("progress");
  if (!place || !place.dataset.poll) return;
  try {
    const fresh = (await page(location.href, {})).getElementById("progress");
    if (!fresh) return location.reload(); // something else to say than how far it is
    delete place.dataset.lost;
    if (!fresh.dataset.poll) delete place.dataset.poll;
    const said = fresh.dataset.said || "";
    if (!said || said !== place.dataset.said) {
      const was = place.querySelector("details[open]"); // what was unfolded stays so, and what has the focus
      const held = place.contains(document.activeElement);
      place.replaceChildren(...document.adoptNode(fresh).childNodes);
      const steps = place.querySelector("details");
      if (was && steps) steps.open = true;
      if (held) place.querySelector("summary, a")?.focus();
      place.dataset.said = said;
      told(said);
    }
  } catch {
    place.dataset.lost = "1"; // the desk is not there for the moment; ask again
  }
  setTimeout(poll, 1000);
}
setTimeout(poll, 1000);

// What was read off the rows does not stay on a screen that nobody is at, longer than the session does.
const HALF_AN_HOUR = 30 * 60 * 1000;
let rest = null;
function leave() {
  clearTimeout(rest);
  rest = setTimeout(() => location.replace(location.href), HALF_AN_HOUR);
}
if (document.querySelector(".secret")) {
  for (const each of ["keydown", "pointerdown", "scroll"]) document.addEventListener(each, leave, { passive: true });
  leave();
}

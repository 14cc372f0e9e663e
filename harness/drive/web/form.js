// The form of Locust's page: proves that requests come from this page, draws the fields in groups, offers the files that
// a field may name, and leads from START to the tab of the runs.
"use strict";
(() => {
  const TOKEN = document.currentScript.dataset.token, PATH = "./pipeline-runs/form", EVERY_MS = 300, MOST_LOOKS = 50;
  const HEADER = "X-Pipeswarm-Token";
  const FORM = JSON.parse(document.currentScript.dataset.form);
  const send = window.fetch.bind(window);
  let choices = null;

  window.fetch = async (input, init) => {
    const request = new Request(input, init);
    const ours = new URL(request.url).origin === location.origin;
    if (!ours || request.method === "GET" || request.method === "HEAD") return send(request);
    request.headers.set(HEADER, TOKEN);
    if (!request.url.endsWith("/swarm")) return send(request);
    const buttons = document.querySelectorAll("form button[type=submit]");
    buttons.forEach((button) => button.setAttribute("aria-busy", "true"));
    try {
      const answer = await send(request);
      if (answer.ok && (await answer.clone().json()).success) openRuns();
      // Locust's form shows only the messages of answers with status 200.
      const refused = answer.status === 400 || answer.status === 403;
      return refused ? new Response(await answer.blob(), { status: 200, headers: answer.headers }) : answer;
    } finally {
      buttons.forEach((button) => button.removeAttribute("aria-busy"));
    }
  };

  // The tab appears when Locust's page has read the answer.
  function openRuns(attempts = MOST_LOOKS) {
    const tab = [...document.querySelectorAll('[role="tab"]')].find((each) => each.textContent.trim().toLowerCase() === "pipeline runs");
    if (tab) tab.click();
    else if (attempts) setTimeout(openRuns, 100, attempts - 1);
  }

  // Locust's page names the inputs in camel case.
  const field = (input) => input.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const element = (name, className, text = "") => Object.assign(document.createElement(name), { className, textContent: text });
  const box = (input) => input.closest(".MuiFormControl-root");
  const GROUP_OF = Object.fromEntries(Object.entries(FORM.groups).flatMap(([title, names]) => names.map((name) => [name, title])));
  const [ASKED] = Object.keys(FORM.groups), opened = new Set();  // titles of groups
  const OF_SCHEDULES = new Set(Object.values(FORM.schedules).flat());

  // Locust puts the whole help into the label, where it is cut off.
  function explain(input) {
    const label = box(input).querySelector("label"), [, name, help] = label.textContent.match(/^([^(]*) \((.*)\)$/s) || [];
    if (!name) return;
    const told = element("p", "pipeline-runs-help", help);
    told.id = `help-${field(input)}`;
    label.textContent = name;
    box(input).querySelectorAll("legend span").forEach((span) => { span.textContent = name; });
    input.setAttribute("aria-describedby", told.id);
    box(input).append(told);
  }

  // A list has a line per entry; Locust sends its entries in one text.
  function drawList(input) {
    const lines = element("textarea", "pipeline-runs-list"), label = box(input).querySelector("label");
    lines.id = `list-${field(input)}`;
    lines.placeholder = "one per line";
    lines.setAttribute("aria-describedby", `help-${field(input)}`);
    const fit = () => { lines.rows = Math.max(2, lines.value.split("\n").length); };
    lines.value = input.value.split(";").map((entry) => entry.trim()).filter(Boolean).join("\n");
    lines.addEventListener("input", () => { fit(); enter(input, lines.value.split("\n").map((entry) => entry.trim()).filter(Boolean).join("; ")); });
    fit();
    label.htmlFor = lines.id;
    box(input).classList.add("pipeline-runs-lines");
    label.after(lines);
  }

  // Every test is asked for the first group; the fields of the others are folded below a heading, which names what is set.
  function head(input) {
    const title = GROUP_OF[field(input)], before = box(input).previousElementSibling?.querySelector("input[name], select[name]");
    if (title === ASKED) return;
    box(input).classList.toggle("pipeline-runs-folded", !opened.has(title));
    if (before && GROUP_OF[field(before)] === title) return;
    const heading = element("h3", "pipeline-runs-group"), button = element("button", "", title);
    button.type = "button";
    button.dataset.group = title;
    button.append(element("small", ""));
    button.addEventListener("click", () => { opened.delete(title) || opened.add(title); fold(input.form); });
    heading.append(button);
    box(input).prepend(heading);
  }

  function fold(form) {
    const fields = [...form.querySelectorAll("input[name], select[name]")].filter((input) => field(input) in GROUP_OF);
    for (const input of fields) box(input).classList.toggle("pipeline-runs-folded", GROUP_OF[field(input)] !== ASKED && !opened.has(GROUP_OF[field(input)]));
    for (const button of form.querySelectorAll("button[data-group]")) {
      const open = opened.has(button.dataset.group), changed = (input) => input.value !== String(FORM.defaults[field(input)]) && input.value !== "";
      const set = fields.filter((input) => GROUP_OF[field(input)] === button.dataset.group && changed(input));
      button.setAttribute("aria-expanded", open);
      button.querySelector("small").textContent = open ? "" : set.map((input) => `${field(input).replaceAll("_", " ")}: ${input.value}`).join(" · ");
    }
  }

  function showSchedule(form) {
    const kind = form.querySelector("select[name=schedule]")?.value;
    if (!(kind in FORM.schedules)) return;
    for (const input of form.querySelectorAll("input[name]")) {
      if (OF_SCHEDULES.has(field(input))) box(input).hidden = !FORM.schedules[kind].includes(field(input));
    }
  }

  function note(input, text, shown) {
    let found = box(input).querySelector(".pipeline-runs-note");
    if (!found) box(input).append(found = element("p", "pipeline-runs-help pipeline-runs-note"));
    found.hidden = !shown;
    if (found.textContent !== text) found.textContent = text;
  }

  function nameSimulator(form) {
    const host = form.querySelector("input[name=host]"), profile = form.querySelector("input[name=simulate]");
    if (!host || !profile) return;
    const simulated = host.value === "" || FORM.simulated.includes(host.value);
    note(host, `Simulated platform '${profile.value}'. Enter the address of a real one to load that.`, simulated);
  }

  // Users come first in Locust's form, and only a closed schedule has any.
  function showUsers(form) {
    const kind = form.querySelector("select[name=schedule]")?.value;
    for (const input of form.querySelectorAll("input[name=userCount], input[name=spawnRate]")) box(input).hidden = Boolean(kind) && kind !== "concurrency";
  }

  // All that says what is sent is in there.
  function open(form) {
    for (const summary of form.querySelectorAll(".MuiAccordionSummary-root")) {
      if (summary.dataset.opened || summary.textContent.trim() !== "Custom parameters") continue;
      summary.dataset.opened = "opened";
      if (summary.getAttribute("aria-expanded") !== "true") summary.click();
    }
  }

  function draw(form) {
    for (const input of form.querySelectorAll("input[name], select[name]")) {
      if (!(field(input) in GROUP_OF) || input.dataset.drawn) continue;
      input.dataset.drawn = "drawn";
      explain(input);
      if (FORM.lists.includes(field(input))) drawList(input);
      if (field(input) in FORM.suggestions) offer(input);
      head(input);
    }
    open(form);
    showSchedule(form);
    fold(form);
    nameSimulator(form);
    showUsers(form);
  }
  const inputs = () => [...document.querySelectorAll("form input[name]")].filter((input) => choices && field(input) in choices);
  const row = (input) => input.closest(".MuiFormControl-root")?.querySelector(".pipeline-runs-upload");

  function offer(input) {
    const id = `files-${field(input)}`;
    let list = document.getElementById(id);
    if (!list) {
      list = document.createElement("datalist");
      list.id = id;
      document.body.append(list);
    }
    const names = [...(FORM.suggestions[field(input)] ?? []), ...(choices?.[field(input)] ?? [])];
    list.replaceChildren(...names.map((name) => new Option(name, name)));
    input.setAttribute("list", id);
    input.autocomplete = "off";
    row(input)?.querySelector("span").replaceChildren(names.length ? `or choose one of ${names.length} in the field` : "");
  }

  // React keeps a field's value itself: it must see the change as if it were typed.
  function enter(input, text) {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, text);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  async function upload(input, file, told) {
    told.textContent = `uploading ${file.name} …`;
    try {
      const answer = await window.fetch(`${PATH}/${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      const { success, name, message } = await answer.json();
      told.textContent = success ? "" : message;
      if (!success) return;
      await refresh();
      enter(input, name);
    } catch {
      told.textContent = "not uploaded: Locust does not answer";
    }
  }

  function addUpload(input) {
    const added = document.createElement("div");
    added.className = "pipeline-runs-upload";
    added.innerHTML = `<button type="button">Upload a file</button><input type="file" hidden><span></span><b role="status"></b>`;
    const [button, chooser, , told] = added.children;
    button.setAttribute("aria-label", `Upload a file for ${field(input).replaceAll("_", " ")}`);
    button.addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      if (chooser.files.length) upload(input, chooser.files[0], told);
      chooser.value = "";
    });
    input.closest(".MuiFormControl-root")?.append(added);
    input.addEventListener("focus", refresh);
  }

  async function refresh() {
    try {
      const answer = await send(PATH);
      if (!answer.ok) return;
      choices = await answer.json();
      inputs().forEach(offer);
    } catch { /* the process is gone: keep the last list */ }
  }

  function redraw() {
    document.querySelectorAll("form").forEach(draw);
    for (const input of inputs()) {
      if (input.dataset.files) continue;
      input.dataset.files = "offered";
      addUpload(input);
      offer(input);
    }
  }
  document.addEventListener("input", ({ target }) => target.form && draw(target.form));
  setInterval(redraw, EVERY_MS);
  refresh();
})();

// The form of Locust's page: proves that requests come from this page, and offers the files that a field may name.
"use strict";
(() => {
  const TOKEN = document.currentScript.dataset.token, PATH = "./pipeline-runs/form", EVERY_MS = 300;
  const HEADER = "X-Pipeswarm-Token";
  const send = window.fetch.bind(window);
  let choices = null;

  window.fetch = async (input, init) => {
    const request = new Request(input, init);
    const ours = new URL(request.url).origin === location.origin;
    if (!ours || request.method === "GET" || request.method === "HEAD") return send(request);
    request.headers.set(HEADER, TOKEN);
    const answer = await send(request);
    // Locust's form shows only the messages of answers with status 200.
    const refused = answer.status === 400 || answer.status === 403;
    return refused && request.url.endsWith("/swarm") ? new Response(await answer.blob(), { status: 200, headers: answer.headers }) : answer;
  };

  // Locust's page names the inputs in camel case.
  const field = (input) => input.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
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
    list.replaceChildren(...choices[field(input)].map((name) => new Option(name, name)));
    input.setAttribute("list", id);
    input.autocomplete = "off";
    const count = choices[field(input)].length;
    row(input)?.querySelector("span").replaceChildren(count ? `or choose one of ${count} in the field` : "");
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

  setInterval(() => inputs().forEach((input) => {
    if (input.dataset.files) return;
    input.dataset.files = "offered";
    addUpload(input);
    offer(input);
  }), EVERY_MS);
  refresh();
})();

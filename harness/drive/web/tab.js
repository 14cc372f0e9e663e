// The tab "Pipeline runs" of Locust's page. Locust draws the tab's heading; everything below it is drawn here, from /state.
"use strict";
(() => {
  const KEY = "pipeline-runs", EVERY_MS = 1000;
  const COUNTS = [
    ["intended", "intended"], ["sent", "sent"], ["accepted", "accepted"], ["awaited", "unanswered"],
    ["in_flight", "in flight"], ["done", "done"], ["failed", "failed"], ["rejected", "rejected"], ["missed", "missed"],
  ];
  const BAD = new Set(["failed", "rejected", "missed"]);
  const panel = document.createElement("section");
  panel.id = KEY;
  panel.setAttribute("aria-label", "Pipeline runs");
  panel.innerHTML = `
    <p class="head"><b class="stage" role="status"></b> <span class="load"></span>
      <a class="report" href="./${KEY}/report.html" target="_blank" hidden>Open the report</a></p>
    <p class="warning" role="alert" hidden></p>
    <dl class="counts"></dl>
    <dl class="facts"></dl>
    <figure><figcaption><span class="runs">Runs in flight</span> <span class="nodes">ready nodes</span></figcaption><div class="chart" role="img"></div></figure>
    <div class="findings"><h2>Findings</h2><ul></ul></div>
    <pre class="verdict" hidden tabindex="0" aria-label="Verdict"></pre>`;
  const find = (selector) => panel.querySelector(selector);
  let drawn = "", plotter = null, fetchedAt = 0;

  // Texts come from the platform: characters that would reorder or hide others are shown as their codes.
  const shown = (text) => String(text).replace(/[^\P{C}\n\t]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
  const element = (name, text, className) => {
    const node = document.createElement(name);
    node.textContent = shown(text);
    if (className) node.className = className;
    return node;
  };
  const number = (value) => Math.round(value).toLocaleString("en");
  const seconds = (s) => s >= 5400 ? `${(s / 3600).toFixed(1)} h` : s >= 90 ? `${(s / 60).toFixed(1)} min` : `${s.toFixed(0)} s`;
  const milliseconds = (s) => s >= 1 ? `${s.toFixed(2)} s` : `${(s * 1e3).toFixed(1)} ms`;
  const bytes = (n) => {
    const unit = Math.min(5, Math.max(0, Math.floor(Math.log2(Math.max(n, 1)) / 10)));
    return `${(n / 2 ** (10 * unit)).toFixed(unit ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
  };

  function facts(load, observed) {
    const pairs = [];
    const add = (name, value) => value != null && pairs.push([name, value]);
    if (load.succeeded_per_hour) add("throughput", `${number(load.succeeded_per_hour)} runs/h`);
    add("lag p99", load.lag_p99_s == null ? null : milliseconds(load.lag_p99_s));
    const stale = load.ends_age_s >= 10 && load.in_flight;
    add("ends of runs last read", stale ? `${seconds(load.ends_age_s)} ago` : null);
    add("time left", load.eta_s == null ? null : seconds(load.eta_s));
    add("ready nodes", observed.ready_nodes == null ? null : number(observed.ready_nodes));
    for (const [volume, free] of Object.entries(observed.store_free_bytes || {}).sort()) add(`free space in ${volume}`, bytes(free));
    return pairs;
  }

  function list(target, pairs, bad) {
    target.replaceChildren(...pairs.map(([name, value, key]) => {
      const pair = document.createElement("div");
      pair.append(element("dt", name), element("dd", value, bad && bad(key, value) ? "bad" : ""));
      return pair;
    }));
    target.hidden = !pairs.length;
  }

  function show(state) {
    const { load, observer, findings, history, warning, verdict, report } = state;
    find(".stage").textContent = shown(load.stage || "no test yet");
    find(".load").textContent = shown(load.load || "");
    find(".report").hidden = !report;
    find(".warning").hidden = !warning;
    find(".warning").textContent = shown(warning);
    list(find(".counts"), COUNTS.filter(([key]) => key in load).map(([key, name]) => [name, number(load[key]), key]),
      (key, value) => BAD.has(key) && value !== "0");
    list(find(".facts"), facts(load, observer));
    const over = load.stage === "over";
    find(".findings").hidden = over || load.intended == null;
    find(".findings ul").replaceChildren(...(findings.length ? findings.map((finding) => {
      const item = document.createElement("li");
      item.append(element("b", finding.title), element("small", ` ${finding.name}, ${Math.round(finding.confidence * 100)} % confidence`),
        element("p", finding.evidence[0] || ""), element("p", finding.fix, "fix"));
      return item;
    }) : [element("li", "None found so far.")]));
    find(".verdict").hidden = !verdict;
    find(".verdict").textContent = shown(verdict);
    draw(history);
  }

  function draw(history) {
    const figure = find("figure"), chart = find(".chart"), last = history.at_s.length - 1;
    figure.hidden = last < 1;
    if (last < 1 || !window.Plot) return;
    const style = getComputedStyle(panel), color = (name) => style.getPropertyValue(name).trim();
    const state = `${last} ${history.at_s[last]} ${panel.dataset.theme} ${chart.clientWidth}`;
    if (state === drawn) return;
    drawn = state;
    const line = (name, y, look, more) => ({ type: "scatter", mode: "lines", name, x: history.at_s, y, line: look, ...more });
    const axis = (more) => ({ rangemode: "tozero", gridcolor: color("--rule"), ...more });
    const running = history.in_flight.map((count, place) => count + history.awaited[place]);
    const traces = [line("runs in flight", running, { color: color("--runs"), width: 2 }, { fill: "tozeroy", fillcolor: color("--wash") })];
    const most = Math.max(...history.ready_nodes.map((count) => count ?? 0));
    const nodes = history.ready_nodes.some((count) => count != null);
    if (nodes) traces.push(line("ready nodes", history.ready_nodes, { color: color("--nodes"), width: 2, shape: "hv" }, { yaxis: "y2" }));
    chart.setAttribute("aria-label", `Runs in flight: ${number(running[last])}` + (nodes ? `, ready nodes: ${history.ready_nodes[last] ?? "unknown"}` : ""));
    window.Plot.draw(chart, traces, {
      height: 280, font: { size: 12, color: color("--soft") },
      xaxis: axis({ title: { text: "seconds" }, showgrid: false }),
      yaxis: axis({ title: { text: "runs" } }),
      ...(nodes && { yaxis2: axis({ title: { text: "nodes" }, side: "right", showgrid: false, dtick: Math.max(1, Math.ceil(most / 5)), range: [0, 1.1 * Math.max(most, 1)] }) }),
    });
  }

  // Fetched when the tab is opened.
  function fetchPlotter() {
    if (plotter) return;
    plotter = document.createElement("script");
    plotter.src = `./${KEY}/plot.js`;
    document.head.append(plotter);
  }

  function isOpen() {
    const tab = document.querySelector('[role="tab"][aria-selected="true"]');
    return tab !== null && tab.textContent.trim().toLowerCase() === "pipeline runs";
  }

  function theme() {
    const [red, green, blue] = (getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) || [255, 255, 255]).map(Number);
    return 0.3 * red + 0.6 * green + 0.1 * blue < 128 ? "dark" : "light";
  }

  async function refresh() {
    const tabs = document.querySelector('[role="tablist"]');
    const place = tabs && tabs.closest(".MuiContainer-root");
    if (place && panel.parentNode !== place) place.append(panel);
    panel.hidden = !place || !isOpen();
    if (panel.hidden) return;
    panel.dataset.theme = theme();
    fetchPlotter();
    if (Date.now() - fetchedAt < EVERY_MS) return;
    fetchedAt = Date.now();
    try {
      const response = await fetch(`./${KEY}/state`);
      if (response.ok) show(await response.json());
    } catch { /* the process or the network is gone: keep the last state */ }
  }

  setInterval(refresh, 250);
})();

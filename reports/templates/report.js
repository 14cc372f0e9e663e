"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const page = document.documentElement;
  const resolve = (value) => {
    if (typeof value === "string" && value.startsWith("--")) return getComputedStyle(page).getPropertyValue(value).trim();
    if (Array.isArray(value)) return value.map(resolve);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v)]));
    return value;
  };
  // On touch screens a drag scrolls the page; the mode bar's buttons switch to zooming or panning.
  const byFinger = matchMedia("(pointer: coarse)").matches, paper = matchMedia("print");
  const axis = (given) => ({ gridcolor: "--rule", zerolinecolor: "--rule", linecolor: "--rule", automargin: true, ...given });
  const layout = (given) => {
    const whole = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 56, r: 16, t: byFinger ? 34 : 8, b: 44 }, hovermode: "closest", dragmode: byFinger ? false : "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "--soft", activecolor: "--accent" },
      font: { family: "system-ui, sans-serif", size: paper.matches ? 9.5 : 12.5, color: "--soft" }, hoverlabel: { bgcolor: "--card", bordercolor: "--rule", font: { color: "--ink" } },
      ...given, showlegend: false,
    };
    for (const key of Object.keys(whole)) if (/^[xy]axis/.test(key)) whole[key] = axis(whole[key]);
    return resolve(whole);
  };
  const settings = { displaylogo: false, responsive: true, displayModeBar: byFinger, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]] };
  const draw = ({ anew = true } = {}) => {
    for (const [key, spec] of Object.entries(specs)) {
      Plotly.react(`plot-${key}`, resolve(spec.data), layout(spec.layout), settings);
      if (anew) Plotly.relayout(`plot-${key}`, { autosize: true });
    }
    page.dataset.drawn = Object.keys(specs).length;
  };
  draw({ anew: false });
  // The paper's width is unknown before printing: plots are scaled from the size they were drawn at.
  const scalable = (plot) => {
    for (const svg of plot.querySelectorAll("svg.main-svg")) {
      const [width, height] = [svg.getAttribute("width"), svg.getAttribute("height")];
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.parentElement.style.aspectRatio = `${width} / ${height}`;
    }
  };
  // A figure that does not fit moves to the second page: the first figure takes what that leaves of the first, an A4 page
  // without margins of 12 mm.
  const fill = () => {
    const plot = document.getElementById("plot-throughput"), sheet = (273 / 25.4) * 96;
    if (!plot) return;
    const ends = [...document.querySelectorAll("main figure, main article, main tr, main li, main pre, main p")].map((e) => e.getBoundingClientRect().bottom);
    const left = sheet - Math.max(...ends.filter((end) => end <= sheet));
    if (left > 20 && left < sheet / 3) Plotly.relayout(plot, { width: plot.clientWidth, height: plot.clientHeight + left - 10 });
  };
  for (const query of [matchMedia("(prefers-color-scheme: dark)"), paper]) query.addEventListener("change", () => draw());
  paper.addEventListener("change", () => { if (paper.matches) fill(); });
  let folded = [];
  const findings = document.getElementById("diagnosis"), first = document.getElementById("throughput");
  addEventListener("beforeprint", () => {
    findings?.before(first); // text may be broken anywhere, so that it fills the page below the figure
    folded = [...document.querySelectorAll("#diagnosis details:not([open])")];
    for (const each of folded) each.open = true;
    page.classList.add("paper");
    draw();
  });
  addEventListener("afterprint", () => {
    findings?.after(first);
    for (const each of folded) each.open = false;
    page.classList.remove("paper");
    draw();
  });
  // Keyboard equivalents of dragging: [new width as a multiple of the visible range, shift to the right as a share].
  const moves = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25] };
  for (const plot of document.querySelectorAll(".plot")) {
    scalable(plot);
    plot.on("plotly_afterplot", () => scalable(plot));
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const move = moves[event.key];
      if (move) {
        const [low, high] = plot.layout.xaxis.range;
        const middle = (low + high) / 2 + move[1] * (high - low), half = (move[0] * (high - low)) / 2;
        Plotly.relayout(plot, { "xaxis.range": [middle - half, middle + half] });
      } else if (event.key === "0") Plotly.relayout(plot, { "xaxis.autorange": true });
      else return;
      event.preventDefault();
    });
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre").innerText;
      try { await navigator.clipboard.writeText(text); } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
})();

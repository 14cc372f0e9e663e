"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const page = document.documentElement;
  const paper = matchMedia("print");
  const draw = () => {
    for (const [key, spec] of Object.entries(specs)) Plot.draw(document.getElementById(`plot-${key}`), spec.data, spec.layout);
    page.dataset.drawn = Object.keys(specs).length;
  };
  for (const plot of document.querySelectorAll(".plot")) plot.dataset.buttons = "shown"; // on touch screens, where a drag scrolls
  draw();
  // The paper's width is unknown before printing: plots are scaled from the size they were drawn at.
  new ResizeObserver(() => { if (!paper.matches && !page.classList.contains("paper")) draw(); }).observe(document.querySelector("main"));
  // A figure that does not fit moves to the second page: the first figure takes what that leaves of the first, an A4 page
  // without margins of 12 mm.
  const fill = () => {
    const plot = document.getElementById("plot-throughput"), sheet = (273 / 25.4) * 96;
    if (!plot) return;
    const ends = [...document.querySelectorAll("main figure, main article, main tr, main li, main pre, main p")].map((e) => e.getBoundingClientRect().bottom);
    const left = sheet - Math.max(...ends.filter((end) => end <= sheet));
    if (left > 20 && left < sheet / 3) Plot.draw(plot, plot.data, { ...plot.given, height: plot.clientHeight + left - 10 });
  };
  paper.addEventListener("change", () => { draw(); if (paper.matches) fill(); });
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
  const moves = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25], 0: [] };
  for (const plot of document.querySelectorAll(".plot")) {
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves)) return;
      Plot.zoom(plot, ...moves[event.key]);
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

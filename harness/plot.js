// Draws figures as SVG: bars, lines, markers and heat maps on axes, described by `data` and `layout` as Plotly's are (the
// part of them that is used here). Colours are CSS colours, or names of CSS variables ("--good"), so that they follow the
// page. Hover shows values; dragging, buttons and `Plot.zoom` change the range of x, a double click resets it.
"use strict";
window.Plot = (() => {
  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const ink = (colour) => (String(colour).startsWith("--") ? `var(${colour})` : escape(colour ?? "currentColor"));
  const round = (value) => Math.round(value * 10) / 10;
  const pen = document.createElement("canvas").getContext("2d");
  const wide = (texts, size) => { pen.font = `${size}px system-ui, sans-serif`; return Math.max(0, ...texts.map((text) => pen.measureText(text).width)); };
  const coarse = matchMedia("(pointer: coarse)").matches;
  const DASHES = { dot: "2 3", dash: "8 5" }, NEAR = 22; // pixels

  const steps = (low, high, most) => {
    const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
  };
  const shown = (value, step) => value.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, Math.min(8, Math.ceil(-Math.log10(step) - 1e-9))) });

  // Each axis knows its values first, then its range, then its pixels.
  class Axis {
    constructor(given = {}) {
      Object.assign(this, given);
      this.names = [];
      this.low = Infinity;
      this.high = -Infinity;
    }

    at(value) {
      if (typeof value !== "string") return value;
      if (!this.names.includes(value)) this.names.push(value);
      return this.names.indexOf(value);
    }

    take(...values) {
      for (const value of values) if (Number.isFinite(value)) { this.low = Math.min(this.low, value); this.high = Math.max(this.high, value); }
    }

    settle(room) {
      if (this.range) [this.low, this.high] = this.range;
      else if (this.names.length) [this.low, this.high] = this.autorange === "reversed" ? [this.names.length - 0.5, -0.5] : [-0.5, this.names.length - 0.5];
      else {
        if (this.low > this.high) [this.low, this.high] = [0, 1];
        if (this.rangemode === "tozero") this.take(0);
        const pad = (this.high - this.low || Math.abs(this.high) || 1) * room, zero = this.low === 0;
        this.high += this.high === 0 && this.low < 0 ? 0 : pad;
        this.low -= zero || this.rangemode === "nonnegative" ? 0 : pad;
      }
      if (this.low === this.high) this.high += 1;
    }

    place(start, end) { this.start = start; this.end = end; }

    pixel(value) { return round(this.start + ((value - this.low) / (this.high - this.low)) * (this.end - this.start)); }

    value(pixel) { return this.low + ((pixel - this.start) / (this.end - this.start)) * (this.high - this.low); }

    ticks(length, apart) {
      const [low, high] = [Math.min(this.low, this.high), Math.max(this.low, this.high)], most = Math.max(1, length / apart);
      const texts = this.names.length ? this.names : this.ticktext, values = this.names.length ? this.names.map((_, at) => at) : this.tickvals;
      if (values) {
        const every = Math.ceil((values.length * 14) / length);
        return values.map((value, at) => [value, texts[at], at]).filter(([value, , at]) => value >= low && value <= high && at % every === 0);
      }
      let step = steps(low, high, most);
      if (this.dtick) step = this.dtick * Math.ceil((high - low) / this.dtick / (most * 1.6));
      const count = Math.floor((high - low) / step + 1e-9) + 1, first = Math.ceil(low / step - 1e-9);
      return [...Array(count + 1).keys()].map((at) => (first + at) * step).filter((value) => value <= high + 1e-9 * step).map((value) => [value, shown(value, step)]);
    }
  }

  // The bars of a figure, stacked where the layout says so: [trace, along, from, to, width, index].
  function barsOf(data, layout, axes) {
    const tops = new Map(), bars = [];
    for (const trace of data.filter((each) => each.type === "bar")) {
      const flat = trace.orientation === "h", y = axes[trace.yaxis ?? "y"], along = flat ? y : axes.x, across = flat ? axes.x : y;
      const places = (flat ? trace.y : trace.x).map((value) => along.at(value)), sizes = flat ? trace.x : trace.y;
      const gaps = [...new Set(places)].sort((a, b) => a - b).map((value, at, all) => value - all[at - 1]).filter(Number.isFinite);
      places.forEach((place, at) => {
        const width = [].concat(trace.width ?? 0.8 * Math.min(1, ...gaps))[Array.isArray(trace.width) ? at : 0];
        const key = `${trace.yaxis} ${place} ${sizes[at] < 0}`, stacked = layout.barmode === "stack" || layout.barmode === "relative";
        const from = trace.base ? [].concat(trace.base)[Array.isArray(trace.base) ? at : 0] : stacked ? tops.get(key) ?? 0 : 0;
        tops.set(key, from + sizes[at]);
        across.take(from, from + sizes[at]);
        along.take(place - width / 2, place + width / 2);
        bars.push([trace, place, from, from + sizes[at], width, at]);
      });
    }
    return bars;
  }

  function told(trace, at, values) {
    const extra = /<extra>(.*?)<\/extra>/.exec(trace.hovertemplate ?? "");
    const number = (value, digits) => (typeof value === "number" ? value.toLocaleString("en-US", digits) : value);
    const fill = (text) => text.replace(/%\{(\w+)(?::\.(\d)([gf]))?\}/g, (_, name, count, kind) => (name === "text" ? trace.text[at] : number(values[name], !kind ? {} : kind === "g" ? { maximumSignificantDigits: +count } : { minimumFractionDigits: +count, maximumFractionDigits: +count })));
    const body = trace.hovertemplate ? fill(trace.hovertemplate.replace(/<extra>.*<\/extra>/, "")) : `${number(values.x, { maximumSignificantDigits: 4 })}, ${number(values.y, { maximumSignificantDigits: 4 })}`;
    return [body, extra ? extra[1] : trace.name].filter(Boolean).join(" · ");
  }

  const SHAPES = {
    circle: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`,
    diamond: (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}L${x - 1.3 * r},${y}Z`,
    x: (x, y, r) => `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}`,
  };

  function scatter(trace, x, y, hits) {
    const at = trace.x.map((value, place) => [x.pixel(value), y.pixel(trace.y[place])]), parts = [], bend = trace.line?.shape === "hv";
    const path = at.map(([left, top], place) => (place ? (bend ? `H${left}V${top}` : `L${left},${top}`) : `M${left},${top}`)).join("");
    if (trace.fill && at.length) {
      const floor = y.pixel(Math.min(Math.max(0, Math.min(y.low, y.high)), Math.max(y.low, y.high)));
      parts.push(`<path d="${path}${trace.fill === "toself" ? "" : `V${floor}H${at[0][0]}`}Z" style="fill:${ink(trace.fillcolor)};stroke:none"/>`);
    }
    const look = trace.line ?? {};
    if (trace.mode.includes("lines") && look.width !== 0) parts.push(`<path d="${path}" style="fill:none;stroke:${ink(look.color)};stroke-width:${look.width ?? 1.5};stroke-dasharray:${DASHES[look.dash] ?? "none"};stroke-linejoin:round"/>`);
    if (trace.mode.includes("markers")) {
      const mark = trace.marker ?? {}, size = (mark.size ?? 6) / 2, symbol = mark.symbol ?? "circle", colour = ink(mark.color ?? look.color);
      const drawn = at.map(([left, top]) => SHAPES[symbol](left, top, size)).join("");
      parts.push(`<path d="${drawn}" style="fill:${symbol === "x" ? "none" : colour};stroke:${symbol === "x" ? colour : "none"};stroke-width:1.6;opacity:${mark.opacity ?? 1}"/>`);
    }
    if (trace.hoverinfo !== "skip") at.forEach(([left, top], place) => hits.push([left, left, top, top, () => told(trace, place, { x: trace.x[place], y: trace.y[place] })]));
    return parts.join("");
  }

  function heat(trace, x, y, hits) {
    const step = trace.x.length > 1 ? trace.x[1] - trace.x[0] : 1, [low, high] = [trace.colorscale[0][1], trace.colorscale.at(-1)[1]];
    return trace.z.flatMap((row, lane) => row.map((value, at) => {
      if (value == null) return "";
      const [left, right] = [x.pixel(trace.x[at] - step / 2) + trace.xgap / 2, x.pixel(trace.x[at] + step / 2) - trace.xgap / 2];
      const [top, bottom] = [y.pixel(lane - 0.5), y.pixel(lane + 0.5)].sort((a, b) => a - b), share = Math.round((100 * (value - trace.zmin)) / (trace.zmax - trace.zmin || 1));
      hits.push([left, right, top, bottom, () => told(trace, at, { x: trace.x[at], y: trace.y[lane], z: value })]);
      return `<rect x="${left}" y="${top + trace.ygap / 2}" width="${Math.max(0.5, right - left)}" height="${Math.max(0.5, bottom - top - trace.ygap)}" style="fill:color-mix(in srgb, ${ink(high)} ${share}%, ${ink(low)})"/>`;
    })).join("");
  }

  function scaleOf(trace, right, top, bottom, id) {
    const [low, high] = [trace.colorscale[0][1], trace.colorscale.at(-1)[1]].map(ink), text = (value, y) => `<text x="${right - 30}" y="${y}">${shown(value, 0.1)}</text>`;
    return `<linearGradient id="${id}-scale" x1="0" x2="0" y1="1" y2="0"><stop offset="0" style="stop-color:${low}"/><stop offset="1" style="stop-color:${high}"/></linearGradient>` +
      `<rect x="${right - 45}" y="${top}" width="10" height="${bottom - top}" fill="url(#${id}-scale)"/>${text(trace.zmax, top + 9)}${text(trace.zmin, bottom)}`;
  }

  function build(plot) {
    const { data, layout } = plot, [width, height] = plot.size, font = layout.font?.size ?? (matchMedia("print").matches ? 9.5 : 12.5);
    const names = Object.keys(layout).filter((key) => /^yaxis/.test(key)), axes = { x: new Axis({ ...layout.xaxis, range: plot.zoomed ?? layout.xaxis?.range }) };
    for (const key of names) axes[key.replace("axis", "")] = new Axis(layout[key]);
    axes.y ??= new Axis();
    const bars = barsOf(data, layout, axes), ys = Object.entries(axes).filter(([name]) => name !== "x").map(([, axis]) => axis);
    let marked = false;
    for (const trace of data.filter((each) => each.type !== "bar")) {
      const y = axes[trace.yaxis ?? "y"], step = trace.type === "heatmap" && trace.x.length > 1 ? (trace.x[1] - trace.x[0]) / 2 : 0;
      marked ||= trace.mode?.includes("markers");
      axes.x.take(...trace.x.flatMap((value) => [axes.x.at(value) - step, axes.x.at(value) + step]));
      y.take(...trace.y.map((value) => y.at(value)), ...(trace.fill === "tozeroy" ? [0] : []));
    }
    axes.x.settle(data.some((trace) => trace.orientation === "h") ? 0.04 : marked && !bars.length ? 0.025 : 0);
    for (const y of ys) y.settle(0.06);
    const heats = data.filter((each) => each.type === "heatmap"), sided = ys.some((y) => y.side === "right");
    const tall = (y) => { const [from, to] = y.domain ?? [0, 1]; return (to - from) * (height - 60); };
    const labels = ys.filter((y) => y.side !== "right").flatMap((y) => y.ticks(tall(y), 44).map(([, text]) => text));
    const left = Math.min(width / 3, 16 + wide(labels, font) + (ys.some((y) => y.title?.text) ? font + 8 : 0));
    const right = width - (heats.length ? 62 : sided ? 44 : 16), top = coarse && plot.dataset.buttons ? 34 : 8, bottom = height - (axes.x.title?.text ? 2.9 : 1.7) * font - 6;
    axes.x.place(left, right);
    for (const y of ys) { const [from, to] = y.domain ?? [0, 1]; y.place(bottom - from * (bottom - top), bottom - to * (bottom - top)); }
    const out = [], hits = [], clip = (y) => `${plot.id || "plot"}-clip-${ys.indexOf(y)}`;
    for (const y of ys) out.push(`<clipPath id="${clip(y)}"><rect x="${left}" y="${y.end - 1}" width="${Math.max(0, right - left)}" height="${Math.max(0, y.start - y.end + 2)}"/></clipPath>`);
    const rule = (x1, y1, x2, y2) => `<path d="M${x1},${y1}L${x2},${y2}" style="stroke:${ink(axes.x.gridcolor ?? "--rule")}"/>`;
    for (const [value, text] of axes.x.ticks(right - left, 90)) {
      const x = axes.x.pixel(value);
      if (axes.x.showgrid !== false) for (const y of ys) out.push(rule(x, y.start, x, y.end));
      out.push(`<g class="xtick"><text x="${x}" y="${bottom + 1.3 * font}" text-anchor="middle">${escape(text)}</text></g>`);
    }
    for (const y of ys) {
      const outer = y.side === "right", middle = (y.start + y.end) / 2;
      for (const [value, text] of y.ticks(Math.abs(y.start - y.end), 44)) {
        if (y.showgrid !== false) out.push(rule(left, y.pixel(value), right, y.pixel(value)));
        out.push(`<g class="ytick"><text x="${outer ? right + 6 : left - 6}" y="${y.pixel(value) + 0.35 * font}" text-anchor="${outer ? "start" : "end"}">${escape(text)}</text></g>`);
      }
      const edge = outer ? width - 6 : font;
      if (y.title?.text) out.push(`<text transform="rotate(-90 ${edge} ${middle})" x="${edge}" y="${middle}" text-anchor="middle">${escape(y.title.text)}</text>`);
    }
    if (axes.x.title?.text) out.push(`<text x="${(left + right) / 2}" y="${height - 5}" text-anchor="middle">${escape(axes.x.title.text)}</text>`);
    const clipped = (trace, content) => `<g clip-path="url(#${clip(axes[trace.yaxis ?? "y"])})">${content}</g>`;
    for (const trace of data) {
      const y = axes[trace.yaxis ?? "y"];
      if (trace.type === "heatmap") { out.push(clipped(trace, heat(trace, axes.x, y, hits)), scaleOf(trace, width, top, bottom, plot.id)); continue; }
      if (trace.type !== "bar") { out.push(clipped(trace, scatter(trace, axes.x, y, hits))); continue; }
      const flat = trace.orientation === "h", colour = ink(trace.marker.color), outline = trace.marker.line ?? {};
      const path = bars.filter(([of]) => of === trace).map(([, place, from, to, thick, at]) => {
        const [a, b] = (flat ? [from, to].map((value) => axes.x.pixel(value)) : [place - thick / 2, place + thick / 2].map((value) => axes.x.pixel(value))).sort((p, q) => p - q);
        const [c, d] = (flat ? [place - thick / 2, place + thick / 2] : [from, to]).map((value) => y.pixel(value)).sort((p, q) => p - q);
        if (trace.hoverinfo !== "skip" && to !== from) hits.push([a, b, c, d, () => told(trace, at, { x: flat ? to - from : place, y: flat ? place : to - from })]);
        return to === from && !outline.width ? "" : `M${a},${c}H${b}V${d}H${a}Z`;
      }).join("");
      out.push(clipped(trace, `<path d="${path}" style="fill:${colour};stroke:${outline.width ? ink(outline.color) : "none"};stroke-width:${outline.width ?? 0}"/>`));
    }
    plot.layout = { ...layout, xaxis: { ...layout.xaxis, range: [axes.x.low, axes.x.high] } };
    plot.ranges = Object.fromEntries(Object.entries(axes).map(([name, axis]) => [name, [axis.low, axis.high]]));
    plot.scene = { axes, hits, top, bottom };
    plot.querySelector("svg")?.remove();
    plot.insertAdjacentHTML("afterbegin", `<svg class="main-svg" viewBox="0 0 ${width} ${height}" style="display:block;width:100%;height:auto;overflow:visible;fill:${ink(layout.font?.color ?? "--soft")};font:${font}px system-ui, sans-serif">${out.join("")}</svg>`);
  }

  function zoomTo(plot, range) {
    plot.zoomed = range;
    plot.layout = plot.given;
    build(plot);
  }

  // `share` is the new width as a multiple of the visible one, `shift` a move to the right as a share of it; none resets.
  function zoom(plot, share, shift = 0) {
    const [low, high] = plot.layout.xaxis.range, middle = (low + high) / 2 + shift * (high - low), half = (share * (high - low)) / 2;
    zoomTo(plot, share === undefined ? null : [middle - half, middle + half]);
  }

  function attend(plot) {
    plot.attended = true;
    plot.style.position = "relative";
    const box = Object.assign(document.createElement("div"), { className: "plot-hover", hidden: true }), area = Object.assign(document.createElement("div"), { className: "plot-area", hidden: true });
    plot.append(box, area);
    let from = null;
    const at = (event) => {
      const frame = plot.querySelector("svg").getBoundingClientRect(), scale = plot.size[0] / frame.width;
      return [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    };
    const show = (event) => {
      const [x, y] = at(event);
      let nearest = null, least = NEAR;
      for (const [left, right, top, bottom, text] of plot.scene.hits) {
        const far = Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
        if (far <= least) [nearest, least] = [text, far];
      }
      box.hidden = !nearest || from !== null;
      if (box.hidden) return;
      box.textContent = nearest();
      const beyond = x > plot.size[0] / 2;
      Object.assign(box.style, { top: `${y + 14}px`, left: beyond ? "" : `${x + 12}px`, right: beyond ? `${plot.size[0] - x + 12}px` : "" });
    };
    const draw = (event) => {
      const [x] = at(event), { top, bottom } = plot.scene;
      Object.assign(area.style, { left: `${Math.min(from, x)}px`, width: `${Math.abs(x - from)}px`, top: `${top}px`, height: `${bottom - top}px` });
      area.hidden = Math.abs(x - from) < 4;
    };
    plot.addEventListener("pointermove", (event) => { if (from !== null) draw(event); show(event); });
    plot.addEventListener("pointerleave", () => { box.hidden = true; });
    plot.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0 && event.target.closest("svg")) [from] = at(event); });
    addEventListener("pointerup", (event) => {
      if (from === null) return;
      const ends = [from, at(event)[0]].sort((a, b) => a - b), { x } = plot.scene.axes;
      [from, area.hidden] = [null, true];
      if (ends[1] - ends[0] >= 4) zoomTo(plot, ends.map((end) => x.value(Math.min(Math.max(end, x.start), x.end))));
    });
    plot.addEventListener("dblclick", () => zoom(plot));
    if (!plot.dataset.buttons || !coarse) return;
    for (const [sign, name, share] of [["+", "zoom in", 0.5], ["−", "zoom out", 2], ["↺", "reset"]]) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "plot-button", textContent: sign, ariaLabel: name });
      button.addEventListener("click", () => zoom(plot, share));
      plot.append(button);
    }
  }

  // Draws, or draws anew in the element's present size.
  function draw(plot, data, layout) {
    Object.assign(plot, { data, layout, given: layout, size: [Math.max(plot.clientWidth, 80), Math.max(layout.height ?? plot.clientHeight, 60)] });
    build(plot);
    if (!plot.attended) attend(plot);
  }
  return { draw, zoom };
})();

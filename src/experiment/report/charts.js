"use strict";
// Charts on d3's scales, axes, shapes and colour schemes. Every colour comes from a style sheet's variable or works on both
// papers.

const palette = 7;
const seriesColor = (i) => `var(--series-${i % palette})`;
const symbols = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar, d3.symbolWye];
const dashes = ["none", "6 3", "2 3", "8 3 2 3", "12 4", "4 4", "1 3"];
const symbolPath = (i, size) => d3.symbol().type(symbols[i % symbols.length]).size(size)();

/// Colour of the i-th of n in an order, seen on light and on dark paper.
function orderColor(i, n) {
  const t = n < 2 ? 0.3 : i / (n - 1);
  return `light-dark(${d3.interpolateViridis(t * 0.82)}, ${d3.interpolateViridis(0.3 + t * 0.7)})`;
}

function picture(host, width, height) {
  return d3.select(host).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
}

const letters = document.createElement("canvas").getContext("2d");
function textWidth(text, size = 12) {
  letters.font = `${size}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
  return letters.measureText(text).width;
}

/// Entries {name, color, symbol, dash} in rows from the top; returns their height.
function drawLegend(svg, entries, left, width) {
  let x = left, y = 10;
  for (const entry of entries) {
    const wide = 34 + textWidth(entry.name) + 14;
    if (x > left && x + wide > width) { x = left; y += 20; }
    const item = svg.append("g").attr("transform", `translate(${x},${y})`);
    if (entry.dash !== undefined)
      item.append("line").attr("x2", 26).style("stroke", entry.color).attr("stroke-width", 2).attr("stroke-dasharray", entry.dash);
    if (entry.symbol !== undefined)
      item.append("path").attr("d", symbolPath(entry.symbol, 55)).attr("transform", "translate(13,0)").style("fill", entry.color);
    item.append("text").attr("x", 32).attr("dy", "0.35em").text(entry.name);
    x += wide;
  }
  return y + 14;
}

function drawAxes(svg, { x, y, left, right, top, bottom, xTicks, yTicks, yFormat, xLabel, yLabel }) {
  svg.append("g").attr("class", "grid").attr("transform", `translate(${left},0)`)
    .call(d3.axisLeft(y).ticks(yTicks).tickSize(left - right).tickFormat(""));
  const axis = d3.axisBottom(x).tickSizeOuter(0);
  if (xTicks) axis.tickValues(xTicks);
  else axis.ticks(Math.max(3, Math.floor((right - left) / 90)));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(axis);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(yTicks).tickFormat(yFormat).tickSizeOuter(0));
  svg.append("text").attr("class", "label").attr("x", (left + right) / 2).attr("y", bottom + 36).attr("text-anchor", "middle").text(xLabel);
  svg.append("text").attr("class", "label").attr("transform", `translate(14,${(top + bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle").text(yLabel);
}

/// Series {name, color, symbol, dash, points: [{x, y, low, high, title}], dots: [{x, y, title}]} against x, which is either
/// a number or, with `ticks`, one of those values, evenly spaced. `legend` may name fewer than there are series.
function lineChart(host, { width, height = 360, xLabel, yLabel, ticks, series, legend = series, markers = true, yDomain }) {
  const svg = picture(host, width, height);
  const right = width - 24, bottom = height - 46;
  const all = series.flatMap((s) => [...s.points, ...(s.dots ?? [])]);
  const ys = all.flatMap((p) => [p.y, p.low, p.high]).filter((v) => isNumber(v) && Number.isFinite(v));
  if (ys.length === 0) {
    svg.append("text").attr("x", width / 2).attr("y", height / 2).attr("text-anchor", "middle").text("no values");
    return;
  }
  const y = d3.scaleLinear().domain(yDomain ?? d3.extent(ys)).nice(6);
  const yFormat = y.domain().some((v) => Math.abs(v) >= huge) ? shown : y.tickFormat(6);
  const left = Math.max(58, 36 + Math.max(...y.ticks(6).map((v) => textWidth(yFormat(v)))));
  const top = (legend.length > 1 ? drawLegend(svg, legend, left, right) : 0) + 12;
  y.range([bottom, top]);
  const x = ticks ? d3.scalePoint().domain(ticks).range([left, right]).padding(0.5)
    : d3.scaleLinear().domain(d3.extent(all, (p) => p.x)).range([left, right]);
  drawAxes(svg, { x, y, left, right, top, bottom, yTicks: 6, yFormat, xLabel, yLabel, xTicks: ticks });
  // Side by side where several share a value of x.
  const step = ticks ? Math.min(14, x.step() / (series.length + 1)) : 0;
  series.forEach((s, i) => {
    const shift = ticks ? (i - (series.length - 1) / 2) * step : 0;
    const at = (p) => x(p.x) + shift;
    const layer = svg.append("g");
    layer.append("path").attr("class", "line").style("stroke", s.color).attr("stroke-dasharray", s.dash ?? "none")
      .attr("d", d3.line().defined((p) => isNumber(p.y)).x(at).y((p) => y(p.y))(s.points));
    for (const p of s.points) if (isNumber(p.low) && isNumber(p.high)) {
      const cap = `M${at(p) - 4},${y(p.low)}h8M${at(p)},${y(p.low)}V${y(p.high)}M${at(p) - 4},${y(p.high)}h8`;
      layer.append("path").attr("class", "interval").style("stroke", s.color).attr("d", cap);
    }
    for (const p of s.dots ?? [])
      layer.append("circle").attr("class", "seed").attr("cx", at(p) - 6).attr("cy", y(p.y)).attr("r", 3)
        .style("fill", s.color).style("stroke", s.color).append("title").text(p.title);
    if (!markers) layer.select("path.line").append("title").text(s.name);
    for (const p of markers ? s.points : []) if (isNumber(p.y))
      layer.append("path").attr("class", "mean").attr("d", symbolPath(s.symbol ?? i, 60)).attr("transform", `translate(${at(p)},${y(p.y)})`)
        .style("fill", s.color).append("title").text(p.title ?? `${s.name}: ${shown(p.y)}`);
  });
}

// ---------------------------------------------------------------- heat maps

/// Colours of the values of a heat map: {kind: "sequential" | "diverging" | "categories"}. Missing values have none.
function colorScale(kind, values) {
  const known = values.filter((v) => v !== null && v !== undefined);
  if (kind === "categories") {
    const names = [...new Set(known)].sort();
    return { kind, names, color: (v) => d3.interpolateCividis(names.length < 2 ? 0.5 : names.indexOf(v) / (names.length - 1)) };
  }
  if (kind === "diverging") {
    const most = Math.max(1e-12, ...known.map(Math.abs));
    return { kind, domain: [-most, most], color: (v) => d3.interpolatePuOr(0.5 + 0.42 * v / most) };
  }
  let [low, high] = known.length ? d3.extent(known) : [0, 1];
  if (low >= 0 && low < high / 2) low = 0;
  if (low === high) high = low + 1;
  return { kind, domain: [low, high], color: (v) => d3.interpolateCividis((v - low) / (high - low)) };
}

/// Black or white, whichever stands out on a colour.
function inkOn(color) {
  const { r, g, b } = d3.rgb(color);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000000" : "#ffffff";
}

function drawColorBar(svg, scale, x, y, label) {
  const wide = 180, [low, high] = scale.domain, steps = 45;
  for (let i = 0; i < steps; ++i)
    svg.append("rect").attr("x", x + i * wide / steps).attr("y", y).attr("width", wide / steps + 0.5).attr("height", 10)
      .attr("fill", scale.color(low + (high - low) * (i + 0.5) / steps));
  const axis = d3.scaleLinear().domain(scale.domain).range([x, x + wide]);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${y + 10})`).call(d3.axisBottom(axis).ticks(3).tickSize(4));
  svg.append("text").attr("class", "label").attr("x", x).attr("y", y - 5).text(label);
}

/// What the cells of a map hold, all of it alike: numbers to the first of these precisions that there is room for, or else
/// nothing; categories their names, or else letters, which the map's key explains.
function cellText(values, scale, cellWidth, cellHeight) {
  const known = values.filter((v) => v !== null && v !== undefined);
  const fits = (text) => cellHeight >= 15 && known.every((v) => textWidth(text(v), 11) < cellWidth - 4);
  if (scale.kind === "categories") return fits(String) ? String : (v) => String.fromCodePoint(65 + scale.names.indexOf(v));
  const most = d3.max(known, Math.abs) ?? 0;
  const precisions = most === 0 || most >= 1000 ? [".0f"] : most >= 10 ? [".1f", ".0f"] : most >= 1 ? [".2f", ".1f"] : most >= 0.01 ? [".3f", ".2f"] : [".1e"];
  return precisions.map((precision) => d3.format(precision)).find(fits) ?? (() => "");
}

/// One grid of cells at (x, y): values[row][column].
function drawGrid(svg, { x, y, cellWidth, cellHeight, values, scale, title, text }) {
  values.forEach((row, r) => row.forEach((value, c) => {
    const cell = svg.append("g").attr("transform", `translate(${x + c * cellWidth},${y + r * cellHeight})`);
    const missing = value === null || value === undefined;
    cell.append("rect").attr("class", "cell").attr("width", cellWidth - 1).attr("height", cellHeight - 1)
      .style("fill", missing ? "var(--panel)" : scale.color(value)).append("title").text(title(r, c, value));
    const label = missing ? "" : text(value);
    if (label)
      cell.append("text").attr("x", cellWidth / 2).attr("y", cellHeight / 2).attr("dy", "0.35em").attr("text-anchor", "middle")
        .style("font-size", "11px").style("fill", inkOn(scale.color(value))).style("pointer-events", "none").text(label);
  }));
}

function heatMap(host, { width, rows, columns, values, scale, xLabel, yLabel, valueLabel, title }) {
  const left = Math.min(width / 3, Math.max(...rows.map((name) => textWidth(name))) + 30);
  const cellWidth = Math.max(4, Math.min(84, (width - left - 10) / columns.length)), cellHeight = rows.length > 40 ? 12 : 26;
  const slanted = columns.some((name) => textWidth(name) > cellWidth - 4);
  const top = 8, foot = slanted ? Math.max(...columns.map((name) => textWidth(name))) + 14 : 22;
  const height = top + rows.length * cellHeight + foot + 76;
  const svg = picture(host, width, height);
  drawGrid(svg, { x: left, y: top, cellWidth, cellHeight, values, scale, title, text: cellText(values.flat(), scale, cellWidth, cellHeight) });
  rows.forEach((name, r) => svg.append("text").attr("x", left - 6).attr("y", top + (r + 0.5) * cellHeight).attr("dy", "0.35em").attr("text-anchor", "end").text(name));
  const bottom = top + rows.length * cellHeight;
  columns.forEach((name, c) => {
    const label = svg.append("text").text(name);
    const x = left + (c + 0.5) * cellWidth;
    if (slanted) label.attr("transform", `translate(${x},${bottom + 6}) rotate(-90)`).attr("text-anchor", "end").attr("dy", "0.35em");
    else label.attr("x", x).attr("y", bottom + 16).attr("text-anchor", "middle");
  });
  svg.append("text").attr("class", "label").attr("x", left + columns.length * cellWidth / 2).attr("y", bottom + foot + 12).attr("text-anchor", "middle").text(xLabel);
  if (yLabel) svg.append("text").attr("class", "label").attr("transform", `translate(12,${top + rows.length * cellHeight / 2}) rotate(-90)`).attr("text-anchor", "middle").text(yLabel);
  drawColorBar(svg, scale, left, bottom + foot + 38, valueLabel);
}

/// The key of a map of categories, below it: the picture becomes as high as it takes.
function drawKey(svg, scale, x, y, width, text) {
  const entries = scale.names.map((name) => ({ name: text(name) === name ? name : `${text(name)}: ${name}`, color: scale.color(name), symbol: 1 }));
  const height = y + drawLegend(svg.append("g").attr("class", "key").attr("transform", `translate(0,${y})`), entries, x, width);
  svg.attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
}

/// Panels {name, values[layer][head]} side by side where they fit: layers from the bottom, as they are stacked.
function headMap(host, { width, panels, scale, valueLabel, title }) {
  const heads = Math.max(...panels.flatMap((p) => p.values.map((row) => row.length)));
  const side = width > 620 ? panels.length : 1, gap = 56;
  const cellWidth = Math.max(10, Math.min(72, ((width - 10) / side - gap) / heads)), cellHeight = 30;
  const place = [], block = heads * cellWidth + gap;
  let y = 26, tallest = 0, x = 44;
  panels.forEach((panel, i) => {
    if (i > 0 && i % side === 0) { y += tallest + 64; tallest = 0; x = 44; }
    place.push([x, y]);
    x += block;
    tallest = Math.max(tallest, panel.values.length * cellHeight);
  });
  const bottom = y + tallest + 58;
  const svg = picture(host, width, bottom + 34), text = cellText(panels.flatMap((p) => p.values.flat()), scale, cellWidth, cellHeight);
  panels.forEach((panel, i) => {
    const [px, py] = place[i], layers = panel.values.length;
    svg.append("text").attr("x", px).attr("y", py - 10).style("font-weight", 600).text(panel.name);
    drawGrid(svg, { x: px, y: py, cellWidth, cellHeight, values: [...panel.values].reverse(), scale, text, title: (r, c, v) => title(panel, layers - 1 - r, c, v) });
    for (let layer = 0; layer < layers; ++layer)
      svg.append("text").attr("class", "label").attr("x", px - 6).attr("y", py + (layers - layer - 0.5) * cellHeight).attr("dy", "0.35em").attr("text-anchor", "end").text(layer);
    svg.append("text").attr("class", "label").attr("transform", `translate(${px - 28},${py + layers * cellHeight / 2}) rotate(-90)`).attr("text-anchor", "middle").text("layer");
    const every = Math.max(1, Math.ceil(18 / cellWidth));
    for (let head = 0; head < heads; head += every)
      svg.append("text").attr("class", "label").attr("x", px + (head + 0.5) * cellWidth).attr("y", py + layers * cellHeight + 14).attr("text-anchor", "middle").text(head);
    svg.append("text").attr("class", "label").attr("x", px + heads * cellWidth / 2).attr("y", py + layers * cellHeight + 30).attr("text-anchor", "middle").text("head");
  });
  if (scale.kind === "categories") drawKey(svg, scale, 44, bottom - 10, width, text);
  else drawColorBar(svg, scale, 44, bottom, valueLabel);
}

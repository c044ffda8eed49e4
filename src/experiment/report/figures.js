"use strict";
// Figures and tables with their controls and downloads. A figure is drawn again whenever a control, the width or the
// colours change. `report` is what tests and the browser's console can ask.

const report = { data: JSON.parse(document.getElementById("data").textContent), figures: [], tables: [] };

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function section(id, title, ...intro) {
  const node = element("section", { id }, element("h2", {}, title), ...intro.map((text) => element("p", {}, text)));
  document.getElementById("content").append(node);
  document.getElementById("contents").append(element("a", { href: "#" + id }, title));
  return node;
}

// ---------------------------------------------------------------- downloads

function download(name, type, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

function downloadButton(label, name, type, text) {
  const button = element("button", { type: "button", "aria-label": `Download ${name}` }, label);
  button.addEventListener("click", () => download(name, type, text()));
  return button;
}

const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight"];

/// The picture as a file of its own, in the light colours: what style sheets say becomes attributes, which every program
/// that reads SVG knows.
function standaloneSvg(svg) {
  const root = document.documentElement, theme = root.dataset.theme;
  root.dataset.theme = "light";
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((node, i) => {
    const style = getComputedStyle(node), target = copies[i];
    if (style.display === "none") target.remove();
    if (!["title", "defs", "desc"].includes(node.tagName))
      for (const name of kept) target.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "role", "aria-label"]) target.removeAttribute(name);
  });
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const [x, y, width, height] = svg.getAttribute("viewBox").split(" ");
  for (const [key, value] of Object.entries({ x, y, width, height, fill: "#ffffff" })) paper.setAttribute(key, value);
  copy.insertBefore(paper, copy.firstChild);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  if (theme === undefined) delete root.dataset.theme;
  else root.dataset.theme = theme;
  return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy) + "\n";
}

const isNumber = (value) => typeof value === "number";

/// RFC 4180.
function csv({ columns, rows }) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
}

/// A tabular environment with booktabs' rules.
function latex({ columns, rows }) {
  const special = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "–": "--",
    "×": "$\\times$", "→": "$\\to$", "±": "$\\pm$", "<": "$<$", ">": "$>$" };
  const text = (value) => String(value).replace(/[\\~^&%$#_{}−–×→±<>]/g, (c) => special[c] ?? "\\" + c);
  const cell = (value) => (value === null || value === undefined ? "" : isNumber(value) ? shown(value).replace("−", "$-$") : text(value));
  const align = columns.map((_, i) => (rows.some((row) => isNumber(row[i])) ? "r" : "l")).join("");
  const line = (cells) => cells.join(" & ") + " \\\\\n";
  return `\\begin{tabular}{${align}}\n\\toprule\n${line(columns.map(text))}\\midrule\n` +
    rows.map((row) => line(row.map(cell))).join("") + "\\bottomrule\n\\end{tabular}\n";
}

/// From here on numbers have an exponent.
const huge = 1e12;

/// Four digits that count, no exponent where people can read without.
function shown(value) {
  if (value === null || value === undefined) return "";
  if (!isNumber(value)) return String(value);
  const size = Math.abs(value);
  if (size >= huge) return d3.format(".4~e")(value);
  if (Number.isInteger(value)) return d3.format(size >= 10000 ? "," : "")(value);
  if (size >= 1000) return d3.format(",.0f")(value);
  return d3.format(size >= 100 ? ".1f" : size >= 10 ? ".2f" : size >= 0.001 ? ".4~r" : ".2~e")(value);
}

function tableElement({ columns, rows }) {
  const textual = columns.map((_, i) => !rows.some((row) => isNumber(row[i])));
  // What is long, as messages are, may be broken into lines.
  const kindOf = (text, i) => [...(textual[i] ? ["text"] : []), ...(text.length > 40 ? ["long"] : [])].join(" ");
  const cells = (tag, row, attributes = {}) => row.map(shown).map((text, i) => element(tag, { ...attributes, class: kindOf(text, i) }, text));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, element("table", { style: `--columns: ${columns.length}` },
    element("thead", {}, element("tr", {}, ...cells("th", columns, { scope: "col" }))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
}

function tableDownloads(id, table) {
  return [downloadButton("CSV", `${id}.csv`, "text/csv", () => csv(table())),
    downloadButton("LaTeX", `${id}.tex`, "application/x-tex", () => latex(table()))];
}

/// A table that stands for itself.
function addTable(parent, { id, title, caption, table }) {
  const figure = element("figure", { id }, element("h3", {}, title), tableElement(table),
    element("figcaption", {}, caption ?? ""), element("div", { class: "downloads" }, ...tableDownloads(id, () => table)));
  parent.append(figure);
  report.tables.push({ id, table: () => table, csv: () => csv(table), latex: () => latex(table) });
}

// ---------------------------------------------------------------- controls

/// {name, label, kind: "select" | "choices" | "range", options: [{value, label, color}], value, follow}; options may be a
/// function of the state. The first option is chosen where the state's is not among them and, with `follow`, until the
/// reader chooses.
const optionsOf = (control, state) => (typeof control.options === "function" ? control.options(state) : control.options);

const rangeLabel = (control, state) => `${control.label}: ${shown(state[control.name])}`;

function controlElement(control, state, changed) {
  const options = optionsOf(control, state);
  const set = (value) => { control.follow = false; state[control.name] = value; changed(); };
  if (control.kind === "range") {
    const input = element("input", { type: "range", name: control.name, min: "0", max: String(control.max), step: String(control.step), value: String(state[control.name]) });
    const label = element("label", {}, rangeLabel(control, state), input);
    input.addEventListener("input", () => { set(Number(input.value)); label.firstChild.data = rangeLabel(control, state); });
    return label;
  }
  if (control.kind === "choices") {
    const chosen = new Set(state[control.name]);
    return element("fieldset", {}, element("legend", {}, control.label), element("div", { class: "choices" }, ...options.map((option) => {
      const input = element("input", { type: "checkbox", name: control.name, value: String(option.value), checked: chosen.has(option.value) });
      input.addEventListener("change", () => {
        if (input.checked) chosen.add(option.value);
        else chosen.delete(option.value);
        set(options.map((o) => o.value).filter((value) => chosen.has(value)));
      });
      const swatch = option.color ? [element("span", { class: "swatch", style: `background:${option.color}` })] : [];
      return element("label", {}, input, ...swatch, option.label);
    })));
  }
  if (options.length < 2) return null;
  const select = element("select", { name: control.name },
    ...options.map((option, i) => element("option", { value: String(i), selected: option.value === state[control.name] }, option.label)));
  select.addEventListener("change", () => set(options[Number(select.value)].value));
  return element("label", {}, control.label, select);
}

function settle(controls, state) {
  for (const control of controls) {
    const options = optionsOf(control, state);
    if (!(control.name in state)) state[control.name] = control.value ?? (control.kind === "choices" ? [options[0].value] : options[0].value);
    if (control.kind === "choices") state[control.name] = state[control.name].filter((v) => options.some((o) => o.value === v));
    else if (options && (control.follow || !options.some((option) => option.value === state[control.name]))) state[control.name] = options[0].value;
  }
}

/// draw(host, state, width, redraw) appends the picture; table(state) is what it shows.
function addFigure(parent, { id, title, caption, controls = [], draw, table, wide = false }) {
  const state = {};
  const bar = element("div", { class: "controls" }), host = element("div", { class: wide ? "plot wide" : "plot" });
  const caption_ = element("figcaption"), body = element("div");
  const details = element("details", {}, element("summary", {}, "Table"), body);
  const svg = () => host.querySelector("svg");
  const fill = () => body.replaceChildren(tableElement(table(state)));
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  const redraw = () => {
    settle(controls, state);
    const focused = bar.contains(document.activeElement) ? [...bar.querySelectorAll("select,input")].indexOf(document.activeElement) : -1;
    // A slider that is being dragged must stay the same element.
    const dragged = focused >= 0 && document.activeElement.type === "range";
    if (!dragged) {
      bar.replaceChildren(...controls.map((c) => controlElement(c, state, redraw)).filter(Boolean));
      if (focused >= 0) bar.querySelectorAll("select,input")[focused]?.focus();
    }
    host.replaceChildren();
    draw(host, state, Math.max(320, host.clientWidth), redraw);
    if (svg()) { svg().setAttribute("role", "group"); svg().setAttribute("aria-label", title); }
    caption_.textContent = typeof caption === "function" ? caption(state) : caption ?? "";
    if (details.open) fill();
  };
  const buttons = element("div", { class: "downloads" },
    downloadButton("SVG", `${id}.svg`, "image/svg+xml", () => standaloneSvg(svg())), ...tableDownloads(id, () => table(state)));
  parent.append(element("figure", { id }, element("h3", {}, title), bar, host, caption_, buttons, details));
  redraw();
  report.figures.push({ id, state, redraw, svg: () => standaloneSvg(svg()), table: () => table(state),
    csv: () => csv(table(state)), latex: () => latex(table(state)) });
}

function watchPage() {
  const theme = document.getElementById("theme");
  theme.addEventListener("change", () => {
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
  });
  let width = document.documentElement.clientWidth, waiting = 0;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => report.figures.forEach((figure) => figure.redraw()), 150);
  });
}

"use strict";
// What is known of each head of a trained model, from the files that polyhead heads writes.

const headName = ({ kind, layer, head }) => `${kind}.${layer}.${head}`;

/// The figures of one head by name: numbers and texts, those of nested objects by their path.
function headFigures(entry, prefix = "") {
  return Object.entries(entry).flatMap(([key, value]) => {
    if (!prefix && ["kind", "layer", "head"].includes(key)) return [];
    if (isNumber(value) || typeof value === "string") return [[prefix + key, value]];
    if (value && typeof value === "object" && !Array.isArray(value)) return headFigures(value, `${prefix}${key}.`);
    return [];
  });
}

const noRole = "none of these";

/// What a head is for, by the first of these that holds: nine in ten of its largest weights are at one offset; it puts
/// clearly more weight on a relation's gold partners, or on rare words, than the baseline does.
function roleOf(entry) {
  const clearly = 0.1, d = entry.diagnostics ?? {};
  if (d.positional) return `offset ${d.offset > 0 ? "+" : ""}${d.offset}`.replace("-", "−");
  const relations = Object.entries(entry.relations ?? {}).map(([name, r]) => ({ name, gain: r.mass - r.baseline.mass }));
  const best = relations.sort((a, b) => b.gain - a.gain)[0];
  if (best && best.gain >= clearly) return words(best.name);
  if (isNumber(d.rare_word) && isNumber(d.rare_word_baseline) && d.rare_word - d.rare_word_baseline >= clearly) return "rare words";
  return noRole;
}

const unlike = /(^|\.)(tokens|offsets\..*|baseline\..*|labels\..*|offset)$/;

/// Everything that is known head by head: {name, label, kind of scale, values by head, notes by head}.
function headQuantities(heads) {
  const found = new Map();
  const put = (name, label, kind, entry, value, note) => {
    if (value === null || value === undefined) return;
    if (!found.has(name)) found.set(name, { name, label, kind, values: new Map(), notes: new Map() });
    found.get(name).values.set(headName(entry), value);
    if (note) found.get(name).notes.set(headName(entry), note);
  };
  for (const entry of heads.gates?.heads ?? []) put("gate", "learned gate (0: closed)", "sequential", entry, entry.gate);
  for (const entry of heads.importance?.heads ?? [])
    for (const [name, value] of headFigures(entry)) put(name, words(name), name === "leave_one_out" ? "diverging" : "sequential", entry, value);
  for (const [file, title] of [["masking", "masked"], ["all_but_one", "all but this masked"]])
    for (const set of heads[file]?.sets ?? []) {
      if (set.name.includes(",")) continue;  // of several heads
      const [kind, layer, number] = set.name.split(" ").at(-1).split(".");
      for (const [figure, f] of Object.entries(set.figures))
        put(`${file}.${figure}`, `change of ${words(figure)}, ${title} (${heads[file].method})`, "diverging", { kind, layer, head: number }, f.change,
          `${shown(f.score)}, q = ${shown(f.q)}`);
    }
  for (const entry of heads.heads?.heads ?? []) {
    if (entry.diagnostics || Object.keys(entry.relations ?? {}).length) put("role", "role", "categories", entry, roleOf(entry));
    for (const part of ["diagnostics", "relations"])
      for (const [name, value] of headFigures(entry[part] ?? {}))
        if (isNumber(value) && !unlike.test(name)) put(`${part}.${name}`, words(name).replaceAll(".", ": "), "sequential", entry, value);
  }
  return [...found.values()];
}

function addHeadMap(parent, heads) {
  const quantities = headQuantities(heads);
  if (quantities.length === 0) return;
  const of = (s) => quantities.find((q) => q.name === s.quantity);
  const parts = (q) => [...q.values].map(([head, value]) => { const [kind, layer, number] = head.split("."); return { kind, layer: Number(layer), head: Number(number), value, note: q.notes.get(head) }; });
  addFigure(parent, {
    id: "heads", title: "Layers by heads",
    controls: [{ name: "quantity", label: "Figure", options: quantities.map((q) => ({ value: q.name, label: q.label })) }],
    caption: (s) => (s.quantity === "role"
      ? "Offset: nine in ten of its largest weights are there. Else the relation to whose gold partners a head gives at least 0.1 more weight than the best fixed offset does, or rare words, by the same margin."
        + ([...of(s).values.values()].every((role) => role === noRole) ? " Here no head has a role." : "")
      : s.quantity.startsWith("masking") || s.quantity.startsWith("all_but") ? "What masking does to the model. q: two-sided approximate randomisation over sentences, Benjamini and Hochberg's correction over heads." : ""),
    draw: (host, s, width) => {
      const q = of(s), known = parts(q);
      const panels = ["encoder", "decoder", "cross"].filter((kind) => known.some((p) => p.kind === kind)).map((kind) => {
        const own = known.filter((p) => p.kind === kind), values = [];
        for (let layer = 0; layer <= d3.max(own, (p) => p.layer); ++layer) {
          values.push([]);
          for (const p of own) if (p.layer === layer) values[layer][p.head] = p.value;
          values[layer] = Array.from(values[layer], (v) => v ?? null);
        }
        return { name: kindNames[kind], kind, values };
      });
      headMap(host, {
        width, panels, scale: colorScale(q.kind, known.map((p) => p.value)), valueLabel: q.label,
        title: (panel, layer, head, value) => {
          const note = known.find((p) => p.kind === panel.kind && p.layer === layer && p.head === head)?.note;
          return `${panel.kind}, layer ${layer}, head ${head}: ${shown(value)}${note ? ` (${note})` : ""}`;
        },
      });
    },
    table: (s) => ({ columns: ["kind", "layer", "head", of(s).label], rows: parts(of(s)).map((p) => [p.kind, p.layer, p.head, p.value]) }),
  });
}

function addMaskedPhenomena(parent, masking) {
  const sets = (masking?.sets ?? []).filter((set) => Object.values(set.phenomena ?? {}).some((figures) => Object.keys(figures).length > 0));
  if (sets.length === 0) return;
  const phenomena = unique(sets.flatMap((set) => Object.keys(set.phenomena)));
  const figures = unique(sets.flatMap((set) => Object.values(set.phenomena).flatMap(Object.keys)));
  const cell = (set, phenomenon, s) => set.phenomena[phenomenon]?.[s.figure];
  addFigure(parent, {
    id: "masked-phenomena", title: "Which phenomena a masked head costs",
    controls: [{ name: "figure", label: "Change of", options: options(figures, words), value: figures.includes("slot_accuracy") ? "slot_accuracy" : figures[0] }],
    caption: `A row a head, masked by the method “${masking.method}”; point at a cell for its q (approximate randomisation over sentences, Benjamini and Hochberg's correction over heads and phenomena).`,
    draw: (host, s, width) => {
      const values = sets.map((set) => phenomena.map((p) => cell(set, p, s)?.change ?? null));
      heatMap(host, {
        width, rows: sets.map((set) => set.name), columns: phenomena.map(words), values, scale: colorScale("diverging", values.flat()), valueLabel: `change of ${words(s.figure)}, %`,
        title: (r, c, v) => `${sets[r].name}, ${words(phenomena[c])}: ${shown(v)}, q = ${shown(cell(sets[r], phenomena[c], s)?.q)}`,
      });
    },
    table: (s) => ({ columns: ["masked", ...phenomena], rows: sets.map((set) => [set.name, ...phenomena.map((p) => cell(set, p, s)?.change ?? null)]) }),
  });
}

function addPruningCurves(parent, curve) {
  if (!curve) return;
  const scopes = unique(curve.curves.map((c) => c.scope));
  const own = (s) => curve.curves.filter((c) => c.scope === s.scope);
  addFigure(parent, {
    id: "pruning", title: "Pruning curves",
    controls: [{ name: "scope", label: "Heads of", options: options(scopes, (scope) => kindNames[scope] ?? "all attention") },
      { name: "metric", label: "Metric", options: options(curve.metrics, words) }],
    caption: "Heads are masked one after the other, the least important first, in the order of each figure. Random orders: the mean of the draws, and each draw as dots.",
    draw: (host, s, width) => {
      const orders = unique(own(s).map((c) => c.order));
      const series = orders.map((order, i) => {
        const draws = own(s).filter((c) => c.order === order), removed = unique(draws.flatMap((c) => c.points.map((p) => p.removed)));
        const at = (x) => draws.map((c) => c.points.find((p) => p.removed === x)).filter((p) => p && isNumber(p[s.metric]));
        const label = (p) => `${words(order)}, ${p.removed} removed${p.head ? ` (last: ${p.head})` : ""}: ${shown(p[s.metric])}`;
        return {
          name: words(order), color: seriesColor(i), symbol: i, dash: dashes[i % dashes.length],
          points: removed.map((x) => ({ x, y: d3.mean(at(x), (p) => p[s.metric]) ?? null, title: at(x).length === 1 ? label(at(x)[0]) : `${words(order)}, ${x} removed: mean of ${at(x).length} draws` })),
          dots: draws.length < 2 ? [] : removed.flatMap((x) => at(x).map((p) => ({ x, y: p[s.metric], title: label(p) }))),
        };
      });
      lineChart(host, { width, series, xLabel: "heads removed", yLabel: metricLabel(s.metric), markers: d3.max(series, (line) => line.points.length) < 50 });
    },
    table: (s) => ({ columns: ["order", "draw", "removed", "head", words(s.metric)], rows: own(s).flatMap((c) => c.points.map((p) => [words(c.order), c.draw, p.removed, p.head, p[s.metric]])) }),
  });
}

const similarityNames = { jensen_shannon: "Jensen–Shannon distance of weights", cka: "linear CKA of outputs", cosine: "cosine of outputs" };

function addSimilarity(parent, sites) {
  if (!sites || sites.length === 0) return;
  const of = (s) => sites.find((site) => site.kind === s.kind && site.layer === s.layer);
  const measures = Object.keys(similarityNames).filter((name) => sites[0][name]);
  const names = (s) => of(s)[s.measure].map((_, i) => `head ${i}`);
  addFigure(parent, {
    id: "similarity", title: "How alike the heads of a layer are",
    controls: [{ name: "measure", label: "Measure", options: options(measures, (m) => similarityNames[m]) },
      { name: "kind", label: "Attention", options: options(unique(sites.map((site) => site.kind)), (kind) => kindNames[kind]) },
      { name: "layer", label: "Layer", options: (s) => options(sites.filter((site) => site.kind === s.kind).map((site) => site.layer)) }],
    draw: (host, s, width) => heatMap(host, {
      width, rows: names(s), columns: names(s), values: of(s)[s.measure], valueLabel: similarityNames[s.measure], xLabel: "",
      scale: { ...colorScale(s.measure === "cosine" ? "diverging" : "sequential", of(s)[s.measure].flat()), ...(s.measure === "cosine" ? {} : { domain: [0, 1], color: d3.interpolateCividis }) },
      title: (r, c, v) => `heads ${r} and ${c}: ${shown(v)}`,
    }),
    table: (s) => ({ columns: ["", ...names(s)], rows: of(s)[s.measure].map((row, i) => [`head ${i}`, ...row]) }),
  });
}

function addOffsets(parent, entries) {
  const known = entries.filter((e) => e.diagnostics?.offsets);
  if (known.length === 0) return;
  const kinds = unique(known.map((e) => e.kind));
  const own = (s) => known.filter((e) => e.kind === s.kind);
  const columns = (s) => unique(own(s).flatMap((e) => Object.keys(e.diagnostics.offsets))).sort((a, b) => (a === "other") - (b === "other") || a - b);
  const values = (s) => own(s).map((e) => columns(s).map((c) => e.diagnostics.offsets[c] ?? 0));
  addFigure(parent, {
    id: "offsets", title: "Where the largest weight is",
    controls: [{ name: "kind", label: "Attention", options: options(kinds, (kind) => kindNames[kind]) }],
    caption: "Share of queries whose largest weight is that many positions to the right (negative: to the left).",
    draw: (host, s, width) => heatMap(host, {
      width, rows: own(s).map(headName), columns: columns(s).map((c) => c.replace("-", "−")), values: values(s), xLabel: "offset, key − query", valueLabel: "share of queries",
      scale: { kind: "sequential", domain: [0, 1], color: d3.interpolateCividis }, title: (r, c, v) => `${headName(own(s)[r])}, ${columns(s)[c]}: ${shown(v)}`,
    }),
    table: (s) => ({ columns: ["head", ...columns(s)], rows: own(s).map((e, i) => [headName(e), ...values(s)[i]]) }),
  });
}

function addHeadTables(parent, heads) {
  const { importance, heads: found } = heads;
  const gold = (found?.heads ?? []).flatMap((e) => Object.entries(e.relations ?? {}).map(([name, r]) =>
    [e.kind, e.layer, e.head, words(name), r.tokens, r.mass, r.baseline.mass, r.baseline.offset, r.error_rate ?? null, r.baseline.error_rate?.error_rate ?? null]));
  if (gold.length > 0) addTable(parent, {
    id: "gold", title: "Heads against gold annotations",
    caption: "Mass: mean weight on gold partners, and what the best fixed offset has. AER: alignment error rate, and that of its best fixed offset.",
    table: { columns: ["kind", "layer", "head", "relation", "tokens", "mass", "baseline", "offset", "AER", "AER baseline"], rows: gold },
  });
  if (importance?.rank_correlations) addTable(parent, {
    id: "correlations", title: "Do the figures of importance agree?",
    caption: "Spearman's rank correlation over all heads.",
    table: { columns: ["figure", "with", "rho", "p"], rows: importance.rank_correlations.map((c) => [words(c.a), words(c.b), c.rho, c.p]) },
  });
  const rollout = Object.entries(found?.rollout ?? {}).flatMap(([kind, layers]) => layers.map((r) => [kind, r.layer, r.self, r.relative_entropy]));
  if (rollout.length > 0) addTable(parent, {
    id: "rollout", title: "Attention rollout",
    caption: "Share that stays on the token itself, and entropy over log n, means over sentences.",
    table: { columns: ["kind", "layer", "self", "relative entropy"], rows: rollout },
  });
  if (found?.warnings.length > 0) addTable(parent, {
    id: "warnings", title: "Warnings about heads",
    table: { columns: ["kind", "layer", "head", "warning", "figure", "value", "threshold", "message"],
      rows: found.warnings.map((w) => [w.kind, w.layer, w.head, w.warning, words(w.figure), w.value, w.threshold, w.message]) },
  });
}

/// Diagnostics that training wrote every so many updates: [{step, heads}].
function addHeadsInTraining(parent, diagnostics) {
  const entries = diagnostics[0].heads, kinds = unique(entries.map((e) => e.kind));
  const figures = unique(entries.flatMap((e) => headFigures(e)).filter(([name, value]) => isNumber(value) && !unlike.test(name)).map(([name]) => name));
  if (figures.length === 0) return;
  const line = (entry, s) => diagnostics.map(({ step, heads }) => ({ x: step, y: heads.find((e) => headName(e) === headName(entry))?.[s.figure] ?? null }));
  addFigure(parent, {
    id: "heads-in-training", title: "Heads while the model learns",
    controls: [{ name: "figure", label: "Figure", options: options(figures, words) }],
    caption: "A line a head; point at it for its name.",
    draw: (host, s, width) => lineChart(host, {
      width, xLabel: "update", yLabel: words(s.figure), markers: false,
      series: entries.map((e) => ({ name: headName(e), color: seriesColor(kinds.indexOf(e.kind)), dash: dashes[kinds.indexOf(e.kind)], points: line(e, s) })),
      legend: kinds.map((kind, i) => ({ name: kindNames[kind], color: seriesColor(i), dash: dashes[i] })),
    }),
    table: (s) => ({ columns: ["head", "step", words(s.figure)], rows: entries.flatMap((e) => line(e, s).map((p) => [headName(e), p.x, p.y])) }),
  });
}

function addHeadFigures(heads) {
  const parent = section("head-figures", "Heads");
  addHeadMap(parent, heads);
  addMaskedPhenomena(parent, heads.masking);
  addPruningCurves(parent, heads.curve);
  addSimilarity(parent, heads.heads?.similarity);
  addOffsets(parent, heads.heads?.heads ?? []);
  addHeadTables(parent, heads);
}

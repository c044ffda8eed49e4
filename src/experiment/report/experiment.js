"use strict";
// The figures of an experiment: its grid's points, seed by seed, and what they cost.

const unique = (values) => [...new Map(values.map((v) => [JSON.stringify(v), v])).values()];
const byNumber = (a, b) => (isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b)));
/// A setting as tables show it, but with all its digits: two settings never look the same.
function valueText(value) {
  if (typeof value === "string") return value;
  if (!isNumber(value)) return JSON.stringify(value);
  const size = Math.abs(value);
  if (size >= huge || (size > 0 && size < 0.001)) return value.toExponential();
  return Number.isInteger(value) ? shown(value) : String(value);
}
const options = (values, label = valueText) => values.map((value) => ({ value, label: label(value) }));
const words = (name) => name.replaceAll("_", " ");
const units = { loss: "nats per target token", perplexity: "perplexity", bleu: "BLEU", chrf: "chrF", ter: "TER" };
const metricLabel = (metric) => (units[metric] ? (metric === "loss" ? "loss, nats per target token" : units[metric]) : `${words(metric)}, %`);
const keyLabel = (key) => (key === "model.heads" ? "heads" : key);
const pointText = (grid, keys) => keys.map((key) => `${keyLabel(key)} ${valueText(grid[key])}`).join(", ");
const phenomenonLabel = (phenomenon) => (phenomenon === null ? "all sentences" : words(phenomenon));

function experimentOf(experiment) {
  const { keys, points, rows } = experiment;
  const xValues = (key) => unique(points.map((p) => p.grid[key])).sort(byNumber);
  const rest = (key) => keys.filter((k) => k !== key);
  const seriesName = (p, key) => [...(p.control === "none" ? [] : [words(p.control)]), ...(rest(key).length ? [pointText(p.grid, rest(key))] : [])].join(", ");
  const matches = (p, state) => p.split === state.split && p.metric === state.metric;
  const splits = unique(points.map((p) => p.split));
  const controls = [
    { name: "key", label: "Against", options: options(keys, keyLabel), value: keys.includes("model.heads") ? "model.heads" : keys[0] },
    { name: "split", label: "Split", options: options(splits), value: splits.find((split) => split !== "valid") ?? splits[0] },
    { name: "metric", label: "Metric", options: (s) => options(unique(points.filter((p) => p.split === s.split).map((p) => p.metric)), words) },
  ];
  return { keys, points, rows, xValues, seriesName, matches, controls };
}

function addMetricFigure(parent, experiment) {
  const { rows, points, xValues, seriesName, matches, controls } = experimentOf(experiment);
  const chosen = (list, s) => list.filter((p) => matches(p, s) && p.phenomenon === s.phenomenon);
  const seedsOf = (point, s) => chosen(rows, s).filter((r) => r.control === point.control && JSON.stringify(r.grid) === JSON.stringify(point.grid));
  addFigure(parent, {
    id: "metric", title: `Results against ${keyLabel(controls[0].value)}, with every seed`,
    controls: [...controls, { name: "phenomenon", label: "Of", options: (s) => options(unique(points.filter((p) => matches(p, s)).map((p) => p.phenomenon)), phenomenonLabel) }],
    caption: "Marks: means over seeds with 95% t intervals. Dots: seeds.",
    draw: (host, s, width) => {
      const shownPoints = chosen(points, s);
      const names = unique(shownPoints.map((p) => seriesName(p, s.key)));
      const ticks = xValues(s.key).map(valueText);
      const series = names.map((name, i) => {
        const own = shownPoints.filter((p) => seriesName(p, s.key) === name).sort((a, b) => byNumber(a.grid[s.key], b.grid[s.key]));
        const x = (p) => valueText(p.grid[s.key]);
        return {
          name: name || words(s.metric), color: seriesColor(i), symbol: i, dash: dashes[i % dashes.length],
          points: own.map((p) => ({ x: x(p), y: p.mean, low: p.low, high: p.high,
            title: `${keyLabel(s.key)} ${x(p)}${name && ", " + name}: ${shown(p.mean)}${isNumber(p.low) ? ` [${shown(p.low)}, ${shown(p.high)}]` : ""}${p.seeds === 1 ? ", 1 seed" : `, ${p.seeds} seeds`}${p.diverged ? `, ${p.diverged} diverged or failed` : ""}` })),
          dots: own.flatMap((p) => seedsOf(p, s).filter((r) => isNumber(r.value)).map((r) => ({ x: x(p), y: r.value, title: `seed ${r.seed}: ${shown(r.value)}` }))),
        };
      });
      lineChart(host, { width, series, ticks, xLabel: keyLabel(s.key), yLabel: metricLabel(s.metric) });
    },
    table: (s) => ({
      columns: [...experiment.keys.map(keyLabel), "control", "split", "metric", "phenomenon", "seed", "value"],
      rows: chosen(rows, s).map((r) => [...experiment.keys.map((k) => r.grid[k]), r.control, r.split, r.metric, r.phenomenon ?? "", r.seed, r.value]),
    }),
  });
}

function addPhenomenaFigure(parent, experiment) {
  const { points, xValues, seriesName, matches, controls } = experimentOf(experiment);
  const phenomena = points.filter((p) => p.phenomenon !== null);
  if (phenomena.length === 0) return;
  const measured = controls.map((c) => (c.name === "split" ? { ...c, options: options(unique(phenomena.map((p) => p.split))) }
    : c.name === "metric" ? { ...c, options: (s) => options(unique(phenomena.filter((p) => p.split === s.split).map((p) => p.metric)), words) } : c));
  const cells = (s) => {
    const own = phenomena.filter((p) => matches(p, s) && seriesName(p, s.key) === s.series);
    const columns = xValues(s.key), rows = unique(own.map((p) => p.phenomenon));
    const at = (phenomenon, x) => own.find((p) => p.phenomenon === phenomenon && p.grid[s.key] === x);
    return { rows, columns, points: rows.map((r) => columns.map((c) => at(r, c))) };
  };
  const differs = (s) => phenomena.some((p) => matches(p, s) && p.difference);
  const isBaseline = (p) => Object.entries(experiment.baseline).every(([key, x]) => p.grid[key] === x);
  const value = (p, s) => (!p ? null : s.show === "mean" ? p.mean : p.difference ? p.difference.mean : isBaseline(p) ? 0 : null);
  addFigure(parent, {
    id: "phenomena", title: "Phenomena by heads",
    controls: [...measured,
      { name: "series", label: "Of", options: (s) => options(unique(phenomena.filter((p) => matches(p, s)).map((p) => seriesName(p, s.key))), (n) => n || "all") },
      { name: "show", label: "Show", options: (s) => [{ value: "mean", label: "mean over seeds" }, ...(differs(s) ? [{ value: "difference", label: "difference from the baseline" }] : [])] }],
    caption: (s) => (s.show === "mean" ? "Means over seeds." : "Mean paired differences from the baseline, by seed; point at a cell for its p, corrected by Benjamini and Hochberg's method over all in a metric under a control."),
    draw: (host, s, width) => {
      const { rows, columns, points: grid } = cells(s);
      const values = grid.map((row) => row.map((p) => value(p, s)));
      heatMap(host, {
        width, rows: rows.map(words), columns: columns.map(valueText), values, xLabel: keyLabel(s.key), valueLabel: metricLabel(s.metric),
        scale: colorScale(s.show === "mean" ? "sequential" : "diverging", values.flat()),
        title: (r, c, v) => {
          const adjusted = s.show === "mean" ? null : grid[r][c]?.difference?.p_adjusted;
          return `${words(rows[r])}, ${keyLabel(s.key)} ${valueText(columns[c])}: ${v === null ? "none" : shown(v)}${isNumber(adjusted) ? `, p = ${shown(adjusted)}` : ""}`;
        },
      });
    },
    table: (s) => {
      const { rows, columns, points: grid } = cells(s), tested = s.show !== "mean";
      const names = columns.map((c) => `${keyLabel(s.key)} ${valueText(c)}`);
      return { columns: ["phenomenon", ...names.flatMap((n) => (tested ? [n, `${n}: p (Benjamini–Hochberg)`] : [n]))],
        rows: rows.map((r, i) => [r, ...grid[i].flatMap((p) => (tested ? [value(p, s), p?.difference?.p_adjusted ?? null] : [value(p, s)]))]) };
    },
  });
}

function addExperimentTables(parent, experiment) {
  const { keys, points, cells } = experiment;
  const grid = (p) => keys.map((key) => (isNumber(p.grid[key]) ? p.grid[key] : valueText(p.grid[key]))), heading = [...keys.map(keyLabel), "control"];
  const compared = points.some((p) => p.difference), bootstrapped = points.some((p) => p.bootstrap);
  const intervals = ["low", "high", ...(bootstrapped ? ["low (bootstrap)", "high (bootstrap)"] : [])];
  const ofIntervals = (p) => [p?.low, p?.high, ...(bootstrapped ? [p?.bootstrap?.low, p?.bootstrap?.high] : [])];
  const equivalent = points.some((p) => p.difference?.equivalence);
  const columns = (of, correction) => [...heading, "split", ...of, "metric", "mean", ...intervals, "seeds", "diverged or failed",
    ...(compared ? ["difference", ...intervals, "p", `p (${correction})`] : []), ...(equivalent ? ["margin", "p (TOST)"] : [])];
  const row = (p, of) => [...grid(p), words(p.control), p.split, ...of, words(p.metric), p.mean, ...ofIntervals(p), p.seeds, p.diverged,
    ...(compared ? [p.difference?.mean, ...ofIntervals(p.difference), p.difference?.p, p.difference?.p_adjusted] : []),
    ...(equivalent ? [p.difference?.equivalence?.margin, p.difference?.equivalence?.p] : [])];
  addTable(parent, {
    id: "summary", title: "All points",
    caption: "Means over seeds with 95% t intervals" + (compared ? "; paired differences from the baseline by seed with theirs, two-sided paired t-tests, p corrected by Holm's method over all differences in a metric under a control." : ".")
      + (equivalent ? " p (TOST): of a difference of the margin or more, either way, by two one-sided paired t-tests; below 0.05 there is none." : "")
      + (bootstrapped ? " Bootstrap: 95% percentile intervals over seeds, then sentences, of the experiment's first split; of few seeds they are narrower than the t intervals." : ""),
    table: { columns: columns([], "Holm"), rows: points.filter((p) => p.phenomenon === null).map((p) => row(p, [])) },
  });
  const phenomena = points.filter((p) => p.phenomenon !== null);
  if (phenomena.length > 0) addTable(parent, {
    id: "phenomena-summary", title: "All points by phenomenon",
    caption: "As above, of the sentences that test a phenomenon" + (compared ? "; p corrected by Benjamini and Hochberg's method over all differences in a metric under a control." : "."),
    table: { columns: columns(["phenomenon"], "Benjamini–Hochberg"), rows: phenomena.map((p) => row(p, [words(p.phenomenon)])) },
  });
  const costs = unique(cells.map((c) => [...grid(c), c.control])).map((key) => {
    const own = cells.filter((c) => JSON.stringify([...grid(c), c.control]) === JSON.stringify(key));
    return [...key.slice(0, -1), words(key.at(-1)), Math.round(d3.mean(own, (c) => c.parameters)), d3.mean(own, (c) => c.flops_per_token), d3.mean(own, (c) => c.score_bytes), own[0].learning_rate, d3.mean(own, (c) => c.tokens_per_second || null) ?? null];
  });
  addTable(parent, {
    id: "costs", title: "What they cost",
    caption: "FLOPs: training, forward and backward, a target token. Scores: memory of the attention scores of a sentence pair. Tokens/s: measured target tokens a second of training. Means over seeds.",
    table: { columns: [...heading, "parameters", "FLOPs a token", "scores, bytes", "learning rate", "tokens/s"], rows: costs },
  });
  const bad = cells.filter((c) => c.status !== "finished");
  if (bad.length > 0) addTable(parent, {
    id: "failures", title: "Cells that diverged or failed",
    table: { columns: [...heading, "seed", "status", "message", "cell"], rows: bad.map((c) => [...grid(c), words(c.control), c.seed, c.status, c.message, c.cell]) },
  });
}

/// Learning curves of one run or of an experiment's cells: {name, grid, control, seed, updates, validations}, each of the
/// last two with `step` and columns of figures.
function addLearningCurves(parent, curves, keys) {
  const figures = unique(curves.flatMap((c) => ["validations", "updates"].flatMap((part) => Object.keys(c[part]).filter((k) => k !== "step").map((figure) => ({ part, figure })))));
  if (figures.length === 0) return;
  const partName = { validations: "validation", updates: "training" };
  const all = figures.map(({ part, figure }) => ({ value: `${part}/${figure}`, label: `${partName[part]}: ${words(figure)}` }));
  const preferred = all.find((o) => o.value === "validations/loss") ?? all[0];
  const shownCurves = (s) => {
    const [part, figure] = s.figure.split("/");
    return curves.filter((c) => c[part][figure]).map((c) => ({ ...c, group: keys.length ? valueText(c.grid[s.key]) : c.name,
      points: c[part].step.map((x, i) => ({ x, y: c[part][figure][i] })).filter((p) => p.y !== null) }));
  };
  addFigure(parent, {
    id: "curves", title: "Learning curves",
    controls: [{ name: "figure", label: "Figure", options: all, value: preferred.value },
      ...(keys.length ? [{ name: "key", label: "Coloured by", options: options(keys, keyLabel), value: keys.includes("model.heads") ? "model.heads" : keys[0] }] : [])],
    caption: (s) => (s.figure.startsWith("updates") ? "Means over neighbouring updates." : "At each validation.") + (keys.length ? ` A line for each cell; polyhead report ${report.data.folder}/cells/ID shows one by itself.` : ""),
    draw: (host, s, width) => {
      const own = shownCurves(s), ordered = keys.length ? [...own].sort((a, b) => byNumber(a.grid[s.key], b.grid[s.key])) : own, groups = unique(ordered.map((c) => c.group));
      const color = (group) => (keys.length ? orderColor(groups.indexOf(group), groups.length) : seriesColor(0));
      const dash = (group) => (groups.length > 1 ? dashes[groups.indexOf(group) % dashes.length] : "none");
      lineChart(host, {
        width, xLabel: "update", yLabel: words(s.figure.split("/")[1]), markers: own.length === 1 && own[0].points.length < 60,
        series: own.map((c) => ({ name: c.name, color: color(c.group), dash: dash(c.group), symbol: 0, points: c.points })),
        legend: groups.map((group) => ({ name: keys.length ? `${keyLabel(s.key)} ${group}` : group, color: color(group), dash: dash(group) })),
      });
    },
    table: (s) => ({ columns: ["run", "step", s.figure.split("/")[1]], rows: shownCurves(s).flatMap((c) => c.points.map((p) => [c.name, p.x, p.y])) }),
  });
}

"use strict";
// The attention viewer: the weights of chosen heads over a sentence pair, as lines between two columns of tokens or as a
// matrix a head, with what is known about the sentences over them.

const kindNames = { encoder: "encoder self-attention", decoder: "decoder self-attention", cross: "cross-attention" };

/// The maps of a sentence from its bytes, weight = byte / 255: maps(kind, layer, head) -> (query, key) -> weight.
function unpackMaps(attention, sentence) {
  const bytes = Uint8Array.from(atob(sentence.weights), (c) => c.charCodeAt(0));
  const source = sentence.source.length, target = sentence.input.length;
  const sizes = { encoder: [source, source], decoder: [target, target], cross: [target, source] };
  const begins = new Map();
  let begin = 0;
  for (const { kind, heads } of attention.kinds)
    heads.forEach((count, layer) => {
      for (let head = 0; head < count; ++head) {
        begins.set(`${kind} ${layer} ${head}`, begin);
        begin += sizes[kind][0] * sizes[kind][1];
      }
    });
  return (kind, layer, head) => {
    const first = begins.get(`${kind} ${layer} ${head}`), keys = sizes[kind][1];
    return (query, key) => bytes[first + query * keys + key] / 255;
  };
}

function addAttentionViewer(parent, attention) {
  const { sentences } = attention;
  const headsOf = (state) => attention.kinds.find((k) => k.kind === state.kind).heads;
  const relationsOf = (state) => Object.keys(attention.relations).filter((name) =>
    attention.relations[name] === state.kind && (sentences[state.sentence].gold[name] ?? []).length > 0);
  const view = (state) => {
    const sentence = sentences[state.sentence], maps = unpackMaps(attention, sentence);
    const predicting = sentence.input.map((token, i) => `${token} → ${sentence.output[i]}`);
    return {
      queries: state.kind === "encoder" ? sentence.source : predicting,
      keys: state.kind === "decoder" ? sentence.input : sentence.source,
      heads: state.heads.map((head) => ({ head, color: seriesColor(head), weight: maps(state.kind, state.layer, head) })),
      gold: state.gold === "none" ? [] : sentence.gold[state.gold],
    };
  };
  const preview = (tokens) => (tokens.length > 12 ? [...tokens.slice(0, 11), "…"] : tokens).join(" ");
  const controls = [
    { name: "sentence", label: "Sentence", options: sentences.map((s, i) => ({ value: i, label: `${i + 1}: ${preview(s.source.slice(0, -1))}` })) },
    { name: "kind", label: "Attention", options: attention.kinds.map(({ kind }) => ({ value: kind, label: kindNames[kind] })) },
    { name: "layer", label: "Layer", options: (s) => headsOf(s).map((n, layer) => ({ value: layer, label: `${layer} (${n} heads)` })) },
    { name: "view", label: "View", options: [{ value: "lines", label: "lines" }, { value: "matrix", label: "matrix" }] },
    { name: "gold", label: "Overlay", follow: true, options: (s) => [...relationsOf(s).map((name) => ({ value: name, label: "gold: " + name.replaceAll("_", " ") })), { value: "none", label: "none" }] },
    { name: "threshold", label: "Smallest weight shown", kind: "range", max: 0.5, step: 0.01, value: 0.1 },
    { name: "heads", label: "Heads", kind: "choices", value: d3.range(Math.min(4, Math.max(...attention.kinds.flatMap((k) => k.heads)))),
      options: (s) => d3.range(headsOf(s)[s.layer]).map((head) => ({ value: head, label: String(head), color: seriesColor(head) })) },
  ];
  addFigure(parent, {
    id: "attention", title: "Attention weights, head by head", controls, wide: true,
    caption: (state) => `Weights of ${kindNames[state.kind]} from queries (left) to keys (right), the given target as the decoder's input; ` +
      "“a → b” is the position that has a as its input and predicts b. " +
      (state.view === "lines" ? "A line is as thick as its weight; point at a token, or move with the arrow keys, to see its lines alone, and click or press Enter to keep them (Escape lets go). " : "") +
      (state.gold === "none" ? "" : `${state.view === "lines" ? "Dotted lines" : "Outlined cells"}: ${state.gold.replaceAll("_", " ")}, as the data's annotation has it.`),
    draw: (host, state, width) => (state.view === "lines" ? drawLines : drawMatrices)(host, view(state), state, width),
    table: (state) => attentionTable(view(state), state),
  });
}

function attentionTable({ queries, keys, heads, gold }, state) {
  const known = new Set(gold.map(([query, key]) => `${query} ${key}`));
  const rows = heads.flatMap(({ head, weight }) => queries.flatMap((queryToken, query) => keys.flatMap((keyToken, key) =>
    weight(query, key) >= Math.max(state.threshold, 0.5 / 255)
      ? [[head, query, queryToken, key, keyToken, Math.round(weight(query, key) * 1000) / 1000, known.has(`${query} ${key}`) ? "gold" : ""]] : [])));
  return { columns: ["head", "query", "query token", "key", "key token", "weight", "annotation"], rows };
}

function drawLines(host, { queries, keys, heads, gold }, state, width) {
  const row = 20, longest = (tokens) => Math.max(...tokens.map((t) => textWidth(t))) + 16;
  const left = longest(queries) + 10, wide = Math.min(560, Math.max(width - 20, left + longest(keys) + 240));
  const right = wide - longest(keys) - 44;
  const svg = picture(host, wide, Math.max(queries.length, keys.length) * row + 34);
  svg.append("text").attr("class", "label").attr("x", left - 8).attr("y", 14).attr("text-anchor", "end").text("query");
  svg.append("text").attr("class", "label").attr("x", right + 8).attr("y", 14).text("key");
  const y = (i) => 22 + (i + 0.5) * row;
  const curve = (query, key) => `M${left},${y(query)}C${(left * 2 + right) / 3},${y(query)} ${(left + right * 2) / 3},${y(key)} ${right},${y(key)}`;
  const links = svg.append("g");
  heads.forEach(({ head, color, weight }, i) => {
    const shift = (i - (heads.length - 1) / 2) * Math.min(2.5, 12 / heads.length);
    for (let query = 0; query < queries.length; ++query) for (let key = 0; key < keys.length; ++key) {
      const w = weight(query, key);
      if (w === 0 || w < state.threshold) continue;
      links.append("path").attr("class", "link weight").datum({ query, key }).attr("d", curve(query, key)).attr("transform", `translate(0,${shift})`)
        .style("stroke", color).attr("stroke-width", 0.5 + 6 * w).attr("stroke-opacity", 0.35 + 0.55 * w)
        .append("title").text(`head ${head}: ${queries[query]} – ${keys[key]}: ${w.toFixed(3)}`);
    }
  });
  for (const [query, key, label] of gold)
    links.append("path").attr("class", "link gold").datum({ query, key }).attr("d", curve(query, key))
      .append("title").text(`${label || "gold"}: ${queries[query]} – ${keys[key]}`);

  const mean = (query, key) => d3.mean(heads, ({ weight }) => weight(query, key)) ?? 0;
  const shownWeights = svg.append("g");
  let kept = null;
  const highlight = (chosen) => {
    links.selectAll("path").style("display", (d) => (!chosen || d[chosen.side] === chosen.index ? null : "none"));
    svg.selectAll(".token").classed("chosen", function () { return chosen && this.dataset.side === chosen.side && Number(this.dataset.index) === chosen.index; });
    shownWeights.selectAll("*").remove();
    if (!chosen || heads.length === 0) return;
    const others = chosen.side === "query" ? keys : queries;
    others.forEach((_, i) => {
      const w = chosen.side === "query" ? mean(chosen.index, i) : mean(i, chosen.index);
      if (w < 0.005) return;
      shownWeights.append("text").attr("class", "label").attr("x", chosen.side === "query" ? wide - 4 : 0).attr("y", y(i)).attr("dy", "0.35em")
        .attr("text-anchor", chosen.side === "query" ? "end" : "start").style("font-size", "10px").text(w.toFixed(2));
    });
  };
  const column = (tokens, side) => tokens.map((token, index) => {
    const start = side === "query" ? 28 : right + 4, span = side === "query" ? left - 30 : longest(keys);
    const group = svg.append("g").attr("class", "token").attr("data-side", side).attr("data-index", index)
      .attr("tabindex", index === 0 ? 0 : -1).attr("role", "button").attr("aria-label", `${side} ${index}: ${token}`);
    group.append("rect").attr("x", start).attr("y", y(index) - row / 2 + 1).attr("width", Math.max(8, span)).attr("height", row - 2).attr("rx", 3);
    group.append("text").attr("x", side === "query" ? left - 8 : right + 8).attr("y", y(index)).attr("dy", "0.35em")
      .attr("text-anchor", side === "query" ? "end" : "start").text(token);
    const me = { side, index };
    group.on("mouseenter", () => highlight(me)).on("mouseleave", () => highlight(kept)).on("focus", () => highlight(me)).on("blur", () => highlight(kept))
      .on("click", () => { kept = kept && kept.side === side && kept.index === index ? null : me; highlight(kept); })
      .on("keydown", () => pressed(d3.event, me));
    return group.node();
  });
  const nodes = { query: column(queries, "query"), key: column(keys, "key") };
  const pressed = (event, { side, index }) => {
    const last = nodes[side].length - 1, other = side === "query" ? "key" : "query";
    const target = { ArrowDown: [side, Math.min(last, index + 1)], ArrowUp: [side, Math.max(0, index - 1)], Home: [side, 0], End: [side, last],
      ArrowRight: ["key", side === "key" ? index : Math.min(index, nodes.key.length - 1)], ArrowLeft: ["query", side === "query" ? index : Math.min(index, nodes[other].length - 1)] }[event.key];
    if (target) nodes[target[0]][target[1]].focus();
    else if (event.key === "Enter" || event.key === " ") { kept = { side, index }; highlight(kept); }
    else if (event.key === "Escape") { kept = null; highlight(null); }
    else return;
    event.preventDefault();
  };
}

function drawMatrices(host, { queries, keys, heads, gold }, state, width) {
  const cell = Math.max(11, Math.min(20, Math.floor(520 / Math.max(queries.length, keys.length)))), size = Math.min(12, cell - 1);
  const left = Math.max(...queries.map((t) => textWidth(t, size))) + 12, top = Math.max(...keys.map((t) => textWidth(t, size))) + 34;
  const across = left + keys.length * cell + 24, down = top + queries.length * cell + 16;
  const columns = Math.max(1, Math.min(heads.length, Math.floor(width / across)));
  const scale = { kind: "sequential", domain: [0, 1], color: d3.interpolateCividis };
  const rows = Math.ceil(Math.max(1, heads.length) / columns);
  const svg = picture(host, Math.max(columns * across, 420), rows * down + 56);
  heads.forEach(({ head, weight }, i) => {
    const panel = svg.append("g").attr("transform", `translate(${(i % columns) * across},${Math.floor(i / columns) * down})`);
    panel.append("text").attr("x", left).attr("y", 14).style("font-weight", 600).text(`head ${head}`);
    panel.append("rect").attr("x", left).attr("y", top).attr("width", keys.length * cell).attr("height", queries.length * cell).attr("fill", scale.color(0));
    queries.forEach((token, query) => panel.append("text").attr("x", left - 5).attr("y", top + (query + 0.5) * cell).attr("dy", "0.35em").attr("text-anchor", "end").style("font-size", `${size}px`).text(token));
    keys.forEach((token, key) => panel.append("text").attr("transform", `translate(${left + (key + 0.5) * cell},${top - 5}) rotate(-90)`).attr("dy", "0.35em").style("font-size", `${size}px`).text(token));
    queries.forEach((queryToken, query) => keys.forEach((keyToken, key) => {
      const w = weight(query, key);
      if (w === 0 || w < state.threshold) return;
      panel.append("rect").attr("class", "weight").attr("x", left + key * cell).attr("y", top + query * cell).attr("width", cell).attr("height", cell)
        .attr("fill", scale.color(w)).append("title").text(`${queryToken} – ${keyToken}: ${w.toFixed(3)}`);
    }));
    for (const [query, key, label] of gold)
      panel.append("rect").attr("class", "gold").attr("x", left + key * cell + 1).attr("y", top + query * cell + 1).attr("width", cell - 2).attr("height", cell - 2)
        .style("stroke", "#ffffff").append("title").text(`${label || "gold"}: ${queries[query]} – ${keys[key]}`);
  });
  drawColorBar(svg, scale, left, rows * down + 20, "weight");
}

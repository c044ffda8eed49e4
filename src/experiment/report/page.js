"use strict";
// Which figures a page has: what its data holds.

function addMissing(parent, missing) {
  parent.append(element("ul", { class: "missing" }, ...missing.map(({ what, command }) => element("li", {}, `${what}: `, element("code", {}, command)))));
}

/// What to know before reading on.
function addNotices(data) {
  const notices = data.warnings.map((text) => element("p", { class: "warning" }, text));
  const count = data.heads?.heads?.warnings.length ?? 0;
  if (count > 0) notices.push(element("p", { class: "warning" }, element("a", { href: "#warnings" }, `${count} warning${count === 1 ? "" : "s"} about heads`)));
  document.getElementById("content").append(...notices);
}

function buildPage({ data }) {
  document.title = `${data.name}: polyhead report`;
  document.getElementById("title").textContent = data.name;
  document.getElementById("subtitle").textContent = data.facts.join(" · ");
  document.getElementById("footer").textContent = `Made by polyhead ${data.version} from ${data.folder}; the same data is in the file beside this page that ends in .json.`;
  addNotices(data);
  if (data.experiment) {
    const { experiment } = data;
    const results = section("results", "Results");
    if (experiment.points.length > 0) {
      addMetricFigure(results, experiment);
      addPhenomenaFigure(results, experiment);
    }
    addExperimentTables(results, experiment);
  }
  if (data.curves.length > 0) {
    const learning = section("learning", "Learning");
    addLearningCurves(learning, data.curves, data.experiment?.keys ?? []);
    if (!data.experiment && data.curves[0].diagnostics) addHeadsInTraining(learning, data.curves[0].diagnostics);
  }
  if (data.heads) addHeadFigures(data.heads);
  if (data.attention?.kinds.length > 0) addAttentionViewer(section("viewer", "Attention"), data.attention);
  if (data.missing.length > 0) addMissing(section("missing", "Not in this page", "What these commands write is shown here the next time that the page is made."), data.missing);
}

buildPage(report);
watchPage();

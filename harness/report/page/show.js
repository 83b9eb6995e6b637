// The page from top to bottom.

function showAll() {
  head();
  overview();
  if (Array.isArray(report.runs)) report.runs.forEach(showRun);
  crashStates();
  explored();
  mutants();
  timeLine();
  exchange();
  tensors();
  others();
  events();
  document.body.dataset.ready = 'yes';
}

// The verdict, and of each run its properties, attempts and what it was worth.

function head() {
  main.append(make('h1', { id: 'verdict', class: report.verdict }, report.verdict.toUpperCase(), ' ',
    make('span', { class: 'soft' }, `firedrill ${report.verb}`)));
  main.append(make('p', { class: 'soft' }, `version ${report.environment.version} (${report.environment.commit}), ` +
    `seed ${report.seed}, exit status ${report.exit_code}`));
  if (data.ends_early) {
    main.append(make('p', { id: 'ends-early', class: 'fail' },
      'The history ends before the run did: what follows is of the part that is there.'));
  }
  main.append(make('nav', { id: 'parts', 'aria-label': 'Parts of this page' }));
  if (report.reproduce) main.append(make('p', {}, 'reproduce ', make('code', {}, report.reproduce)));
}

function bar(parts, whole) {
  const shown = parts.filter(part => part[1] > 0);
  const line = make('div', { class: 'bar', role: 'img', 'aria-label': shown.map(([name, value]) =>
    `${name} ${percent(value / whole)}`).join(', ') });
  const key = make('p', { class: 'key' });
  for (const [name, value] of shown) {
    line.append(make('span', { style: `flex: ${value} 0 0; background: ${hues[name]}`, title:
      `${name} ${duration(value)}` }));
    key.append(make('span', {}, make('i', { style: `background: ${hues[name]}` }),
      `${name} ${percent(value / whole)}`));
  }
  return [line, key];
}

// Of several runs, what did not go as expected first; each leads to its own part.
function overview() {
  if (!Array.isArray(report.runs) || report.runs.length < 2) return;
  const part = section('runs', times(report.runs.length, 'run'));
  const place = make('div', {});
  const rows = report.runs.map((run, i) => [run, i]).sort((a, b) => a[0].met - b[0].met || a[1] - b[1]);
  const draw = () => place.replaceChildren(table(['scenario', 'verdict', 'as expected', 'why'], rows
    .filter(([run]) => chosen('runs-filter') === 'all' || !run.met)
    .map(([run, i]) => [make('a', { href: `#run-${i}` }, run.scenario), verdict(run.verdict),
      make('span', { class: run.met ? 'pass' : 'fail' }, run.met ? 'yes' : 'no'), run.reason])));
  part.append(make('p', {}, select('runs-filter', 'show', ['all', 'not as expected'], draw)), place);
  draw();
}

// What failed stands first.
function properties(run, part, suffix) {
  const order = { fail: 0, unknown: 1, pass: 2 };
  const lines = [...run.properties].sort((a, b) => order[a.verdict] - order[b.verdict]);
  const place = make('div', {});
  const id = 'properties-filter' + suffix;
  const draw = () => place.replaceChildren(table(['property', 'verdict', 'checked', 'evidence'], lines
    .filter(line => chosen(id) === 'all' || line.verdict === chosen(id))
    .map(line => [line.name, verdict(line.verdict), line.checked, line.evidence || (line.checked ? '' : 'vacuous')])));
  const counts = ['pass', 'fail', 'unknown'].map(word => [word, lines.filter(line => line.verdict === word).length])
    .filter(count => count[1] > 0).map(([word, count]) => `${count} ${word}`).join(', ');
  part.append(make('h3', {}, `Properties: ${counts || 'none were judged'}`));
  if (!lines.length) return;
  part.append(make('p', {}, select(id, 'show', ['all', 'fail', 'unknown', 'pass'], draw)), place);
  draw();
}

function worth(run, part) {
  const metrics = run.metrics;
  if (!metrics || !(metrics.wall > 0)) return;
  part.append(make('h3', {}, 'What it was worth'), make('p', {},
    `${metrics.tokens_per_second.toFixed(0)} useful tokens a second; ` +
    `${percent(metrics.ettr)} of ${duration(metrics.wall)} productive (ETTR)` +
    (metrics.estimate ? `; published estimate ${percent(metrics.estimate.ettr)}` : '')));
  part.append(...bar([['productive', metrics.productive], ['checkpoint', metrics.checkpoint],
    ...Object.entries(metrics.lost), ['start', metrics.start], ['other', metrics.other]], metrics.wall));
}

function showRun(run, index) {
  const part = section(`run-${index}`, `${run.scenario} (${run.world}, ${run.layout})`);
  const { planned, fired } = run.faults;
  part.append(make('p', {}, verdict(run.verdict), run.mutant ? `, with the mutant ${run.mutant}` : '',
    run.reason ? `: ${run.reason}` : '', `; ${fired.length} of ${times(planned.length, 'planned fault')} fired, ` +
    times(run.attempts.length, 'attempt')));
  const equal = run.final_digest && run.final_digest === run.golden_digest;
  const rows = [['final digest', make('code', {}, run.final_digest || 'none: the job did not end')],
    ['golden digest', make('code', {}, run.golden_digest || 'none')], ['they are', equal ? 'equal' : 'not equal']];
  if (run.first_difference) {
    rows.push(['first difference', make('span', { class: 'fail' },
      `${run.first_difference.tensor} after step ${run.first_difference.step}`)]);
  }
  if (run.reproduce) rows.push(['reproduce', make('code', {}, run.reproduce)]);
  part.append(table(['', ''], rows));
  properties(run, part, index ? `-${index}` : '');
  if (run.attribution.length) {
    part.append(make('h3', {}, 'Who was to blame'), table(['attempt', 'what'], run.attribution.map(line =>
      [line.attempt, line.text])));
  }
  part.append(make('h3', {}, 'Attempts'), table(['attempt', 'began', 'what happened', 'ended'], run.attempts.map(line =>
    [line.attempt, line.began, make('div', {}, ...line.what.map(text => make('div', {}, text))), line.ended])));
  worth(run, part);
}

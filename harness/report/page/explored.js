// What an exploration reached and what failed in it, and which mutants were caught by what.

function coverage(part) {
  const cells = report.coverage.by_phase || [];
  const places = new Map(cells.map(cell => [`${cell.kind} ${cell.phase}`, cell]));
  if (cells.length) {
    const phases = phaseOrder.filter(phase => cells.some(cell => cell.phase === phase));
    part.append(make('h3', {}, 'Places reached, by kind of fault and phase'),
      heat('', phases, [...new Set(cells.map(cell => cell.kind))], (kind, phase) => {
        const cell = places.get(`${kind} ${phase}`);
        return cell && cell.reached / cell.of;
      }, (share, kind, phase) => `${places.get(`${kind} ${phase}`).reached}/${places.get(`${kind} ${phase}`).of}`));
  }
  const named = report.coverage.named || [];
  if (!named.length) return;
  const place = make('div', {});
  const draw = () => place.replaceChildren(table(['situation', 'came about'], named.filter(line =>
    chosen('situations-filter') === 'all' || !line.came_about).map(line => [line.situation.replaceAll('_', ' '),
    verdictOf(line.came_about)])));
  part.append(make('h3', {}, `Situations: ${named.filter(line => line.came_about).length} of ${named.length}`),
    make('p', {}, select('situations-filter', 'show', ['all', 'never'], draw)), place);
  draw();
}
const phaseOrder = ['rendezvous', 'find', 'restore', 'input', 'forward', 'backward', 'exchange', 'optimizer', 'save',
  'commit', 'validate', 'retire', 'none'];
const verdictOf = good => make('b', { class: good ? 'pass' : 'unknown' }, good ? 'yes' : 'never');

function explored() {
  if (report.trials === undefined) return;
  const part = section('coverage', 'Exploration');
  part.append(table(['', ''], [['trials', report.trials], ['a second', Math.round(report.trials_per_second)],
    ['distinct histories', report.distinct_histories], ['run twice and compared', report.doubled],
    ['faults planned', report.faults && report.faults.planned], ['faults fired', report.faults && report.faults.fired],
    ['places reached', report.coverage && `${report.coverage.places} of ${report.coverage.places_of}`]]));
  if (Array.isArray(report.failures)) {
    part.append(make('h3', {}, `Failures: ${report.failed === undefined ? report.failures.length : report.failed}`));
    if (report.failures.length) {
      part.append(table(['trial', 'verdict', 'property', 'evidence', 'reproduce'], report.failures.map(line =>
        [line.trial, verdict(line.verdict), line.property, line.evidence, make('code', {}, line.reproduce)])));
    }
  }
  if (report.coverage) coverage(part);
}

function mutantRows() {
  return [...report.survived.map(name => ({ mutant: name, fate: 'survived' })),
    ...report.killed.map(line => ({ ...line, fate: 'killed' }))];
}

function mutants() {
  if (!report.killed) return;
  const part = section('mutants', `Mutants: ${report.killed.length} killed, ${report.survived.length} survived`);
  const rows = mutantRows();
  const place = make('div', {});
  const draw = () => {
    const [fate, words] = [chosen('mutants-filter'), chosen('mutants-text').toLowerCase()];
    place.replaceChildren(table(['mutant', 'fate', 'caught by', 'expected', 'trials', 'shrunk to', 'evidence'],
      rows.filter(row => (fate === 'all' || row.fate === fate) &&
        `${row.mutant} ${row.property} ${row.evidence}`.toLowerCase().includes(words))
        .map(row => [row.mutant, make('b', { class: row.fate === 'killed' ? 'pass' : 'fail' }, row.fate), row.property,
          row.expected === row.property ? 'the same' : row.expected, row.trials, row.shrunk, row.evidence])));
  };
  const words = make('input', { id: 'mutants-text', type: 'search', placeholder: 'text', 'aria-label':
    'Text of a mutant' });
  words.addEventListener('input', draw);
  part.append(make('p', {}, select('mutants-filter', 'show', ['all', 'survived', 'killed'], draw), words), place);
  draw();
  if (report.canaries) {
    part.append(make('h3', {}, 'Canaries'), table(['canary', 'reported as', 'evidence'], report.canaries.map(line =>
      [line.canary, make('span', { class: line.reported === line.expected ? 'pass' : 'fail' }, line.reported),
        line.evidence])));
  }
}

// What a verb says in fields of its own that no other part shows: numbers and words in one table, lists of alike things
// in one table each.

const shownElsewhere = ['schema', 'verb', 'environment', 'verdict', 'exit_code', 'seed', 'duration', 'runs',
  'reproduce', 'profiles', 'trials', 'trials_per_second', 'distinct_histories', 'doubled', 'failures', 'failed',
  'coverage', 'faults', 'never_reached', 'killed', 'survived', 'canaries', 'metrics'];
// Of a crash check the fields on top are the sums of its profiles.
const sums = report.profiles ? Object.keys(report.profiles[0] || {}) : [];

const isFlat = value => value === null || typeof value !== 'object';

// Small things in words; what is larger opens on demand.
function inWords(value) {
  if (isFlat(value)) return value === true ? 'yes' : value === false ? 'no' : value;
  if (Array.isArray(value) && value.every(isFlat) && value.length < 9) return value.join(', ');
  const entries = Object.entries(value).filter(([, one]) => one !== '' && one !== null);
  if (!Array.isArray(value) && entries.every(([, one]) => isFlat(one)) && entries.length < 9) {
    return entries.map(([name, one]) => `${name.replaceAll('_', ' ')}: ${one}`).join('; ');
  }
  const lines = Array.isArray(value) ? value.map(inWords) : [];
  if (lines.length && lines.length < 9 && lines.every(isFlat)) {
    return make('div', {}, ...lines.map(line => make('div', {}, String(line))));
  }
  return make('details', {}, make('summary', {}, times(Object.keys(value).length, 'part')),
    make('pre', { class: 'mono' }, JSON.stringify(value, null, 1)));
}

function others() {
  const fields = Object.entries(report).filter(([name]) => !shownElsewhere.includes(name) && !sums.includes(name));
  const lists = fields.filter(([, value]) => Array.isArray(value) && value.length &&
    value.every(line => !isFlat(line)));
  const rest = fields.filter(field => !lists.includes(field) && !(Array.isArray(field[1]) && !field[1].length));
  for (const [name, lines] of lists) {
    const heads = [...new Set(lines.flatMap(Object.keys))];
    section(`list-${name}`, `${name.replaceAll('_', ' ')}: ${lines.length}`).append(table(heads.map(head =>
      head.replaceAll('_', ' ')), lines.map(line => heads.map(head => head === 'verdict' ? verdict(line[head]) :
      inWords(line[head])))));
  }
  if (!rest.length) return;
  section('others', 'Other figures').append(table(['', ''], rest.map(([name, value]) => [name.replaceAll('_', ' '),
    inWords(value)])));
}

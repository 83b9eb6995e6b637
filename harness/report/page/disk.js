// The disk of a crash state: for each file the operations on it in their order, and what the power loss left of each.

const letters = { create: 'C', write: 'W', sync: 'S', close: 'x', rename: 'R', remove: 'D', make_directory: 'M',
  sync_directory: 'S' };

function fateOf(state) {
  if (/torn|zeros/.test(state)) return 'torn';
  if (/lost/.test(state)) return 'lost';
  if (/durable/.test(state)) return 'durable';
  return /not looked at/.test(state) ? 'unread' : 'returned';
}

function picture(operations, only) {
  const files = new Map();
  for (const operation of operations.filter(one => one.kind)) {
    for (const path of [operation.path, operation.second].filter((name, i) => i === 0 || name)) {
      if (!files.has(path)) files.set(path, []);
      files.get(path).push(operation);
    }
  }
  const worse = list => list.some(one => ['lost', 'torn'].includes(fateOf(one.state)));
  return table(['file or directory', 'operations in their order', 'by'], [...files].sort((a, b) => a[0] < b[0] ? -1 : 1)
    .filter(([, list]) => !only || worse(list)).map(([path, list]) => [make('code', {}, path || '(the root)'),
      make('span', {}, ...list.map(one => make('span', { class: `chip ${fateOf(one.state)}`, title:
        `${one.what}: ${one.state}` }, letters[one.kind] || one.kind))),
      'rank ' + [...new Set(list.map(one => one.rank))].sort((a, b) => a - b).join(', ')]));
}

function violation(part, found, suffix) {
  part.append(make('p', { class: 'fail' }, found.message), make('h3', {}, 'The disk that the power loss left'));
  const id = 'disk-filter' + suffix;
  const place = make('div', { id: 'disk-picture' + suffix });
  const draw = () => place.replaceChildren(picture(found.operations, chosen(id) !== 'all files'));
  part.append(make('p', {}, select(id, 'show', ['all files', 'what lost something'], draw)), place,
    make('p', { class: 'key' }, ...[['durable', 'durable'], ['lost', 'lost'], ['torn', 'torn or zeros'],
      ['unread', 'never looked at'], ['returned', 'returned']].map(([kind, words]) => make('span', {},
      make('span', { class: `chip ${kind}` }, 'W'), words))),
    make('p', { class: 'soft' }, 'C create, W write, S sync, R rename, D remove, M make directory, x close'));
  draw();
  part.append(make('h3', {}, 'What the recovery read then'), table([''], found.reads.map(line => [line])));
  part.append(make('details', {}, make('summary', {},
    `All ${times(found.operations.length, 'operation')} in their order`),
    table(['operation', 'state'], found.operations.map(line => [line.what, line.state]))));
}

function crashStates() {
  (report.profiles || []).forEach((profile, i) => {
    const part = section(`profile-${profile.profile}`, `Crash states: ${profile.profile}`);
    const count = value => typeof value === 'number' ? value.toLocaleString('en') : value;
    part.append(make('p', {}, verdict(profile.violations ? 'fail' : 'pass'), `: ${profile.proof}. ` +
      `${count(profile.legal_states)} legal states, ${count(profile.covered_states)} covered, ` +
      `${count(profile.checked_states)} restored and compared by the ${profile.engine} engine`));
    if (profile.violation) violation(part, profile.violation, i ? `-${i}` : '');
  });
}

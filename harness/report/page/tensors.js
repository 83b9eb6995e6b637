// The tensors of the training state as a tree, each with the first step after which it is not the golden's.

// A tree of what stands between the dots of the names.
function treeOf(tensors) {
  const root = { parts: new Map(), all: [] };
  for (const tensor of tensors) {
    let place = root;
    place.all.push(tensor);
    for (const word of tensor[0].split(/[./]/)) {
      if (!place.parts.has(word)) place.parts.set(word, { parts: new Map(), all: [] });
      place = place.parts.get(word);
      place.all.push(tensor);
    }
  }
  return root;
}

function branch(word, node) {
  const worse = node.all.filter(tensor => tensor[1] >= 0);
  if (!node.parts.size) {
    const step = node.all[0][1];
    return make('div', { class: step < 0 ? 'leaf' : 'leaf fail' }, step < 0 ? word :
      `${word}: differs from step ${step} on`);
  }
  if (node.parts.size === 1) {
    const [[next, only]] = node.parts;
    return branch(`${word}.${next}`, only);
  }
  const first = Math.min(...worse.map(tensor => tensor[1]));
  const box = make('details', {}, make('summary', { class: worse.length ? 'fail' : '' },
    `${word}: ${times(node.all.length, 'tensor')}` + (worse.length ? `, ${worse.length} differ, first after step ` +
      first : '')));
  box.open = worse.length > 0;
  // What is closed is filled in when it is opened: a large model has thousands.
  const fill = () => {
    if (box.childElementCount === 1) box.append(...[...node.parts].map(([name, part]) => branch(name, part)));
  };
  box.addEventListener('toggle', fill);
  if (box.open) fill();
  return box;
}

function tensors() {
  if (!data.tensors || !data.tensors.length) return;
  const part = section('tensors', 'Tensors against the golden');
  const bad = data.tensors.filter(tensor => tensor[1] >= 0).sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1));
  part.append(make('p', bad.length ? { class: 'fail' } : {}, bad.length ?
    `${bad.length} of ${data.tensors.length} differ; the first is ${bad[0][0]}, after step ${bad[0][1]}` :
    `all ${data.tensors.length} are equal after every step`));
  const place = make('div', { id: 'tensors-tree' });
  const draw = () => {
    const only = chosen('tensors-filter') === 'what differs';
    const tree = treeOf(only ? bad : data.tensors);
    place.replaceChildren(...[...tree.parts].map(([word, node]) => branch(word, node)));
  };
  part.append(make('p', {}, select('tensors-filter', 'show', ['all', 'what differs'], draw)), place);
  draw();
}

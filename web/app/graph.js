// Who waits for whom: nodes, cycles and root blockers of the edges of /v1/waits. Pure functions.

/** The name of a flow, the unit that waits and holds. */
export const nodeOf = (p) => (p.session || p.agent || '') + ' ' + (p.flow || 'main');

export function nodesOf(edges) {
  const nodes = new Map();
  for (const e of edges) for (const p of [e.waiter, e.blocker]) nodes.set(nodeOf(p), p);
  return nodes;
}

/** One edge for each pair: those to holders first, since who stands ahead in a line is no cause by itself. */
export function thin(edges) {
  const held = edges.filter((e) => !e.ahead);
  const waits = new Set(held.map((e) => nodeOf(e.waiter) + '\0' + e.key));
  const pairs = new Map();
  for (const e of [...held, ...edges.filter((x) => x.ahead && !waits.has(nodeOf(x.waiter) + '\0' + x.key))]) {
    const id = nodeOf(e.waiter) + '\0' + nodeOf(e.blocker);
    const old = pairs.get(id);
    if (!old || old.waited_ms < e.waited_ms) pairs.set(id, e);
  }
  return [...pairs.values()];
}

/** The cycles: each a list of edges, one cycle for each strongly connected part. */
export function cyclesOf(edges) {
  const out = new Map();
  for (const e of edges) {
    const from = nodeOf(e.waiter);
    if (!out.has(from)) out.set(from, []);
    out.get(from).push(e);
  }
  const state = new Map(), cycles = [];
  for (const start of out.keys()) {
    if (state.has(start)) continue;
    const stack = [{ node: start, next: 0 }], trail = [];
    state.set(start, 1);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const list = out.get(top.node) || [];
      if (top.next >= list.length) {
        state.set(top.node, 2);
        stack.pop();
        trail.pop();
        continue;
      }
      const e = list[top.next++];
      const to = nodeOf(e.blocker);
      if (state.get(to) === 1) {
        const begin = stack.findIndex((s) => s.node === to);
        cycles.push([...trail.slice(begin), e]);
      } else if (!state.has(to)) {
        state.set(to, 1);
        trail.push(e);
        stack.push({ node: to, next: 0 });
      }
    }
  }
  return cycles;
}

/** The trees below root blockers: those that others wait for and that wait for none; most waiters first. */
export function trees(edges) {
  const waiting = new Set(edges.map((e) => nodeOf(e.waiter)));
  const below = new Map();
  for (const e of edges) {
    const to = nodeOf(e.blocker);
    if (!below.has(to)) below.set(to, []);
    below.get(to).push(e);
  }
  const total = (node, seen) => {
    let n = 0;
    for (const e of below.get(node) || []) {
      const from = nodeOf(e.waiter);
      if (!seen.has(from)) { seen.add(from); n += 1 + total(from, seen); }
    }
    return n;
  };
  const roots = [...below.keys()].filter((node) => !waiting.has(node));
  for (const cycle of cyclesOf(edges)) { // a circle has no root: its first member stands for it
    const node = nodeOf(cycle[0].waiter);
    if (!roots.includes(node)) roots.push(node);
  }
  return { below, roots: roots.map((node) => ({ node, total: total(node, new Set([node])) })).sort((a, b) => b.total - a.total) };
}

// Who waits for whom: nodes, cycles and root blockers of /v1/overview. Pure functions.

/** The name of a flow, the unit that waits and holds. */
export const nodeOf = (p) => (p.session || p.agent || '') + ' ' + (p.flow || 'main') + (p.task ? ' ' + p.task : '');

export function nodesOf(edges) {
  const nodes = new Map();
  for (const e of edges) for (const p of [e.waiter, e.blocker]) nodes.set(nodeOf(p), p);
  return nodes;
}

/**
 * One edge for each pair: those to holders first, since a place ahead in a line is no cause by itself, unless it is part
 * of a cycle.
 */
export function thin(edges, { cycles, nodes } = { cycles: [] }) {
  const inCycle = new Map(cycles.flatMap((cycle, i) => cycle.map((n) => [nodeOf(nodes[n]), i])));
  const closes = (e) => inCycle.has(nodeOf(e.waiter)) && inCycle.get(nodeOf(e.waiter)) === inCycle.get(nodeOf(e.blocker));
  const held = edges.filter((e) => !e.ahead || closes(e));
  const waits = new Set(held.map((e) => nodeOf(e.waiter) + '\0' + e.key));
  const pairs = new Map();
  for (const e of [...held, ...edges.filter((x) => x.ahead && !waits.has(nodeOf(x.waiter) + '\0' + x.key))]) {
    const id = nodeOf(e.waiter) + '\0' + nodeOf(e.blocker);
    const old = pairs.get(id);
    if (!old || old.waited_ms < e.waited_ms) pairs.set(id, e);
  }
  return [...pairs.values()];
}

/**
 * The cycles that the server found, as their edges: each edge between two members of a cycle, in the order of a walk
 * around it where there is one. members has the number of the cycle, from 1, of each node in one.
 */
export function cyclesOf(overview, edges) {
  const members = new Map();
  overview.cycles.forEach((cycle, i) => cycle.forEach((n) => members.set(nodeOf(overview.nodes[n]), i + 1)));
  const cycles = overview.cycles.map((cycle, i) => {
    const rest = edges.filter((e) => members.get(nodeOf(e.waiter)) === i + 1 && members.get(nodeOf(e.blocker)) === i + 1);
    const walk = [];
    for (let next = rest[0]; next;) {
      walk.push(next);
      rest.splice(rest.indexOf(next), 1);
      const to = nodeOf(next.blocker);
      next = rest.find((e) => nodeOf(e.waiter) === to) || rest[0];
    }
    return walk;
  });
  return { cycles, members };
}

/**
 * The trees below root blockers: those that others wait for and that wait for none. Those with most waiters come first,
 * and before them the cycles, which have no root: their first member stands for it.
 */
export function trees(edges, cycles) {
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
  const rank = (node) => ({ node, total: total(node, new Set([node])) });
  const roots = [...below.keys()].filter((node) => !waiting.has(node)).map(rank).sort((a, b) => b.total - a.total);
  const circles = cycles.filter((cycle) => cycle.length).map((cycle) => ({ ...rank(nodeOf(cycle[0].waiter)), cycle: true }));
  return { below, roots: [...circles, ...roots] };
}

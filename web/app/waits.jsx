// Waits: who waits for whom, as a graph and as a tree. The tree is the accessible twin of the graph.
import { h, Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { Graph, layout } from '@dagrejs/dagre';
import { useOverview } from './api.js';
import { query, refine } from './route.js';
import { AgentLink, Card, Empty, Head, KeyLink, Missing, State, Text, clip, count, plural, span } from './ui.jsx';
import { cyclesOf, nodeOf, nodesOf, thin, trees } from './graph.js';

const graphLimit = 60; // nodes; above that the tree alone
const box = { width: 148, height: 34 };

function place(edges) {
  const g = new Graph();
  g.setGraph({ rankdir: 'LR', ranksep: 190, nodesep: 30, marginx: 14, marginy: 22 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const [id, party] of nodesOf(edges)) g.setNode(id, { ...box, party });
  for (const e of edges) g.setEdge(nodeOf(e.waiter), nodeOf(e.blocker), { e });
  layout(g);
  return g;
}

function Picture({ edges, cycles, members }) {
  const shape = edges.map((e) => nodeOf(e.waiter) + nodeOf(e.blocker)).sort().join('|');
  const g = useMemo(() => place(edges), [shape]);
  const number = new Map();
  // The edges of a cycle have numbers in the order of the sentence above.
  cycles.forEach((cycle) => cycle.forEach((e, i) => number.set(nodeOf(e.waiter) + '\0' + nodeOf(e.blocker), i + 1)));
  const waiting = new Set(edges.map((e) => nodeOf(e.waiter)));
  const now = new Map(edges.map((e) => [nodeOf(e.waiter) + '\0' + nodeOf(e.blocker), e]));
  const { width, height } = g.graph();
  return (
    <div class="scroll picture" tabIndex={0} role="region" aria-label="Graph of waits, the same as the tree below">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={plural(edges.length, 'edge')}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker>
          <marker id="badarrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="bad" /></marker>
        </defs>
        {g.edges().map(({ v, w }) => {
          const id = v + '\0' + w;
          const bad = number.get(id);
          const points = g.edge(v, w).points;
          return <path class={bad ? 'edge bad' : 'edge'} marker-end={bad ? 'url(#badarrow)' : 'url(#arrow)'} d={'M' + points.map((p) => p.x.toFixed(1) + ' ' + p.y.toFixed(1)).join('L')} />;
        })}
        {g.edges().map(({ v, w }) => {
          const id = v + '\0' + w;
          const e = now.get(id);
          if (!e) return null;
          const points = g.edge(v, w).points;
          const mid = points[Math.floor(points.length / 2)];
          const bad = number.get(id);
          const text = (bad ? bad + ' · ' : '') + clip(e.key || 'declared', 16) + ' ' + span(e.waited_ms);
          const wide = text.length * 5.8 + 8;
          return (
            <g class="label">
              <title>{(e.key || e.purpose || 'declared') + ', for ' + span(e.waited_ms)}</title>
              <rect x={mid.x - wide / 2} y={mid.y - 8} width={wide} height="16" rx="3" /><text x={mid.x} y={mid.y + 4}>{text}</text>
            </g>
          );
        })}
        {g.nodes().map((id) => {
          const n = g.node(id);
          const dead = members.has(id);
          return (
            <g class={dead ? 'node dead' : waiting.has(id) ? 'node' : 'node root'}>
              <title>{n.party.agent + ' / ' + n.party.flow + (dead ? ', in a deadlock' : waiting.has(id) ? '' : ', a root blocker')}</title>
              {dead && <rect class="ring" x={n.x - box.width / 2 - 4} y={n.y - box.height / 2 - 4} width={box.width + 8} height={box.height + 8} rx="8" />}
              <rect x={n.x - box.width / 2} y={n.y - box.height / 2} width={box.width} height={box.height} rx="5" />
              <text x={n.x} y={n.party.flow && n.party.flow !== 'main' ? n.y - 2 : n.y + 4}>{clip(n.party.agent || 'without a name', 21)}</text>
              {n.party.flow && n.party.flow !== 'main' && <text class="small" x={n.x} y={n.y + 11}>{clip(n.party.flow, 24)}</text>}
              {dead && <text class="word" x={n.x} y={n.y - box.height / 2 - 8}>deadlock{cycles.length > 1 ? ' ' + members.get(id) : ''}</text>}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

const shownBelow = 8;

function Branch({ node, party, by, below, trail, members }) {
  const list = below.get(node) || [];
  const again = trail.includes(node);
  const shown = list.slice(0, shownBelow);
  return (
    <li>
      <AgentLink of={party.agent} flow={party.flow} />
      {by && <span class="quiet"> waits {span(by.waited_ms)} for </span>}
      {by && (by.key ? <KeyLink of={by.key} /> : <Text>{by.purpose || 'it'}</Text>)}
      {members.has(node) && <span class="state bad"> ■ deadlock</span>}
      {again ? <span class="quiet"> (see above)</span> : list.length > 0 && (
        <ul>
          {shown.map((e) => <Branch key={nodeOf(e.waiter)} node={nodeOf(e.waiter)} party={e.waiter} by={e} below={below} trail={[...trail, node]} members={members} />)}
          {list.length > shown.length && <li class="quiet">+{plural(list.length - shown.length, 'more waiter')}</li>}
        </ul>
      )}
    </li>
  );
}

export function Waits() {
  const waits = useOverview();
  const edges = waits.data ? thin(waits.data.edges, waits.data) : [];
  const { cycles, members } = waits.data ? cyclesOf(waits.data, edges) : { cycles: [], members: new Map() };
  const nodes = nodesOf(edges);
  const { below, roots } = trees(edges, cycles);
  const shown = new Set(edges.map((e) => nodeOf(e.waiter))).size;
  const total = Math.max(shown, waits.data ? waits.data.sums.waiters : 0); // the overview has at most 500 edges
  const tree = query.value.as === 'tree' || nodes.size > graphLimit;
  return (
    <>
      <Head title="Waits" json="/v1/overview">
        {edges.length > 0 && <span class="quiet">{plural(total, 'waiter')}{shown < total && ', the ' + count(shown) + ' oldest shown'}, {plural(roots.filter((r) => !r.cycle).length, 'root blocker')}</span>}
        {nodes.size > 0 && nodes.size <= graphLimit && (
          <button type="button" aria-pressed={tree} onClick={() => refine({ as: tree ? '' : 'tree' })}>{tree ? 'Show the graph' : 'Tree only'}</button>
        )}
      </Head>
      <Missing of={waits} />
      {waits.data && edges.length === 0 && <Empty>No agent waits. <code>interlock run KEY -- COMMAND</code> waits for a key that is held.</Empty>}
      {cycles.map((cycle, n) => (
        <p class="verdict bad"><State is={'Deadlock' + (cycles.length > 1 ? ' ' + (n + 1) : '') + ':'} kind="bad" /><span>
          {cycle.map((e, i) => <>{i > 0 && ', '}{i + 1}. <AgentLink of={e.waiter.agent} flow={e.waiter.flow} /> waits for {e.key ? <KeyLink of={e.key} /> : 'an answer'} of <AgentLink of={e.blocker.agent} flow={e.blocker.flow} /></>)}.
          {' '}It ends when one of them gives up: revoke a lease at one of the keys.
        </span></p>
      ))}
      {edges.length > 0 && !tree && <Picture edges={edges} cycles={cycles} members={members} />}
      {edges.length > 0 && (
        <Card title="Root blockers" aside={cycles.length ? 'deadlocks first, then most waiters' : 'most waiters first'} wide>
          {nodes.size > graphLimit && <p class="quiet">{plural(nodes.size, 'agent')}: too many for a graph.</p>}
          <ul class="tree">
            {roots.slice(0, 50).map((r) => (
              <Branch key={r.node} node={r.node} party={nodes.get(r.node)} below={below} trail={[]} members={members} />
            ))}
          </ul>
          {roots.length > 50 && <p class="quiet foot">{plural(roots.length - 50, 'more root blocker')}</p>}
        </Card>
      )}
    </>
  );
}

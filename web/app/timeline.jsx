// The timeline of /v1/timeline: a lane for each agent, with its waits and holds as bars, and the hand-offs between them.
// Only lanes in sight are in the page. The table of the same bars is its accessible twin.
import { h, Fragment } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { href, query } from './route.js';
import { AgentLink, KeyLink, Mono, State, Table, Text, clip, plural, span } from './ui.jsx';
import { endedBadly } from './event.js';
import { arrange, barY, clock, inSight, itemsOf, keyOfBar, kinds, markOf, ticks } from './bars.js';

const axisHeight = 24;
const alwaysLinked = 60; // hand-offs; of more only those of the chosen bar are drawn
const named = (agent) => agent || 'an agent without a name';

/** How a bar ended, or that it goes on. */
const ending = (bar) => (bar.open ? 'goes on' : (bar.outcome || '').replaceAll('_', ' '));

/** What a bar is about: its key; a wait without one is for another agent, and a task may need no key. */
const about = (bar) => { const of = keyOfBar(bar) || (bar.kind === 'wait' ? 'another agent' : ''); return of && ': ' + of; };

/** A bar in words. */
function words(bar) {
  return [
    `${named(bar.agent)} ${kinds[bar.kind] || bar.kind}${about(bar)}`,
    `from ${clock(bar.a)} for ${span(bar.b - bar.a)}`, ending(bar), bar.purpose,
  ].filter(Boolean).join(', ');
}

const label = (item) => {
  if (item.bar) return words(item.bar);
  if (item.run) return plural(item.run.length, 'bar') + ' too close to be told apart: Enter, then zoom in';
  return item.marks.map((m) => `${markOf(m.kind)[0]} at ${clock(m.t)}: ${m.text}`).join(' ');
};

function Shape({ item }) {
  const { bar, run, x, wide, y } = item;
  if (run) return <rect class="run" x={x} y={y - 6} width={wide} height="12" />;
  if (!bar) {
    const [, d, kind] = markOf(item.marks[0].kind);
    return <g class={'mark ' + kind} transform={`translate(${x.toFixed(1)} ${y})`}><rect class="touch" x="-8" y="-8" width="16" height="16" /><path d={d} /></g>;
  }
  const tall = { wait: 8, parked: 8, lock_delay: 8, grace: 10 }[bar.kind] || 14;
  const box = { x, y: y - tall / 2, width: wide, height: tall, rx: 2 };
  return (
    <>
      <rect class={'tint ' + bar.kind} {...box} /><rect class={'fill ' + bar.kind} {...box} />
      {bar.kind === 'attempt' && <path class="inner" d={`M${x} ${y + 5}h${wide}`} />}
      {!bar.open && endedBadly(bar.outcome) && <path class="cross" d={`M${x + wide - 3} ${y - 3}l6 6m0-6l-6 6`} />}
      {bar.open && wide > 9 && <path class={'open ' + bar.kind} d={`M${x + wide - 5} ${y - 4}l5 4-5 4`} />}
    </>
  );
}

/** The key and the purpose, upon a bar that has room for them. */
function On({ item: { bar, x, wide, y } }) {
  const fits = Math.floor((wide - 10) / 6);
  if (!bar || fits < 6 || (bar.kind !== 'hold' && bar.kind !== 'attempt')) return null;
  const text = [keyOfBar(bar), bar.purpose].filter(Boolean).join(' · ');
  return <svg x={x + 4} y={y - 8} width={wide - 8} height="16"><text class="on" y="12">{clip(text, Math.min(fits, 80))}</text></svg>;
}

/** A lane. It is drawn again only if it changes, and not whenever the pointer moves. */
function Lane({ lane, items, gutter, width, tab, chosen }) {
  return useMemo(() => (
    <g class="lane">
      <path class="rule" d={`M0 ${lane.y + lane.height + 0.5}H${width}`} />
      {lane.server ? <text class="name quiet" x="8" y={lane.y + 15}>server</text> : (
        <svg x="0" y={lane.y} width={gutter - 8} height="22">
          <a href={href('agents', '', { ...query.value, agent: lane.agent })} tabindex={-1}>
            <title>{lane.agent}</title>
            <text class="name" x="8" y="15"><tspan class="txt">{clip(lane.agent || 'without a name', Math.floor((gutter - 12) / 6.6))}</tspan></text>
          </a>
        </svg>
      )}
      {items.map((item) => (
        <g
          key={item.id} data-id={item.id} class={'item' + (chosen === item.id ? ' chosen' : '')} role="button" aria-label={label(item)}
          aria-pressed={chosen === item.id} tabindex={tab === item.id ? 0 : -1}
        ><Shape item={item} /></g>
      ))}
      <g class="ons" aria-hidden="true">{items.map((item) => <On key={item.id} item={item} />)}</g>
    </g>
  ), [lane, items, gutter, width, tab, chosen]);
}

function Links({ layout, place, of }) {
  const { bars, lanes } = layout;
  const one = (link, i, faint) => {
    const from = bars[link.from], to = bars[link.to];
    if (from.lane === undefined || to.lane === undefined) return null;
    // A wait was for a hold up to the end of the one that ended first.
    const t = link.kind === 'blocked_by' ? Math.min(from.b, to.b) : from.b;
    const x1 = place(t), x2 = place(link.kind === 'blocked_by' ? t : to.a);
    const y1 = barY(lanes[from.lane], from), y2 = barY(lanes[to.lane], to);
    const bend = Math.max(12, Math.min(40, Math.abs(x2 - x1)));
    return (
      <path
        key={i + link.kind} class={'link ' + link.kind + (faint ? ' faint' : '')} marker-end={faint ? undefined : 'url(#tip)'}
        d={`M${x1.toFixed(1)} ${y1}C${(x1 + bend).toFixed(1)} ${y1} ${(x2 - (link.kind === 'blocked_by' ? -bend : bend)).toFixed(1)} ${y2} ${x2.toFixed(1)} ${y2}`}
      />
    );
  };
  if (of) return of.links.map((link, i) => one(link, i, false));
  const handed = layout.handed;
  return handed.length <= alwaysLinked && handed.map((link, i) => one(link, i, true));
}

/** The tall picture with its keys: arrows move, Enter keeps a bar, W A S D zoom and move. */
function Chart({ layout, from, to, moment, zoom, chosen, choose, peek }) {
  const box = useRef(null), want = useRef(''), press = useRef(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(0);
  const [current, setCurrent] = useState('');
  const [hover, setHover] = useState('');
  const [brush, setBrush] = useState(null);
  useLayoutEffect(() => {
    const measure = () => setWidth(box.current.clientWidth);
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    measure();
    return () => watch.disconnect();
  }, []);
  const gutter = width < 560 ? 92 : 150;
  const right = width - 10;
  const place = useMemo(() => (t) => gutter + ((t - from) / (to - from)) * (right - gutter), [gutter, right, from, to]);
  const timeAt = (x) => from + ((x - gutter) / (right - gutter)) * (to - from);
  const kept = useMemo(() => new Map(), [layout, place]);
  const itemsIn = (n) => {
    if (!kept.has(n)) kept.set(n, itemsOf(layout.lanes[n], place, gutter, right));
    return kept.get(n);
  };
  const [first, last] = inSight(layout.lanes, top - 200, top + innerHeight);
  const shown = [];
  if (width > 0) for (let n = first; n < last; n++) shown.push(n);
  const find = (id) => {
    if (!id) return null;
    const one = layout.byId.get(id[0] === 'r' ? id.slice(1) : id);
    const item = one && one.lane !== undefined && itemsIn(one.lane).find((x) => x.id === id);
    return item ? { item, lane: one.lane } : null;
  };
  const inReach = current && shown.some((n) => itemsIn(n).some((x) => x.id === current));
  const begin = shown.find((n) => itemsIn(n).length > 0);
  const tab = inReach ? current : begin === undefined ? '' : itemsIn(begin)[0].id;

  const was = useRef(null);
  useLayoutEffect(() => {
    if (was.current && !chosen && (document.activeElement === document.body || document.activeElement.closest('.detail'))) want.current = current;
    was.current = chosen;
    if (!want.current) return;
    const el = box.current.querySelector(`[data-id="${want.current}"]`);
    if (el) { want.current = ''; el.focus({ preventScroll: true }); }
  });
  const pointed = hover || current;
  useEffect(() => { if (pointed && width > 0) peek(find(pointed)?.item); }, [pointed, kept]);

  const moveTo = (n, item) => {
    const lane = layout.lanes[n];
    const el = box.current;
    if (lane.y < el.scrollTop) el.scrollTop = lane.y;
    else if (lane.y + lane.height + axisHeight > el.scrollTop + el.clientHeight) el.scrollTop = lane.y + lane.height + axisHeight - el.clientHeight;
    want.current = item.id;
    setHover('');
    setTop(el.scrollTop);
    setCurrent(item.id);
  };
  const step = (dx, dy) => {
    const at = find(current || tab) || find(tab);
    if (!at) return;
    const items = itemsIn(at.lane);
    const i = items.findIndex((x) => x.id === at.item.id) + dx;
    if (dx && items[i]) { moveTo(at.lane, items[i]); return; }
    for (let n = at.lane + (dy || dx); n >= 0 && n < layout.lanes.length; n += dy || dx) {
      const others = itemsIn(n);
      if (!others.length) continue;
      const near = dx ? (dx > 0 ? others[0] : others[others.length - 1])
        : others.reduce((best, x) => (Math.abs(x.x - at.item.x) < Math.abs(best.x - at.item.x) ? x : best));
      moveTo(n, near);
      return;
    }
  };
  const key = (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) return;
    const span = to - from;
    const focus = find(current)?.item;
    const mid = focus ? timeAt(Math.min(right, Math.max(gutter, focus.x))) : (from + to) / 2;
    const doing = {
      ArrowRight: () => step(1, 0), ArrowLeft: () => step(-1, 0), ArrowDown: () => step(0, 1), ArrowUp: () => step(0, -1),
      Enter: () => focus && choose(focus), ' ': () => focus && choose(focus), Escape: () => choose(null),
      w: () => zoom(mid - (mid - from) / 2, mid + (to - mid) / 2), s: () => zoom(mid - (mid - from) * 2, mid + (to - mid) * 2),
      a: () => zoom(from - span / 4, to - span / 4), d: () => zoom(from + span / 4, to + span / 4),
    }[e.key];
    if (!doing) return;
    e.preventDefault();
    doing();
  };
  const idAt = (e) => e.target.closest('[data-id]')?.dataset.id || '';
  const inner = (e) => Math.max(gutter, Math.min(right, e.clientX - box.current.getBoundingClientRect().left));
  const down = (e) => { if (!e.button && e.pointerType === 'mouse' && inner(e) > gutter) press.current = inner(e); };
  const drag = (e) => {
    if (press.current === null) return;
    const x = inner(e);
    if (brush || Math.abs(x - press.current) > 6) {
      if (!brush) box.current.setPointerCapture(e.pointerId);
      setBrush([Math.min(x, press.current), Math.max(x, press.current)]);
    }
  };
  const up = () => {
    press.current = null;
    if (!brush) return;
    setBrush(null);
    zoom(timeAt(brush[0]), timeAt(brush[1]));
  };
  const click = (e) => {
    const id = idAt(e);
    if (id && !brush) { setCurrent(id); choose(find(id)?.item); }
  };
  const height = Math.max(layout.height, 40);
  const axis = ticks(from, to, right - gutter);
  const linked = find(hover || current || (chosen && chosen.id))?.item.bar;
  return (
    <div
      class="chart" ref={box} onScroll={(e) => setTop(e.currentTarget.scrollTop)} onKeyDown={key} onPointerDown={down} onPointerMove={drag}
      onPointerUp={up} onPointerCancel={() => { press.current = null; setBrush(null); }}
    >
      {width > 0 && (
        <>
          <svg class="axis" width={width} height={axisHeight} aria-hidden="true">
            {axis.map(([t, text]) => <text key={t} x={place(t)} y="16">{text}</text>)}
            {moment > 0 && <path class="moment" d={`M${place(moment) - 5} 14l5 9 5-9z`} />}
          </svg>
          <svg
            width={width} height={height} role="group" onClick={click} onPointerOver={(e) => setHover(idAt(e))} onPointerLeave={() => setHover('')}
            onFocusIn={(e) => setCurrent(idAt(e))}
            aria-label={`Timeline of ${plural(layout.lanes.length, 'agent')} with ${plural(layout.bars.length, 'bar')}. The arrow keys go from bar to bar, Enter keeps one. The table has the same.`}
          >
            <defs>
              <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker>
              <Patterns />
            </defs>
            <path class="ticks" d={axis.map(([t]) => `M${place(t).toFixed(1)} 0V${height}`).join('')} />
            {layout.server.marks.map((m) => <path class="takeover" d={`M${place(m.t).toFixed(1)} 0V${height}`} />)}
            {moment > 0 && <path class="moment" d={`M${place(moment).toFixed(1)} 0V${height}`} />}
            <g class="links" aria-hidden="true"><Links layout={layout} place={place} of={null} /></g>
            {shown.map((n) => {
              const items = itemsIn(n);
              return (
                <Lane
                  key={n} lane={layout.lanes[n]} items={items} gutter={gutter} width={width}
                  tab={items.some((x) => x.id === tab) ? tab : ''} chosen={chosen && items.some((x) => x.id === chosen.id) ? chosen.id : ''}
                />
              );
            })}
            {linked && <g class="links" aria-hidden="true"><Links layout={layout} place={place} of={linked} /></g>}
            {brush && <rect class="brush" x={brush[0]} y="0" width={brush[1] - brush[0]} height={height} />}
          </svg>
        </>
      )}
    </div>
  );
}

const Patterns = () => (
  <>
    <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="wait" d="M0 0V6" /></pattern>
    <pattern id="stripes" width="4" height="4" patternUnits="userSpaceOnUse"><path class="grace" d="M1 0V4" /></pattern>
    <pattern id="dots" width="5" height="5" patternUnits="userSpaceOnUse"><circle class="lock_delay" cx="2.5" cy="2.5" r="1.2" /></pattern>
  </>
);

export function Legend({ layout }) {
  const present = useMemo(() => [...new Set(layout.lanes.flatMap((l) => l.marks).map((m) => m.kind))].sort(), [layout]);
  return (
    <ul class="legend" aria-label="Legend">
      {Object.entries(kinds).map(([kind, text]) => (
        <li><svg width="30" height="16" aria-hidden="true"><Shape item={{ bar: { kind, claims: [], open: false }, x: 1, wide: 26, y: 8 }} /></svg>{text}</li>
      ))}
      <li><svg width="30" height="16" aria-hidden="true"><Shape item={{ bar: { kind: 'hold', claims: [], open: false, outcome: 'ttl' }, x: 1, wide: 22, y: 8 }} /></svg>lost or refused</li>
      <li><svg width="30" height="16" aria-hidden="true"><Shape item={{ bar: { kind: 'hold', claims: [], open: true }, x: 1, wide: 26, y: 8 }} /></svg>goes on</li>
      {present.map((kind) => (
        <li><svg width="16" height="16" aria-hidden="true"><Shape item={{ marks: [{ kind }], x: 8, y: 8 }} /></svg>{markOf(kind)[0]}</li>
      ))}
    </ul>
  );
}

/** The moment after an entry: of a key if there is one. */
const moment = (key, index) => (key ? href('keys', key, { at: index }) : href('waits', '', { at: index }));

const Others = ({ of }) => of.map((bar, i) => (
  <>{i > 0 && ', '}<AgentLink of={bar.agent} /> <span class="quiet">{clock(bar.a)}, {span(bar.b - bar.a)}</span></>
));

/** All about a bar, a mark, or bars that are too close to each other. */
function Detail({ item, layout, zoom, kept, close }) {
  const head = useRef(null);
  useEffect(() => { if (kept) head.current.focus(); }, [kept && item.id]);
  const { bar, run, marks } = item;
  const others = (kind, end) => bar.links.filter((l) => l.kind === kind && l[end] === bar.n).map((l) => layout.bars[l[end === 'from' ? 'to' : 'from']]);
  const row = (name, value) => value && <><dt>{name}</dt><dd>{value}</dd></>;
  const list = (of) => of.length > 0 && <Others of={of.slice(0, 8)} />;
  return (
    <section class="card detail" aria-label="The chosen bar" onKeyDown={(e) => { if (e.key === 'Escape') close(); }}>
      <div class="cardhead">
        <h2 tabIndex={-1} ref={head}>
          {bar ? <><Text>{named(bar.agent)}</Text> {kinds[bar.kind] || bar.kind}</> : run ? plural(run.length, 'bar') + ' too close to be told apart' : plural(marks.length, 'mark')}
        </h2>
        {kept && <button type="button" class="plain" onClick={close}>Close</button>}
      </div>
      {bar && (
        <dl class="facts">
          {row('Keys', bar.claims.length > 0 && bar.claims.slice(0, 8).map((c, i) => <>{i > 0 && ', '}<KeyLink of={c.key} /></>))}
          {row('Purpose', bar.purpose && <Text>{bar.purpose}</Text>)}
          {row('Time', <span class="num">{clock(bar.a, 3)} to {bar.open ? 'now' : clock(bar.b, 3)}, {span(bar.b - bar.a)}</span>)}
          {row('Ended', <State is={ending(bar)} kind={bar.open ? 'wait' : endedBadly(bar.outcome) ? 'bad' : 'good'} />)}
          {row('Fence', bar.fence)}
          {row('Waited for', list(others('blocked_by', 'from')))}
          {row('Kept waiting', list(others('blocked_by', 'to')))}
          {row('Handed on to', list(others('handed_on', 'from')))}
          {row('Taken over from', list(others('handed_on', 'to')))}
          {row('Trace', bar.trace_id && <Mono>{bar.trace_id}</Mono>)}
          {row('Look at', <span class="looks">
            {bar.index && keyOfBar(bar) && <a href={moment(keyOfBar(bar), bar.index)}>the key when it began</a>}
            {bar.end_index && keyOfBar(bar) && <a href={moment(keyOfBar(bar), bar.end_index)}>the key when it ended</a>}
            {bar.index && <a href={href('waits', '', { at: bar.end_index ? bar.end_index - 1 : bar.index })}>all waits {bar.end_index ? 'before it ended' : 'when it began'}</a>}
            <a href={href('agents', '', { ...query.value, agent: bar.agent })}>this agent alone</a>
          </span>)}
        </dl>
      )}
      {run && (
        <>
          <p>{Object.entries(Object.groupBy ? Object.groupBy(run, (b) => b.kind) : {}).map(([kind, of]) => plural(of.length, kind.replace('_', ' '))).join(', ')}, from {clock(run[0].a, 3)}.</p>
          <button
            type="button" onClick={() => {
              const a = run[0].a, b = Math.max(...run.map((x) => x.b)), more = Math.max(5, (b - a) / 4);
              zoom(a - more, b + more);
            }}
          >Zoom in</button>
        </>
      )}
      {marks && marks.slice(0, 20).map((m) => (
        <p><State is={markOf(m.kind)[0]} kind={['deadlock', 'refused_fence', 'dead_letter', 'barrier_broken'].includes(m.kind) ? 'bad' : 'warn'} /> <span class="num">{clock(m.t, 3)}</span> <Text of="span">{m.text}</Text>{' '}
          <span class="looks">
            {m.key && <a href={moment(m.key, m.index)}>the key then</a>}
            {/* A deadlock is broken by the entry that reports it: the one before still has it. */}
            <a href={href('waits', '', { at: Math.max(1, m.index - 1) })}>the waits just before</a>
            <a href={href('journal', '', { at: m.index })}>journal</a>
          </span>
        </p>
      ))}
    </section>
  );
}

/** The same as a table, by time. */
function Twin({ layout }) {
  const rows = useMemo(() => [
    ...layout.bars.map((bar) => ({ id: bar.id, t: bar.a, bar, agent: bar.agent, key: keyOfBar(bar), index: bar.index, purpose: bar.purpose })),
    ...layout.lanes.flatMap((l) => l.marks).map((m) => ({ id: m.id, t: m.t, mark: m, agent: m.agent, key: m.key, index: m.index, purpose: m.text })),
  ].sort((p, q) => p.t - q.t), [layout]);
  const behind = (bar) => bar.links.filter((l) => l.kind === 'blocked_by' && l.from === bar.n).map((l) => layout.bars[l.to]);
  return (
    <Table
      label="Bars and marks" rows={rows} id={(r) => r.id} more={plural(rows.length, 'row')}
      columns={[
        { head: 'From', cell: (r) => (r.index ? <a class="num" href={moment(r.key, r.index)}>{clock(r.t)}</a> : <span class="num">{clock(r.t)}</span>) },
        { head: 'Agent', cell: (r) => (r.agent || r.bar ? <AgentLink of={r.agent} flow={r.bar && r.bar.flow} /> : 'server') },
        { head: 'What', cell: (r) => (r.bar ? kinds[r.bar.kind] || r.bar.kind : markOf(r.mark.kind)[0]) },
        { head: 'Key', wide: true, cell: (r) => r.key && <KeyLink of={r.key} /> },
        { head: 'Took', right: true, cell: (r) => r.bar && span(r.bar.b - r.bar.a) },
        { head: 'Ended', cell: (r) => r.bar && <State is={ending(r.bar)} kind={r.bar.open ? 'wait' : endedBadly(r.bar.outcome) ? 'bad' : 'off'} /> },
        { head: 'Waited for', cell: (r) => r.bar && behind(r.bar).slice(0, 1).map((b) => <AgentLink of={b.agent} />) },
        { head: 'Fence', right: true, cell: (r) => r.bar && r.bar.fence },
        { head: 'Purpose', wide: true, cell: (r) => <Text>{r.purpose}</Text> },
      ]}
    />
  );
}

export function Timeline({ data, order, table, moment: looked, zoom }) {
  const layout = useMemo(() => {
    const all = arrange(data, order);
    all.handed = data.links.filter((l) => l.kind === 'handed_on');
    return all;
  }, [data, order]);
  const [chosen, choose] = useState(null);
  const [seen, peek] = useState(null);
  // The bars are others when the timeline was read again; one may be out of sight by then.
  const fresh = (item) => (item && item.bar ? layout.byId.has(item.id) && { ...item, bar: layout.byId.get(item.id) } : item);
  if (table) return <Twin layout={layout} />;
  const item = fresh(chosen || seen);
  return (
    <>
      <Legend layout={layout} />
      <Chart
        layout={layout} from={layout.from} to={layout.to} moment={looked} zoom={zoom} chosen={chosen} peek={peek}
        choose={(next) => choose(next && chosen && next.id === chosen.id ? null : next || null)}
      />
      <div class="under">
        {item ? <Detail item={item} layout={layout} zoom={zoom} kept={!!chosen} close={() => choose(null)} /> : (
          <p class="quiet foot">Point at a bar, or go there with the arrow keys, to see it with its hand-offs. Drag, or W and S, zoom; A and D move.</p>
        )}
      </div>
    </>
  );
}

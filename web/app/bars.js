// Where the bars and marks of /v1/timeline stand. Pure functions: times are ms since 1970, places are pixels.

/** The kinds of bars, with what each means; the style has a pattern for each besides its colour. */
export const kinds = {
  wait: 'waits', hold: 'holds', attempt: 'works on a task', grace: 'has to stop: grace', parked: 'is parked',
  lock_delay: 'died: the key stays closed',
};

/** The marks: a word and a shape of 10 by 10 pixels around 0. */
export const marks = {
  deadlock: ['deadlock', 'M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5', 'bad line'],
  refused_fence: ['refused fence', 'M0-5.5 5.5 0 0 5.5-5.5 0z', 'bad'],
  stale_commit: ['stale commit', 'M0-5.5 5.5 0 0 5.5-5.5 0zM-2 0 2 0', 'warn hollow'],
  refused: ['refused', 'M-4.5-4.5 4.5-4.5 4.5 4.5-4.5 4.5z', 'warn hollow'],
  yield_asked: ['asked to yield', 'M-5-4 5-4 0 5z', 'warn'],
  barrier_broken: ['barrier broken', 'M-2-5-2 5M2-5 2 5', 'bad line'],
  attempt_failed: ['attempt failed', 'M-5 4.5 5 4.5 0-5z', 'warn hollow'],
  dead_letter: ['dead letter', 'M-4.5-4.5 4.5-4.5 4.5 4.5-4.5 4.5z', 'bad'],
  approval_asked: ['question to a person', 'M0-5A5 5 0 1 1-.1-5zM0-2 0 2', 'warn hollow'],
  approval_decided: ['answer of a person', 'M-4.5 0-1.5 3.5 4.5-3.5', 'good line'],
  owner: ['a server took over', 'M-3-5-3 5M-3-5 5-2-3 1', 'off line'],
};
const other = ['mark', 'M0-4A4 4 0 1 1-.1-4z', 'off'];
export const markOf = (kind) => marks[kind] || [kind.replaceAll('_', ' '), ...other.slice(1)];

export const rowHeight = 18;
const maxRows = 5;    // of a lane; what overlaps more shares the last one
const narrow = 4;     // pixels: bars below that are drawn together
const laneGap = 4;

export const keyOfBar = (bar) => (bar.claims[0] ? bar.claims[0].key : '');

/**
 * The lanes of an answer, one for each agent, with rows so that bars of one row do not overlap. Returns {from, to, bars,
 * lanes: [{agent, y, height, rows: [[bar]], marks}], server, byId, height}: bars as in the answer, with n, id, a, b, lane,
 * row and links; server is the lane of the whole server, the first if it has marks.
 */
export function arrange(data, order) {
  const from = Date.parse(data.since), to = Math.max(Date.parse(data.until), from + 1);
  // The ids stay the same when the answer is read again, so that the focus stays, too.
  const seen = new Map();
  const stable = (id) => {
    seen.set(id, (seen.get(id) || 0) + 1);
    return id + '-' + seen.get(id);
  };
  // The purpose of an attempt is that of its task.
  const purposes = new Map((data.tasks || []).map((t) => [t.task, t.purpose || t.queue]));
  const bars = data.bars.map((bar, n) => ({
    ...bar, n, purpose: bar.purpose || purposes.get(bar.task) || bar.queue, id: stable('b-' + bar.kind + '-' + (bar.index || Date.parse(bar.from))), a: Date.parse(bar.from),
    b: bar.to ? Date.parse(bar.to) : to, open: !bar.to, links: [],
  }));
  for (const link of data.links) {
    bars[link.from].links.push(link);
    bars[link.to].links.push(link);
  }
  const empty = (agent) => ({ agent, rows: [], ends: [], fences: new Map(), marks: [], waited: 0 });
  const byAgent = new Map(data.lanes.map((agent) => [agent, empty(agent)]));
  const laneOf = (agent) => {
    if (!byAgent.has(agent)) byAgent.set(agent, empty(agent));
    return byAgent.get(agent);
  };
  for (const bar of [...bars].sort((x, y) => x.a - y.a || (x.kind === 'grace') - (y.kind === 'grace') || x.n - y.n)) {
    const lane = laneOf(bar.agent);
    // The grace of a hold is a part of it, and is drawn upon it.
    let row = bar.kind === 'grace' && lane.fences.has(bar.fence) ? lane.fences.get(bar.fence) : lane.ends.findIndex((end) => end <= bar.a);
    if (row < 0) row = Math.min(lane.rows.length, maxRows - 1);
    if (!lane.rows[row]) { lane.rows[row] = []; lane.ends[row] = 0; }
    lane.rows[row].push(bar);
    lane.ends[row] = Math.max(lane.ends[row], bar.b);
    if (bar.fence) lane.fences.set(bar.fence, row);
    if (bar.kind === 'wait') lane.waited += Math.min(bar.b, to) - Math.max(bar.a, from);
    bar.row = row;
  }
  const server = { ...empty(''), server: true };
  for (const m of data.marks) {
    const mark = { ...m, id: stable('m-' + m.index), t: Date.parse(m.time) };
    (m.kind === 'owner' ? server : laneOf(m.agent)).marks.push(mark);
  }
  // The lane of an agent without a name is there only if it has something.
  const lanes = [...byAgent.values()].filter((lane) => lane.rows.length || lane.marks.length);
  if (order === 'waited') lanes.sort((x, y) => y.waited - x.waited);
  if (order === 'name') lanes.sort((x, y) => (x.agent < y.agent ? -1 : 1));
  if (server.marks.length) lanes.unshift(server);
  const byId = new Map(bars.map((bar) => [bar.id, bar]));
  let y = 0;
  lanes.forEach((lane, i) => {
    lane.y = y;
    lane.height = Math.max(1, lane.rows.length) * rowHeight + laneGap;
    y += lane.height;
    for (const row of lane.rows) for (const bar of row) bar.lane = i;
    for (const mark of lane.marks) { mark.lane = i; byId.set(mark.id, mark); }
  });
  return { from, to, bars, lanes, server, byId, height: y };
}

/** The lanes between two heights, as [first, behind the last]. */
export function inSight(lanes, top, bottom) {
  let low = 0, high = lanes.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (lanes[mid].y + lanes[mid].height < top) low = mid + 1;
    else high = mid;
  }
  let last = low;
  while (last < lanes.length && lanes[last].y <= bottom) last++;
  return [low, last];
}

export const barY = (lane, bar) => lane.y + laneGap / 2 + bar.row * rowHeight + rowHeight / 2;

/**
 * What is drawn in a lane, by time: {id, x, wide, y, bar}, {id, x, wide, y, run: [bar]} for bars that are too narrow to be
 * told apart, {id, x, y, marks: [mark]}. place turns a time into pixels.
 */
export function itemsOf(lane, place, left, right) {
  const items = [];
  lane.rows.forEach((row) => {
    let run = null;
    for (const bar of row) {
      const x = Math.max(left, place(bar.a)), end = Math.min(right, place(bar.b));
      if (end < left || x > right) continue;
      const y = barY(lane, bar);
      if (end - x >= narrow || bar.kind === 'grace') {
        run = null;
        items.push({ id: bar.id, x, wide: Math.max(3, end - x), y, bar });
      } else if (run && x - (run.x + run.wide) <= 2) {
        if (!run.run) { run.run = [run.bar]; run.id = 'r' + run.bar.id; delete run.bar; }
        run.run.push(bar);
        run.wide = Math.max(run.wide, x + 3 - run.x);
      } else {
        run = { id: bar.id, x: Math.min(x, right - 3), wide: 3, y, bar };
        items.push(run);
      }
    }
  });
  let last = null;
  for (const mark of lane.marks) {
    const x = place(mark.t);
    if (x < left || x > right) continue;
    if (last && x - last.x < 9) last.marks.push(mark);
    else items.push(last = { id: mark.id, x, wide: 0, y: lane.y + laneGap / 2 + rowHeight / 2, marks: [mark] });
  }
  return items.sort((p, q) => p.x - q.x || p.y - q.y);
}

const second = 1000, minute = 60 * second, hour = 60 * minute;
const steps = [
  0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
].map((s) => s * second);

/** The times of the axis, at least 90 pixels apart, with their texts. */
export function ticks(from, to, wide) {
  const step = steps.find((s) => ((to - from) / s) * 90 <= wide) || 7 * 24 * hour;
  const zone = new Date(from).getTimezoneOffset() * minute;
  const list = [];
  for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to && list.length < 100; t += step) {
    list.push([t, clock(t, step < second ? 3 : step < minute ? 2 : 1)]);
  }
  return list;
}

/** A time of the day; parts is 1 for minutes, 2 for seconds, 3 for milliseconds. */
export function clock(t, parts = 2) {
  const d = new Date(t);
  const two = (n) => String(n).padStart(2, '0');
  return two(d.getHours()) + ':' + two(d.getMinutes()) + (parts > 1 ? ':' + two(d.getSeconds()) : '') +
    (parts > 2 ? '.' + String(d.getMilliseconds()).padStart(3, '0') : '');
}

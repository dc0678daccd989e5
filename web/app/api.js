// The data of the page: reading calls of the public API, one stream of events for all tabs, and calls that change
// something. Nothing here is private to the page: each path is one of /openapi.json, but for the
// session of a browser.
import { batch, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { at, namespace } from './route.js';

/** The caller: {needed, name, roles}; null until it is known. */
export const caller = signal(null);
/** How the stream is: '' (not yet), 'live', 'lost'. */
export const live = signal('');
/** The index of the newest event that was seen; a view reads again when it moves. */
export const tick = signal(0);
/** The newest events that came by the stream, newest first. */
export const fresh = signal([]);
/** A quiet notice, and the number of notices so far. */
export const notice = signal('');

const keptEvents = 300;
const mostMissed = 3000; // entries that are read again after the stream was away

/** An answer that is not 2xx, in the words of the server. */
export class Refusal extends Error {
  constructor(status, body) {
    super(body.detail || body.title || 'status ' + status);
    this.status = status;
    this.code = body.code || '';
    /** The next step, as the server advises it. */
    this.next = (body.advice && body.advice.message) || '';
  }
}

// The key of the login. A cookie reaches every port of a host, and this storage only pages of this origin: the cookie
// opens nothing without the key. Without a login the header has any value.
const loginKey = 'login';
const key = () => localStorage.getItem(loginKey) || '1';

function keepKey(value) {
  if (value) localStorage.setItem(loginKey, value);
  else localStorage.removeItem(loginKey);
}

function headers(extra) {
  const h = { 'Interlock-Dashboard': key(), ...extra };
  if (namespace.value) h['Interlock-Namespace'] = tenant();
  return h;
}

// The namespace of a header. One that no server can have, and no header, is '/': the server tells what is wrong.
const tenant = () => (/^[\x21-\x7e]+$/.test(namespace.value) ? namespace.value : '/');

/** Sends a request. A refusal of an earlier login does not end the present one. */
async function send(path, extra, init) {
  const sent = key();
  const response = await fetch(path, { ...init, headers: headers(extra) });
  if (response.status === 401 && sent === key()) caller.value = { needed: true };
  return response;
}

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, body);
  return body;
}

/** Where the JSON of a path is: of the present, or of the moment that the page looks at. The journal and differences have no past. */
export function twin(path, index) {
  return index && !/^.v1.(events|timeline|report|differences)/.test(path) ? '/v1/at?index=' + index + '&path=' + encodeURIComponent(path) : path;
}

const answerOf = async (path, index) => answer(await send(twin(path, index)));

/** Opens the JSON of a path in a tab of its own: a link would go without the key of the login. */
export async function openJSON(path) {
  const response = await send(path);
  const url = URL.createObjectURL(new Blob([await response.text()], { type: 'application/json' }));
  open(url, '_blank', 'noopener');
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/** The call of a path as a command of a shell, in which nothing of an address is more than a word. */
export function curl(path) {
  const word = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  return 'curl -s ' + word(new URL(path, location.origin).href) + ' -H "Authorization: Bearer $INTERLOCK_CREDENTIAL"' +
    (namespace.value ? ' -H ' + word('Interlock-Namespace: ' + tenant()) : '');
}

/** Reads a path as JSON. */
export async function get(path, index = 0) {
  const body = await answerOf(path, index);
  return index ? body.answer : body;
}

/** Reads a path that answers with one JSON object a line. */
export async function lines(path) {
  const response = await send(path, { Accept: 'application/x-ndjson' });
  if (!response.ok) return answer(response);
  return (await response.text()).split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

/** Changes something. A repetition under the same key counts once. */
export async function change(method, path, body, key) {
  const extra = { 'Content-Type': 'application/json' };
  if (key) extra['Idempotency-Key'] = key;
  return answer(await send(path, extra, { method, body: JSON.stringify(body || {}) }));
}

/**
 * Follows what a path answers: again when an event came, at most once a second, and at least each `every` ms.
 * Returns {data, error}; the data before an error stays.
 */
export function useGet(path, every = 15000) {
  const [state, set] = useState({ path: '', data: null, error: null });
  const index = at.value;
  useEffect(() => {
    if (!path) return undefined;
    let gone = false, running = false, again = false, timer = 0, last = 0;
    const read = async () => {
      if (running) { again = true; return; }
      running = true;
      last = performance.now();
      try {
        const data = await get(path, index);
        if (!gone) set({ path, data, error: null });
      } catch (error) {
        if (!gone) set((old) => ({ path, data: old.path === path ? old.data : null, error }));
      }
      running = false;
      if (again && !gone) { again = false; soon(); }
    };
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(read, Math.max(0, 1000 - (performance.now() - last)));
    };
    read();
    if (index) return () => { gone = true; };
    let first = true;
    const stop = tick.subscribe(() => { if (first) first = false; else soon(); });
    const pace = setInterval(soon, every);
    return () => { gone = true; stop(); clearTimeout(timer); clearInterval(pace); };
  }, [path, index, namespace.value]);
  return state.path === path ? state : { data: null, error: null };
}

/** The time of an entry of the journal in ms; 0 until it is known. */
export function useTimeOf(index) {
  const [time, set] = useState([0, 0]);
  useEffect(() => {
    let gone = false;
    if (index) answerOf('/v1/namespace', index).then((past) => { if (!gone) set([index, Date.parse(past.time) || 0]); }, () => {});
    return () => { gone = true; };
  }, [index, namespace.value]);
  return time[0] === index ? time[1] : 0;
}

/** Reads a path again and again: slowly, since it costs the server more than others. The old answer stays until then. */
export function useSlow(path, pace) {
  const [state, set] = useState({ data: null, error: null, busy: false });
  useEffect(() => {
    if (!path) return undefined;
    let gone = false, timer = 0;
    const read = async () => {
      set((old) => ({ ...old, busy: true }));
      try {
        const data = await get(path);
        if (!gone) set({ data, error: null, busy: false });
      } catch (error) {
        if (!gone) set((old) => ({ data: old.data, error, busy: false }));
      }
      if (pace && !gone) timer = setTimeout(read, pace);
    };
    read();
    return () => { gone = true; clearTimeout(timer); };
  }, [path, pace, namespace.value]);
  return state;
}

const channel = 'BroadcastChannel' in self ? new BroadcastChannel('interlock-events') : null;

let leading = false; // this tab reads the stream

/** Whose data this tab shows; '' without a login. Messages about that of others are not for it. */
const whose = () => {
  const c = caller.value;
  return c && !c.needed ? [c.namespace, c.name, namespace.value].join('\n') : '';
};

function receive(message) {
  if (!whose() || message.whose !== whose()) return;
  if (message.hello) { // a new tab asks how the stream is
    if (leading && live.value) tell({ live: live.value, index: tick.value });
    return;
  }
  batch(() => {
    if (message.live && message.live !== live.value) {
      if (message.live === 'lost') notice.value = 'The connection broke off. Trying again.';
      else if (live.value === 'lost') notice.value = 'Connected again.';
      live.value = message.live;
    }
    if (message.event) fresh.value = [message.event, ...fresh.value].slice(0, keptEvents);
    if (message.index) tick.value = message.index;
  });
}

function tell(message) {
  message.whose = whose();
  receive(message);
  channel?.postMessage(message);
}

/** Asks the tab that reads the stream how it is. */
function hello() {
  if (!leading) channel?.postMessage({ hello: true, whose: whose() });
}

/** Keeps one stream of events for all tabs: the tab that has the lock reads it and tells the others. */
export function follow() {
  if (channel) channel.onmessage = (e) => receive(e.data);
  // Another tab has logged in or out. A message of the channel can come before this tab sees the new key.
  addEventListener('storage', (e) => { if (!e.key || e.key === loginKey) recognise().catch(() => {}); });
  hello();
  const lead = () => stream();
  if (navigator.locks) navigator.locks.request('interlock-events ' + namespace.value, lead);
  else lead();
  return lead;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function stream() {
  leading = true;
  let trimmed = false;
  for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
    let from = trimmed ? 0 : tick.peek(); // what this tab or another one has read
    const mine = whose();
    const other = new AbortController(); // aborted when the caller is another one
    const stop = caller.subscribe(() => { if (whose() !== mine) other.abort(); });
    try {
      if (!mine) throw new Error('no credential');
      const status = await get('/v1/status');
      const newest = Number(status.at.index);
      if (!from || from > newest || newest - from > mostMissed) from = newest;
      tell({ live: 'live', index: from });
      await read('/v1/events?from=' + (from + 1), (event) => {
        if (!event.index) return;
        from = Number(event.index);
        tell({ live: 'live', event, index: from });
      }, other.signal);
      wait = 500;
      trimmed = false;
    } catch (error) {
      trimmed = error.status === 410;
      tell({ live: 'lost' });
    }
    if (other.signal.aborted) wait = 250;
    else await Promise.race([pause(wait), new Promise((done) => other.signal.addEventListener('abort', done))]);
    stop();
  }
}

// EventSource cannot send headers, so the stream is read by hand.
async function read(path, each, signal) {
  const response = await send(path, { Accept: 'text/event-stream' }, { signal });
  if (!response.ok) await answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    for (const line of parts) {
      if (!line.startsWith('data: ')) continue;
      each(JSON.parse(line.slice(6)));
    }
  }
}

/**
 * Follows the overview of the namespace, which the server makes once for all its viewers. Returns {data, error};
 * edges have the parties that they name by number.
 */
export function useOverview() {
  const [state, set] = useState({ data: null, error: null });
  const index = at.value;
  useEffect(() => {
    const gone = new AbortController();
    const show = (data) => {
      if (!data.nodes || gone.signal.aborted) return;
      const none = { agent: '', session: '', flow: '' };
      const edges = data.edges.map((e) => ({ ...e, waiter: data.nodes[e.from], blocker: data.nodes[e.to] || none }));
      set({ data: { ...data, edges }, error: null });
    };
    const fail = (error) => { if (!gone.signal.aborted) set((old) => ({ ...old, error: error.status ? error : old.error })); };
    const watch = async () => {
      for (let wait = 500; !gone.signal.aborted; wait = Math.min(wait * 2, 5000)) {
        try {
          await read('/v1/overview', (data) => { wait = 500; show(data); }, gone.signal);
        } catch (error) {
          fail(error);
        }
        await pause(wait);
      }
    };
    set({ data: null, error: null });
    if (index) get('/v1/overview', index).then(show, fail);
    else watch();
    return () => gone.abort();
  }, [index, namespace.value]);
  return state;
}

let before = ''; // who was recognised the last time

/** Finds out the caller: a server without credentials lets everyone do everything. */
export async function recognise() {
  const sent = key();
  try {
    const who = await get('/ui/session');
    if (sent !== key()) return; // whoever changed the key has the new caller recognised
    const now = [who.namespace, who.name].join('\n');
    batch(() => {
      if (now !== before) { fresh.value = []; tick.value = 0; live.value = ''; } // what another caller was shown
      caller.value = { needed: false, open: !who.name, ...who };
    });
    before = now;
    hello();
  } catch (error) {
    if (error.status !== 401) throw error;
  }
}

/** Logs in, or out with an empty secret, in all tabs. */
export async function login(secret) {
  if (secret) keepKey((await change('POST', '/ui/session', { secret })).key);
  else await change('DELETE', '/ui/session').finally(() => keepKey(''));
  await recognise();
}

/** Whether the caller has one of some roles. */
export function may(...roles) {
  const c = caller.value;
  return !at.value && c && !c.needed && (c.open || !c.roles || roles.some((r) => c.roles.includes(r)));
}

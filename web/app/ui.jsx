// The parts that all views share.
import { h, Fragment } from 'preact';
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal, change, curl, openJSON, twin } from './api.js';
import { at, href, namespace } from './route.js';

/** A duration in ms, as everywhere in Interlock: 2m10s. */
export function span(ms) {
  if (ms === undefined || ms === null) return '';
  if (ms < 1000) return Math.round(ms) + 'ms';
  const s = Math.floor(ms / 1000);
  if (s < 60) return (ms / 1000).toFixed(s < 10 ? 1 : 0) + 's';
  const two = (n) => String(n).padStart(2, '0');
  if (s < 3600) return Math.floor(s / 60) + 'm' + (s % 60 ? two(s % 60) + 's' : '');
  if (s < 86400) return Math.floor(s / 3600) + 'h' + (s % 3600 >= 60 ? two(Math.floor((s % 3600) / 60)) + 'm' : '');
  return Math.floor(s / 86400) + 'd' + Math.floor((s % 86400) / 3600) + 'h';
}

export const count = (n) => Number(n || 0).toLocaleString('en');
export const plural = (n, one, many = one + 's') => count(n) + ' ' + (n === 1 ? one : many);

// Characters that turn the direction of text around, and controls. The server takes them out of names and texts, but not
// out of documents.
const tricks = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const plain = (of) => (typeof of === 'string' ? of.replace(tricks, '') : of);

export const clip = (s, n) => (s.length > n ? s.slice(0, n - 1) + '…' : s);

/** Text that agents wrote: isolated, so that it cannot turn what is beside it around. */
export const Text = ({ children, of = 'bdi' }) => h(of, { class: 'txt' }, [].concat(children).map(plain));
export const Mono = ({ children }) => <bdi class="mono txt">{[].concat(children).map(plain)}</bdi>;
export const KeyLink = ({ of, text = of }) => <a class="mono txt" href={href('keys', of)}><bdi>{plain(text)}</bdi></a>;
export const AgentLink = ({ of, flow }) => (
  <a class="txt" href={href('agents', '', { agent: of })}>
    <bdi>{plain(of) || 'without a name'}</bdi>{flow && flow !== 'main' ? <span class="quiet"> / <bdi title={plain(flow)}>{clip(plain(flow), 14)}</bdi></span> : ''}
  </a>
);

const shapes = { good: '●', wait: '◷', warn: '▲', bad: '■', off: '○' };
/** A state: by its word and a shape, besides the colour. */
export const State = ({ is, kind }) => (
  <span class={'state ' + kind}><span aria-hidden="true">{shapes[kind]}</span> {is}</span>
);

const kinds = {
  held: 'good', free: 'off', waiting: 'wait', running: 'good', scheduled: 'off', asking: 'warn', dead: 'bad',
  live: 'good', soft_expired: 'warn', unknown: 'warn', stalled: 'warn', silent: 'warn', lock_delay: 'warn', grace: 'warn',
};
export const StateOf = ({ is }) => <State is={String(is).replaceAll('_', ' ')} kind={kinds[is] || 'off'} />;

export const Empty = ({ children }) => <p class="empty">{children}</p>;

/** A refusal, with the next step. */
const Refused = ({ of }) => (
  <><Text of="span">{of.message}</Text>{of.next && of.next !== of.message && <span class="next"> Next: <Text of="span">{of.next}</Text></span>}</>
);

/** What stands where data is missing: nothing for a moment, or the error with the next step. */
export function Missing({ of }) {
  if (!of.error) return of.data ? null : <p class="empty" aria-busy="true">Loading.</p>;
  const gone = !(of.error instanceof Refusal);
  return <p class="error" role="alert">{gone ? 'The server does not answer. The page tries again.' : <Refused of={of.error} />}</p>;
}

/** The head of a view, with its twin in JSON. */
export function Head({ title, json, children }) {
  useEffect(() => { document.title = title + ' · Interlock'; }, [title]);
  return (
    <header class="head">
      <h1>{title}</h1>
      {children}
      <span class="grow" />
      {json && <Twin path={json} />}
    </header>
  );
}

/** The JSON that a view shows, and the call as curl. */
export function Twin({ path }) {
  const [copied, set] = useState(false);
  const from = twin(path, at.value);
  const copy = async () => {
    await navigator.clipboard.writeText(curl(from));
    set(true);
    setTimeout(() => set(false), 2000);
  };
  return (
    <span class="twin">
      <button type="button" class="plain" onClick={() => openJSON(from)}>JSON</button>
      <button type="button" class="plain" data-copy="curl" onClick={copy}>{copied ? 'Copied' : 'Copy as curl'}</button>
    </span>
  );
}

export function Card({ title, aside, children, wide }) {
  return (
    <section class={'card' + (wide ? ' wide' : '')}>
      <div class="cardhead"><h2>{title}</h2>{aside && <span class="quiet">{aside}</span>}</div>
      {children}
    </section>
  );
}

const rowHeight = 32;
const windowed = 60; // rows from which on only those in sight are in the page

// The whole of a text that is cut.
const whole = (e) => {
  const cell = e.target.closest('td');
  if (cell) cell.title = cell.scrollWidth > cell.clientWidth ? cell.textContent : '';
};

/**
 * A table. columns: [{head, cell(row), right, wide}]; a row with `to` opens by a click or Enter. Long ones are virtual:
 * they have a height of their own, and only rows in sight are in the page.
 */
export function Table({ label, columns, rows, to, id, more, onEnd }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const virtual = rows.length > windowed;
  const first = virtual ? Math.max(0, Math.floor(top / rowHeight) - 10) : 0;
  const last = virtual ? Math.min(rows.length, first + windowed) : rows.length;
  const scroll = (e) => {
    const el = e.currentTarget;
    setTop(el.scrollTop);
    if (onEnd && el.scrollTop + el.clientHeight > el.scrollHeight - 400) onEnd();
  };
  return (
    <>
      <div
        class={'scroll' + (virtual ? ' virtual' : '')} ref={box} onScroll={virtual ? scroll : undefined} tabIndex={0}
        role="region" aria-label={label}
      >
        <table class={columns.filter((c) => c.wide).length === 1 ? 'solo' : ''} aria-rowcount={rows.length + 1} onPointerOver={whole}>
          <thead><tr>{columns.map((c) => <th scope="col" class={c.right ? 'right' : ''}>{c.head}</th>)}</tr></thead>
          <tbody>
            {first > 0 && <tr class="gap" aria-hidden="true"><td colSpan={columns.length} height={first * rowHeight} /></tr>}
            {rows.slice(first, last).map((row, i) => (
              <tr key={id(row)} aria-rowindex={first + i + 2} data-to={to && to(row)}>
                {columns.map((c) => <td class={(c.right ? 'right ' : '') + (c.wide ? 'widecell' : '')}>{c.cell(row)}</td>)}
              </tr>
            ))}
            {last < rows.length && (
              <tr class="gap" aria-hidden="true"><td colSpan={columns.length} height={(rows.length - last) * rowHeight} /></tr>
            )}
          </tbody>
        </table>
      </div>
      {more && <p class="quiet foot">{more}</p>}
    </>
  );
}

/** A bar of a share of 1. */
export const Bar = ({ of, kind = '' }) => (
  <svg class={'bar ' + kind} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect width="100" height="6" class="track" /><rect width={Math.max(0, Math.min(100, of * 100))} height="6" class="fill" />
  </svg>
);

/** The change that a dialog asks about, or null. The dialog belongs to the page: what it is about may go meanwhile. */
const asked = signal(null);

/**
 * A button that changes something. The dialog shows the consequences first, and asks for a reason, which the journal
 * keeps. send({reason, value, key}) makes the call.
 */
export const Act = ({ name, danger, ...more }) => (
  <button type="button" class={danger ? 'danger' : ''} onClick={() => { asked.value = { name, danger, ...more }; }}>{name}</button>
);

export const Asked = () => asked.value && <Question key={asked.value} of={asked.value} />;

function Question({ of }) {
  const { name, title, consequence, person, value, danger, send } = of;
  const [failed, fail] = useState(null);
  const [busy, setBusy] = useState(false);
  const box = useRef(null);
  const key = useRef('');
  useEffect(() => {
    key.current = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now();
    box.current.showModal();
  }, []);
  const close = () => box.current.close();
  // The event comes later than the end of the dialog: another one may be open by then.
  const closed = () => { if (asked.value === of) asked.value = null; };
  const submit = async (e) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget);
    setBusy(true);
    try {
      await send({ reason: form.get('reason') || '', by: form.get('by') || undefined, value: form.get('value'), key: key.current });
      if (box.current) close();
      return;
    } catch (error) {
      fail(error instanceof Refusal ? error : new Error('The server does not answer. Try again: a repetition counts once.'));
    }
    setBusy(false);
  };
  return (
    <dialog ref={box} onClose={closed} aria-label={title}>
      <form onSubmit={submit}>
        <h2>{title}</h2>
        <div class="consequence">{consequence}</div>
        {value && (
          <label>{value.label}<input name="value" type={value.type || 'text'} required min={value.min} defaultValue={value.start} /></label>
        )}
        {person && <label>Your name<input name="by" required maxLength={128} autoComplete="name" /></label>}
        <label>Reason<input name="reason" required maxLength={512} autoComplete="off" /></label>
        {failed && <p class="error" role="alert"><Refused of={failed} /></p>}
        <div class="buttons">
          <button type="button" onClick={close}>Close</button>
          <button type="submit" class={danger ? 'danger solid' : 'solid'} disabled={busy}>{name}</button>
        </div>
      </form>
    </dialog>
  );
}

export { change };

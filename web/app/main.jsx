// The dashboard: rail, views, keyboard. Every view is a URL.
import { h, render, Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { caller, follow, live, login, notice, recognise, tick } from './api.js';
import { at, go, href, namespace, path, refine } from './route.js';
import { Asked } from './ui.jsx';
import { Now } from './now.jsx';
import { Key, Keys } from './keys.jsx';
import { Waits } from './waits.jsx';
import { Agents } from './agents.jsx';
import { Work } from './work.jsx';
import { Journal } from './journal.jsx';
import { Report } from './report.jsx';
import { Admin } from './admin.jsx';

const views = [
  ['', 'Now', 'n'], ['keys', 'Keys', 'k'], ['waits', 'Waits', 'w'], ['agents', 'Agents', 'a'], ['work', 'Work', 't'],
  ['journal', 'Journal', 'j'], ['report', 'Report', 'r'], ['admin', 'Admin', 'm'],
];
const pages = { '': Now, waits: Waits, agents: Agents, work: Work, journal: Journal, report: Report, admin: Admin };

function View() {
  const [view, name] = path.value;
  if (view === 'keys') return name ? <Key name={name} key={name} /> : <Keys />;
  const Page = pages[view];
  if (Page) return <Page />;
  return <p class="empty">There is no such page. <a href={href('')}>Go to Now.</a></p>;
}

// The theme: that of the system, until somebody chooses.
const themes = ['auto', 'light', 'dark'];
function useTheme() {
  const [theme, set] = useState(localStorage.getItem('theme') || 'auto');
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem('theme', theme);
  }, [theme]);
  return [theme, () => set(themes[(themes.indexOf(theme) + 1) % themes.length])];
}

function Login() {
  const [failed, fail] = useState('');
  const submit = async (e) => {
    e.preventDefault();
    const secret = new FormData(e.currentTarget).get('secret');
    try {
      await login(secret);
      fail('');
    } catch (error) {
      fail(error.message);
    }
  };
  return (
    <main class="login" id="main" tabIndex={-1}>
      <form class="card" onSubmit={submit}>
        <h1>Interlock</h1>
        <p class="quiet">Log in with a credential of this server. The role <code>viewer</code> is enough to look.</p>
        <label>Secret<input name="secret" type="password" required autoComplete="current-password" /></label>
        {failed && <p class="error" role="alert">{failed}</p>}
        <div class="buttons"><button type="submit" class="solid">Log in</button></div>
      </form>
    </main>
  );
}

function Help({ close }) {
  const box = useRef(null);
  useEffect(() => { box.current.showModal(); }, []);
  const keys = [
    ['/', 'search for a key'], ['g and then n k w a t j r m', 'Now, Keys, Waits, Agents, Work, Journal, Report, Admin'],
    ['j k', 'next and previous row'], ['Enter', 'open the row'], ['[ ]', 'back and forth in time'],
    ['arrows, Enter', 'in the timeline: go to a bar, keep it'], ['w s a d', 'in the timeline: zoom in, out, earlier, later'], ['y', 'copy as curl'],
    ['?', 'this list'],
  ];
  return (
    <dialog ref={box} onClose={close} aria-label="Keyboard">
      <h2>Keyboard</h2>
      <dl class="facts">{keys.map(([k, what]) => <><dt><kbd>{k}</kbd></dt><dd>{what}</dd></>)}</dl>
      <p class="quiet">No key changes anything at the server.</p>
      <form method="dialog" class="buttons"><button>Close</button></form>
    </dialog>
  );
}

function rowStep(by) {
  const rows = [...document.querySelectorAll('tr[data-to]')];
  if (!rows.length) return;
  const old = rows.findIndex((r) => r.classList.contains('picked'));
  const next = rows[Math.max(0, Math.min(rows.length - 1, old + by))];
  if (old >= 0) rows[old].classList.remove('picked');
  next.classList.add('picked');
  next.querySelector('a')?.focus();
  next.scrollIntoView({ block: 'nearest' });
}

function useKeyboard(help) {
  useEffect(() => {
    let g = 0;
    const press = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, select, textarea, dialog')) return;
      const second = g > 0 && performance.now() - g < 1500;
      g = 0;
      const view = second && views.find((v) => v[2] === e.key);
      if (view) go(href(view[0]));
      else if (e.key === 'g') g = performance.now();
      else if (e.key === '/') document.querySelector('input[type=search]')?.focus();
      else if (e.key === 'j') rowStep(1);
      else if (e.key === 'k') rowStep(-1);
      else if (e.key === 'y') document.querySelector('[data-copy]')?.click();
      else if (e.key === '?') help(true);
      else if (e.key === '[') refine({ at: String(Math.max(1, (at.value || tick.value) - 1)) });
      else if (e.key === ']' && at.value) refine({ at: at.value + 1 < tick.value ? String(at.value + 1) : '' });
      else if (e.key === 'Enter' && e.target === document.body) {
        const to = document.querySelector('tr.picked')?.dataset.to;
        if (to) go(to);
      } else return;
      e.preventDefault();
    };
    // Before the timeline, which has keys of its own: g and then a is a page.
    addEventListener('keydown', press, true);
    return () => removeEventListener('keydown', press, true);
  }, []);
}

function Search() {
  const submit = (e) => {
    e.preventDefault();
    const text = new FormData(e.currentTarget).get('key').trim();
    if (text) go(href('keys', '', { prefix: text }));
  };
  return (
    <form role="search" onSubmit={submit}>
      <input type="search" name="key" placeholder="Keys that begin with" aria-label="Search for a key" autoComplete="off" />
    </form>
  );
}

function Rail({ theme, turn, help }) {
  const c = caller.value;
  const out = async () => {
    await login('').catch(() => {});
    caller.value = { needed: true };
  };
  return (
    <header class="rail">
      <a class="brand" href={href('')}>Interlock</a>
      <Search />
      <nav aria-label="Views">
        {views.map(([to, name]) => (
          <a href={href(to)} aria-current={path.value[0] === to ? 'page' : undefined}>{name}</a>
        ))}
      </nav>
      <div class="railfoot">
        <span class={'conn ' + live.value} role="status">
          {live.value === 'live' ? '● live' : live.value === 'lost' ? '○ connecting' : '○ waiting'}
        </span>
        {c && c.name && <span class="quiet"><bdi>{c.name}</bdi> · {c.roles.join(', ')}</span>}
        <span class="railbuttons">
          <button type="button" class="plain" onClick={turn} aria-label={'Colours: ' + theme}>{theme}</button>
          <button type="button" class="plain" onClick={() => help(true)} aria-label="Keyboard">?</button>
          {c && c.name && <button type="button" class="plain" onClick={out}>Log out</button>}
        </span>
      </div>
    </header>
  );
}

function Past() {
  if (!at.value) return null;
  return (
    <div class="past" role="status">
      You look at the state after entry <b class="num">{at.value}</b> of the journal.{' '}
      <button type="button" onClick={() => refine({ at: '' })}>Back to now</button>
    </div>
  );
}

function Notice() {
  const text = notice.value;
  useEffect(() => {
    if (!text || live.value === 'lost') return undefined;
    const timer = setTimeout(() => { notice.value = ''; }, 4000);
    return () => clearTimeout(timer);
  }, [text, live.value]);
  return <div class={text ? 'notice' : 'notice none'} aria-live="polite">{text}</div>;
}

function App() {
  const [theme, turn] = useTheme();
  const [helping, help] = useState(false);
  useKeyboard(help);
  const c = caller.value;
  if (!c) return <p class="empty" aria-busy="true">Loading.</p>;
  if (c.needed) return <Login />;
  return (
    <>
      <a class="skip" href="#main">Skip to the page</a>
      <Rail theme={theme} turn={turn} help={help} />
      <main id="main" tabIndex={-1} key={namespace.value}><Past /><View /></main>
      <Notice />
      <Asked />
      {helping && <Help close={() => help(false)} />}
    </>
  );
}

async function start() {
  for (;;) {
    try {
      await recognise();
      break;
    } catch {
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
  follow();
}

render(<App />, document.getElementById('app'));
start();

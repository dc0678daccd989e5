// The URL is the state of the page: path, filters, and the moment that it looks at.
import { computed, signal } from '@preact/signals';

const base = '/ui/';
const here = signal(location.pathname + location.search);

addEventListener('popstate', () => { here.value = location.pathname + location.search; });

const url = computed(() => new URL(here.value, location.origin));

/** The path below /ui/, decoded: ['keys', 'account:1']. */
export const path = computed(() => {
  const [view, ...rest] = url.value.pathname.slice(base.length).split('/');
  return [view, rest.map(decoded).join('/')];
});

// A part of the path; one that is no UTF-8 stands for itself.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
export const query = computed(() => Object.fromEntries(url.value.searchParams));
/** The journal's index that the page looks at; 0 is the present. */
export const at = computed(() => Number(query.value.at) || 0);
export const namespace = computed(() => query.value.namespace || '');

/** The address of a view. The moment and the namespace stay. */
export function href(view, name = '', filters = {}) {
  const q = new URLSearchParams();
  if (namespace.value) q.set('namespace', namespace.value);
  if (at.value) q.set('at', at.value);
  for (const [key, value] of Object.entries(filters)) {
    if (value) q.set(key, value);
    else q.delete(key);
  }
  const text = q.toString();
  return base + view + (name ? '/' + encodeURIComponent(name) : '') + (text ? '?' + text : '');
}

export function go(to, replace = false) {
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  here.value = location.pathname + location.search;
}

/** Changes filters of the view that is shown. */
export function refine(filters) {
  const q = query.value;
  go(href(path.value[0], path.value[1], { ...q, ...filters }), true);
}

// A click on a link of ours changes the view and loads nothing.
addEventListener('click', (e) => {
  const a = e.target.closest && e.target.closest('a[href^="/ui/"]');
  if (!a || e.button || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.hasAttribute('download')) return;
  e.preventDefault();
  go(a.getAttribute('href'));
  document.getElementById('main')?.focus({ preventScroll: true });
  scrollTo(0, 0);
});

package merger

// recent remembers values by key. It keeps at least the last roomForRecent that were set, and at most twice as many.
type recent[K comparable, V any] struct{ young, old map[K]V }

const roomForRecent = 10_000

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	if v, ok = r.young[k]; !ok {
		v, ok = r.old[k]
	}
	return v, ok
}

func (r *recent[K, V]) set(k K, v V) {
	if len(r.young) >= roomForRecent {
		r.old, r.young = r.young, nil
	}
	if r.young == nil {
		r.young = map[K]V{}
	}
	r.young[k] = v
}

package remote

import (
	"context"
	"sync"
)

// Kept is a small value beside the journal, such as the keys that sign fences. Only the
// owner of the journal saves it.
//
// A save that timed out may be carried out later. So each save names the version that it
// replaces: one that comes late finds another and changes nothing.
type Kept struct {
	j    *Journal
	name string

	mu      sync.Mutex // guards the fields below
	version string     // of the value that the next save replaces
	known   bool       // version was read
}

// Kept returns the value of a name.
func (j *Journal) Kept(name string) *Kept { return &Kept{j: j, name: "keeps/" + name} }

func (k *Kept) String() string { return k.j.store.driver.Place(k.name) }

// Load returns the last saved bytes, and nil if nothing was saved.
func (k *Kept) Load() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.load(context.Background())
}

// load needs mu.
func (k *Kept) load(ctx context.Context) ([]byte, error) {
	v, err := k.j.store.get(ctx, k.name)
	if err == nil {
		k.version, k.known = v.Version, true
	}
	return v.Data, err
}

// Save replaces the value.
func (k *Kept) Save(text []byte) error {
	if err := k.j.begin(); err != nil {
		return err
	}
	defer k.j.calls.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx := context.Background()
	if !k.known {
		if _, err := k.load(ctx); err != nil {
			return failed("reading "+k.name, err)
		}
	}
	version, err := k.j.replace(ctx, k.name, text, k.version)
	if err == nil {
		k.version = version
	}
	return err
}

// replace puts a value in the place of the one with version was, and returns the new version. In the
// epoch of this owner every other value is of a call of its own that timed out.
func (j *Journal) replace(ctx context.Context, name string, data []byte, was string) (version string, err error) {
	for {
		saved, err := j.guarded(ctx, func(ctx context.Context, by Head) (done bool, err error) {
			version, done, err = j.store.driver.Put(ctx, by, name, data, was)
			return done, err
		})
		if err != nil || saved {
			return version, err
		}
		v, err := j.store.get(ctx, name)
		switch {
		case err != nil:
			return "", failed("reading "+name, err)
		case v.Version != "" && string(v.Data) == string(data):
			return v.Version, nil
		}
		was = v.Version
	}
}

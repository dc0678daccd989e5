package remote

import "context"

// Shared is a value of a store that belongs to no owner: servers agree through it. A method makes one
// attempt, and an error reports that its outcome is unknown: a Swap may be carried out later, as long as
// the value still has the version that it replaces.
type Shared struct {
	driver Driver
	name   string
}

// Shared returns the value of a name.
func (s *Store) Shared(name string) *Shared { return &Shared{s.driver, "shared/" + name} }

func (v *Shared) String() string { return v.driver.Place(v.name) }

// Load returns the value. Its version is "" when there is none.
func (v *Shared) Load(ctx context.Context) (Value, error) { return v.driver.Get(ctx, v.name) }

// Swap replaces the value if its version is was, "" for none, and returns the new version. done is false
// if it has another version.
func (v *Shared) Swap(ctx context.Context, data []byte, was string) (version string, done bool, err error) {
	return v.driver.Swap(ctx, v.name, data, was)
}

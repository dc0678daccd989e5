package etcdjournal

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Kept is a small value that every owner of the journal finds again. Its Save is
// guarded by the epoch as an append is. It is a signed.Keeper.
type Kept struct {
	j    *Journal
	name string
}

// Kept gives the value of a name.
func (j *Journal) Kept(name string) *Kept { return &Kept{j: j, name: name} }

func (k *Kept) String() string { return k.j.store.key("keeps/" + k.name) }

// Load gives what was saved last, and nil when nothing was.
func (k *Kept) Load() ([]byte, error) {
	value, err := k.j.store.value(context.Background(), "keeps/"+k.name)
	if err != nil || value == "" {
		return nil, err
	}
	return []byte(value), nil
}

// Save replaces the value.
func (k *Kept) Save(text []byte) error {
	if err := k.j.begin(); err != nil {
		return err
	}
	defer k.j.calls.Done()
	return k.j.guarded(context.Background(), clientv3.OpPut(k.String(), string(text)))
}

package shard

import (
	"testing"

	"github.com/interlockdev/interlock/engine"
)

func TestMistakesOfTheCallerPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for name, f := range map[string]func(){
			"no Receiver": func() { r.shard.Submit(&engine.Renew{Head: engine.Head{From: "me"}}) },
			"no answer":   func() { r.shard.Do(r.Context(), &engine.Detach{}) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				f()
			}()
		}
	})
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"no journal": {}, "negative": {MaxWaiting: -1},
	} {
		if _, err := Open(t.Context(), c); err == nil {
			t.Errorf("%s: Open went through", name)
		}
	}
}

package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Flows with many requests at few keys, which they hold alone and with others: what is
// counted of them at each key is what they have there.
func TestTallies(t *testing.T) {
	modes := []interlock.Mode{
		interlock.Exclusive, interlock.Shared, interlock.IntentShared, interlock.IntentExclusive,
		interlock.SharedIntentExclusive,
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := newStand()
		type lease struct {
			session interlock.SessionID
			id      [16]byte
		}
		var sessions []interlock.SessionID
		for range 3 {
			sessions = append(sessions, s.session(t))
		}
		var leases []lease
		for range 400 {
			l := lease{session: sessions[random.IntN(len(sessions))]}
			switch {
			case len(leases) > 0 && random.IntN(5) < 2:
				i := random.IntN(len(leases))
				l, leases[i] = leases[i], leases[len(leases)-1]
				leases = leases[:len(leases)-1]
				switch random.IntN(4) {
				case 0:
					s.step(&engine.Park{Head: s.head(l.session), Lease: l.id, Free: random.IntN(2) == 0})
					leases = append(leases, l)
				case 1:
					s.step(&engine.Resume{Head: s.head(l.session), Lease: l.id, OnConflict: interlock.Wait, Attach: true})
					leases = append(leases, l)
				default:
					s.release(l.session, l.id)
				}
			default:
				key := interlock.Key(fmt.Sprintf("a/%d/%d", random.IntN(3), random.IntN(12)))
				l.id = s.ask(
					l.session,
					[]interlock.Claim{{
						Key: key[:len("a/0")+random.IntN(2)*(len(key)-len("a/0"))], Mode: modes[random.IntN(len(modes))],
					}},
				)
				leases = append(leases, l)
			}
			if err := s.e.CheckTallies(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

var fitSeed = flag.Uint64("fit-seed", 0, "the one seed of TestSpellingsAreOneKey to run; 0 for all")

// TestSpellingsAreOneKey sends the same commands to two engines with the same random patterns:
// to one with random spellings of the keys, to the other with the spelling that counts. Their
// answers and journals are the same.
func TestSpellingsAreOneKey(t *testing.T) {
	respelled := 0
	for seed := uint64(1); seed <= 400; seed++ {
		if *fitSeed == 0 || seed == *fitSeed {
			respelled += playSpellings(t, seed)
		}
		if t.Failed() {
			t.Fatalf("go test ./engine -run SpellingsAreOneKey -fit-seed %d", seed)
		}
	}
	if *fitSeed == 0 && respelled < 300 {
		t.Errorf("%d keys had another spelling, which is too few to say anything", respelled)
	}
}

// dice are random choices for patterns and keys.
type dice struct{ *rand.Rand }

func oneOf[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// shape makes a shape with the variables a and b, and of rest if it has segments to come.
func (d dice) shape() string {
	s := oneOf(d, "r:", "s:", "r-", "") +
		oneOf(d, "{a}", "{a:lower}", "{a:int}", "prod{a:lower}", "{a:lower}k{b:int}", "{a:lower}k{b}")
	if d.IntN(2) == 0 {
		s += oneOf(d, "", "/x", "/{path...}", "/x/{path...}")
	}
	return s
}

// fixed makes a shape without a variable before its rest.
func (d dice) fixed() string {
	return oneOf(d, "r:", "s:", "r-", "") + oneOf(d, "prod", "1", "kk5", "prodx") + oneOf(d, "", "/x", "/{path...}")
}

func (d dice) key() interlock.Key {
	return interlock.Key(oneOf(d, "r:", "s:", "r-", "R:", "") +
		oneOf(d, "prod", "PROD", "pRoD", "01", "1", "001", "kKk5", "aKk5", "kk5", "prodX", "PRODx") +
		oneOf(d, "", "", "/x", "/X", "/x/y", "/01"))
}

func (d dice) pattern(i int) interlock.Pattern {
	p := interlock.Pattern{
		Name: fmt.Sprintf("p%d", d.IntN(8)), Shape: d.shape(),
		Write: oneOf(d, interlock.WriteOpen, interlock.WriteOpen, interlock.WriteVersion, interlock.WriteLease),
	}
	if d.IntN(3) == 0 {
		p.Shape = d.fixed()
	}
	if d.IntN(3) == 0 {
		p.Aliases = []string{d.shape()}
	}
	if d.IntN(3) == 0 {
		p.Allow = []interlock.Rule{{
			Principal: oneOf(d, "ann", "*"), Modes: oneOf(d, nil, []interlock.Mode{interlock.Shared}),
		}}
	}
	if d.IntN(4) == 0 {
		p.Capacity = 2
	}
	if d.IntN(4) == 0 {
		p.Write, p.WriterQueue = interlock.WriteSingle, "q"
	}
	p.TTL = time.Duration(i+2) * time.Second
	return p
}

// playSpellings plays one seed, and returns how many keys had another spelling.
func playSpellings(t *testing.T, seed uint64) (respelled int) {
	d := dice{rand.New(rand.NewPCG(seed, 17))}
	stands := [2]*stand{newStand(), newStand()}
	head := func(s *stand, actor string) engine.Head {
		return engine.Head{At: s.now, Namespace: "bench", Actor: actor}
	}
	for _, s := range stands {
		s.step(&engine.SetQueue{Head: head(s, ""), Queue: interlock.TaskQueue{Name: "q"}})
	}
	for i := range 2 + d.IntN(5) {
		p := d.pattern(i)
		for _, s := range stands {
			s.step(&engine.SetPattern{Head: head(s, ""), Pattern: p})
		}
	}
	var leases []interlock.LeaseID
	fences := []interlock.Fence{1}
	for range 25 {
		spelled := d.key()
		view, err := stands[0].e.Key("bench", spelled)
		if err != nil {
			t.Fatal(err)
		}
		again, err := stands[0].e.Key("bench", view.Key)
		if err != nil || again.Key != view.Key || again.Pattern != view.Pattern {
			t.Errorf("%s is %s of %q, which is %s of %q", spelled, view.Key, view.Pattern, again.Key, again.Pattern)
		}
		if view.Key != spelled {
			respelled++
		}
		door, actor, mode, fence := d.IntN(9), oneOf(
			d, "ann", "ben",
		), oneOf(d, interlock.Exclusive, interlock.Shared, interlock.Permits), oneOf(d, fences...)
		var lease interlock.LeaseID
		if len(leases) > 0 {
			lease = oneOf(d, leases...)
		}
		var seen [2]any
		for i, s := range stands {
			s.now = s.now.Add(time.Second)
			key := []interlock.Key{spelled, view.Key}[i]
			seen[i] = s.spell(door, head(s, actor), key, interlock.Claim{Key: key, Mode: mode}, lease, fence)
		}
		if !reflect.DeepEqual(seen[0], seen[1]) {
			t.Errorf("door %d: %s gets\n%+v, and %s\n%+v", door, spelled, seen[0], view.Key, seen[1])
			return respelled
		}
		for i := range stands[0].out.Effects {
			if l := stands[0].out.Effects[i].Lease; l.Fence > 0 {
				fences, leases = append(fences, l.Fence), append(leases, l.ID)
			}
		}
	}
	if stands[0].e.Hash() != stands[1].e.Hash() {
		t.Error("the states differ")
	}
	return respelled
}

// spell sends a command with a key to one of the APIs, and returns the result.
func (s *stand) spell(
	door int, head engine.Head, key interlock.Key, claim interlock.Claim, lease interlock.LeaseID, fence interlock.Fence,
) any {
	if claim.Mode == interlock.Permits {
		claim.Count = 1
	}
	switch door {
	case 0, 1:
		s.step(&engine.Acquire{Head: head, ID: s.id(), Agent: "agent", LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{claim},
		}})
	case 2:
		s.step(&engine.Convert{
			Head: head, Lease: lease, ID: s.id(), Claims: []interlock.Claim{claim}, OnConflict: interlock.Fail,
		})
	case 3:
		c := &engine.Commit{Head: head, Agent: "agent", CommitRequest: interlock.CommitRequest{
			Writes: put(string(key), []byte("1")), Reads: []interlock.Read{{Key: key, Absent: true}},
		}}
		if lease != (interlock.LeaseID{}) {
			c.Leases = []interlock.LeaseID{lease}
		}
		s.step(c)
	case 4:
		s.step(&engine.Submit{Head: head, Agent: "agent", Task: engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{
			Queue: "q", Claims: []interlock.Claim{claim},
		}}})
	case 5:
		s.step(&engine.Submit{Head: head, Agent: "agent", Task: engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{
			Message: true, Key: key,
		}}})
	case 6:
		s.step(&engine.CheckFence{Head: head, Key: key, Fence: fence})
	case 7:
		s.step(&engine.Revoke{Head: head, Key: key, Fence: fence})
	default:
		s.out.Events, s.out.Effects = nil, nil
		docs, asOf, err := s.e.Documents("bench", []interlock.Key{key}, true)
		versions, _, _ := s.e.Versions("bench", key)
		entries, _, next := s.e.Log("bench", key, 0, 0)
		return []any{docs, asOf, err, versions, entries, next}
	}
	return []any{string(s.out.Entry), slices.Clone(s.out.Effects)}
}

package proto

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestGeneratedCodecIsTheOld compares the generated codec with the hand-written one: the bytes
// that it appends, and what it makes of bytes, damaged ones as well.
func TestGeneratedCodecIsTheOld(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	runs := 400
	if testing.Short() {
		runs = 200
	}
	for i := range runs {
		c, s := randomClientFrame(r), randomServerFrame(r)
		if i%4 > 0 { // small ones, so that the damage is not only in texts
			k := r.IntN(len(c.Ops))
			c.Ops = c.Ops[k : k+1]
			s.Replies = s.Replies[:min(1, len(s.Replies))]
		}
		compareWithOracle(t, r, c, c.AppendTo(nil), oracleAppendClient(c, nil), (*ClientFrame).Decode, oracleDecodeClient)
		compareWithOracle(t, r, s, s.AppendTo(nil), oracleAppendServer(s, nil), (*ServerFrame).Decode, oracleDecodeServer)
	}
}

func compareWithOracle[F any](t *testing.T, r *rand.Rand, frame *F, b, want []byte, decode, oracle func(*F, []byte) error) {
	t.Helper()
	if !bytes.Equal(b, want) {
		t.Fatalf("%+v is\n%x\nand was\n%x", frame, b, want)
	}
	for range 20 {
		var got, was F
		err, wasErr := decode(&got, b), oracle(&was, b)
		if fmt.Sprint(err) != fmt.Sprint(wasErr) {
			t.Fatalf("%x: %v, and was %v", b, err, wasErr)
		}
		if err == nil && !reflect.DeepEqual(got, was) {
			t.Fatalf("%x is\n%+v\nand was\n%+v", b, got, was)
		}
		b = bytes.Clone(want)
		for range 1 + r.IntN(3) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.Uint32() >> r.IntN(24))
			}
		}
	}
}

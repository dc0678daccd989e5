package merge

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkLand is the chain of landings without checks, on 50,000 files in 1,000 folders. Each submission changes
// two files of its own, and the first 1,000 are relative to the same base, so the target drifts away from it.
//
//	go test ./merge -run xxx -bench Land -benchtime 500x
func BenchmarkLand(b *testing.B) {
	r, heads := wide(b)
	boundary := r.boundary()
	landings := 0
	parent := heads[0]
	begin := time.Now()
	for b.Loop() {
		n := landings % (len(heads) - 1)
		if n == 0 {
			parent = heads[0]
		}
		l, err := boundary.Land(b.Context(), turn(landings+1, parent, heads[n+1]))
		if err != nil {
			b.Fatal(err)
		}
		parent = l.Commit
		landings++
	}
	b.ReportMetric(float64(landings)/time.Since(begin).Seconds(), "landings/s")
}

// BenchmarkMove is one movement of the ref with its fence, synced, for each landing. A batch needs one for all.
func BenchmarkMove(b *testing.B) {
	r, heads := wide(b)
	boundary := r.boundary()
	r.run("update-ref", mainRef, heads[0])
	target := Target{Repository: r.git, Ref: mainRef}
	target.Repository.Config = nil
	if _, err := target.Claim(b.Context(), 1); err != nil {
		b.Fatal(err)
	}
	var landings []Landing
	parent := heads[0]
	for n, head := range heads[1:101] {
		l := r.land(boundary, turn(n+1, parent, head))
		landings = append(landings, l)
		parent = l.Commit
	}
	n := 0
	for b.Loop() {
		if n == len(landings) {
			b.StopTimer()
			r.run("update-ref", mainRef, heads[0])
			n = 0
			b.StartTimer()
		}
		l := landings[n]
		n++
		if _, err := target.Move(b.Context(), Move{1, l.Sequence, l.Parent, l.Commit}); err != nil {
			b.Fatal(err)
		}
	}
}

// wide makes 50,000 files and 1,000 submissions.
func wide(b *testing.B) (r *rig, heads []string) {
	const submissions = 1000
	r = newRig(b)
	name := func(i int) string { return fmt.Sprintf("d%d/e%d/f%d.go", i%20, i/20%50, i) }
	content := func(i int, change string) file {
		return text(fmt.Sprintf("package f%d\n%s%s\n", i, strings.Repeat("// a line of text\n", 20), change))
	}
	base := files{".gitattributes": text("CHANGES merge=union\n")}
	for i := range 50_000 {
		base[name(i)] = content(i, "")
	}
	var s stream
	s.commit(1, "base", base)
	for i := range submissions {
		one, two := i*37%25_000, 25_000+i*11
		s.commit(i+2, fmt.Sprintf("submission %d", i), files{
			name(one): content(one, fmt.Sprintf("// %d", i)), name(two): content(two, fmt.Sprintf("// %d", i)),
		}, ":1")
	}
	marks := r.load(&s)
	for i := range submissions + 1 {
		heads = append(heads, marks[i+1])
	}
	return r, heads
}

package merger

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	landing := func(admitted, at int64) Landing { return Landing{Admitted: admitted * 1000, At: at * 1000} }
	for name, tt := range map[string]struct {
		recent []Landing
		want   time.Duration
		known  bool
	}{
		"none":    {},
		"too few": {recent: []Landing{landing(1, 10), landing(1, 20), landing(1, 30)}},
		"a full line": {
			recent: []Landing{landing(1, 10), landing(1, 20), landing(1, 40), landing(1, 40)},
			want:   10 * time.Second, known: true,
		},
		// The hour in which nothing was in line does not count.
		"a pause": {
			recent: []Landing{landing(1, 10), landing(3600, 3612), landing(3600, 3624), landing(3600, 3630)},
			want:   10 * time.Second, known: true,
		},
		// A clock that was set back makes no negative time.
		"another clock": {
			recent: []Landing{landing(1, 100), landing(50, 70), landing(50, 76), landing(50, 82)},
			want:   4 * time.Second, known: true,
		},
		"an earlier version": {recent: make([]Landing, 20)},
	} {
		if got, known := Pace(tt.recent); got != tt.want || known != tt.known {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, known, tt.want, tt.known)
		}
	}
	var long []Landing
	for i := range int64(100) {
		long = append(long, landing(0, i*i))
	}
	if got, _ := Pace(long); got < 170*time.Second {
		t.Errorf("the pace of 20 landings that grow slower is %v", got)
	}
}

// The landings of a line tell its pace.
func TestRecentHasTimes(t *testing.T) {
	r := newRig(t)
	r.work(good)
	r.start(r.config("merger"))
	for _, id := range []string{"a", "b", "c", "d"} {
		r.result(r.submit(Submission{ID: id, Head: r.commit(r.begin, files{id: "1\n"})}))
	}
	recent, err := Recent(t.Context(), r.author, web)
	if err != nil || len(recent) != 4 || recent[0].Submission != "a" {
		t.Fatalf("%+v, %v", recent, err)
	}
	if each, known := Pace(recent); !known || each > time.Minute {
		t.Errorf("a landing takes %v, known %v", each, known)
	}
}

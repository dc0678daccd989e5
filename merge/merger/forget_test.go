package merger

import (
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// What is older than Keep goes: verdicts, and records of submissions that were returned or cancelled. What is in line
// or has landed stays.
func TestForget(t *testing.T) {
	r := newRig(t)
	r.work(good)
	stop := r.start(r.config("merger"))
	landed := Submission{ID: "landed", Head: r.commit(r.begin, files{"README": "1\n"})}
	if o := r.result(r.submit(landed)); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	returned := Submission{ID: "returned", Head: r.commit(r.begin, files{"README": "2\n"}), Workspace: "w"}
	if o := r.result(r.submit(returned)); o.Reason != WhyConflict {
		t.Fatalf("%+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	waiting := r.submit(Submission{ID: "waiting", Head: r.begin})
	cancelled := r.submit(Submission{ID: "cancelled", Head: r.begin})
	if _, err := r.author.CancelTask(t.Context(), cancelled, "a test"); err != nil {
		t.Fatal(err)
	}
	l := &line{Merger: &Merger{Config: r.config("heir")}}
	seat, err := l.Client.Acquire(t.Context(), client.Request{
		Keys: []interlock.Key{web.Key()}, OnConflict: interlock.Wait,
	})
	if err != nil {
		t.Fatal(err)
	}
	l.seat = seat
	for id, task := range map[string]interlock.TaskID{"waiting": waiting, "cancelled": cancelled} {
		record := Record{Submission: Submission{ID: id}, State: Waiting, Task: task.String()}
		if err := l.commit(t.Context(), client.Put(web.RecordKey(id), encode(record))); err != nil {
			t.Fatal(err)
		}
	}
	there := func() (list []string) {
		t.Helper()
		for d, err := range l.Client.List(t.Context(), client.ListRequest{}) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(d.Key))
		}
		return list
	}
	before := there()
	l.Keep = time.Hour
	if err := l.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := there(); !slices.Equal(got, before) {
		t.Errorf("within Keep: %q, want %q", got, before)
	}
	l.Keep = 1
	if err := l.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		string(web.Key()), string(web.HealthKey()),
		string(web.LandingKey(1)), string(web.RecordKey("landed")), string(web.RecordKey("waiting")),
		string(web.repositoryKey()),
	}
	if got := there(); !slices.Equal(got, want) {
		t.Errorf("after Keep: %q, want %q", got, want)
	}
}

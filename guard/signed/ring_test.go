package signed

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

func openRing(t *testing.T, path string) *Ring {
	t.Helper()
	r, err := OpenRing(File(path), false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// After a rotation the new key signs, and what the former one signed holds until it
// expires, also over a restart. Then the former key is gone.
func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	r := openRing(t, path)
	first, firstID, err := r.Sign(example(), noon, MaxTTL)
	if err != nil {
		t.Fatal(err)
	}
	stale := r.KeySet(noon)
	id, err := r.Rotate(noon)
	if err != nil {
		t.Fatal(err)
	}
	second, secondID, err := r.Sign(example(), noon, MaxTTL)
	if err != nil || secondID != id || secondID == firstID {
		t.Fatalf("signed with %s, %v; rotated from %s to %s", secondID, err, firstID, id)
	}
	if _, err := stale.Verify(second, noon, Want{Namespace: "acme"}); !isCode(err, interlock.CodeInvalidStatement) ||
		!strings.Contains(err.Error(), "fetch the set again") {
		t.Errorf("an old key set says of a new key: %v", err)
	}
	for _, r := range []*Ring{r, openRing(t, path)} {
		last := noon.Add(MaxTTL - 1)
		for _, text := range []string{first, second} {
			if _, err := r.KeySet(last).Verify(text, last, Want{Namespace: "acme"}); err != nil {
				t.Error("within its time:", err)
			}
		}
		if ks := r.KeySet(noon.Add(MaxTTL)); len(ks) != 1 || ks[secondID] == nil {
			t.Errorf("when the last statement of the former key has expired, %d keys are published", len(ks))
		}
	}
	if _, err := r.Rotate(noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := len(openRing(t, path).keys); n != 2 {
		t.Errorf("%d keys in the file, want the one that signs and the one before", n)
	}
}

// No key is gone before the last statement that it signed, whatever the signer's clock did.
func TestRotateBehindAStatement(t *testing.T) {
	r := NewRing()
	text, _, _ := r.Sign(example(), noon.Add(time.Second), MaxTTL)
	if _, err := r.Rotate(noon); err != nil {
		t.Fatal(err)
	}
	last := noon.Add(time.Second + MaxTTL - 1)
	if _, err := r.KeySet(last).Verify(text, last, Want{Namespace: "acme"}); err != nil {
		t.Error(err)
	}
}

func TestRotateInALoop(t *testing.T) {
	r := NewRing()
	for range maxFormer {
		if _, err := r.Rotate(noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Rotate(noon); !isCode(err, interlock.CodeQuota) {
		t.Errorf("one more: %v", err)
	}
	if n := len(r.KeySet(noon)); n != maxFormer+1 {
		t.Errorf("%d keys are published", n)
	}
	if _, err := r.Rotate(noon.Add(MaxTTL)); err != nil {
		t.Error(err)
	}
}

func TestConcurrent(t *testing.T) {
	r := openRing(t, filepath.Join(t.TempDir(), "keys"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				text, _, err := r.Sign(example(), noon, time.Minute)
				if err != nil {
					t.Error(err)
				}
				if _, err := r.KeySet(noon).Verify(text, noon, Want{Namespace: "acme"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		if _, err := r.Rotate(noon); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

func TestRingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	text := signedExample(t, openRing(t, path))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the keys are readable as %v, %v", info.Mode(), err)
	}
	if _, err := openRing(t, path).KeySet(noon).Verify(text, noon, Want{Namespace: "acme"}); err != nil {
		t.Error("after a restart:", err)
	}
	r, err := OpenRing(File(path), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Ring{r, openRing(t, path)} {
		if _, err := r.KeySet(noon).Verify(
			text, noon, Want{Namespace: "acme"},
		); !isCode(err, interlock.CodeInvalidStatement) {
			t.Error("a copy speaks for the original:", err)
		}
	}
	if _, err := os.Stat(path + ".tmp"); err == nil {
		t.Error("an unfinished file is left")
	}
}

func TestBadRingFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys")
	openRing(t, path)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ content, says string }{
		"cut":               {string(good[:len(good)/2]), "damaged"},
		"empty":             {"", "damaged"},
		"no keys":           {`{"version":1,"keys":[]}`, "damaged"},
		"another id":        {strings.Replace(string(good), `"kid": "`, `"kid": "x`, 1), "damaged"},
		"none that signs":   {strings.Replace(string(good), `"seed"`, `"retired": 1, "seed"`, 1), "damaged"},
		"of a newer server": {`{"version":2,"keys":"elsewhere"}`, "newer"},
	} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRing(File(path), false); err == nil || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q and the path", name, err, c.says)
		}
		if now, _ := os.ReadFile(path); string(now) != c.content {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := OpenRing(File(filepath.Join(dir, "missing", "keys")), false); err == nil {
		t.Error("a ring in a directory that is not there")
	}
}

// A rotation that cannot be written changes nothing.
func TestRotateFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	r := openRing(t, path)
	if err := os.Mkdir(path+".tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	before := r.KeySet(noon)
	if _, err := r.Rotate(noon); err == nil {
		t.Fatal("rotated without a file")
	}
	text := signedExample(t, r)
	if _, err := before.Verify(text, noon, Want{Namespace: "acme"}); err != nil {
		t.Error(err)
	}
	openRing(t, path)
}

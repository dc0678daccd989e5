package trace

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The checksums are those of the files as published, which detects edits of the data that
// figures rest on.
func TestDataIsAsPublished(t *testing.T) {
	tests := []struct {
		name   string
		packed []byte
		sum    string
		rows   int
		load   func() ([]Request, error)
	}{
		{
			"conversation", conversation, "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8", 19366,
			Conversation,
		},
		{"code", code, "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6", 8819, Code},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := gzip.NewReader(bytes.NewReader(tt.packed))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != tt.sum {
				t.Errorf("checksum %x, want %s", sum, tt.sum)
			}
			requests, err := tt.load()
			if err != nil {
				t.Fatal(err)
			}
			if len(requests) != tt.rows {
				t.Errorf("%d rows, want %d", len(requests), tt.rows)
			}
			if !slices.IsSortedFunc(requests, func(a, b Request) int { return int(a.At - b.At) }) {
				t.Error("rows are not in the order of their arrival")
			}
			for i, r := range requests {
				if r.Think() < Overhead || r.Think() > time.Minute {
					t.Fatalf("row %d: %+v thinks for %s", i+1, r, r.Think())
				}
			}
		})
	}
}

func TestThink(t *testing.T) {
	r := Request{Context: 2500, Generated: 100}
	if got, want := r.Think(), 3*time.Second; got != want {
		t.Errorf("%+v thinks for %s, want %s", r, got, want)
	}
}

func TestBadRows(t *testing.T) {
	for _, text := range []string{
		"",
		"Time,Context,Generated\n",
		header + "\n2023-11-16 18:15:46.6805900,374\n",
		header + "\nyesterday,374,44\n",
		header + "\n2023-11-16 18:15:46.6805900,many,44\n",
		header + "\n2023-11-16 18:15:46.6805900,374,few\n",
	} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := read(packed.Bytes()); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if _, err := read([]byte("not packed")); err == nil {
		t.Error("unpacked text was read")
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]int{"": 19366, "conversation": 19366, "code": 8819} {
		if requests, err := Named(name); err != nil || len(requests) != want {
			t.Errorf("%q has %d rows, want %d; error %v", name, len(requests), want, err)
		}
	}
	const row = "2023-11-16 18:15:46.6805900,374,44\n"
	file := filepath.Join(t.TempDir(), "trace.csv")
	tests := []struct {
		content, err string
		want         []Request
	}{
		{
			header + "\n" + row + "2023-11-16 18:15:47.1805900,5,6\n", "",
			[]Request{{0, 374, 44}, {500 * time.Millisecond, 5, 6}},
		},
		{row, "want \"" + header + "\"", nil},
		{header + "\n" + row + "2023-11-16 18:15:47.1805900,5\n", "row 2: 2 fields, want 3", nil},
	}
	for _, tt := range tests {
		if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		requests, err := Named(file)
		if tt.err == "" && (err != nil || !slices.Equal(requests, tt.want)) {
			t.Errorf("%v, want %v; error %v", requests, tt.want, err)
		}
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("error %v, want %s", err, tt.err)
		}
	}
	if _, err := Named(file + "x"); err == nil || !strings.Contains(err.Error(), "called conversation and code") ||
		!strings.Contains(err.Error(), header) {
		t.Errorf("error %v", err)
	}
}

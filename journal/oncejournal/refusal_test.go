package oncejournal

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// Answers that the same request would get again end an Open at once; all others are asked for again until patience
// ends.
func TestRefusals(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	const s3Error, firestoreError = "<Error><Code>%s</Code><Message>m</Message></Error>", `{"error":{"status":%q}}`
	for _, c := range []struct {
		engine string
		status int
		code   string
		final  bool
		want   string
	}{
		{"s3", http.StatusForbidden, "AccessDenied", true, "s3:ListBucket"},
		{"s3", http.StatusNotFound, "NoSuchBucket", true, "NoSuchBucket"},
		{"s3", http.StatusMovedPermanently, "PermanentRedirect", true, "another region"},
		{"s3", http.StatusNotImplemented, "NotImplemented", true, "conditional writes"},
		{"s3", http.StatusInsufficientStorage, "", true, journal.ErrNoSpace.Error()},
		{"s3", http.StatusServiceUnavailable, "SlowDown", false, "SlowDown"},
		{"s3", http.StatusConflict, "ConditionalRequestConflict", false, "ConditionalRequestConflict"},
		{"s3", http.StatusBadRequest, "ExpiredToken", false, "ExpiredToken"},
		{"s3", http.StatusInternalServerError, "", false, "status 500"},
		{"firestore", http.StatusForbidden, "PERMISSION_DENIED", true, "PERMISSION_DENIED"},
		{"firestore", http.StatusNotFound, "NOT_FOUND", true, "NOT_FOUND"},
		{"firestore", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", false, "RESOURCE_EXHAUSTED"},
		{"firestore", http.StatusConflict, "ABORTED", false, "ABORTED"},
		{"firestore", http.StatusServiceUnavailable, "", false, "status 503"},
	} {
		t.Run(fmt.Sprint(c.engine, " ", c.status, " ", c.code), func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(c.status)
				switch {
				case c.code == "":
				case c.engine == "s3":
					fmt.Fprintf(w, s3Error, c.code)
				default:
					fmt.Fprintf(w, firestoreError, c.code)
				}
			}))
			t.Cleanup(server.Close)
			patience := time.Hour
			if !c.final {
				patience = 200 * time.Millisecond
			}
			s, err := ConnectS3(S3Place{
				Bucket: "bucket", Prefix: "main", Region: "r", Endpoint: server.URL, Patience: patience,
			})
			if c.engine == "firestore" {
				s, err = ConnectFirestore(FirestorePlace{
					Project: "p", Database: "d", Name: "n", Emulator: strings.TrimPrefix(server.URL, "http://"), Patience: patience,
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			if _, err = s.Open(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if again := asked.Load() > 1; again == c.final {
				t.Errorf("it was asked %d times", asked.Load())
			}
			if unsafe := errors.Is(err, remote.ErrUnsafe); unsafe != (c.status == http.StatusNotImplemented) {
				t.Errorf("unsafe: %t", unsafe)
			}
		})
	}
}

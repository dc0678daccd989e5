package oncejournal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// endpoint answers with texts by method and path, and refuses all else.
func endpoint(t *testing.T, texts map[string]string, need func(*http.Request) bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[r.Method+" "+r.URL.Path]
		if !ok || !need(r) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const answerWithKeys = `{
	"AccessKeyId": "role", "SecretAccessKey": "secret", "Token": "token", "Expiration": "2100-01-01T00:00:00Z"
}`

func TestKeys(t *testing.T) {
	ends := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	of := func(t *testing.T) (keys, error) {
		return newKeySource(http.DefaultClient).get(t.Context())
	}
	empty := func(t *testing.T) {
		for _, name := range []string{
			"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
			"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
		} {
			t.Setenv(name, "")
		}
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	}
	want := func(t *testing.T, want keys) {
		t.Helper()
		if got, err := of(t); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	t.Run("Environment", func(t *testing.T) {
		empty(t)
		t.Setenv("AWS_ACCESS_KEY_ID", "id")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		t.Setenv("AWS_SESSION_TOKEN", "token")
		want(t, keys{id: "id", secret: "secret", session: "token"})
	})
	t.Run("File", func(t *testing.T) {
		empty(t)
		file := filepath.Join(t.TempDir(), "credentials")
		text := "[default]\naws_access_key_id = one\naws_secret_access_key=1\n\n[work]\naws_access_key_id=two\n" +
			"aws_secret_access_key = 2\naws_session_token = t\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
		want(t, keys{id: "one", secret: "1"})
		t.Setenv("AWS_PROFILE", "work")
		want(t, keys{id: "two", secret: "2", session: "t"})
	})
	t.Run("Container", func(t *testing.T) {
		empty(t)
		url := endpoint(t, map[string]string{"GET /keys": answerWithKeys}, func(r *http.Request) bool {
			return r.Header.Get("Authorization") == "Basic abc"
		})
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte("Basic abc\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url+"/keys")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
		want(t, keys{id: "role", secret: "secret", session: "token", ends: ends})
	})
	t.Run("Instance", func(t *testing.T) {
		empty(t)
		const path = "/latest/meta-data/iam/security-credentials/"
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(t, map[string]string{
			"PUT /latest/api/token": "session", "GET " + path: "server\n", "GET " + path + "server": answerWithKeys,
		}, func(r *http.Request) bool {
			return r.Method == http.MethodPut || r.Header.Get("X-Aws-Ec2-Metadata-Token") == "session"
		}))
		want(t, keys{id: "role", secret: "secret", session: "token", ends: ends})
	})
	t.Run("None", func(t *testing.T) {
		empty(t)
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(t, nil, nil))
		if _, err := of(t); err == nil || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
			t.Errorf("got %v", err)
		}
	})
}

// Keys are kept until shortly before their end, and looked for again when a service does not take them any more.
func TestKeysEnd(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "one")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	r := newKeySource(http.DefaultClient)
	id := func(want string) {
		t.Helper()
		if k, err := r.get(t.Context()); err != nil || k.id != want {
			t.Errorf("got %q, want %q (%v)", k.id, want, err)
		}
	}
	id("one")
	t.Setenv("AWS_ACCESS_KEY_ID", "two")
	id("one")
	r.forget()
	id("two")
	r.keys.ends = time.Now().Add(keysMargin - time.Second)
	t.Setenv("AWS_ACCESS_KEY_ID", "three")
	id("three")
}

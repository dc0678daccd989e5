package cli

import (
	"strings"
	"testing"
	"time"
)

func TestAddressLists(t *testing.T) {
	for _, tt := range []struct {
		url, grpc      string
		urls, sessions string // joined with spaces
		wrong          string
	}{
		{"http://a:7420", "", "http://a:7420", "a:7421", ""},
		{"a:7420, b:80/", "", "http://a:7420 http://b:80", "a:7421 b:81", ""},
		{"https://a,https://b", "", "https://a https://b", "a:7421 b:7421", ""},
		{"http://a:1", "b:2,grpc://c:3", "http://a:1", "b:2 grpc://c:3", ""},
		{"http://[::1]:1,http://127.0.0.1:1", "", "http://[::1]:1 http://127.0.0.1:1", "[::1]:2 127.0.0.1:2", ""},
		{"http://a:1, ,", "", "http://a:1", "a:2", ""},
		{"http://a:1/v1,b:1/v1/", "", "http://a:1 http://b:1", "a:2 b:2", ""},
		{" ,", "", "", "", "no address of a server"},
		{"http://a:1/base", "", "", "", "--url http://a:1/base: want an address such as"},
		{"http://a:1/v1/keys", "", "", "", "without a path"},
		{"http://a:1,ftp://b", "", "", "", "--url ftp://b: want an address"},
		{"http://a:1,https://b:1", "", "", "", "differ in their scheme"},
		{"http://a:1,http://b:65535", "", "", "", "no port after that one"},
		{"http://a:1", "b:2,c", "", "", "--grpc-addr c: want host:port"},
		{"http://a:1", "b:2,,c:3", "", "", "--grpc-addr : want host:port"},
	} {
		target := Target{URL: tt.url, GRPC: tt.grpc}
		err := target.Complete()
		if tt.wrong != "" {
			if err == nil || ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s %s: got %v, want %s", tt.url, tt.grpc, err, tt.wrong)
			}
			continue
		}
		urls, sessions := strings.Join(target.URLs(), " "), strings.Join(target.Sessions, " ")
		if err != nil || urls != tt.urls || sessions != tt.sessions {
			t.Errorf("%s %s: %v, %s and %s; want %s and %s", tt.url, tt.grpc, err, urls, sessions, tt.urls, tt.sessions)
		}
		if encrypted := strings.HasPrefix(tt.url, "https"); encrypted != (target.TLS != nil) {
			t.Errorf("%s: TLS is %v", tt.url, target.TLS != nil)
		}
	}
}

// A credential may have the line break of the file that it comes from, and nothing else around it.
func TestCredentialLine(t *testing.T) {
	for given, right := range map[string]bool{
		"ilk_1": true, "ilk_1\n": true, "ilk_1\r\n": true,
		"ilk_1\r": false, "ilk_1\n\n": false, "\nilk_1": false, "ilk_\t1": false, "ilk 1": false,
	} {
		target := Target{URL: "a:1", Credential: given}
		if err := target.Complete(); (err == nil) != right || right && target.Credential != "ilk_1" {
			t.Errorf("%q: %v, %q", given, err, target.Credential)
		}
	}
}

// With another server to go to, signs of life come more often.
func TestBeatAfter(t *testing.T) {
	for url, want := range map[string]time.Duration{"a:1": 20 * time.Second, "a:1,b:1": 2 * time.Second} {
		target := Target{URL: url}
		if err := target.Complete(); err != nil {
			t.Fatal(err)
		}
		if got := target.BeatAfter(time.Minute); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}

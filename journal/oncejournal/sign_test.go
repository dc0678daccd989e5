package oncejournal

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The examples of "Signature Calculations for the Authorization Header" in the reference of S3's interface.
func TestSign(t *testing.T) {
	k := keys{id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	now := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, method, url, body string
		header                  map[string]string
		names, want             string
	}{
		{
			"GetObject", http.MethodGet, "/test.txt", "",
			map[string]string{"Range": "bytes=0-9"},
			"host;range;x-amz-content-sha256;x-amz-date",
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		},
		{
			"PutObject", http.MethodPut, "/test$file.text", "Welcome to Amazon S3.",
			map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"},
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
		},
		{
			"GetBucketLifecycle", http.MethodGet, "/?lifecycle", "", nil, "host;x-amz-content-sha256;x-amz-date",
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		},
		{
			"ListObjects", http.MethodGet, "/?max-keys=2&prefix=J", "", nil, "host;x-amz-content-sha256;x-amz-date",
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequest(c.method, "https://examplebucket.s3.amazonaws.com"+c.url, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			sign(r, []byte(c.body), k, scope{"us-east-1", "s3"}, now)
			want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=" +
				c.names + ", Signature=" + c.want
			if got := r.Header.Get("Authorization"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// Keys that end are signed for, too.
func TestSignSession(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "https://bucket.example/a b~c", nil)
	if err != nil {
		t.Fatal(err)
	}
	sign(r, nil, keys{id: "id", secret: "secret", session: "token"}, scope{"r", "s3"}, time.Unix(0, 0))
	if got := r.Header.Get("Authorization"); !strings.Contains(got, ";x-amz-security-token,") {
		t.Errorf("the token is not signed: %s", got)
	}
	if got := canonicalPath(r); got != "/a%20b~c" {
		t.Errorf("the path is %s", got)
	}
}

package oncejournal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// keys are what signs requests to S3.
type keys struct {
	id, secret string
	session    string    // of keys that end
	ends       time.Time // zero if they do not
}

// scope is what a signature is for.
type scope struct{ region, service string }

// Formats of times in Signature Version 4 of AWS.
const (
	signedTime = "20060102T150405Z"
	signedDay  = "20060102"
)

// sign adds a Signature Version 4 to a request: of the method, path, parameters, host and all headers that are
// set, and of the body by its checksum.
func sign(r *http.Request, body []byte, k keys, s scope, now time.Time) {
	now = now.UTC()
	r.Header.Set("X-Amz-Date", now.Format(signedTime))
	r.Header.Set("X-Amz-Content-Sha256", checksum(body))
	if k.session != "" {
		r.Header.Set("X-Amz-Security-Token", k.session)
	}
	names, headers := canonicalHeaders(r)
	request := strings.Join([]string{
		r.Method, canonicalPath(r), canonicalQuery(r), headers, names, r.Header.Get("X-Amz-Content-Sha256"),
	}, "\n")
	day := now.Format(signedDay)
	within := day + "/" + s.region + "/" + s.service + "/aws4_request"
	text := "AWS4-HMAC-SHA256\n" + now.Format(signedTime) + "\n" + within + "\n" + checksum([]byte(request))
	key := []byte("AWS4" + k.secret)
	for _, part := range []string{day, s.region, s.service, "aws4_request"} {
		key = authenticate(key, part)
	}
	r.Header.Set(
		"Authorization", "AWS4-HMAC-SHA256 Credential="+k.id+"/"+within+", SignedHeaders="+names+
			", Signature="+hex.EncodeToString(authenticate(key, text)),
	)
}

// canonicalHeaders returns the names of the signed headers, and the headers, each in a line.
func canonicalHeaders(r *http.Request) (names, lines string) {
	values := map[string]string{"host": r.Host}
	list := []string{"host"}
	for name, all := range r.Header {
		name = strings.ToLower(name)
		trimmed := make([]string, len(all))
		for i, v := range all {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		values[name] = strings.Join(trimmed, ",")
		list = append(list, name)
	}
	slices.Sort(list)
	var b strings.Builder
	for _, name := range list {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return strings.Join(list, ";"), b.String()
}

func canonicalPath(r *http.Request) string {
	if r.URL.Path == "" {
		return "/"
	}
	return escape(r.URL.Path, true)
}

func canonicalQuery(r *http.Request) string {
	var pairs []string
	for name, values := range r.URL.Query() {
		for _, value := range values {
			pairs = append(pairs, escape(name, false)+"="+escape(value, false))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape encodes all bytes but the unreserved ones of a URL, and slashes unless they are a path's.
func escape(text string, path bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0,
			path && c == '/':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func authenticate(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

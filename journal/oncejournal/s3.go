package oncejournal

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// s3Gather is how far apart barriers begin: each costs two requests, and the bucket is not near.
const s3Gather = 50 * time.Millisecond

// headHeader carries the head of an object.
const headHeader = "X-Amz-Meta-Interlock"

// ConnectS3 makes a store. It sends nothing yet.
func ConnectS3(at S3Place) (*remote.Store, error) {
	s := &s3{client: newClient(), at: at, base: at.base(), keys: newKeySource(newLocalClient())}
	return remote.New(newDriver(s, s3Gather), at.Patience), nil
}

// s3 is a journal's objects in a bucket: PREFIX/SHARD/NAME.
type s3 struct {
	client *http.Client
	at     S3Place
	base   string
	keys   *keySource
}

func (s *s3) where() string { return s.at.where() }

func (s *s3) shard(n int) objects {
	other := *s
	other.at.Shard = n
	return &other
}

func (s *s3) close() { s.client.CloseIdleConnections() }

func (s *s3) place(name string) string { return "s3://" + s.at.Bucket + "/" + s.key(name) }

func (s *s3) key(name string) string { return fmt.Sprintf("%s/%d/%s", s.at.Prefix, s.at.Shard, name) }

// conditionName is the object that a store is tried with.
const conditionName = "condition"

// check refuses a store that ignores conditions: it would let two servers own the journal.
func (s *s3) check(ctx context.Context) error {
	try := func(was string) (bool, error) {
		_, done, err := s.put(ctx, object{name: conditionName, data: fresh(nil)}, was, "")
		return done, err
	}
	refuse := func(what string) error {
		return remote.Final(fmt.Errorf("s3: %w: the service replaces objects in spite of %s", remote.ErrUnsafe, what))
	}
	created, err := try("")
	if err == nil && created {
		if created, err = try(""); created {
			return refuse("If-None-Match: *")
		}
	}
	if err != nil {
		return err
	}
	replaced, err := try(`"00000000000000000000000000000000"`)
	if replaced {
		return refuse("an If-Match that does not hold")
	}
	return err
}

// put implements objects. It compares free first, and then the version in the same step as it writes.
func (s *s3) put(ctx context.Context, o object, was, free string) (version string, done bool, err error) {
	if free != "" {
		list, err := s.read(ctx, []string{free}, false)
		if err != nil || list[0].exists() {
			return "", false, err
		}
	}
	header := map[string]string{"Content-Type": "application/octet-stream"}
	if o.head != "" {
		header[headHeader] = o.head
	}
	switch was {
	case "":
		header["If-None-Match"] = "*"
	case remote.AnyVersion:
	default:
		header["If-Match"] = was
	}
	a, err := s.call(ctx, http.MethodPut, s.key(o.name), nil, header, o.data)
	if err != nil {
		return "", false, err
	}
	switch {
	case a.status == http.StatusPreconditionFailed, a.status == http.StatusNotFound && a.code() == "NoSuchKey":
		return "", false, nil
	case a.status != http.StatusOK:
		return "", false, s.explain(&a)
	}
	if version = a.header.Get("Etag"); version == "" {
		return "", false, errors.New("s3: the answer to a write has no ETag")
	}
	return version, true, nil
}

// read implements objects.
func (s *s3) read(ctx context.Context, names []string, whole bool) ([]object, error) {
	method := http.MethodHead
	if whole {
		method = http.MethodGet
	}
	list := make([]object, len(names))
	return list, each(len(names), func(i int) error {
		list[i].name = names[i]
		a, err := s.call(ctx, method, s.key(names[i]), nil, nil, nil)
		switch {
		case err != nil:
			return err
		case a.status == http.StatusNotFound && a.code() != "NoSuchBucket":
			return nil
		case a.status != http.StatusOK:
			return s.explain(&a)
		}
		o := &list[i]
		o.head, o.data, o.version = a.header.Get(headHeader), a.body, a.header.Get("Etag")
		if o.version == "" {
			return errors.New("s3: the answer to a read has no ETag")
		}
		return nil
	})
}

// list implements objects.
func (s *s3) list(ctx context.Context, prefix string) (names []string, err error) {
	parameters := url.Values{"list-type": {"2"}, "prefix": {s.key(prefix)}}
	for {
		a, err := s.call(ctx, http.MethodGet, "", parameters, nil, nil)
		if err != nil {
			return nil, err
		}
		if a.status != http.StatusOK {
			return nil, s.explain(&a)
		}
		var page struct {
			Contents []struct{ Key string }
			More     bool   `xml:"IsTruncated"`
			Next     string `xml:"NextContinuationToken"`
		}
		if err := xml.Unmarshal(a.body, &page); err != nil {
			return nil, fmt.Errorf("s3: the answer to a listing: %w", err)
		}
		for _, c := range page.Contents {
			names = append(names, strings.TrimPrefix(c.Key, s.key("")))
		}
		if !page.More {
			return names, nil
		}
		if page.Next == "" {
			return nil, errors.New("s3: the answer to a listing is cut off")
		}
		parameters.Set("continuation-token", page.Next)
	}
}

// remove implements objects, one request for each, because not every service deletes several at once.
func (s *s3) remove(ctx context.Context, list []object) error {
	return each(len(list), func(i int) error {
		a, err := s.call(ctx, http.MethodDelete, s.key(list[i].name), nil, nil, nil)
		switch {
		case err != nil:
			return err
		case a.status == http.StatusOK, a.status == http.StatusNoContent, a.status == http.StatusNotFound:
			return nil
		}
		return s.explain(&a)
	})
}

// call carries a request out. The key "" means the bucket.
func (s *s3) call(
	ctx context.Context, method, key string, parameters url.Values, header map[string]string, body []byte,
) (a answer, err error) {
	address := s.base + "/" + escape(key, true)
	if len(parameters) > 0 {
		address += "?" + strings.ReplaceAll(parameters.Encode(), "+", "%20")
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	k, err := s.keys.get(ctx)
	if err != nil {
		return a, fmt.Errorf("s3: %w", err)
	}
	sign(r, body, k, scope{s.at.Region, "s3"}, time.Now())
	if a, err = send(s.client, r); err != nil {
		return a, fmt.Errorf("s3: %w", err)
	}
	return a, nil
}

// refusal is the body of an error.
func (a *answer) refusal() (code, message string) {
	var e struct{ Code, Message string }
	_ = xml.Unmarshal(a.body, &e) // the answer to HEAD has none
	return e.Code, e.Message
}

func (a *answer) code() string {
	code, _ := a.refusal()
	return code
}

// explain tells remote what an answer means.
func (s *s3) explain(a *answer) error {
	code, message := a.refusal()
	err := fmt.Errorf("s3: status %d %s %s", a.status, code, message)
	switch {
	case a.status == http.StatusInsufficientStorage, code == "QuotaExceeded", code == "XMinioStorageFull":
		return fmt.Errorf("%w: %w", journal.ErrNoSpace, err)
	case code == "ExpiredToken", code == "TokenRefreshRequired":
		s.keys.forget()
		return err
	case a.status >= 300 && a.status < 400:
		return remote.Final(fmt.Errorf("%w: the bucket is in another region: set the parameter region (%s)",
			err, a.header.Get("X-Amz-Bucket-Region")))
	case a.status == http.StatusForbidden:
		return remote.Final(fmt.Errorf(
			"%w: the keys need s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket, and the clock must be right", err,
		))
	case a.status == http.StatusNotImplemented:
		return remote.Final(fmt.Errorf("%w: %w: it does not know conditional writes", err, remote.ErrUnsafe))
	case a.status >= 500, a.status == http.StatusTooManyRequests, a.status == http.StatusConflict,
		a.status == http.StatusRequestTimeout:
		return err
	}
	return remote.Final(err)
}

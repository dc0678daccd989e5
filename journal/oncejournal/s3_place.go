package oncejournal

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// S3Place is where a journal in a bucket is.
type S3Place struct {
	Bucket string
	Prefix string // of the names of all objects, without a slash at its end

	// Shard is the number of the shard that the journal belongs to.
	Shard int

	// Endpoint is the URL of the service; paths begin with the bucket. "" means that of AWS in the region.
	Endpoint string
	Region   string

	// Patience is how long a request may go unanswered before the journal fails, or a waiting
	// server tries again. 0 means remote.DefaultPatience.
	Patience time.Duration
}

var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
	regionForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
)

const s3Form = "s3://BUCKET/PREFIX"

// mostPrefix bounds the prefix, because a name has at most 1,024 bytes.
const mostPrefix = 256

// ParseS3 reads a URL:
//
//	s3://BUCKET/PREFIX?region=REGION&endpoint=URL
//
// The region is that of AWS_REGION if the URL contains none.
func ParseS3(text string) (p S3Place, err error) {
	rest, ok := strings.CutPrefix(text, "s3://")
	if !ok {
		return p, errors.New("want " + s3Form)
	}
	rest, query, _ := strings.Cut(rest, "?")
	p.Bucket, p.Prefix, _ = strings.Cut(rest, "/")
	switch {
	case strings.Contains(p.Bucket, "@"):
		return p, errors.New("it contains a key, which other processes would see: use AWS_ACCESS_KEY_ID and its like")
	case !bucketForm.MatchString(p.Bucket):
		return p, errors.New("the bucket: want 3 to 63 of a-z, 0-9, '.' and '-': " + s3Form)
	case !prefixForm.MatchString(p.Prefix) || len(p.Prefix) > mostPrefix || strings.Contains("/"+p.Prefix+"/", "/../") ||
		strings.Contains("/"+p.Prefix+"/", "/./"):
		return p, errors.New("the prefix: want letters, digits, '.', '_', '-' and '/', at most 256: " + s3Form)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("its parameters: %w", err)
	}
	for key := range values {
		switch value := values.Get(key); key {
		case "endpoint":
			p.Endpoint = strings.TrimSuffix(value, "/")
		case "region":
			p.Region = value
		default:
			return p, fmt.Errorf("the parameter %q: want endpoint or region", key)
		}
	}
	if p.Endpoint != "" {
		u, err := url.Parse(p.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.User != nil {
			return p, errors.New("the parameter endpoint: want a URL such as https://storage.internal:9000")
		}
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if p.Region == "" {
			p.Region = os.Getenv(name)
		}
	}
	switch {
	case p.Region == "" && p.Endpoint != "":
		p.Region = "us-east-1" // what services of others expect
	case !regionForm.MatchString(p.Region):
		return p, errors.New("the region: add region=REGION, such as region=eu-central-1, or set AWS_REGION")
	}
	return p, nil
}

// where names the journal for all servers alike.
func (p *S3Place) where() string {
	return fmt.Sprintf("bucket %s, %s/%d", p.Bucket, p.Prefix, p.Shard)
}

// base is the URL of the bucket.
func (p *S3Place) base() string {
	switch {
	case p.Endpoint != "":
		return p.Endpoint + "/" + p.Bucket
	case strings.Contains(p.Bucket, "."): // the certificate of AWS is not valid for it
		return "https://s3." + p.Region + ".amazonaws.com/" + p.Bucket
	}
	return "https://" + p.Bucket + ".s3." + p.Region + ".amazonaws.com"
}

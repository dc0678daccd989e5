package oncejournal_test

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/journal/oncejournal"
)

func TestParseFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/etc/key.json")
	for text, want := range map[string]oncejournal.FirestorePlace{
		"firestore://my-project/default/main": {
			Project: "my-project", Database: "(default)", Name: "main", Credentials: "/etc/key.json",
		},
		"firestore://example.com:web/(default)/a?emulator=127.0.0.1:8080": {
			Project: "example.com:web", Database: "(default)", Name: "a", Credentials: "/etc/key.json",
			Emulator: "127.0.0.1:8080",
		},
		"firestore://p/locks/a.b-c_1?credentials=k.json": {
			Project: "p", Database: "locks", Name: "a.b-c_1", Credentials: "k.json",
		},
	} {
		if got, err := oncejournal.ParseFirestore(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"s3://a/b":                       "want firestore://PROJECT/DATABASE/NAME",
		"firestore://project/main":       "want firestore://PROJECT/DATABASE/NAME",
		"firestore://p/default/a/b":      "want firestore://PROJECT/DATABASE/NAME",
		"firestore://P!/default/main":    "the project",
		"firestore://p/x/main":           "the database",
		"firestore://p/default/":         "the name",
		"firestore://p/default/a?ca=b":   `the parameter "ca"`,
		"firestore://p/default/a%20?b=%": "its parameters",
	} {
		if _, err := oncejournal.ParseFirestore(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestParseS3(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "eu-west-1")
	for text, want := range map[string]oncejournal.S3Place{
		"s3://my-bucket/main":                      {Bucket: "my-bucket", Prefix: "main", Region: "eu-west-1"},
		"s3://my.bucket/a/b.c?region=eu-central-1": {Bucket: "my.bucket", Prefix: "a/b.c", Region: "eu-central-1"},
		"s3://locks/main?endpoint=https://storage.internal:9000/": {
			Bucket: "locks", Prefix: "main", Region: "eu-west-1", Endpoint: "https://storage.internal:9000",
		},
	} {
		if got, err := oncejournal.ParseS3(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	t.Setenv("AWS_DEFAULT_REGION", "")
	for text, want := range map[string]string{
		"firestore://p/default/main":                      "want s3://BUCKET/PREFIX",
		"s3://id:secret@bucket/main":                      "AWS_ACCESS_KEY_ID",
		"s3://Bucket/main?region=r":                       "the bucket: want 3 to 63",
		"s3://bucket?region=r":                            "the prefix",
		"s3://bucket/a/../b?region=r":                     "the prefix",
		"s3://bucket/main":                                "the region",
		"s3://bucket/main?secret=a":                       `the parameter "secret"`,
		"s3://bucket/main?endpoint=storage:9000":          "the parameter endpoint",
		"s3://bucket/main?endpoint=https://a:b@storage:1": "the parameter endpoint",
	} {
		_, err := oncejournal.ParseS3(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "id:secret") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

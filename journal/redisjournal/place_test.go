package redisjournal_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/journal/redisjournal"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]redisjournal.Place{
		"redis://db1,db2:6380/3": {Hosts: []string{"db1:6379", "db2:6380"}, Database: 3, Name: "main", Replicas: -1},
		"redis://me@[::1]/?journal=a.b-c_1&replicas=2": {
			Hosts: []string{"[::1]:6379"}, User: "me", Name: "a.b-c_1", Replicas: 2,
		},
		"rediss://db?ca=a&cert=b&key=c": {
			Hosts: []string{"db:6379"}, Name: "main", Replicas: -1, TLS: true, CA: "a", Cert: "b", Key: "c",
		},
	} {
		if got, err := redisjournal.ParsePlace(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"etcd://db/locks":            "want redis://",
		"redis://":                   "want redis://",
		"redis://db,/0":              "want redis://",
		"redis://me:secret@db":       "REDISCLI_AUTH",
		"redis://:secret@db":         "REDISCLI_AUTH",
		"redis://db?password=secret": "REDISCLI_AUTH",
		"redis://db/main":            "the database is a number",
		"redis://db?journal=":        "the parameter journal",
		"redis://db?journal=a}b":     "the parameter journal",
		"redis://db?replicas=-1":     "the parameter replicas",
		"redis://db?replicas=17":     "the parameter replicas",
		"redis://db?timeout=3":       `the parameter "timeout"`,
		"redis://db?ca=a":            "want rediss://",
		"rediss://db?cert=a":         "belong together",
		"redis://db?journal=%zz&x=1": "its parameters",
	} {
		_, err := redisjournal.ParsePlace(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

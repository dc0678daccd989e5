package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The table of times has a column for each commit, from the history of the repository and from this checkout.
func TestTimes(t *testing.T) {
	root := t.TempDir()
	old := strings.Join(columns, ",") + "\n" +
		"2026-11-01 10:00:00,aaaaaaaaaaaa,2,unit,400,700,1.5,5000,0,0\n" +
		"2026-11-02 10:00:00,bbbbbbbbbbbb,2,unit,380,690,1.5,5000,0,0\n" +
		"2026-11-02 10:10:00,bbbbbbbbbbbb,2,race,300,500,1.5,2000,0,1\n"
	path := filepath.Join(root, history)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	results := []result{{suite: &suite{name: "unit"}, record: record{Passed: 5001, Seconds: 360.4, CPU: 650, Load: 2.25}}}
	for range 2 { // the second run of a commit replaces the first one in the table
		if err := addTimes(root, time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC), results); err != nil {
			t.Fatal(err)
		}
		results[0].record.Seconds--
	}
	var out strings.Builder
	if err := printTimes(&out, root, 2); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seconds/cpu   bbbbbbbbbbbb       unknown\n", "unit               380/690       359/650\n", "race               300/500             -\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	rows, err := readTimes(filepath.Join(root, times))
	if err != nil || len(rows) != 2 || len(rows[0]) != len(columns) || rows[0][9] != "0" {
		t.Errorf("the times of this checkout are %q, %v", rows, err)
	}
}

func TestSlow(t *testing.T) {
	folder := t.TempDir()
	for _, r := range []record{
		{Suite: "unit", Tests: []testTime{{"engine", "TestModel", 9}, {"sim", "TestWorlds", 3}}},
		{Suite: "race", Tests: []testTime{{"server", "TestPast", 5}}},
	} {
		if err := r.write(folder); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := printSlow(&out, folder, 2); err != nil {
		t.Fatal(err)
	}
	want := "     9.0 s  unit       engine TestModel\n     5.0 s  race       server TestPast\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

package journal

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/gen/source"
)

const root = "../../.."

// TestEmitRefuses changes sources so that a number or a tag is missing, taken or wrong.
func TestEmitRefuses(t *testing.T) {
	tree, err := source.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Emit(tree); err != nil {
		t.Fatal(err)
	}
	const command = "engine/command.go"
	for _, c := range []struct{ file, was, is, want string }{
		// A new field without a decision.
		{command, "type Leave struct {", "type Leave struct {\n\tWhy string", "Leave.Why has no tag fingerprint"},
		{"lease.go", "type LeaseRequest struct {", "type LeaseRequest struct {\n\tWhy string", "LeaseRequest.Why has no tag"},
		{"task.go", "type Question struct {", "type Question struct {\n\tWhy string", "Question.Why has no tag fingerprint"},
		{"pattern.go", "type Pattern struct {", "type Pattern struct {\n\tWhy string", "Pattern.Why has no tag journal"},
		{"engine/record/run.go", "type Run struct {", "type Run struct {\n\tWhy string", "Run.Why has no tag journal"},
		{"task.go", "	Weight int", "	Wait int", "Share: Weight is in the table of tags"},

		{"engine/record/run.go", `"2"`, `"1"`, "have the number 1"},
		{"engine/record/run.go", `"2"`, `"2,sometimes"`, `"sometimes" is no option`},
		{"engine/record/run.go", `"2"`, `"two"`, `it begins with "two"`},
		{"engine/record/run.go", "Workflow string", "Workflow float64", "nothing writes the type float64"},

		{command, "Head   `fingerprint:\"3\"`", "Head   `fingerprint:\"2\"`", "Leave and Release have the number 2"},
		{command, "`fingerprint:\"2,bit=0\"`", "`fingerprint:\"3,bit=0\"`", "Park.Keep: Keep is not bit 0"},
		{command, "`fingerprint:\"2,bit=1\"`", "`fingerprint:\"2,bit=2\"`", "Keep is not bit 1"},
		{command, "`fingerprint:\"2,bit=1\"`", "`fingerprint:\"3\"`", "For has its number, too"},
		{command, "`fingerprint:\"5,omitzero\"`", "`fingerprint:\"6,omitzero\"`", "Unapproved has the number 6, want 5"},
		{command, "`fingerprint:\"5,omitzero\"`", "`fingerprint:\"+2\"`", "Unapproved has the number +2, want +1"},
		{"engine/view.go", "`fingerprint:\"3\"`", "`fingerprint:\"+1\"`", "FlowRef: + is for the body of a command"},
	} {
		text, err := tree.Read(c.file)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), c.was, c.is, 1)
		if changed == string(text) {
			t.Errorf("%s has no %q", c.file, c.was)
			continue
		}
		_, err = Emit(tree.With(map[string]string{c.file: changed}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v, want %q", c.file, c.is, err, c.want)
		}
	}
}

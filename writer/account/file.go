package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// File is the content of a policy file: the accounts that there are, their policies, and the
// rights at the queue of their writer.
//
//	{"shape": "account:{id:int}", "writers": ["teller"], "accounts": [
//	  {"keys": "account:1", "policy": {"currency": "EUR", "decimals": 2}},
//	  {"keys": "account:*", "policy": {"currency": "EUR", "decimals": 2, "approve_above": 50000}}
//	]}
type File struct {
	Queue   string `json:"queue"`   // of the writer; "": DefaultQueue
	Pattern string `json:"pattern"` // the name of the accounts' pattern; "": DefaultPattern
	Shape   string `json:"shape"`   // the shape of their keys

	// The access lists of the queue: names of credentials, or "group:" and the name of a
	// claimant group. A server without credentials has no use for them.
	Writers      []string `json:"writers"`       // may pull, so they alone change accounts
	Senders      []string `json:"senders"`       // may send commands; empty: every agent
	Approvers    []string `json:"approvers"`     // may answer questions; empty: every approver
	MinApprovals int      `json:"min_approvals"` // how many must approve; 0: one

	// Accounts are looked at in order: the first entry that fits a key counts. A key that
	// none fits is no account.
	Accounts []Kept `json:"accounts"`
}

// Kept assigns accounts a policy.
type Kept struct {
	Keys   string `json:"keys"` // a key, or the beginning of keys and then *
	Policy Policy `json:"policy"`
}

// Defaults of a policy file.
const (
	DefaultQueue   = "accounts"
	DefaultPattern = "account"
)

// MaxFileBytes bounds a policy file.
const MaxFileBytes = 4 << 20

// FileError reports what is wrong in a policy file, and where.
type FileError struct {
	Line, Column int    // of the value or the name, from 1
	Field        string // such as accounts[0].policy.floor; "" for the file as a whole
	Err          error
}

func (e *FileError) Error() string {
	where := fmt.Sprintf("%d:%d: ", e.Line, e.Column)
	if e.Field != "" {
		where += e.Field + ": "
	}
	return where + e.Err.Error()
}

func (e *FileError) Unwrap() error { return e.Err }

// ParseFile reads a policy file. It refuses what it does not know, what stands there
// twice, and policies that Check refuses; the error is a *FileError.
func ParseFile(text []byte) (*File, error) {
	if len(text) > MaxFileBytes {
		return nil, &FileError{1, 1, "", fmt.Errorf("the file has more than %d bytes", MaxFileBytes)}
	}
	r := &fileReader{text: text, d: json.NewDecoder(strings.NewReader(string(text))), at: map[string]int{}}
	f := &File{}
	if err := r.value(reflect.TypeFor[File](), ""); err != nil {
		return nil, err
	}
	end := r.start()
	if _, err := r.d.Token(); err != io.EOF {
		return nil, r.wrong(end, "", errors.New("there is something behind the JSON object"))
	}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, r.wrong(0, "", err) // the reader has seen to everything that has a place
	}
	if f.Queue == "" {
		f.Queue = DefaultQueue
	}
	if f.Pattern == "" {
		f.Pattern = DefaultPattern
	}
	if field, err := f.check(); err != nil {
		return nil, r.wrong(r.at[field], field, err)
	}
	return f, nil
}

// Prefix returns the common prefix of the keys of all accounts.
func (f *File) Prefix() string {
	prefix, _, _ := strings.Cut(f.Shape, "{")
	return prefix
}

// Policy returns the policy of an account; the zero Policy means that there is none.
func (f *File) Policy(account interlock.Key) (Policy, error) {
	for i := range f.Accounts {
		if f.Accounts[i].fits(string(account)) {
			return f.Accounts[i].Policy, nil
		}
	}
	return Policy{}, nil
}

func (k *Kept) fits(key string) bool {
	if begin, many := strings.CutSuffix(k.Keys, "*"); many {
		return strings.HasPrefix(key, begin)
	}
	return key == k.Keys
}

// check finds what in a file can never be, and in which field.
func (f *File) check() (field string, err error) {
	switch {
	case f.Shape == "":
		return "", errors.New(`"shape" is missing: it is the shape of the accounts' keys, such as account:{id:int}`)
	case f.Prefix() == "":
		return "shape", errors.New("the keys of accounts begin with a text of their own, such as account:{id:int}")
	case f.MinApprovals < 0 || f.MinApprovals > interlock.MaxAccess:
		return "min_approvals", fmt.Errorf("want a number from 0 to %d", interlock.MaxAccess)
	case len(f.Accounts) == 0:
		return "accounts", errors.New("there are none: every command would be refused")
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"writers", f.Writers}, {"senders", f.Senders}, {"approvers", f.Approvers}} {
		if slices.Contains(list.names, "") {
			return list.field, errors.New("an entry is empty: name a credential, or group: and a claimant group")
		}
	}
	for i := range f.Accounts {
		k, field := &f.Accounts[i], fmt.Sprintf("accounts[%d]", i)
		switch {
		case k.Keys == "":
			return field, errors.New(`"keys" is missing: it is a key, or the beginning of keys and then *`)
		case strings.Contains(strings.TrimSuffix(k.Keys, "*"), "*"):
			return field + ".keys", errors.New("a * stands at the end only")
		case !strings.HasPrefix(k.Keys, f.Prefix()) && k.Keys != "*":
			return field + ".keys", fmt.Errorf("no key of shape %s begins so", f.Shape)
		}
		for j := range f.Accounts[:i] {
			if f.Accounts[j].covers(k) {
				return field + ".keys", fmt.Errorf("it never counts, because accounts[%d] fits every key that it fits", j)
			}
		}
		if err := k.Policy.Check(); err != nil {
			return field + ".policy", err
		}
	}
	return "", nil
}

// covers reports whether k fits every key that other fits.
func (k *Kept) covers(other *Kept) bool {
	begin, many := strings.CutSuffix(other.Keys, "*")
	if many && !strings.HasSuffix(k.Keys, "*") {
		return false
	}
	return k.fits(begin)
}

// fileReader walks through the JSON text of a file beside the type that it is to be, so
// that each mistake has a place.
type fileReader struct {
	text []byte
	d    *json.Decoder
	at   map[string]int // where the value of each field begins
}

// start is where the next token begins.
func (r *fileReader) start() int {
	at := int(r.d.InputOffset())
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return at
}

// wrong makes an error of one at a place of the text.
func (r *fileReader) wrong(at int, field string, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset > int64(at) {
		at = int(syntax.Offset) - 1
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = len(r.text), errors.New("the text ends too early")
	}
	before := string(r.text[:min(at, len(r.text))])
	return &FileError{strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n'), field, err}
}

// value reads a value that is to be of type t.
func (r *fileReader) value(t reflect.Type, field string) error {
	at := r.start()
	r.at[field] = at
	if t == reflect.TypeFor[Policy]() {
		t = reflect.TypeFor[policyJSON]()
	}
	var first byte
	if at < len(r.text) {
		first = r.text[at]
	}
	switch kind := t.Kind(); {
	case first == 'n':
		return r.wrong(at, field, errors.New("null is no value: leave the field out"))
	case kind == reflect.Struct && first != '{', kind == reflect.Slice && first != '[':
		if err := r.d.Decode(new(json.RawMessage)); err != nil {
			return r.wrong(at, field, err)
		}
		want := "an object: {...}"
		if kind == reflect.Slice {
			want = "a list: [...]"
		}
		return r.wrong(at, field, errors.New("want "+want))
	case kind == reflect.Struct:
		return r.object(t, field)
	case kind == reflect.Slice:
		return r.list(t.Elem(), field)
	}
	v := reflect.New(t).Interface()
	if err := r.d.Decode(v); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return r.wrong(at, field, fmt.Errorf("a %s is no %s", bad.Value, typeName(t)))
		}
		return r.wrong(at, field, err)
	}
	if ms, ok := v.(*int64); ok && strings.HasSuffix(field, "_ms") && (*ms < 0 || *ms > maxDuration.Milliseconds()) {
		return r.wrong(at, field, fmt.Errorf("a time is from 0 to %d ms", maxDuration.Milliseconds()))
	}
	return nil
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	}
	return "whole number in range"
}

func (r *fileReader) list(elem reflect.Type, field string) error {
	if _, err := r.d.Token(); err != nil {
		return r.wrong(r.start(), field, err)
	}
	for i := 0; r.d.More(); i++ {
		if err := r.value(elem, fmt.Sprintf("%s[%d]", field, i)); err != nil {
			return err
		}
	}
	_, err := r.d.Token()
	if err != nil {
		return r.wrong(r.start(), field, err)
	}
	return nil
}

func (r *fileReader) object(t reflect.Type, field string) error {
	if _, err := r.d.Token(); err != nil {
		return r.wrong(r.start(), field, err)
	}
	known, names := fieldsOf(t)
	seen := map[string]bool{}
	for r.d.More() {
		at := r.start()
		token, err := r.d.Token()
		if err != nil {
			return r.wrong(at, field, err)
		}
		name, _ := token.(string)
		of, ok := known[name]
		switch {
		case !ok:
			return r.wrong(at, field, fmt.Errorf("there is no field %q: want one of %s", name, strings.Join(names, ", ")))
		case seen[name]:
			return r.wrong(at, field, fmt.Errorf("the field %q stands here twice", name))
		}
		seen[name] = true
		if field != "" {
			name = field + "." + name
		}
		if err := r.value(of, name); err != nil {
			return err
		}
	}
	if _, err := r.d.Token(); err != nil {
		return r.wrong(r.start(), field, err)
	}
	return nil
}

// fieldsOf lists the JSON fields of a struct, with those of embedded ones.
func fieldsOf(t reflect.Type) (known map[string]reflect.Type, names []string) {
	known = map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" || name == "" {
			continue
		}
		known[name] = f.Type
		names = append(names, name)
	}
	return known, names
}

// Meaning returns in sentences what a file allows.
func (f *File) Meaning() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	everyone := func(names []string, who string) string {
		if len(names) == 0 {
			return who
		}
		return strings.Join(names, ", ")
	}
	say(
		"keys %s are changed by the workers of queue %s alone: %s", f.Shape, f.Queue,
		everyone(f.Writers, "every worker of it"),
	)
	say("commands come from: %s", everyone(f.Senders, "every agent"))
	say("questions are answered by: %s; %d must say yes", everyone(f.Approvers, "every approver"), max(f.MinApprovals, 1))
	for i := range f.Accounts {
		k := &f.Accounts[i]
		p := &k.Policy
		say("%s: in %s, at least %s stay available", k.Keys, p.Currency, p.show(p.Floor))
		if p.TransferTo != "" {
			say("  transfers go to %s..., and have %v to arrive", p.TransferTo, orDefault(p.TransferFor, DefaultTransferFor))
		}
		if len(p.Rules) == 0 {
			say("  everybody may do everything%s", p.bounds("*", Credit))
		}
		for j := range p.Rules {
			r := &p.Rules[j]
			who, may := r.Requester, "everything"
			if who == "*" {
				who = "everybody"
				if j > 0 {
					who = "everybody else"
				}
			}
			if len(r.Kinds) > 0 {
				var names []string
				for _, k := range r.Kinds {
					names = append(names, string(k))
				}
				may = strings.Join(names, ", ")
			}
			say("  %s may do %s%s", who, may, p.ruleBounds(r))
		}
		if n := len(p.Rules); n > 0 && p.Rules[n-1].Requester != "*" {
			say("  everything else is refused")
		}
	}
	say("every other key is no account")
	return lines
}

// bounds returns how a requester is bounded where there are no rules.
func (p *Policy) bounds(by string, k Kind) string {
	rule, _ := p.rule(by, k)
	return p.ruleBounds(&rule)
}

// ruleBounds returns what a rule bounds, with the bounds of the account.
func (p *Policy) ruleBounds(r *Rule) string {
	var b strings.Builder
	most := least(p.MaxAmount, r.MaxAmount)
	if most != 0 {
		fmt.Fprintf(&b, "; %s at most in one command", p.show(most))
	}
	if ask := least(p.ApproveAbove, r.ApproveAbove); ask != 0 && (most == 0 || ask < most) {
		fmt.Fprintf(&b, "; above %s a person decides", p.show(ask))
		if p.ApproveWithin != 0 {
			fmt.Fprintf(&b, ", within %v", p.ApproveWithin)
		}
	}
	if r.DayOut != 0 {
		fmt.Fprintf(&b, "; takes %s a day", p.show(r.DayOut))
	}
	if r.DayIn != 0 {
		fmt.Fprintf(&b, "; gives %s a day", p.show(r.DayIn))
	}
	if len(p.Rules) > 0 {
		fmt.Fprintf(&b, "; priority up to %d", r.Urgency)
	}
	if r.Settle && len(p.Rules) > 0 {
		b.WriteString("; settles holds of others")
	}
	return b.String()
}

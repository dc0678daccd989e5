package oncejournal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/journal/remote"
)

// A journal in Firestore is the documents interlock/NAME.SHARD/interlock_object/ID. A record's ID begins with a
// hash of its number, so that appends are spread over the store; all others are the name with ":" for "/". A document
// has the fields "head" and "data". A frame above partBytes continues in the document ID~1, which is created in the
// same commit.
const (
	collection = "interlock_object"
	partBytes  = 900_000 // a document has at most 1 MiB
)

// ConnectFirestore makes a store. It sends nothing yet.
func ConnectFirestore(at FirestorePlace) (*remote.Store, error) {
	token, err := at.token()
	if err != nil {
		return nil, err
	}
	f := &firestore{client: newClient(), at: at, token: token, base: at.base()}
	return remote.New(newDriver(f, 0), at.Patience), nil
}

// firestore is a journal's objects in Firestore, by its REST interface.
type firestore struct {
	client *http.Client
	at     FirestorePlace
	base   string // of the interface
	token  tokens
}

// document is one of Firestore.
type document struct {
	Name       string           `json:"name"`
	Fields     map[string]field `json:"fields,omitempty"`
	UpdateTime string           `json:"updateTime,omitempty"`
}

type field struct {
	Bytes  []byte `json:"bytesValue,omitempty"`
	String string `json:"stringValue,omitempty"`
}

type precondition struct {
	Exists     *bool  `json:"exists,omitempty"`
	UpdateTime string `json:"updateTime,omitempty"`
}

type change struct {
	Update    *document     `json:"update,omitempty"`
	Delete    string        `json:"delete,omitempty"`
	Condition *precondition `json:"currentDocument,omitempty"`
}

var absent = func() *precondition { no := false; return &precondition{Exists: &no} }()

func (f *firestore) where() string { return f.at.where() }

func (f *firestore) shard(n int) objects {
	other := *f
	other.at.Shard = n
	return &other
}

// check does nothing: Firestore is what it is.
func (f *firestore) check(context.Context) error { return nil }

func (f *firestore) close() { f.client.CloseIdleConnections() }

func (f *firestore) place(name string) string {
	return fmt.Sprintf("Firestore, %s, document %s", f.at.where(), f.id(name))
}

// id returns the ID of the document with an object.
func (f *firestore) id(name string) string {
	if number, ok := strings.CutPrefix(name, "log/"); ok {
		return fmt.Sprintf("%02x-%s", crc32.ChecksumIEEE([]byte(number))&0xff, number)
	}
	return strings.ReplaceAll(name, "/", ":")
}

func (f *firestore) document(name string) string {
	return f.at.parent() + "/" + collection + "/" + f.id(name)
}

func part(document string, i int) string { return fmt.Sprintf("%s~%d", document, i) }

// put implements objects. Its comparisons and its writes are one commit.
func (f *firestore) put(ctx context.Context, o object, was, free string) (version string, done bool, err error) {
	name := f.document(o.name)
	first := &document{Name: name, Fields: map[string]field{}}
	if o.head != "" {
		first.Fields["head"] = field{String: o.head}
	}
	c := change{Update: first}
	switch was {
	case "":
		c.Condition = absent
	case remote.AnyVersion:
	default:
		c.Condition = &precondition{UpdateTime: was}
	}
	changes := []change{c}
	rest := o.data
	for i := 0; ; i++ {
		piece := rest[:min(len(rest), partBytes)]
		rest = rest[len(piece):]
		switch {
		case i == 0 && len(piece) > 0:
			first.Fields["data"] = field{Bytes: piece}
		case i > 0:
			changes = append(changes, change{Update: &document{
				Name: part(name, i), Fields: map[string]field{"data": {Bytes: piece}},
			}})
		}
		if len(rest) == 0 {
			first.Fields["parts"] = field{String: fmt.Sprint(i)}
			break
		}
	}
	if free != "" {
		// What is deleted if it does not exist is compared and not written.
		changes = append(changes, change{Delete: f.document(free), Condition: absent})
	}
	times, err := f.commit(ctx, changes)
	switch refusal, _ := errors.AsType[*firestoreError](err); {
	case refusal != nil && refusal.comparison():
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	return times[0], true, nil
}

// commit carries changes out, all or none, and returns the times of the updates.
func (f *firestore) commit(ctx context.Context, changes []change) (times []string, err error) {
	var got struct {
		WriteResults []struct {
			UpdateTime string `json:"updateTime"`
		} `json:"writeResults"`
	}
	if err := f.call(ctx, "documents:commit", map[string]any{"writes": changes}, &got); err != nil {
		return nil, err
	}
	for _, r := range got.WriteResults {
		times = append(times, r.UpdateTime)
	}
	if len(times) != len(changes) || times[0] == "" {
		return nil, errors.New("firestore: the answer to a commit has no time")
	}
	return times, nil
}

// read implements objects.
func (f *firestore) read(ctx context.Context, names []string, whole bool) ([]object, error) {
	wanted := make([]string, len(names))
	for i, name := range names {
		wanted[i] = f.document(name)
	}
	found, err := f.documents(ctx, wanted, whole)
	if err != nil {
		return nil, err
	}
	list := make([]object, len(names))
	var more []string
	for i, name := range names {
		list[i].name = name
		d, ok := found[wanted[i]]
		if !ok {
			continue
		}
		o := &list[i]
		o.head, o.data, o.version = d.Fields["head"].String, d.Fields["data"].Bytes, d.UpdateTime
		if _, err := fmt.Sscan(d.Fields["parts"].String, &o.parts); err != nil || o.parts < 0 {
			return nil, damaged(f, name, "it does not say in how many documents it is")
		}
		for n := 1; whole && n <= o.parts; n++ {
			more = append(more, part(wanted[i], n))
		}
	}
	if len(more) == 0 {
		return list, nil
	}
	if found, err = f.documents(ctx, more, whole); err != nil {
		return nil, err
	}
	for i := range list {
		for n := 1; n <= list[i].parts; n++ {
			d, ok := found[part(wanted[i], n)]
			if !ok {
				return nil, errMoved // or it is damaged, which is found when it is read again
			}
			list[i].data = append(list[i].data, d.Fields["data"].Bytes...)
		}
	}
	return list, nil
}

// documentsAtOnce bounds the whole documents of one answer, which may have a megabyte each.
const documentsAtOnce = 20

// documents reads documents by their names. One that does not exist is left out.
func (f *firestore) documents(ctx context.Context, names []string, whole bool) (map[string]document, error) {
	groups := [][]string{names}
	if whole {
		groups = slices.Collect(slices.Chunk(names, documentsAtOnce))
	}
	answers := make([]map[string]document, len(groups))
	err := each(len(groups), func(i int) (err error) {
		answers[i], err = f.group(ctx, groups[i], whole)
		return err
	})
	found := map[string]document{}
	for _, answer := range answers {
		maps.Copy(found, answer)
	}
	return found, err
}

func (f *firestore) group(ctx context.Context, names []string, whole bool) (map[string]document, error) {
	request := map[string]any{"documents": names}
	if !whole {
		request["mask"] = map[string]any{"fieldPaths": []string{"head", "parts"}}
	}
	var got []struct {
		Found   *document `json:"found"`
		Missing string    `json:"missing"`
	}
	if err := f.call(ctx, "documents:batchGet", request, &got); err != nil {
		return nil, err
	}
	found, answered := map[string]document{}, 0
	for _, g := range got {
		switch {
		case g.Found != nil:
			found[g.Found.Name] = *g.Found
			answered++
		case g.Missing != "":
			answered++
		}
	}
	if answered != len(names) {
		return nil, fmt.Errorf("firestore: %d documents were asked for, and the answer is about %d", len(names), answered)
	}
	return found, nil
}

// list implements objects, by a query over names, which needs no index.
func (f *firestore) list(ctx context.Context, prefix string) (names []string, err error) {
	field := map[string]any{"fieldPath": "__name__"}
	compare := func(op, name string) map[string]any {
		return map[string]any{"fieldFilter": map[string]any{
			"field": field, "op": op, "value": map[string]any{"referenceValue": f.document(name)},
		}}
	}
	query := map[string]any{"structuredQuery": map[string]any{
		"select": map[string]any{"fields": []any{field}},
		"from":   []any{map[string]any{"collectionId": collection}},
		"where": map[string]any{"compositeFilter": map[string]any{"op": "AND", "filters": []any{
			compare("GREATER_THAN_OR_EQUAL", prefix), compare("LESS_THAN", prefix+"\uf8ff"),
		}}},
		"orderBy": []any{map[string]any{"field": field, "direction": "ASCENDING"}},
	}}
	var got []struct {
		Document *document `json:"document"`
	}
	if err := f.call(ctx, strings.TrimPrefix(f.at.parent(), f.at.database()+"/")+":runQuery", query, &got); err != nil {
		return nil, err
	}
	for _, g := range got {
		if g.Document != nil {
			id := g.Document.Name[strings.LastIndexByte(g.Document.Name, '/')+1:]
			names = append(names, strings.ReplaceAll(id, ":", "/"))
		}
	}
	return names, nil
}

// remove implements objects.
func (f *firestore) remove(ctx context.Context, list []object) error {
	var changes []change
	for i := range list {
		name := f.document(list[i].name)
		changes = append(changes, change{Delete: name})
		for n := 1; n <= list[i].parts; n++ {
			changes = append(changes, change{Delete: part(name, n)})
		}
	}
	const most = 200 // in one commit
	for len(changes) > 0 {
		n := min(len(changes), most)
		var got struct{}
		if err := f.call(ctx, "documents:commit", map[string]any{"writes": changes[:n]}, &got); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// call carries a request out and reads the answer into to.
func (f *firestore) call(ctx context.Context, method string, request, to any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(
		ctx, http.MethodPost, f.base+"/v1/"+f.at.database()+"/"+method, bytes.NewReader(body),
	)
	if err != nil {
		return err
	}
	token, err := f.token.get(ctx)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	a, err := send(f.client, r)
	if err != nil {
		return fmt.Errorf("firestore: %w", err)
	}
	if a.status != http.StatusOK {
		return explainFirestore(&a)
	}
	if err := json.Unmarshal(a.body, to); err != nil {
		return fmt.Errorf("firestore: the answer cannot be read: %w", err)
	}
	return nil
}

// firestoreError is a refusal.
type firestoreError struct{ code, message string }

func (e *firestoreError) Error() string { return fmt.Sprintf("firestore: %s: %s", e.code, e.message) }

// comparison reports that a precondition failed.
func (e *firestoreError) comparison() bool {
	return e.code == "ALREADY_EXISTS" || e.code == "FAILED_PRECONDITION" || e.code == "NOT_FOUND"
}

// explainFirestore tells remote what a refusal means.
func explainFirestore(a *answer) error {
	type refusal struct {
		Error struct{ Status, Message string }
	}
	var one refusal
	if json.Unmarshal(a.body, &one) != nil {
		var several []refusal // of a method that answers with a list
		if json.Unmarshal(a.body, &several) == nil && len(several) > 0 {
			one = several[0]
		}
	}
	err := &firestoreError{one.Error.Status, one.Error.Message}
	switch err.code {
	case "":
		return fmt.Errorf("firestore: status %d", a.status)
	case "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED", "OUT_OF_RANGE", "ALREADY_EXISTS",
		"FAILED_PRECONDITION", "NOT_FOUND":
		return remote.Final(err)
	}
	return err
}

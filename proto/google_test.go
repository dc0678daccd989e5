package proto

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlockdev/interlock/internal/test/protomessage"
)

// This package's encoding and that of Google's codec are the same: what one writes, the other
// reads and writes again, and nothing is lost on the way.
func TestClientFrameIsTheProtosMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := newGoogle(t, "ClientFrame")
	for range 150 {
		f := randomClientFrame(r)
		again := &ClientFrame{}
		b := g.through(f.AppendTo(nil))
		if err := again.Decode(b); err != nil {
			t.Fatal(err)
		}
		clear(b) // nothing of it is kept
		g.same(f, again)
		for i := range f.Ops {
			one := ClientFrame{Ops: f.Ops[i : i+1]}
			if got, bound := len(one.AppendTo(nil)), f.Ops[i].Size(); got > bound {
				t.Fatalf("proto/size.go: Size returns %d for an operation of %d bytes: %+v", bound, got, f.Ops[i])
			}
		}
	}
	g.whole()
}

func TestServerFrameIsTheProtosMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	g := newGoogle(t, "ServerFrame")
	for range 150 {
		f := randomServerFrame(r)
		again := &ServerFrame{}
		b := g.through(f.AppendTo(nil))
		if err := again.Decode(b); err != nil {
			t.Fatal(err)
		}
		clear(b) // nothing of it is kept
		g.same(f, again)
	}
	g.whole()
}

// google is Google's codec for one kind of frame.
type google struct {
	t     *testing.T
	frame protoreflect.Name
	seen  map[protoreflect.FullName]bool // the fields that were in a frame
	lost  string                         // the first field that was lost on the way
}

func newGoogle(t *testing.T, frame protoreflect.Name) *google {
	t.Helper()
	return &google{t: t, frame: frame, seen: map[protoreflect.FullName]bool{}}
}

// through decodes b, checks that the .proto files declare every field in it, and encodes it again.
func (g *google) through(b []byte) []byte {
	g.t.Helper()
	m := protomessage.New(g.t, g.frame)
	if err := pb.Unmarshal(b, m); err != nil {
		g.t.Fatal(err)
	}
	g.note(m)
	b, err := pb.Marshal(m)
	if err != nil {
		g.t.Fatal(err)
	}
	return b
}

func (g *google) note(m protoreflect.Message) {
	g.t.Helper()
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		x, _, _ := nextField([]byte(unknown))
		g.t.Fatalf("%s writes field %d of message %s, which %s does not declare: run make generate",
			codecOf(m.Descriptor()), x.tag>>3, m.Descriptor().Name(), sourceOf(m.Descriptor()))
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		g.seen[f.FullName()] = true
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				g.note(v.List().Get(i).Message())
			}
		default:
			g.note(v.Message())
		}
		return true
	})
}

// whole checks that every field of every message was in a frame, and that no field of a struct was lost. A declared
// field that is not written explains a lost one.
func (g *google) whole() {
	g.t.Helper()
	g.visit(protomessage.File(g.t).Messages().ByName(g.frame), map[protoreflect.FullName]bool{})
	if g.lost != "" && !g.t.Failed() {
		g.t.Errorf("%s: declare the field in proto/*.proto, then run make generate", g.lost)
	}
}

func (g *google) visit(m protoreflect.MessageDescriptor, visited map[protoreflect.FullName]bool) {
	g.t.Helper()
	if visited[m.FullName()] {
		return
	}
	visited[m.FullName()] = true
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if !g.seen[f.FullName()] {
			g.t.Errorf("%s declares field %s of message %s, which no random frame has: run make generate; if %s "+
				"writes it then, fill it in in proto/frame_test.go", sourceOf(m), f.Name(), m.Name(), codecOf(m))
		} else if f.Message() != nil {
			g.visit(f.Message(), visited)
		}
	}
}

// same compares a frame with what has become of it.
func (g *google) same(sent, received any) {
	if g.lost == "" && !reflect.DeepEqual(sent, received) {
		g.lost = difference(string(g.frame), reflect.ValueOf(sent), reflect.ValueOf(received))
	}
}

func sourceOf(m protoreflect.MessageDescriptor) string { return "proto/" + m.ParentFile().Path() }

// codecOf returns the file that writes a message.
func codecOf(m protoreflect.MessageDescriptor) string {
	if m.Name() == "ClientFrame" || m.Name() == "ServerFrame" {
		return "proto/frame.go"
	}
	return strings.TrimSuffix(sourceOf(m), ".proto") + "_gen.go"
}

// difference returns the first place where two values differ, and both values there.
func difference(at string, a, b reflect.Value) string {
	switch {
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return difference(at, a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				return difference(at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
			}
		}
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() != reflect.Uint8 && a.Len() == b.Len():
		for i := range a.Len() {
			if !reflect.DeepEqual(a.Index(i).Interface(), b.Index(i).Interface()) {
				return difference(fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i))
			}
		}
	}
	return fmt.Sprintf("%s: sent %.200s, received %.200s", at, fmt.Sprint(a), fmt.Sprint(b))
}

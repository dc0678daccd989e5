package stream

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// schema is what the .proto files declare, by name.
type schema struct {
	files    []*protoFile
	messages map[string]*message
	enums    map[string]*enum
}

type protoFile struct {
	name     string // below the root
	messages []*message
}

// message is a message type. Its fields are in the order of the file, which is the order in
// which they are written.
type message struct {
	name   string
	file   *protoFile
	fields []*protoField
	oneof  []*protoField // the fields of its only oneof
}

type protoField struct {
	name     string
	number   int
	kind     string // a scalar type, or the name of a message or an enum
	repeated bool
	optional bool
}

type enum struct {
	name    string
	numbers []int64
}

// readSchema compiles the .proto files of a folder, in the given order. It refuses what this repository does not
// use: nested types, maps, groups, and two oneofs in a message.
func readSchema(tree *source.Tree, folder string, names ...string) (*schema, error) {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{
		ImportPaths: []string{folder},
		Accessor: func(name string) (io.ReadCloser, error) {
			text, err := tree.Read(name)
			return io.NopCloser(bytes.NewReader(text)), err
		},
	}}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, fmt.Errorf("%s/%w", folder, err)
	}
	s := &schema{messages: map[string]*message{}, enums: map[string]*enum{}}
	for _, from := range files {
		file := &protoFile{name: folder + "/" + from.Path()}
		s.files = append(s.files, file)
		for i := range from.Messages().Len() {
			m, err := messageOf(file, from.Messages().Get(i))
			if err != nil {
				return nil, fmt.Errorf("%s: message %s: %w", file.name, from.Messages().Get(i).Name(), err)
			}
			s.messages[m.name] = m
			file.messages = append(file.messages, m)
		}
		for i := range from.Enums().Len() {
			e := &enum{name: string(from.Enums().Get(i).Name())}
			for values, j := from.Enums().Get(i).Values(), 0; j < values.Len(); j++ {
				e.numbers = append(e.numbers, int64(values.Get(j).Number()))
			}
			s.enums[e.name] = e
		}
	}
	return s, nil
}

func messageOf(file *protoFile, d protoreflect.MessageDescriptor) (*message, error) {
	m := &message{name: string(d.Name()), file: file}
	if d.Messages().Len()+d.Enums().Len() > 0 {
		return nil, fmt.Errorf("it has a nested type or a map")
	}
	var oneof protoreflect.OneofDescriptor
	for i := range d.Fields().Len() {
		x := d.Fields().Get(i)
		f := &protoField{
			name: string(x.Name()), number: int(x.Number()), kind: x.Kind().String(), repeated: x.IsList(),
			optional: x.HasOptionalKeyword(),
		}
		switch x.Kind() {
		case protoreflect.MessageKind:
			f.kind = string(x.Message().Name())
		case protoreflect.EnumKind:
			f.kind = string(x.Enum().Name())
		}
		// The codec writes the tag of a field in at most two bytes.
		if f.number > 255 {
			return nil, fmt.Errorf("field %s has the number %d, above 255", f.name, f.number)
		}
		switch in := x.ContainingOneof(); {
		case in == nil || in.IsSynthetic():
			m.fields = append(m.fields, f)
		case oneof != nil && in != oneof:
			return nil, fmt.Errorf("it has two oneofs")
		default:
			oneof = in
			m.oneof = append(m.oneof, f)
		}
	}
	return m, nil
}

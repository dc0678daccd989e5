package spans

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// scope is the name under which the spans come.
const scope = "github.com/interlockdev/interlock"

// Resource describes where spans come from.
type Resource struct {
	Attributes map[string]string
	Version    string // of the program
}

// Encode returns spans as one line of JSON with a line feed: an ExportTraceServiceRequest of OTLP. Its JSON differs
// from that of protobuf: ids are hexadecimal, enums are numbers; 64-bit integers are strings in both.
func (r *Resource) Encode(list []Span) ([]byte, error) {
	encoded := make([]jsonSpan, 0, len(list))
	for i := range list {
		encoded = append(encoded, ofSpan(&list[i]))
	}
	var own []Attribute
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		own = append(own, Attribute{name, r.Attributes[name]})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(jsonRequest{[]jsonResourceSpans{{
		Resource: jsonResource{ofAttributes(own)},
		ScopeSpans: []jsonScopeSpans{{
			Scope: jsonScope{scope, r.Version}, Spans: encoded, SchemaURL: schemaURL,
		}},
	}}})
	return b.Bytes(), err
}

type jsonRequest struct {
	ResourceSpans []jsonResourceSpans `json:"resourceSpans"`
}

type jsonResourceSpans struct {
	Resource   jsonResource     `json:"resource"`
	ScopeSpans []jsonScopeSpans `json:"scopeSpans"`
}

type jsonResource struct {
	Attributes []jsonAttribute `json:"attributes,omitempty"`
}

type jsonScopeSpans struct {
	Scope     jsonScope  `json:"scope"`
	Spans     []jsonSpan `json:"spans"`
	SchemaURL string     `json:"schemaUrl"`
}

type jsonScope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type jsonSpan struct {
	TraceID      string          `json:"traceId"`
	SpanID       string          `json:"spanId"`
	ParentSpanID string          `json:"parentSpanId,omitempty"`
	Name         string          `json:"name"`
	Kind         Role            `json:"kind"`
	Start        string          `json:"startTimeUnixNano"`
	End          string          `json:"endTimeUnixNano"`
	Attributes   []jsonAttribute `json:"attributes,omitempty"`
	Events       []jsonEvent     `json:"events,omitempty"`
	Links        []jsonLink      `json:"links,omitempty"`
	Status       *jsonStatus     `json:"status,omitempty"`
}

type jsonEvent struct {
	Time       string          `json:"timeUnixNano"`
	Name       string          `json:"name"`
	Attributes []jsonAttribute `json:"attributes,omitempty"`
}

type jsonLink struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	Attributes []jsonAttribute `json:"attributes,omitempty"`
}

// jsonStatus is that of a span that has failed; others have none.
type jsonStatus struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"`
}

const statusError = 2

type jsonAttribute struct {
	Key   string    `json:"key"`
	Value jsonValue `json:"value"`
}

// jsonValue has one of its fields.
type jsonValue struct {
	String *string    `json:"stringValue,omitempty"`
	Int    string     `json:"intValue,omitempty"`
	Array  *jsonArray `json:"arrayValue,omitempty"`
}

type jsonArray struct {
	Values []jsonValue `json:"values"`
}

func ofSpan(s *Span) jsonSpan {
	j := jsonSpan{
		TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.ID[:]), Name: s.Name, Kind: s.Role,
		Start: nanos(s.Start), End: nanos(s.End), Attributes: ofAttributes(s.Attributes),
	}
	if s.Parent != (SpanID{}) {
		j.ParentSpanID = hex.EncodeToString(s.Parent[:])
	}
	for i := range s.Events {
		e := &s.Events[i]
		j.Events = append(j.Events, jsonEvent{nanos(e.Time), e.Name, ofAttributes(e.Attributes)})
	}
	for i := range s.Links {
		l := &s.Links[i]
		j.Links = append(j.Links, jsonLink{
			hex.EncodeToString(l.Trace[:]), hex.EncodeToString(l.Span[:]), ofAttributes(l.Attributes),
		})
	}
	if s.Failed {
		j.Status = &jsonStatus{s.Why, statusError}
	}
	return j
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func ofAttributes(list []Attribute) (encoded []jsonAttribute) {
	for i := range list {
		encoded = append(encoded, jsonAttribute{list[i].Name, ofValue(list[i].Value)})
	}
	return encoded
}

func ofValue(v any) (j jsonValue) {
	switch v := v.(type) {
	case string:
		j.String = &v
	case int64:
		j.Int = strconv.FormatInt(v, 10)
	case []string:
		j.Array = &jsonArray{}
		for _, text := range v {
			j.Array.Values = append(j.Array.Values, jsonValue{String: &text})
		}
	default:
		panic(fmt.Sprintf("an attribute of type %T", v))
	}
	return j
}

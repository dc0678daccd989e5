package proto

import (
	"testing"

	"github.com/interlockdev/interlock/proto/sessionpb"
)

func TestServiceIsTheProtos(t *testing.T) {
	desc := &sessionpb.Sessions_ServiceDesc
	if ServiceName != desc.ServiceName || StreamPath != sessionpb.Sessions_Stream_FullMethodName {
		t.Errorf("the service is %s with %s, session.proto has %s with %s",
			ServiceName, StreamPath, desc.ServiceName, sessionpb.Sessions_Stream_FullMethodName)
	}
	if s := desc.Streams; len(s) != 1 || s[0].StreamName != StreamName || !s[0].ServerStreams || !s[0].ClientStreams ||
		len(desc.Methods) > 0 {
		t.Errorf("the service has %+v and %+v, want one stream in both directions", s, desc.Methods)
	}
}

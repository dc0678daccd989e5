package proto

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/protomessage"
)

func TestServiceIsTheProtos(t *testing.T) {
	services := protomessage.File(t).Services()
	if services.Len() != 1 || services.Get(0).Methods().Len() != 1 {
		t.Fatalf("session.proto has %d services, want one with one method", services.Len())
	}
	service, method := services.Get(0), services.Get(0).Methods().Get(0)
	if ServiceName != string(service.FullName()) || StreamName != string(method.Name()) ||
		StreamPath != "/"+ServiceName+"/"+StreamName {
		t.Errorf("proto/service.go has %s with %s, session.proto has %s with %s",
			ServiceName, StreamPath, service.FullName(), method.Name())
	}
	if !method.IsStreamingServer() || !method.IsStreamingClient() ||
		method.Input().Name() != "ClientFrame" || method.Output().Name() != "ServerFrame" {
		t.Errorf("session.proto has %v, want a stream of frames in both directions", method)
	}
}

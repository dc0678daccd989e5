package proto

// The gRPC service that carries the stream, as session.proto declares it.
const (
	ServiceName = "interlock.v1.Sessions"
	StreamName  = "Stream"
	StreamPath  = "/" + ServiceName + "/" + StreamName
)

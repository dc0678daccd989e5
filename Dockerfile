# The server in an image without a shell, for a user that is not root:
#
#   docker build -t interlock .
#   docker run -p 127.0.0.1:7420:7420 -p 127.0.0.1:7421:7421 -v interlock:/data interlock serve --insecure
#
# The checkout needs its .git folder, from which the version comes.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go run ./internal/release -binary -targets $TARGETOS/$TARGETARCH -o /out && mkdir /data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/interlock /interlock
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
ENV INTERLOCK_SERVE_DATA_DIR=/data INTERLOCK_SERVE_HTTP=0.0.0.0:7420 INTERLOCK_SERVE_GRPC=0.0.0.0:7421
EXPOSE 7420 7421
VOLUME /data
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/interlock", "health"]
ENTRYPOINT ["/interlock"]
CMD ["serve"]

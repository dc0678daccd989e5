# The server in an image that has nothing else: no shell, no libraries, no user that is root. It needs no network:
# "make image" puts the files that it copies into dist/image/files, and builds it.
FROM scratch
ARG TARGETOS TARGETARCH VERSION REVISION
LABEL org.opencontainers.image.title="interlock" \
      org.opencontainers.image.description="Traffic control for swarms of AI agents" \
      org.opencontainers.image.source="https://github.com/interlockdev/interlock" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY every /
COPY --chown=65532:65532 data /data
COPY $TARGETOS/$TARGETARCH/interlock /interlock
USER 65532:65532
ENV INTERLOCK_SERVE_JOURNAL=file:/data INTERLOCK_SERVE_HTTP=0.0.0.0:7420 INTERLOCK_SERVE_GRPC=0.0.0.0:7421
EXPOSE 7420 7421
VOLUME /data
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/interlock", "health"]
ENTRYPOINT ["/interlock"]
CMD ["serve"]

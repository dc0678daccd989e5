{{- define "interlock.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* A release that is called like the chart does not repeat it. Seven characters stay for the suffix -peers. */ -}}
{{- define "interlock.fullname" -}}
{{- $name := include "interlock.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 56 | trimSuffix "-" -}}
{{- end -}}

{{- define "interlock.selector" -}}
app.kubernetes.io/name: {{ include "interlock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "interlock.labels" -}}
{{ include "interlock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* remote is true where several servers share a journal, and empty where one keeps it on a volume. */ -}}
{{- define "interlock.remote" -}}
{{- if and .Values.journal.url .Values.journal.urlSecret.name -}}
{{- fail "journal.url and journal.urlSecret.name are two places of the journal: set one of them" -}}
{{- end -}}
{{- if or .Values.journal.url .Values.journal.urlSecret.name -}}true{{- end -}}
{{- end -}}

{{- define "interlock.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* probe is one over HTTP. */ -}}
{{- define "interlock.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .root.Values.tls.secret }}
  scheme: HTTPS
  {{- end }}
{{- end -}}

{{- /* podSpec is what all pods have in common, those of servers and of the restore. */ -}}
{{- define "interlock.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccount }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClass }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "interlock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* env is the variables with the journal's URL, and those of the values. */ -}}
{{- define "interlock.env" -}}
{{- with .Values.journal.urlSecret }}
{{- if .name }}
- name: INTERLOCK_SERVE_JOURNAL
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* pod is the template of the pods of both forms. */ -}}
{{- define "interlock.pod" -}}
{{- $remote := include "interlock.remote" . -}}
{{- $scheme := empty .Values.tls.secret | ternary "http" "https" -}}
{{- $ip := .Values.ipv6 | ternary "[$(POD_IP)]" "$(POD_IP)" -}}
{{- if and (not .Values.credentials.secret) (not .Values.insecure) -}}
{{- fail "name the Secret with the credentials, credentials.secret; or set insecure: true, for a trial" -}}
{{- end -}}
metadata:
  labels:
    {{- include "interlock.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "interlock.podSpec" . | nindent 2 }}
  terminationGracePeriodSeconds: {{ .Values.terminationSeconds }}
  containers:
    - name: interlock
      image: {{ include "interlock.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        {{- if not $remote }}
        - --journal=file:/data/{{ .Values.journal.volume.folder }}
        {{- else if .Values.journal.url }}
        - --journal={{ .Values.journal.url }}
        {{- end }}
        {{- if .Values.ipv6 }}
        - "--http=[::]:7420"
        - "--grpc=[::]:7421"
        {{- else }}
        - --http=0.0.0.0:7420
        - --grpc=0.0.0.0:7421
        {{- end }}
        {{- if $remote }}
        - {{ printf "--advertise-http=%s://%s:7420" $scheme $ip | quote }}
        - {{ printf "--advertise-grpc=%s:7421" $ip | quote }}
        {{- end }}
        {{- if .Values.credentials.secret }}
        - --credentials=/etc/interlock/credentials/{{ .Values.credentials.key }}
        {{- else }}
        - --insecure
        {{- range $suffix := list "" "-peers" }}
        {{- $name := printf "%s%s" (include "interlock.fullname" $) $suffix }}
        {{- range $domain := list "" ".svc" ".svc.cluster.local" }}
        - --host={{ $name }}{{ with $domain }}.{{ $.Release.Namespace }}{{ . }}{{ end }}
        {{- end }}
        {{- end }}
        {{- end }}
        {{- if .Values.tls.secret }}
        - --tls-cert=/etc/interlock/tls/tls.crt
        - --tls-key=/etc/interlock/tls/tls.key
        {{- if $remote }}
        {{- with .Values.tls.ca }}
        - --peer-ca=/etc/interlock/tls/{{ . }}
        {{- end }}
        - --peer-name={{ include "interlock.fullname" . }}-peers.{{ .Release.Namespace }}.svc
        {{- end }}
        {{- end }}
        {{- range $flag, $value := .Values.settings }}
        - {{ printf "--%s=%v" $flag $value | quote }}
        {{- end }}
      {{- if or $remote .Values.env }}
      env:
        {{- if $remote }}
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        {{- end }}
        {{- include "interlock.env" . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 7420
        - name: session
          containerPort: 7421
        {{- with get .Values.settings "resp" }}
        - name: resp
          containerPort: {{ . | toString | regexFind "[0-9]+$" }}
        {{- end }}
      startupProbe:
        {{- include "interlock.probe" (dict "root" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        failureThreshold: {{ div .Values.startupSeconds 2 }}
      livenessProbe:
        {{- include "interlock.probe" (dict "root" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        {{- include "interlock.probe" (dict "root" . "path" "/readyz") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 3 # 15 s, which is longer than a fail-over
      {{- if $remote }}
      lifecycle:
        preStop: # until no endpoint is left that leads here
          sleep:
            seconds: 5
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "interlock.containerSecurity" . | nindent 8 }}
      {{- if or (not $remote) .Values.credentials.secret .Values.tls.secret .Values.mounts }}
      volumeMounts:
        {{- if not $remote }}
        - name: data
          mountPath: /data
        {{- end }}
        {{- if .Values.credentials.secret }}
        - name: credentials
          mountPath: /etc/interlock/credentials
          readOnly: true
        {{- end }}
        {{- if .Values.tls.secret }}
        - name: tls
          mountPath: /etc/interlock/tls
          readOnly: true
        {{- end }}
        {{- with .Values.mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
  {{- if or .Values.credentials.secret .Values.tls.secret .Values.volumes }}
  volumes:
    {{- with .Values.credentials.secret }}
    - name: credentials
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.tls.secret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- if $remote }}
  topologySpreadConstraints:
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ $key }}
      maxSkew: 1
      whenUnsatisfiable: {{ $.Values.spread }}
      labelSelector:
        matchLabels:
          {{- include "interlock.selector" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

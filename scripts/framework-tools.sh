#!/usr/bin/env bash
# Installs the agent frameworks that the client for Python is tested with into dist/frameworks, each into a venv of its
# own: they need different versions of the same packages. NAME.build has what builds those that are not taken as wheels.
. "$(dirname "$0")/tools.bash"

declare -A size=( # in MB
    [adk]=140 [agent-framework]=60 [claude-agent-sdk]=80 [crewai]=310 [langchain]=110 [openai-agents]=120 [pydantic-ai]=70
)
for lock in internal/test/frameworktest/testdata/*.txt; do
    name=$(basename "$lock" .txt)
    build=${lock%.txt}.build
    [ -f "$build" ] || build=
    wanted "frameworks/$name" "${size[$name]}" "$lock" $build || continue
    for file in $build "$lock"; do from_pip "$folder" install --no-build-isolation -r "$file"; done
    installed
done

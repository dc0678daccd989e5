// The plugin is one that OpenCode can load, and has no hook that OpenCode does not call.
import type { Hooks, Plugin } from "@opencode-ai/plugin"
import { Interlock } from "./interlock"

export const plugin: Plugin = Interlock
type Unknown = Exclude<keyof Awaited<ReturnType<typeof Interlock>>, keyof Hooks>
export const unknown: Unknown[] extends never[] ? true : Unknown = true

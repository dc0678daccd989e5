// Interlock for OpenCode. `interlock hooks install opencode` writes this file, and overwrites changes.
//
// It asks an Interlock server before a tool writes a file, and reports what became of it. It throws
// for a refusal of the server only: any failure of its own lets the tool run, unless the mode is strict.
import { readFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"

const SETTINGS: string[][] = [] // parameters of the address of hooks, and their values
const WAIT_S = 30 // how long an edit may wait for a file
const STRICT = SETTINGS.some(([name, value]) => name === "mode" && value === "strict")
const ALSO = SETTINGS.filter(([name]) => name === "also").map(([, value]) => value.split(":")[0])
const SHORT_MS = 5_000 // for events that wait for nothing
const QUIET_MS = 600_000 // between two messages about a failure

const WRITES = new Set([
  "edit", "write", "multiedit", "apply_patch", "patch", "bash", ...ALSO,
])
const READS = new Set(["read"])
const LEASES = new Set(["interlock_acquire", "interlock_wait"]) // of the MCP server: what they take is the agent's own

interface Settings {
  servers: string[]
  credential: string
  namespace: string
}

interface Answer {
  decision?: string
  reason?: string
  context?: string
  command?: string // to run in place of the asked one
}

interface Report {
  event: string
  sessionID: string
  rootID?: string
  callID?: string
  tool?: string
  args?: unknown
  output?: string
  directory?: string
  prompt?: string
}

interface ToolCall {
  tool: string
  sessionID: string
  callID: string
}

// hookFile is the file that `interlock hooks install` writes; see internal/home.
function hookFile(): string {
  const config = process.env.INTERLOCK_CONFIG
  if (config) return join(dirname(config), "hook.env")
  let base = process.env.XDG_CONFIG_HOME || join(homedir(), ".config")
  if (process.platform === "darwin") base = join(homedir(), "Library", "Application Support")
  if (process.platform === "win32") base = process.env.AppData ?? base
  return join(base, "interlock", "hook.env")
}

// settings reads the variables, and the file where there is no variable. With the address of a server
// from a variable no credential of the file is used.
function settings(): Settings {
  const file: Record<string, string> = {}
  try {
    for (const line of readFileSync(hookFile(), "utf8").split("\n")) {
      const at = line.indexOf("=")
      if (at > 0) file[line.slice(0, at).trim()] = line.slice(at + 1).trim()
    }
  } catch {
    // There is none.
  }
  const env = process.env
  const own = env.INTERLOCK_URL ? {} : file
  let credential = env.INTERLOCK_CREDENTIAL || ""
  const secret = env.INTERLOCK_CREDENTIAL_FILE || (credential ? "" : own.INTERLOCK_CREDENTIAL_FILE)
  if (!credential && secret) credential = readFileSync(secret, "utf8").trim()
  return {
    servers: (env.INTERLOCK_URL || file.INTERLOCK_URL || "http://127.0.0.1:7420").split(",").map((text) => {
      const url = text.trim().replace(/\/+$/, "")
      return url.includes("://") ? url : "http://" + url
    }),
    credential: credential || own.INTERLOCK_CREDENTIAL || "",
    namespace: env.INTERLOCK_NAMESPACE || file.INTERLOCK_NAMESPACE || "",
  }
}

// post sends a report to the first server that takes it.
async function post(report: Report, waitS: number, timeout: number): Promise<Answer> {
  const { servers, credential, namespace } = settings()
  const headers: Record<string, string> = { "content-type": "application/json" }
  if (credential) headers.authorization = "Bearer " + credential
  if (namespace) headers["interlock-namespace"] = namespace
  const around = [process.env.INTERLOCK_LEASE, process.env.INTERLOCK_OUTER].filter(Boolean).join(" ")
  if (around) headers["x-interlock-lease"] = around
  const query = new URLSearchParams({ wait_s: String(waitS) })
  for (const [name, value] of SETTINGS) query.append(name, value)
  const signal = AbortSignal.timeout(timeout)
  let failure: unknown
  for (const server of servers) {
    try {
      const answer = await fetch(`${server}/v1/hooks/opencode?${query}`, {
        method: "POST", headers, body: JSON.stringify(report), signal, redirect: "error",
      })
      const text = await answer.text()
      if (answer.ok) return text ? (JSON.parse(text) as Answer) : {}
      failure = new Error(`the server at ${server} refused the event: ${text.slice(0, 300)}`)
      if (answer.status !== 503) break
    } catch (err) {
      const cause = err instanceof Error && err.cause ? err.cause : err
      const text = signal.aborted ? "it did not answer in time" : reasonOf(cause)
      failure = new Error(`the server at ${server} cannot be asked: ${text}`)
      if (signal.aborted) break
    }
  }
  throw failure
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure)
}

let reported = 0

function complain(failure: unknown): void {
  if (Date.now() - reported < QUIET_MS) return
  reported = Date.now()
  const text = reasonOf(failure).replace(/[\u0000-\u001f\u007f-\u009f]/g, " ")
  console.error(`interlock: files are not reserved: ${text} (interlock hooks doctor tests it)`)
}

// tell sends a report that nothing waits for. Its failure changes nothing.
async function tell(report: Report): Promise<Answer> {
  try {
    return await post(report, 0, SHORT_MS)
  } catch (failure) {
    complain(failure)
    return {}
  }
}

export const Interlock = async ({ directory }: { directory: string }) => {
  const parents = new Map<string, string>()
  const roots = new Set<string>()

  // rootOf is the session that a person talks to.
  const rootOf = (session: string): string => {
    for (let i = 0; i < 32; i++) {
      const parent = parents.get(session)
      if (!parent) break
      session = parent
    }
    return session
  }

  const reportOf = (event: string, call: ToolCall, args: unknown): Report => {
    const rootID = rootOf(call.sessionID)
    roots.add(rootID)
    return {
      event, sessionID: call.sessionID, rootID, callID: call.callID, tool: call.tool, args, directory,
    }
  }

  return {
    "tool.execute.before": async (input: ToolCall, output: { args: any }) => {
      if (!WRITES.has(input.tool) && !LEASES.has(input.tool)) return
      let answer: Answer = {}
      try {
        answer = await post(reportOf("tool.execute.before", input, output.args), WAIT_S, (WAIT_S + 2) * 1000)
      } catch (failure) {
        if (!STRICT) {
          complain(failure)
          return
        }
        answer = {
          decision: "deny",
          reason: "The file cannot be reserved, and hooks are strict here, so do not change it by another way. " +
            `${reasonOf(failure)}. A person can repair it: interlock hooks doctor`,
        }
      }
      if (answer.decision === "deny") throw new Error(answer.reason ?? "refused by Interlock")
      if (answer.command && output.args) output.args.command = answer.command
    },

    "tool.execute.after": async (input: ToolCall & { args?: unknown }, output: { output?: string }) => {
      if (!WRITES.has(input.tool) && !READS.has(input.tool) && !LEASES.has(input.tool)) return
      const report = reportOf("tool.execute.after", input, input.args)
      if (LEASES.has(input.tool) && typeof output?.output === "string") report.output = output.output
      const answer = await tell(report)
      if (answer.context && typeof output?.output === "string") output.output += "\n\n" + answer.context
    },

    "chat.message": async (input: { sessionID: string }, output: { parts?: { type?: string; text?: string }[] }) => {
      const prompt = output?.parts?.find((part) => part.type === "text")?.text
      const rootID = rootOf(input.sessionID)
      await tell({ event: "chat.message", sessionID: input.sessionID, rootID, directory, prompt: prompt?.slice(0, 500) })
    },

    event: async ({ event }: { event: { type: string; properties?: any } }) => {
      const p = event.properties ?? {}
      const session: string | undefined = p.sessionID ?? p.info?.id ?? p.part?.sessionID
      if (!session) return
      if (event.type === "session.created" && p.info?.parentID) parents.set(session, p.info.parentID)
      if (event.type === "session.idle" || event.type === "session.deleted") {
        await tell({ event: event.type, sessionID: session, rootID: rootOf(session), directory })
      }
      const part = p.part
      if (event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error" && WRITES.has(part.tool)) {
        const call = { tool: part.tool, sessionID: session, callID: part.callID }
        await tell(reportOf("tool.execute.failed", call, part.state.input))
      }
    },

    dispose: async () => {
      for (const session of roots) await tell({ event: "dispose", sessionID: session, directory })
    },
  }
}

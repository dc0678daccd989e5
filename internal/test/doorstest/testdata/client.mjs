// An agent by the TypeScript SDK: one JSON line per call on standard input, one per answer on standard output. The
// arguments are the URL of the server, or the command of a shell that serves the agent, and the agent's name.

import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpError, ResultSchema } from '@modelcontextprotocol/sdk/types.js'

const [target, name] = process.argv.slice(2)
const client = new Client({ name: 'typescript', version: '1' })
const headers = name ? { 'Interlock-Agent': name } : {}
const transport = target.startsWith('http:')
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: 'sh', args: ['-c', target], env: process.env })

async function answer({ method, params, tool, arguments: args, meta }, onprogress) {
  if (method) {
    await client.request({ method, params }, ResultSchema)
    return {}
  }
  const result = await client.callTool({ name: tool, arguments: args, _meta: meta }, undefined, { onprogress })
  return { error: result.isError === true, structured: result.structuredContent, text: result.content[0].text }
}

await client.connect(transport)
for await (const line of createInterface({ input: process.stdin })) {
  const reports = []
  const got = await answer(JSON.parse(line), ({ progress }) => reports.push(progress)).catch((e) => {
    if (e instanceof McpError) return { code: e.code }
    throw e
  })
  console.log(JSON.stringify({ ...got, reports, revision: transport.protocolVersion }))
}
await transport.terminateSession?.()
await client.close()

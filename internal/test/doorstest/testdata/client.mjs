// An agent by the TypeScript SDK: one JSON line per call on standard input, one per answer on standard output.

import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const client = new Client({ name: 'typescript', version: '1' })
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]))
await client.connect(transport)
for await (const line of createInterface({ input: process.stdin })) {
  const { tool, arguments: args } = JSON.parse(line)
  const reports = []
  const onprogress = ({ progress }) => reports.push(progress)
  const result = await client.callTool({ name: tool, arguments: args }, undefined, { onprogress })
  const answer = { error: result.isError === true, structured: result.structuredContent, text: result.content[0].text }
  console.log(JSON.stringify({ ...answer, reports, revision: transport.protocolVersion }))
}
await transport.terminateSession()
await client.close()

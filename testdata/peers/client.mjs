// A client of the TypeScript SDKs, driven by lines of JSON.
//
//   node client.mjs sdk|client stdio|http VERSION COMMAND [ARG …] | URL
//
// sdk is @modelcontextprotocol/sdk, client is @modelcontextprotocol/client, which
// alone speaks 2026-07-28. Each line of standard input is {"tool", "args"}, or
// {"do", "with"} for another method of the client; the answer is {"result"} or
// {"threw"}, and whether the tool publishes an outputSchema. The first line of
// output says what was opened.
import { createInterface } from "node:readline";

const [which, transport, version, ...target] = process.argv.slice(2);
const info = { name: "typescript-" + which, version: "1" };

async function connect() {
  if (which === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const client = new Client(info, { capabilities: {} });
    if (transport === "stdio") {
      const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
      await client.connect(new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }));
    } else {
      const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
      await client.connect(new StreamableHTTPClientTransport(new URL(target[0])));
    }
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = version === "2026-07-28" ? { pin: version } : "legacy";
  const client = new Client(info, { capabilities: {}, versionNegotiation: { mode } });
  await client.connect(transport === "stdio"
    ? new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(target[0])));
  return client;
}

const say = (v) => process.stdout.write(JSON.stringify(v) + "\n");

const client = await connect();
const { tools } = await client.listTools();
const published = new Map(tools.map((t) => [t.name, t.outputSchema !== undefined]));
say({
  version: client.getNegotiatedProtocolVersion?.() ?? client.transport?.protocolVersion ?? client.transport?._protocolVersion ?? null,
  tools: tools.map((t) => t.name),
});
for await (const line of createInterface({ input: process.stdin })) {
  const { tool, args, do: method, with: params } = JSON.parse(line);
  const schema = published.get(tool) ?? false;
  try {
    say({ schema, result: await (method ? client[method](params) : client.callTool({ name: tool, arguments: args })) });
  } catch (e) {
    say({ schema, threw: String(e?.message ?? e), code: e?.code });
  }
}
await client.close();
